package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// Fault is one thing that could be mended.
type Fault struct {
	Finding string
	Node    string
	Action  string
	// What the repair does, any of:
	Ready    bool              // the node is alive again
	Uncordon bool              // cordon and cordon taints go
	Admit    bool              // pods are admitted again
	Labels   map[string]string // labels are set
	// Release gives back what pods that do no work are charged with.
	Release     inventory.Resources
	ReleasePods int64
	// Restore makes lost devices allocatable again.
	Restore map[string]int64
	// Waiting are pods that a quota holds: they may start where they fit.
	Waiting []*inventory.Pod
	// Derived is true when another finding has the devices.
	Derived bool
}

// maxRanked bounds the repairs that are put in order against each other.
const maxRanked = 200

// simulated is one repair and the node as it would be after it, with the pods
// on it that fit somewhere already without any repair.
type simulated struct {
	repair report.Repair
	fault  *Fault
	node   *node
	// pods is how many of the pods that still wait it would start, by the last
	// count; since fewer and fewer wait it is taken for the most.
	pods  int
	fresh bool
}

// Repairs simulates the repair of every fault alone: what each class gains, and
// which waiting pods, that fit nowhere now, would start. Order ranks them,
// each given those before it.
func (m *Model) Repairs(faults []Fault, classes []*Class, waiting []*inventory.Pod) []report.Repair {
	stuck, taken, _ := m.fill(queueOf(waiting))
	all := make([]simulated, 0, len(faults))
	for i := range faults {
		all = append(all, m.simulate(&faults[i], classes, stuck, taken))
	}
	slices.SortStableFunc(all, compareSimulated)
	rank(all, slices.Clone(stuck))
	out := make([]report.Repair, 0, len(all))
	for _, s := range all {
		if s.repair.Devices > 0 || s.repair.PendingPodsUnblocked > 0 {
			out = append(out, s.repair)
		}
	}
	slices.SortStableFunc(out, func(a, b report.Repair) int {
		return cmp.Or(cmp.Compare(rankOf(a.Order), rankOf(b.Order)), strings.Compare(a.Finding, b.Finding))
	})
	return out
}

func (m *Model) simulate(f *Fault, classes []*Class, stuck queue, taken rooms) simulated {
	s := simulated{fault: f, repair: report.Repair{Finding: f.Finding, Action: f.Action}}
	if len(f.Waiting) > 0 {
		_, _, s.repair.PendingPodsUnblocked = m.fill(queueOf(f.Waiting))
		s.pods, s.fresh = s.repair.PendingPodsUnblocked, true
		return s
	}
	before := m.byName[f.Node]
	if before == nil {
		return s
	}
	after := before.mended(f)
	for _, c := range classes {
		gain := (after.judge(c).replicas - before.judge(c).replicas) * c.need()
		if gain > 0 && before.Kind == health.Physical {
			s.repair.Gains = append(s.repair.Gains, report.Gain{Class: c.Name, Devices: gain})
			s.repair.Devices = max(s.repair.Devices, gain)
		}
	}
	s.node = taken.of(before).mended(f)
	s.pods = placeOn(s.node, slices.Clone(stuck))
	s.repair.PendingPodsUnblocked, s.fresh = s.pods, true
	return s
}

// compareSimulated puts what gains most first.
func compareSimulated(a, b simulated) int {
	return cmp.Or(cmp.Compare(b.repair.Devices, a.repair.Devices), cmp.Compare(b.pods, a.pods), strings.Compare(a.repair.Finding, b.repair.Finding))
}

// rank numbers the repairs greedily. Waiting pods that an earlier repair has
// placed are not counted for a later one. all is sorted; a repair whose count
// is old is counted again only when it comes up.
func rank(all []simulated, remaining queue) {
	var todo []*simulated
	for i := range all {
		if s := &all[i]; !s.fault.Derived && (s.repair.Devices > 0 || s.repair.PendingPodsUnblocked > 0) {
			todo = append(todo, s)
		}
	}
	for order := 1; order <= maxRanked && len(todo) > 0; {
		s := todo[0]
		if !s.fresh {
			s.pods, s.fresh = placeOn(s.node, slices.Clone(remaining)), true
			rest := todo[1:]
			at, _ := slices.BinarySearchFunc(rest, s, func(a, b *simulated) int { return compareSimulated(*a, *b) })
			copy(todo, rest[:at])
			todo[at] = s
			continue
		}
		s.repair.Order = order
		order++
		todo = todo[1:]
		if s.node == nil || placeOn(s.node, remaining) == 0 {
			continue
		}
		remaining = remaining.waiting()
		for _, other := range todo {
			other.fresh = other.node == nil || other.pods == 0
		}
	}
}

func rankOf(order int) int {
	if order == 0 {
		return 1 << 30
	}
	return order
}

// mended gives the node as it would be after the repair.
func (n *node) mended(f *Fault) *node {
	out := n.clone()
	if f.Ready {
		out.notReady, out.silent = false, false
		out.dropTaints(func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		})
	}
	if f.Uncordon {
		out.cordoned = false
		out.Node.Node.Cordoned = false
		out.dropTaints(func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable || t.Key == n.CordonTaint })
	}
	if f.Admit {
		out.rejecting = false
	}
	for k, v := range f.Labels {
		out.object.Labels[k] = v
	}
	for name, amount := range f.Release {
		out.free[name] += amount
		out.give(name, amount)
	}
	if out.pods != -1 {
		out.pods += f.ReleasePods
	}
	for name, amount := range f.Restore {
		out.free[name] += amount
		out.give(name, amount)
	}
	return out
}

// give adds devices to what is free, unless they only pay off an over-commit.
func (n *node) give(name string, amount int64) {
	if had, ok := n.devices[name]; ok {
		n.devices[name] = max(0, min(n.free[name], had+amount))
	} else if amount > 0 {
		if _, stated := n.Allocatable[name]; !stated && !inventory.IsPlain(name) {
			n.devices[name] = max(0, n.free[name])
		}
	}
}

func (n *node) dropTaints(drop func(corev1.Taint) bool) { n.taints = slices.DeleteFunc(n.taints, drop) }
