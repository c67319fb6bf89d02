// Package health judges nodes: ready, silent, cordoned, what kind of node it
// is, since when. Every time and every verdict comes from the field that means
// it; what nothing tells stays unknown.
package health

import (
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/settings"
)

// Kind of a node.
type Kind string

// Physical nodes have hardware of their own; elastic ones stand for a pool
// (virtual-kubelet); fake ones are an upstream virtual cluster's stand-ins.
const (
	Physical Kind = "physical"
	Elastic  Kind = "elastic"
	Fake     Kind = "fake"
)

// Node is the verdict on one node.
type Node struct {
	*inventory.Node
	Kind Kind
	// Ready is what the Ready condition says; Unknown when it is Unknown or missing.
	Ready inventory.Tri
	// NeverReported is true when no kubelet has ever reported a status.
	NeverReported bool
	// NotReadySince is when readiness was lost; zero when ready. It is the
	// node's creation for one that never reported.
	NotReadySince time.Time
	// LastHeartbeat is the younger of the lease and the Ready heartbeat; zero when there never was one.
	LastHeartbeat time.Time
	// Silent is true for a Ready node without a sign of life for too long.
	Silent bool
	// SilenceKnown is false for a node that never had a moving heartbeat.
	SilenceKnown bool
	// ByConditionAlone is true when leases were not seen and the wider threshold was used.
	ByConditionAlone bool
	// Cordoned is spec.unschedulable or a taint that is a cordon in effect.
	Cordoned bool
	// CordonTaint is the taint that is a cordon in effect, "" for spec.unschedulable.
	CordonTaint string
	// CordonedSince is zero when no field tells.
	CordonedSince time.Time
	// Bindable is true when the scheduler can still bind pods to the dead node
	// (no not-ready or unreachable taint that forbids scheduling, no cordon).
	Bindable bool
	// ClockSkew is how far the node's clock runs ahead of the server's, when its heartbeat lies in the future.
	ClockSkew time.Duration
	// Rejecting is true when pods keep failing at admission here.
	Rejecting bool
	// Rejections within the window.
	Rejections int
}

// Dead is true when pods on the node do no work as far as can be told.
func (n *Node) Dead() bool { return n.Ready != inventory.Yes || n.Silent }

// Verdict is the judgement of all nodes.
type Verdict struct {
	Nodes  []*Node // sorted by name
	byName map[string]*Node
	// AllSilent is true when every node that could be judged is silent: a
	// matter of the platform (or of our clock), not of the nodes.
	AllSilent bool
	// Virtual names the virtual-cluster marks seen, sorted; empty for none.
	Virtual []string
}

// Node gives the verdict on a node, nil when there is none of that name.
func (v *Verdict) Node(name string) *Node { return v.byName[name] }

// Judge judges all nodes of a cluster at its collection time.
func Judge(c *inventory.Cluster, t settings.Thresholds) *Verdict {
	v := &Verdict{byName: make(map[string]*Node, len(c.Nodes))}
	leases := c.Seen(inventory.Leases)
	marks := map[string]bool{}
	judged, silent := 0, 0
	for _, in := range c.Nodes {
		n := &Node{Node: in, Kind: kindOf(in, marks)}
		n.readiness()
		n.silence(c.CollectedAt, t, leases)
		n.cordon()
		n.rejections(c.CollectedAt, t)
		n.Bindable = !n.Cordoned && !hasTaint(in, corev1.TaintNodeNotReady) && !hasTaint(in, corev1.TaintNodeUnreachable)
		if n.Kind == Physical && n.Ready == inventory.Yes && n.SilenceKnown {
			judged++
			if n.Silent {
				silent++
			}
		}
		v.Nodes = append(v.Nodes, n)
		v.byName[in.Name] = n
	}
	v.AllSilent = silent > 1 && silent == judged
	for m := range marks {
		v.Virtual = append(v.Virtual, m)
	}
	sort.Strings(v.Virtual)
	return v
}

