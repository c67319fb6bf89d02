// Package capacity works out what of the free devices a workload can really
// get: every free device is either schedulable for a class or lost for exactly
// one reason.
package capacity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"gpuaudit/audit/device"
	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
)

// Model is a cluster as a scheduler sees it: what every node has left.
type Model struct {
	nodes  []*node
	byName map[string]*node
	survey *device.Survey
}

type node struct {
	*health.Node
	object *corev1.Node // name and labels, for matching
	taints []corev1.Taint
	// free is allocatable minus requested, of every advertised resource; it may be negative.
	free inventory.Resources
	pods int64 // pod slots left; -1 when the node does not say
	// devices are the free counted devices, never below 0; a resource whose pods were not seen is missing.
	devices map[string]int64
	ports   []inventory.HostPort
	// reserved is nominated for preemptors.
	reserved inventory.Resources
	// verdict of the whole node
	notReady, silent, cordoned, rejecting bool
	survey                                *device.Survey
	// affinities are the model's: required affinities as read, by what they were read from.
	affinities map[*corev1.NodeSelector]nodeaffinity.RequiredNodeAffinity
}

// NewModel builds the model. Nominated pods reserve their node's resources.
func NewModel(c *inventory.Cluster, h *health.Verdict, s *device.Survey) *Model {
	m := &Model{byName: make(map[string]*node, len(h.Nodes)), survey: s}
	affinities := map[*corev1.NodeSelector]nodeaffinity.RequiredNodeAffinity{}
	for _, n := range h.Nodes {
		object := &corev1.Node{}
		object.Name, object.Labels = n.Name, n.Labels
		mn := &node{Node: n, survey: s, affinities: affinities, object: object, taints: n.Taints, free: inventory.Resources{}, pods: -1, devices: map[string]int64{}, ports: n.Load.HostPorts,
			notReady: n.Ready != inventory.Yes, silent: n.Silent && !h.AllSilent, cordoned: n.Cordoned, rejecting: n.Rejecting}
		for name, amount := range n.Allocatable {
			if name == string(corev1.ResourcePods) {
				mn.pods = max(0, amount-int64(n.Load.Pods))
				continue
			}
			mn.free[name] = amount - n.Load.Requested[name]
		}
		for name, u := range s.Node(n.Name) {
			if u.Known {
				mn.devices[name] = u.Free
				if u.Source == "dra" {
					mn.free[name] = u.Free
				}
			}
		}
		for name, u := range s.Alternatives(n.Name) {
			if u.Known {
				mn.devices[name] = u.Free
			}
		}
		m.nodes = append(m.nodes, mn)
		m.byName[n.Name] = mn
	}
	for _, p := range c.Pods {
		if n := m.byName[p.Nominated]; p.Node == "" && n != nil {
			if n.reserved == nil {
				n.reserved = inventory.Resources{}
			}
			n.reserved.Add(p.Shape.Requests)
		}
	}
	return m
}

// The words of the scheduler for what a node lacks, as its filter plugins say
// them (kubernetes pkg/scheduler/framework/plugins).
const (
	reasonUnschedulable = "node(s) were unschedulable"
	reasonTaint         = "node(s) had untolerated taint"
	reasonAffinity      = "node(s) didn't match Pod's node affinity/selector"
	reasonPorts         = "node(s) didn't have free ports for the requested pod ports"
	reasonPods          = "Too many pods"
	reasonInsufficient  = "Insufficient "
)

// Reasons gives all of the scheduler's reasons against a pod of that shape on
// a node, filter by filter; none means that it fits. Readiness, silence and
// admission failures are not among them: the scheduler has no such filter.
func (m *Model) Reasons(shape *inventory.Shape, name string) []string {
	n := m.byName[name]
	if n == nil {
		return []string{"node does not exist"}
	}
	var out []string
	for _, plugin := range n.filters(shape) {
		out = append(out, plugin...)
	}
	return out
}

// FirstReasons gives the reasons of the first failing filter alone, which is
// what the scheduler reports for a node.
func (m *Model) FirstReasons(shape *inventory.Shape, name string) []string {
	n := m.byName[name]
	if n == nil {
		return nil
	}
	for _, plugin := range n.filters(shape) {
		if len(plugin) > 0 {
			return plugin
		}
	}
	return nil
}

