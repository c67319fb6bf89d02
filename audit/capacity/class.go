package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
)

// MaxClasses bounds the observed classes of a report; what is left out is said.
const MaxClasses = 50

// Class is one kind of workload.
type Class struct {
	Name     string
	Source   string // configured or observed
	Resource string
	Shape    *inventory.Shape
	owners   []string
	pending  int
	running  int
}

// need is how many devices one replica takes.
func (c *Class) need() int64 { return c.Shape.Requests[c.Resource] }

// Classes gives the configured classes, else those observed from Pending and
// Running pods that want devices. left is how many observed ones are left out.
func (m *Model) Classes(c *inventory.Cluster, configured []settings.Workload) (classes []*Class, left int) {
	if !c.AnySeen(inventory.Pods) || !c.Seen(inventory.Nodes) {
		return nil, 0
	}
	shapes := inventory.NewShapes()
	for _, w := range configured {
		shape := shapes.Intern(&inventory.Shape{Requests: w.Requests, NodeSelector: w.NodeSelector, Affinity: w.Affinity, Tolerations: w.Tolerations})
		classes = append(classes, &Class{Name: w.Name, Source: "configured", Shape: shape, Resource: m.mainResource(shape)})
	}
	if len(configured) > 0 {
		m.countPods(c, classes, belongs)
		return classes, 0
	}
	classes = m.observed(c)
	if len(classes) > MaxClasses {
		left = len(classes) - MaxClasses
		classes = classes[:MaxClasses]
	}
	nameClasses(classes)
	keepApart(classes)
	slices.SortFunc(classes, func(a, b *Class) int { return strings.Compare(a.Name, b.Name) })
	return classes, left
}

// mainResource is the counted device that a shape asks for.
func (m *Model) mainResource(shape *inventory.Shape) string {
	asked := m.survey.Asked(shape)
	names := slices.Sorted(maps.Keys(asked))
	best := ""
	for _, name := range names {
		if best == "" || asked[name] > asked[best] {
			best = name
		}
	}
	return best
}

func (m *Model) observed(c *inventory.Cluster) []*Class {
	by := map[string]*Class{}
	get := func(shape *inventory.Shape) *Class {
		resource := m.mainResource(shape)
		if resource == "" {
			return nil
		}
		if by[shape.Key()] == nil {
			by[shape.Key()] = &Class{Source: "observed", Shape: shape, Resource: resource}
		}
		return by[shape.Key()]
	}
	for _, p := range c.Pods {
		// A DaemonSet's pod is for one node: no class of workload.
		if p.Phase != "Pending" || p.Deletion != nil || p.TargetNode != "" || p.Owner.Kind == "DaemonSet" {
			continue
		}
		class := get(p.Shape)
		if class == nil {
			continue
		}
		if p.Node == "" {
			class.pending++
		}
		class.own(ownerRef(p))
	}
	for _, r := range c.RunningShapes {
		if class := get(r.Shape); class != nil {
			class.running += r.Count
			for _, o := range r.Owners {
				class.own(o)
			}
		}
	}
	out := slices.Collect(maps.Values(by))
	slices.SortFunc(out, func(a, b *Class) int {
		return cmp.Or(b.pending-a.pending, cmp.Compare(int64(b.running)*b.need(), int64(a.running)*a.need()), strings.Compare(a.Shape.Key(), b.Shape.Key()))
	})
	return out
}

// ClaimsAlone counts the pods that ask for devices by resource claims and by no
// resource name. They are in no class: which devices would serve a claim is
// decided by its selectors over driver attributes, and these are not modelled.
func (m *Model) ClaimsAlone(c *inventory.Cluster) (waiting, running int) {
	alone := func(s *inventory.Shape) bool { return s.ClaimCount > 0 && m.mainResource(s) == "" }
	for _, p := range c.Pods {
		if p.Phase == "Pending" && p.Node == "" && p.Deletion == nil && alone(p.Shape) {
			waiting++
		}
	}
	for _, r := range c.RunningShapes {
		if alone(r.Shape) {
			running += r.Count
		}
	}
	return waiting, running
}

func ownerRef(p *inventory.Pod) string {
	if p.Owner.Kind == "" {
		return "Pod/" + p.Ref()
	}
	return p.Owner.Kind + "/" + p.Namespace + "/" + p.Owner.Name
}

// ownersKept bounds the owners named on a class.
const ownersKept = 16

func (c *Class) own(o string) {
	i, found := slices.BinarySearch(c.owners, o)
	if !found {
		c.owners = slices.Insert(c.owners, i, o)
		if len(c.owners) > ownersKept {
			c.owners = c.owners[:ownersKept]
		}
	}
}

