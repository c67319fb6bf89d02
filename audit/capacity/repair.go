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

// Repairs simulates the repair of every fault alone: what each class gains, and
// which waiting pods, that fit nowhere now, would start. Order ranks them,
// each given those before it.
func (m *Model) Repairs(faults []Fault, classes []*Class, waiting []*inventory.Pod) []report.Repair {
	stuck := m.stuck(waiting)
	type simulated struct {
		repair report.Repair
		node   *node
		fault  *Fault
	}
	var all []simulated
	for i := range faults {
		f := &faults[i]
		s := simulated{fault: f, repair: report.Repair{Finding: f.Finding, Action: f.Action}}
		if before := m.byName[f.Node]; before != nil && len(f.Waiting) == 0 {
			s.node = before.mended(f)
			for _, c := range classes {
				gain := s.node.judge(c).replicas*c.need() - before.judge(c).replicas*c.need()
				if gain > 0 && before.Kind == health.Physical {
					s.repair.Gains = append(s.repair.Gains, report.Gain{Class: c.Name, Devices: gain})
					s.repair.Devices = max(s.repair.Devices, gain)
				}
			}
			s.repair.PendingPodsUnblocked = placeOn(s.node, stuck.clone())
		}
		if len(f.Waiting) > 0 {
			s.repair.PendingPodsUnblocked = m.placeAnywhere(f.Waiting)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b simulated) int {
		return cmp.Or(cmp.Compare(b.repair.Devices, a.repair.Devices), b.repair.PendingPodsUnblocked-a.repair.PendingPodsUnblocked, strings.Compare(a.repair.Finding, b.repair.Finding))
	})
	// Greedy order: waiting pods that an earlier repair has placed are not
	// counted for a later one.
	order := 0
	remaining := stuck.clone()
	ranked := map[int]bool{}
	for range min(len(all), maxRanked) {
		best, bestPods := -1, 0
		for i := range all {
			if ranked[i] || all[i].fault.Derived || (all[i].repair.Devices == 0 && all[i].repair.PendingPodsUnblocked == 0) {
				continue
			}
			pods := all[i].repair.PendingPodsUnblocked
			if all[i].node != nil && pods > 0 {
				pods = placeOn(all[i].node, remaining.clone())
			}
			if best < 0 || all[i].repair.Devices > all[best].repair.Devices || (all[i].repair.Devices == all[best].repair.Devices && pods > bestPods) {
				best, bestPods = i, pods
			}
		}
		if best < 0 {
			break
		}
		ranked[best] = true
		order++
		all[best].repair.Order = order
		if all[best].node != nil {
			placeOn(all[best].node, remaining)
		}
	}
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
	if _, ok := n.devices[name]; ok {
		n.devices[name] = max(0, n.free[name])
	} else if amount > 0 {
		if _, stated := n.Allocatable[name]; !stated && !inventory.IsPlain(name) {
			n.devices[name] = max(0, n.free[name])
		}
	}
}

func (n *node) dropTaints(drop func(corev1.Taint) bool) { n.taints = slices.DeleteFunc(n.taints, drop) }

// queue groups waiting pods by shape, highest priority and oldest first.
type queue []waitingShape

type waitingShape struct {
	shape *inventory.Shape
	count int
}

func (q queue) clone() *queue {
	out := slices.Clone(q)
	return &out
}

// stuck are the waiting pods that fit nowhere now.
func (m *Model) stuck(waiting []*inventory.Pod) queue {
	sorted := slices.Clone(waiting)
	slices.SortStableFunc(sorted, func(a, b *inventory.Pod) int {
		return cmp.Or(int(b.Priority)-int(a.Priority), a.Created.Compare(b.Created), strings.Compare(a.Ref(), b.Ref()))
	})
	fits := map[string]bool{}
	at := map[string]int{}
	var q queue
	for _, p := range sorted {
		key := p.Shape.Key()
		if _, known := fits[key]; !known {
			for _, n := range m.nodes {
				if m.Fits(p.Shape, n.Name) {
					fits[key] = true
					break
				}
			}
		}
		if fits[key] {
			continue
		}
		if i, ok := at[key]; ok {
			q[i].count++
			continue
		}
		at[key] = len(q)
		q = append(q, waitingShape{p.Shape, 1})
	}
	return q
}

// placeOn puts as many waiting pods as fit onto a node and takes them from the queue.
func placeOn(n *node, q *queue) int {
	if n.notReady || n.silent || n.rejecting {
		return 0
	}
	room := n.clone()
	placed := 0
	for i := range *q {
		w := &(*q)[i]
		for w.count > 0 && fitsNow(room, w.shape) {
			room.charge(w.shape)
			w.count--
			placed++
		}
	}
	return placed
}

func fitsNow(n *node, shape *inventory.Shape) bool {
	for _, plugin := range n.filters(shape) {
		if len(plugin) > 0 {
			return false
		}
	}
	return true
}

func (n *node) charge(shape *inventory.Shape) {
	for name, amount := range shape.Requests {
		if _, stated := n.free[name]; stated {
			n.free[name] -= amount
		}
	}
	if n.pods > 0 {
		n.pods--
	}
	n.ports = append(slices.Clone(n.ports), shape.HostPorts...)
}

// placeAnywhere counts how many of the pods would fit somewhere, each placed once.
func (m *Model) placeAnywhere(pods []*inventory.Pod) int {
	rooms := map[string]*node{}
	placed := 0
	for _, p := range pods {
		for _, n := range m.nodes {
			room := rooms[n.Name]
			if room == nil {
				room = n
			}
			if room.notReady || room.silent || room.rejecting || !fitsNow(room, p.Shape) {
				continue
			}
			if rooms[n.Name] == nil {
				room = n.clone()
				rooms[n.Name] = room
			}
			room.charge(p.Shape)
			placed++
			break
		}
	}
	return placed
}