// filters runs the modelled filters in the scheduler's default order.
func (n *node) filters(shape *inventory.Shape) [][]string {
	var unschedulable, taint, affinity, ports []string
	if n.Node.Node.Cordoned && !toleratesUnschedulable(shape.Tolerations) {
		unschedulable = []string{reasonUnschedulable}
	}
	if t, bad := n.untolerated(shape.Tolerations); bad {
		taint = []string{fmt.Sprintf("%s {%s: %s}", reasonTaint, t.Key, t.Value)}
	}
	if !n.matches(shape) {
		affinity = []string{reasonAffinity}
	}
	if n.portConflict(shape.HostPorts) != nil {
		ports = []string{reasonPorts}
	}
	return [][]string{unschedulable, taint, affinity, ports, n.lacks(shape)}
}

func toleratesUnschedulable(tolerations []corev1.Toleration) bool {
	return tolerates(tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return corehelpers.TolerationsTolerateTaint(klog.Background(), tolerations, taint, false)
}

func (n *node) untolerated(tolerations []corev1.Toleration) (corev1.Taint, bool) {
	return corehelpers.FindMatchingUntoleratedTaint(klog.Background(), n.taints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
}

// matches is the scheduler's NodeAffinity filter: node selector and required affinity.
func (n *node) matches(shape *inventory.Shape) bool {
	for key, want := range shape.NodeSelector {
		if has, there := n.object.Labels[key]; !there || has != want {
			return false
		}
	}
	if shape.Affinity == nil {
		return true
	}
	affinity, known := n.affinities[shape.Affinity]
	if !known {
		pod := &corev1.Pod{}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: shape.Affinity}}
		affinity = nodeaffinity.GetRequiredNodeAffinity(pod)
		n.affinities[shape.Affinity] = affinity
	}
	ok, err := affinity.Match(n.object)
	return err == nil && ok
}

// portConflict finds a wanted host port that is taken.
// Source: kube-scheduler framework HostPortInfo.CheckConflict.
func (n *node) portConflict(wanted []inventory.HostPort) *inventory.HostPort {
	for i, w := range wanted {
		for _, used := range n.ports {
			if w.Port == used.Port && w.Protocol == used.Protocol && (w.IP == used.IP || w.IP == "0.0.0.0" || used.IP == "0.0.0.0") {
				return &wanted[i]
			}
		}
	}
	return nil
}

// lacks lists every resource that is short, as NodeResourcesFit does. A plain
// resource that the node does not state is not judged.
func (n *node) lacks(shape *inventory.Shape) []string {
	var out []string
	if n.pods == 0 {
		out = append(out, reasonPods)
	}
	for _, name := range shape.Requests.Names() {
		want := shape.Requests[name]
		if want <= 0 {
			continue
		}
		if n.short(name, want) {
			out = append(out, reasonInsufficient+name)
		}
	}
	return out
}

// short is true when the node has less than wanted of a resource.
func (n *node) short(name string, want int64) bool {
	free, stated := n.free[name]
	if !stated && (inventory.IsPlain(name) || n.survey.IsView(name)) {
		return false
	}
	return want > free
}

// Fits is true when the scheduler could bind one pod of the shape there now,
// and the node would really start it.
func (m *Model) Fits(shape *inventory.Shape, name string) bool {
	n := m.byName[name]
	return n != nil && n.alive() && n.fits(shape)
}

// clone copies a node far enough to change labels, taints, state and amounts.
func (n *node) clone() *node {
	out := *n
	object := *n.object
	object.Labels = map[string]string{}
	for k, v := range n.object.Labels {
		object.Labels[k] = v
	}
	out.object = &object
	health := *n.Node
	inner := *n.Node.Node
	health.Node = &inner
	out.Node = &health
	out.taints = slices.Clone(n.taints)
	out.free = n.free.Clone()
	out.devices = map[string]int64{}
	for k, v := range n.devices {
		out.devices[k] = v
	}
	return &out
}
