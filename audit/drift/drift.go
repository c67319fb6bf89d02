// Package drift compares the nodes of now with those that an earlier run kept:
// what was lost, what changed, which nodes were made again under an old name,
// which are gone. Matching is by name, identity is by UID.
package drift

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/settings"
	"gpuaudit/audit/snapshot"
)

// rememberGone is how long a node that is gone is remembered, so that one that
// comes back from a long repair is still compared with what it was.
const rememberGone = 180 * 24 * time.Hour

// Result of a comparison.
type Result struct {
	// Compared is false when nothing could be compared; Why says so in words.
	Compared bool
	Why      string
	// First is true on a cluster's first run: nothing is wrong with that.
	First bool
	// Losses that still stand, old and new ones, sorted by node, what, key.
	Losses []snapshot.Loss
	// Changes since the previous snapshot that are no losses.
	Changes []Change
	// Recreated nodes of this run, by name.
	Recreated []Recreation
	// Gone are all remembered missing nodes; Disappeared are those that should not be missing.
	Gone []snapshot.Gone
	// Added and Removed are the names of this comparison's churn.
	Added, Removed []string
	// PreviousAt is when the compared nodes were read.
	PreviousAt time.Time
}

// Change is a label or taint that was added or has another value now.
type Change struct {
	Node, What, Key string
	Old, New        string
	Added           bool
}

// Recreation is a node that was made again under its name in this comparison.
type Recreation struct {
	Node, OldUID, NewUID string
	Created              time.Time
	LastSeen             time.Time // of the old object
}

// Input of a comparison.
type Input struct {
	Cluster  *inventory.Cluster
	Health   *health.Verdict
	Previous *snapshot.Snapshot // nil on a first run
	Settings *settings.Settings
}

// Compare compares. It never takes an absence from a list that was not whole.
func Compare(in Input) *Result {
	r := &Result{}
	prev := in.Previous
	switch {
	case prev == nil:
		r.Why, r.First = "first run: there is no earlier snapshot to compare with", true
	case prev.NodesAt == nil:
		r.Why, r.First = "no earlier run has read the nodes", true
	case prev.UID != "" && in.Cluster.UID != "" && prev.UID != in.Cluster.UID:
		r.Why = "the cluster behind this name is another one now (the UID of namespace kube-system changed from " + prev.UID + " to " + in.Cluster.UID + "): not compared"
	case !in.Cluster.Seen(inventory.Nodes):
		r.Why = "nodes were not read whole in this run"
		r.Losses, r.Gone = prev.Losses, prev.Gone
	default:
		r.Compared = true
	}
	if !r.Compared {
		return r
	}
	r.PreviousAt = *prev.NodesAt
	c := comparison{Input: in, result: r, had: map[string]snapshot.Node{}, gone: map[string]snapshot.Gone{}}
	c.run()
	return r
}

type comparison struct {
	Input
	result *Result
	had    map[string]snapshot.Node
	gone   map[string]snapshot.Gone
}

func (c *comparison) run() {
	for _, n := range c.Previous.Nodes {
		c.had[n.Name] = n
	}
	for _, g := range c.Previous.Gone {
		c.gone[g.Node.Name] = g
	}
	losses := map[string]snapshot.Loss{}
	for _, n := range c.Health.Nodes {
		old, lastHad, known := c.earlier(n.Name)
		if !known {
			c.result.Added = append(c.result.Added, n.Name)
			continue
		}
		if _, wasGone := c.gone[n.Name]; wasGone {
			c.result.Added = append(c.result.Added, n.Name)
		}
		if skipFake(n, old) || ignored(n.Name, c.Settings.Ignore.Nodes) {
			continue
		}
		c.node(n, old, lastHad, losses)
	}
	c.carryLosses(losses)
	for _, l := range losses {
		c.result.Losses = append(c.result.Losses, l)
	}
	slices.SortFunc(c.result.Losses, func(a, b snapshot.Loss) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.What, b.What), strings.Compare(a.Key, b.Key))
	})
	sort.SliceStable(c.result.Changes, func(i, j int) bool {
		a, b := c.result.Changes[i], c.result.Changes[j]
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.What, b.What), strings.Compare(a.Key, b.Key)) < 0
	})
	c.missing()
}

// earlier gives what is known of a node by its name: from the previous
// snapshot, or from the memory of those that were gone in it.
func (c *comparison) earlier(name string) (snapshot.Node, time.Time, bool) {
	if n, ok := c.had[name]; ok {
		return n, *c.Previous.NodesAt, true
	}
	if g, ok := c.gone[name]; ok && !g.Churn {
		return g.Node, g.LastSeen, true
	}
	return snapshot.Node{}, time.Time{}, false
}

// skipFake leaves an upstream virtual cluster's stand-ins alone: they are made
// when a pod lands on them and deleted when it leaves. One that had devices or
// labels of its own before is compared like any other.
func skipFake(n *health.Node, old snapshot.Node) bool {
	return n.Kind == health.Fake && old.Kind == string(health.Fake)
}

