package device

import (
	"maps"
	"math/bits"
	"slices"

	"gpuaudit/audit/health"
)

// Some cards may be asked for under several names: whole (aws.amazon.com/neuron)
// or by their cores (aws.amazon.com/neuroncore). A scheduler keeps an account
// for each name and knows nothing of the other, so what is charged under one
// name looks free under the other. Here it does not.

// alternative tells whether a view is another way to ask for whole cards, and
// not something that is asked for beside them, as their memory is.
func (t *Table) alternative(view string) bool {
	row := t.Row(view)
	return row.Role == View && (row.Unit == Card || row.Unit == Cores)
}

// alternatives charges the cards of a node with what is charged under other
// names for them. Which core is on which card is not known, so this is the
// least that it can be: free is an upper bound then.
func (s *Survey) alternatives(n *health.Node, node map[string]Use, held map[string]int64) {
	for _, view := range slices.Sorted(maps.Keys(s.aliases[n.Name])) {
		of := s.aliases[n.Name][view]
		u, ok := node[of]
		if !ok || u.Unit != Card || !s.in.Table.alternative(view) || n.Capacity[view] <= 0 || u.Capacity <= 0 {
			continue
		}
		if s.views[n.Name] == nil {
			s.views[n.Name] = map[string]Use{}
		}
		v := Use{Unit: s.in.Table.Row(view).Unit, Capacity: n.Capacity[view], Allocatable: n.Allocatable[view], Source: "plugin", Known: u.Known,
			Requested: max(n.Load.Requested[view], scale(n.Load.Requested[of], n.Capacity[view], u.Capacity)),
			Running:   max(n.Load.Running[view], scale(n.Load.Running[of], n.Capacity[view], u.Capacity)), Held: held[view]}
		v.settle(n.Dead())
		s.views[n.Name][view] = v
		s.asked[view] = true
		if !u.Known || n.Load.Requested[view] <= 0 {
			continue
		}
		u.Requested = max(u.Requested, scale(n.Load.Requested[view], u.Capacity, n.Capacity[view]))
		u.Running = max(u.Running, scale(n.Load.Running[view], u.Capacity, n.Capacity[view]))
		u.Held = max(u.Held, scale(held[view], u.Capacity, n.Capacity[view]))
		u.share.note = "partly requested as " + view + ", which is the same cards: free is an upper bound"
		node[of] = u
		s.partly[of], s.partly[view] = true, true
	}
}

// scale gives amount*to/from rounded up, and no more than an int64 holds.
func scale(amount, to, from int64) int64 {
	if amount <= 0 || to <= 0 || from <= 0 {
		return 0
	}
	const most = 1 << 58
	hi, lo := bits.Mul64(uint64(amount), uint64(to))
	if hi >= uint64(from) {
		return most
	}
	quotient, rest := bits.Div64(hi, lo, uint64(from))
	if rest > 0 {
		quotient++
	}
	return int64(min(quotient, most))
}

// Alternatives gives other names under which a node's counted cards may be
// asked for, with what is left under each; they are in no total.
func (s *Survey) Alternatives(node string) map[string]Use { return s.views[node] }

// UpperBoundOf tells whether free devices of a resource are an upper bound:
// for the whole cluster's reasons, or because its cards are charged under another name as well.
func (s *Survey) UpperBoundOf(resource string) bool { return len(s.upper) > 0 || s.partly[resource] }

// asCounted converts an amount of a name on a node into the counted devices behind it.
func (s *Survey) asCounted(node, name string, amount int64) (string, int64) {
	v, ok := s.views[node][name]
	if !ok {
		return name, amount
	}
	of := s.aliases[node][name]
	return of, scale(amount, s.nodes[node][of].Capacity, v.Capacity)
}