// readiness reads the Ready condition alone: other conditions may be stale or
// unknown on a healthy node.
func (n *Node) readiness() {
	ready := n.Condition(string(corev1.NodeReady))
	if ready == nil {
		n.Ready, n.NeverReported, n.NotReadySince = inventory.Unknown, true, n.Created
		return
	}
	switch ready.Status {
	case string(corev1.ConditionTrue):
		n.Ready = inventory.Yes
		return
	case string(corev1.ConditionFalse):
		n.Ready = inventory.No
	default:
		n.Ready = inventory.Unknown
	}
	n.NotReadySince = ready.Transition
	if ready.Reason == "NodeStatusNeverUpdated" && ready.Heartbeat.IsZero() {
		n.NeverReported, n.NotReadySince = true, n.Created
	}
	if n.NotReadySince.IsZero() {
		n.NotReadySince = n.Created
	}
}

// silence needs a heartbeat or lease that once moved after the node's creation.
func (n *Node) silence(now time.Time, t settings.Thresholds, leasesSeen bool) {
	if ready := n.Condition(string(corev1.NodeReady)); ready != nil {
		n.LastHeartbeat = ready.Heartbeat
	}
	if n.Lease != nil && n.Lease.Renewed.After(n.LastHeartbeat) {
		n.LastHeartbeat = n.Lease.Renewed
	}
	if n.LastHeartbeat.After(now) {
		n.ClockSkew = n.LastHeartbeat.Sub(now)
	}
	n.SilenceKnown = !n.LastHeartbeat.IsZero() && n.LastHeartbeat.After(n.Created)
	limit := t.Silent
	if !leasesSeen {
		n.ByConditionAlone = true
		limit = max(t.Silent, t.SilentWithoutLease)
	}
	n.Silent = n.Kind == Physical && n.Ready == inventory.Yes && n.SilenceKnown && now.Sub(n.LastHeartbeat) > limit
}

// systemTaints are set by Kubernetes itself for states that other fields tell.
var systemTaints = map[string]bool{
	corev1.TaintNodeNotReady: true, corev1.TaintNodeUnreachable: true, corev1.TaintNodeUnschedulable: true,
	corev1.TaintNodeMemoryPressure: true, corev1.TaintNodeDiskPressure: true, corev1.TaintNodePIDPressure: true,
	corev1.TaintNodeNetworkUnavailable: true, "node.cloudprovider.kubernetes.io/uninitialized": true,
}

// cordon finds spec.unschedulable, or a taint that takes a node out of service
// as a cordon does: autoscalers and repair controllers use taints for it.
func (n *Node) cordon() {
	for i := range n.Taints {
		taint := &n.Taints[i]
		if taint.Key == corev1.TaintNodeUnschedulable {
			n.Cordoned = true
			if taint.TimeAdded != nil {
				n.CordonedSince = taint.TimeAdded.UTC()
			}
		}
	}
	if n.Node.Cordoned {
		n.Cordoned = true
	}
	if n.Cordoned {
		return
	}
	for i := range n.Taints {
		taint := &n.Taints[i]
		if systemTaints[taint.Key] || !cordonInEffect(taint) {
			continue
		}
		n.Cordoned, n.CordonTaint = true, taint.Key
		if taint.TimeAdded != nil {
			n.CordonedSince = taint.TimeAdded.UTC()
		}
		return
	}
}

// cordonInEffect recognises taints that mean "out of service", by the words
// that repair, drain and autoscaling controllers use in their keys.
func cordonInEffect(t *corev1.Taint) bool {
	if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
		return false
	}
	key := strings.ToLower(t.Key)
	for _, word := range []string{"unschedulable", "maintenance", "cordon", "drain", "tobedeleted", "to-be-deleted", "deletioncandidate", "repair", "quarantine", "unhealthy", "out-of-service", "disrupted", "disruption", "decommission", "node-problem", "evict"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

func (n *Node) rejections(now time.Time, t settings.Thresholds) {
	for _, r := range n.Load.Rejected {
		if age := now.Sub(r.At); age <= t.AdmissionWindow {
			n.Rejections++
		}
	}
	n.Rejecting = t.AdmissionFailures > 0 && n.Rejections >= t.AdmissionFailures
}

func hasTaint(n *inventory.Node, key string) bool {
	for i := range n.Taints {
		if n.Taints[i].Key == key && n.Taints[i].Effect == corev1.TaintEffectNoSchedule {
			return true
		}
	}
	return false
}

// SystemTaint is true for taints that Kubernetes sets for states which other fields tell.
func SystemTaint(key string) bool { return systemTaints[key] }