func (c *comparison) node(n *health.Node, old snapshot.Node, lastHad time.Time, losses map[string]snapshot.Loss) {
	recreated := old.UID != "" && n.UID != "" && old.UID != n.UID
	base := snapshot.Loss{Node: n.Name, LastHad: lastHad, FirstMissed: c.Cluster.CollectedAt, Recreated: recreated}
	if recreated {
		base.OldUID, base.NewUID = old.UID, n.UID
		if !n.Created.IsZero() {
			created := n.Created
			base.RecreatedAt = &created
		}
		c.result.Recreated = append(c.result.Recreated, Recreation{Node: n.Name, OldUID: old.UID, NewUID: n.UID, Created: n.Created, LastSeen: lastHad})
	}
	put := func(l snapshot.Loss) { losses[lossKey(l)] = l }
	c.labels(n, old, base, put)
	c.taints(n, old, base, put)
	if recreated && old.Cordoned && !n.Cordoned {
		l := base
		l.What, l.Key, l.Value, l.Absent = snapshot.LostCordon, "spec.unschedulable", "true", true
		put(l)
	}
	for name, had := range snapshot.Devices(old.Capacity) {
		if has := n.Capacity[name]; has < had {
			l := base
			_, there := n.Capacity[name]
			l.What, l.Key, l.Value, l.Now, l.Absent = snapshot.LostDevice, name, amount(had), amount(has), !there
			put(l)
		}
	}
}

func (c *comparison) labels(n *health.Node, old snapshot.Node, base snapshot.Loss, put func(snapshot.Loss)) {
	for key, had := range old.Labels {
		if Volatile(key) || ignored(key, c.Settings.Ignore.Labels) {
			continue
		}
		has, there := n.Labels[key]
		switch {
		case !there:
			l := base
			l.What, l.Key, l.Value, l.Absent = snapshot.LostLabel, key, had, true
			put(l)
		case has != had && c.LoadBearing(key) && !c.restores(n.Name, key, has):
			l := base
			l.What, l.Key, l.Value, l.Now = snapshot.LostLabel, key, had, has
			put(l)
		case has != had && c.restores(n.Name, key, has):
		case has != had:
			c.result.Changes = append(c.result.Changes, Change{Node: n.Name, What: snapshot.LostLabel, Key: key, Old: had, New: has})
		}
	}
	for key, has := range n.Labels {
		if c.restores(n.Name, key, has) {
			continue // back, as it was: the loss is resolved, and that is all
		}
		if _, had := old.Labels[key]; !had && !Volatile(key) && !ignored(key, c.Settings.Ignore.Labels) {
			c.result.Changes = append(c.result.Changes, Change{Node: n.Name, What: snapshot.LostLabel, Key: key, New: has, Added: true})
		}
	}
}

// restores is true when a label gets back the value that it had lost.
func (c *comparison) restores(node, key, value string) bool {
	for _, l := range c.Previous.Losses {
		if l.Node == node && l.What == snapshot.LostLabel && l.Key == key && l.Value == value {
			return true
		}
	}
	return false
}

// LoadBearing is true for keys that somebody selects nodes by. A host name
// counts only where its old value is selected: spread constraints use the key
// without caring for the value.
func (in *Input) LoadBearing(key string) bool {
	use := in.Cluster.SelectedLabels[key]
	if use == nil {
		for _, w := range in.Settings.Workloads {
			if _, ok := w.NodeSelector[key]; ok {
				return true
			}
			if w.Affinity != nil {
				for _, t := range w.Affinity.NodeSelectorTerms {
					for _, e := range t.MatchExpressions {
						if e.Key == key {
							return true
						}
					}
				}
			}
		}
		return false
	}
	if key == "kubernetes.io/hostname" {
		return len(use.Values) > 0
	}
	return true
}

func (c *comparison) taints(n *health.Node, old snapshot.Node, base snapshot.Loss, put func(snapshot.Loss)) {
	now := map[string]bool{}
	for _, t := range n.Taints {
		now[snapshot.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}.String()] = true
	}
	before := map[string]bool{}
	for _, t := range old.Taints {
		text := t.String()
		before[text] = true
		if health.SystemTaint(t.Key) || now[text] {
			continue
		}
		if base.Recreated {
			l := base
			l.What, l.Key, l.Value, l.Absent = snapshot.LostTaint, text, text, true
			put(l)
			continue
		}
		// Taken away from a node that is still the same one: somebody's decision.
		c.result.Changes = append(c.result.Changes, Change{Node: n.Name, What: snapshot.LostTaint, Key: text, Old: text})
	}
	for _, t := range n.Taints {
		text := snapshot.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}.String()
		if !before[text] && !health.SystemTaint(t.Key) {
			c.result.Changes = append(c.result.Changes, Change{Node: n.Name, What: snapshot.LostTaint, Key: text, New: text, Added: true})
		}
	}
}

// carryLosses keeps what was lost in earlier runs and is not back.
func (c *comparison) carryLosses(losses map[string]snapshot.Loss) {
	for _, l := range c.Previous.Losses {
		n := c.Health.Node(l.Node)
		if n == nil {
			continue // the node is gone: it is remembered there
		}
		if stillLost(n, &l) {
			key := lossKey(l)
			if newer, ok := losses[key]; ok {
				// Lost before and changed again: the first value and time stand.
				l.Now, l.Absent = newer.Now, newer.Absent
			}
			losses[key] = l
		} else {
			delete(losses, lossKey(l))
		}
	}
}

func stillLost(n *health.Node, l *snapshot.Loss) bool {
	switch l.What {
	case snapshot.LostLabel:
		has, there := n.Labels[l.Key]
		l.Now, l.Absent = has, !there
		return !there || has != l.Value
	case snapshot.LostTaint:
		for _, t := range n.Taints {
			if (snapshot.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}).String() == l.Value {
				return false
			}
		}
		return true
	case snapshot.LostCordon:
		return !n.Cordoned
	case snapshot.LostDevice:
		has, there := n.Capacity[l.Key]
		l.Now, l.Absent = amount(has), !there
		return has < parseAmount(l.Value)
	}
	return false
}

func lossKey(l snapshot.Loss) string { return l.Node + "\x00" + l.What + "\x00" + l.Key }
