package capacity

import (
	"cmp"
	"slices"
	"strings"

	"gpuaudit/audit/inventory"
)

// queue groups waiting pods by shape, highest priority and oldest first.
type queue []waitingShape

type waitingShape struct {
	shape *inventory.Shape
	count int
}

// queueOf orders pods by priority, then age; pods of one shape follow the first of them.
func queueOf(pods []*inventory.Pod) queue {
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *inventory.Pod) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), strings.Compare(a.Ref(), b.Ref()))
	})
	at := map[string]int{}
	var q queue
	for _, p := range sorted {
		key := p.Shape.Key()
		i, ok := at[key]
		if !ok {
			i = len(q)
			at[key] = i
			q = append(q, waitingShape{shape: p.Shape})
		}
		q[i].count++
	}
	return q
}

// waiting drops the shapes of which no pod waits any more.
func (q queue) waiting() queue {
	return slices.DeleteFunc(q, func(w waitingShape) bool { return w.count == 0 })
}

// rooms are the model's nodes, some of them with less room than now.
type rooms map[string]*node

func (r rooms) of(n *node) *node {
	if room := r[n.Name]; room != nil {
		return room
	}
	return n
}

// fill puts as many pods of the queue as fit onto the nodes, each once, the
// first node that fits first. Room only shrinks, so one sweep a shape is enough.
func (m *Model) fill(q queue) (left queue, taken rooms, placed int) {
	taken = rooms{}
	for i := range q {
		w := &q[i]
		for _, n := range m.nodes {
			if w.count == 0 {
				break
			}
			room := taken.of(n)
			if room.alive() && room.fits(w.shape) {
				if room == n {
					room = n.clone()
					taken[n.Name] = room
				}
				placed += room.take(w)
			}
		}
	}
	return q.waiting(), taken, placed
}

// placeOn puts as many waiting pods as fit onto a node and takes them from the
// queue; the node itself stays as it is.
func placeOn(n *node, q queue) int {
	if !n.alive() {
		return 0
	}
	placed, room := 0, n
	for i := range q {
		if w := &q[i]; w.count > 0 && room.fits(w.shape) {
			if room == n {
				room = n.clone()
			}
			placed += room.take(w)
		}
	}
	return placed
}

// take charges the node with pods of a shape until no more fit or none waits.
func (n *node) take(w *waitingShape) (placed int) {
	for w.count > 0 && n.fits(w.shape) {
		n.charge(w.shape)
		w.count--
		placed++
	}
	return placed
}

// alive is true where a bound pod would really start.
func (n *node) alive() bool { return !n.notReady && !n.silent && !n.rejecting }

// fits is true when no modelled filter of the scheduler is against the shape;
// what costs least is looked at first.
func (n *node) fits(shape *inventory.Shape) bool {
	if n.pods == 0 || n.portConflict(shape.HostPorts) != nil {
		return false
	}
	for name, want := range shape.Requests {
		if want > 0 && n.short(name, want) {
			return false
		}
	}
	if n.Node.Node.Cordoned && !toleratesUnschedulable(shape.Tolerations) {
		return false
	}
	if _, bad := n.untolerated(shape.Tolerations); bad {
		return false
	}
	return n.matches(shape)
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