// countPods counts the pods that belong to configured classes.
func (m *Model) countPods(c *inventory.Cluster, classes []*Class, belongs func(*Class, *inventory.Shape) bool) {
	for _, class := range classes {
		for _, p := range c.Pods {
			if p.Phase == "Pending" && p.Deletion == nil && belongs(class, p.Shape) {
				if p.Node == "" {
					class.pending++
				}
				class.own(ownerRef(p))
			}
		}
		for _, r := range c.RunningShapes {
			if belongs(class, r.Shape) {
				class.running += r.Count
				for _, o := range r.Owners {
					class.own(o)
				}
			}
		}
	}
}

// belongs: a pod is of a configured class when it asks for the class's device
// and selects nodes as the class does.
func belongs(c *Class, s *inventory.Shape) bool {
	return c.Resource != "" && s.Requests[c.Resource] > 0 && maps.Equal(c.Shape.NodeSelector, s.NodeSelector) && (c.Shape.Affinity == nil) == (s.Affinity == nil)
}

// Report gives the class with its waterfall.
func (m *Model) Report(c *Class, priorities bool) report.Class {
	out := report.Class{
		Name: c.Name, Source: c.Source, Resource: c.Resource, Requests: c.Shape.Requests.Quantities(), NodeSelector: c.Shape.NodeSelector,
		RuntimeClass: c.Shape.RuntimeClass, Owners: c.owners, UpperBound: m.survey.UpperBoundOf(c.Resource),
	}
	if c.Shape.Affinity != nil {
		out.Affinity = c.Shape.Affinity
	}
	if len(c.Shape.Tolerations) > 0 {
		out.Tolerations = c.Shape.Tolerations
	}
	for _, p := range c.Shape.HostPorts {
		out.HostPorts = append(out.HostPorts, fmt.Sprintf("%s/%d", p.Protocol, p.Port))
	}
	pending, running := c.pending, c.running
	out.PendingPods, out.RunningPods = &pending, &running
	lost := map[string]*report.Lost{}
	units := map[string]bool{}
	for _, n := range m.nodes {
		if n.Kind != health.Physical {
			continue
		}
		free, known := n.devices[c.Resource]
		if !known {
			continue
		}
		units[m.survey.Node(n.Name)[c.Resource].Unit] = true
		v := n.judge(c)
		if v.eligible {
			out.EligibleNodes++
			out.Reclaimable += n.Load.Reclaimable[c.Resource]
			out.Nominated += n.reserved[c.Resource]
		}
		out.ApparentFree += free
		out.Schedulable += v.replicas * c.need()
		out.Replicas += v.replicas
		out.MaxReplicasNode = max(out.MaxReplicasNode, v.replicas)
		for _, l := range v.lost {
			addLost(lost, l, n.Name)
		}
	}
	out.NotModelled = m.notModelled(c, len(units))
	out.NotOffered = m.notOffered(c)
	for _, reason := range precedence {
		if l := lost[reason]; l != nil {
			sort.Strings(l.Nodes)
			out.Lost = append(out.Lost, *l)
		}
	}
	return out
}

// notModelled names what of the class the division leaves out. units is in how
// many units the nodes count its devices.
func (m *Model) notModelled(c *Class, units int) []string {
	out := slices.Clone(c.Shape.NotModelled)
	for _, name := range c.Shape.Requests.Names() {
		if name != c.Resource && m.survey.IsView(name) {
			out = append(out, name)
		}
	}
	if units > 1 {
		out = append(out, "mixedUnits")
	}
	if m.survey.Served(c.Resource) || (units == 0 && m.survey.MayBeServed(c.Resource)) {
		// A driver's devices stand behind the name, beside what plugins advertise
		// or alone; which of them, its device class alone tells.
		out = append(out, "resourceClaims")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notOffered names the extended resources that the class asks for and no node
// has: without the name, a slip of it looks like a cluster in full use. A
// resource that a DRA driver answers for stands on no node.
func (m *Model) notOffered(c *Class) []string {
	var out []string
	if len(m.nodes) == 0 {
		return nil
	}
	for _, name := range c.Shape.Requests.Names() {
		had := !strings.Contains(name, "/") || m.survey.MayBeServed(name)
		for _, n := range m.nodes {
			had = had || n.Capacity[name] > 0 || n.Allocatable[name] > 0
		}
		if !had {
			out = append(out, name)
		}
	}
	return out
}

func addLost(lost map[string]*report.Lost, l loss, node string) {
	to := lost[l.reason]
	if to == nil {
		to = &report.Lost{Reason: l.reason, Step: steps[l.reason], DevicesByNode: map[string]int64{}}
		lost[l.reason] = to
	}
	to.Devices += l.devices
	to.DevicesByNode[node] += l.devices
	to.Nodes = append(to.Nodes, node)
	switch {
	case l.detail == "" || strings.Contains("; "+to.Detail+"; ", "; "+l.detail+"; "):
	case to.Detail == "":
		to.Detail = l.detail
	case len(to.Detail) < 200:
		to.Detail += "; " + l.detail
	}
}
