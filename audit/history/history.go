// Package history tells what happened to a cluster's nodes between stored
// snapshots: labels, taints, cordons, readiness, identity, devices, versions.
//
// A snapshot is one moment, so a change is known to lie in a window: after the
// last snapshot that showed the old state, and no later than the first that
// shows the new one. Where the object itself tells the moment, or who wrote a
// label last, that is kept beside the window. What comes and goes between two
// snapshots is not seen, except where a time stamp gives it away.
package history

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/snapshot"
)

// What changed.
const (
	Cluster     = "cluster"     // another cluster answers under the name; nothing is compared across that
	Added       = "added"       // a Node object under a name that was not there
	Removed     = "removed"     // a Node object that is not there any more
	Recreated   = "recreated"   // the same name with another UID
	Label       = "label"       // Key is the label's key
	Taint       = "taint"       // Key is key:effect
	Cordon      = "cordon"      // spec.unschedulable, or a taint that is a cordon in effect
	Ready       = "ready"       // the Ready condition's status
	Silent      = "silent"      // heartbeats stopped or came back
	Capacity    = "capacity"    // Key is the device resource
	Allocatable = "allocatable" // Key is the device resource
	Version     = "version"     // Key is kubelet, kernel, osImage or providerID
)

// Change is one thing that became different on one node.
type Change struct {
	Node string `json:"node"`
	What string `json:"what"`
	Key  string `json:"key"`
	// Old and New are the values, null where there was or is none.
	Old *string `json:"old"`
	New *string `json:"new"`
	// After is the last snapshot that showed Old, Before the first that shows New.
	After  time.Time `json:"after"`
	Before time.Time `json:"before"`
	// At is the moment itself where the object tells it, else null.
	At *time.Time `json:"at"`
	// Run names the run whose snapshot shows New.
	Run string `json:"run"`
	// WithRecreation is true for what changed because the Node object was made anew.
	WithRecreation bool `json:"withRecreation"`
	// SetBy is who wrote the label last, where managedFields told; a removed label has none.
	SetBy *snapshot.SetBy `json:"setBy"`
	Note  string          `json:"note"`
}

// Filter chooses changes. The zero filter chooses all.
type Filter struct {
	// Node is one node's name.
	Node string
	// Label is one label's key; changes of identity are shown with it, since
	// they explain it.
	Label string
	// Since leaves out what was the case already before it. The snapshots must
	// begin at least one before it, or the first change after it is missed.
	Since time.Time
}

// Value is the value of the filter's label on one node in the newest snapshot.
type Value struct {
	Node string `json:"node"`
	// Value is null when the label is absent.
	Value *string `json:"value"`
	// SeenSince is the first of the unbroken row of snapshots that show it.
	SeenSince time.Time `json:"seenSince"`
}

// Partial is a snapshot that says nothing about nodes.
type Partial struct {
	At     time.Time `json:"at"`
	Run    string    `json:"run"`
	Reason string    `json:"reason"`
}

// History of a cluster's nodes.
type History struct {
	Cluster string `json:"cluster"`
	// From and To are the first and the last snapshot that showed all nodes,
	// null when there is none.
	From *time.Time `json:"from"`
	To   *time.Time `json:"to"`
	// Snapshots showed all nodes; Partial did not and say nothing about them.
	Snapshots int       `json:"snapshots"`
	Partial   []Partial `json:"partial"`
	// Unread are the errors of snapshots that could not be read: changes around
	// them have a wider window.
	Unread  []string `json:"unread"`
	Changes []Change `json:"changes"`
	// Values are set when the filter names a label.
	Values []Value `json:"values"`
}

// Build compares snapshots, oldest first, holding two at a time. An error in
// the sequence is kept in Unread and the next snapshot is compared with the one
// before it. Snapshots of other clusters and ones out of order are left out in
// the same way.
func Build(cluster string, versions iter.Seq2[*snapshot.Snapshot, error], f Filter) *History {
	b := &builder{filter: f, out: &History{
		Cluster: cluster, Partial: []Partial{}, Unread: []string{}, Changes: []Change{}, Values: []Value{},
	}, since: map[string]time.Time{}}
	for s, err := range versions {
		switch {
		case err != nil:
			b.out.Unread = append(b.out.Unread, err.Error())
		case s == nil:
		case s.Cluster != cluster:
			b.out.Unread = append(b.out.Unread, "run "+s.Run+" is a snapshot of cluster \""+s.Cluster+"\"")
		case b.last != nil && s.CollectedAt.Before(b.last.CollectedAt):
			b.out.Unread = append(b.out.Unread, "run "+s.Run+" is older than the snapshot before it; give snapshots oldest first")
		case !s.WholeNodes():
			b.out.Partial = append(b.out.Partial, Partial{At: s.CollectedAt, Run: s.Run, Reason: "the nodes were not read whole in this run"})
		default:
			b.add(s)
		}
	}
	b.values()
	return b.out
}

type builder struct {
	filter Filter
	out    *History
	last   *snapshot.Snapshot
	nodes  map[string]*snapshot.Node
	// since is when each node's present value of the filter's label was first seen.
	since map[string]time.Time
}

func (b *builder) add(s *snapshot.Snapshot) {
	nodes := make(map[string]*snapshot.Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	at := s.CollectedAt
	b.out.Snapshots++
	b.out.To = &at
	switch {
	case b.last == nil:
		b.out.From = &at
	case s.UID != "" && b.last.UID != "" && s.UID != b.last.UID:
		b.keep([]Change{b.change(s, Change{What: Cluster, Old: some(b.last.UID), New: some(s.UID), Note: "another cluster answers under this name: its nodes are not compared"})})
		clear(b.since)
	default:
		b.compare(s, nodes)
	}
	b.track(s, nodes)
	b.last, b.nodes = s, nodes
}

// track keeps since when each node has its present value of the filter's label.
func (b *builder) track(s *snapshot.Snapshot, nodes map[string]*snapshot.Node) {
	if b.filter.Label == "" {
		return
	}
	for name, n := range nodes {
		old := b.nodes[name]
		now, has := n.Labels[b.filter.Label]
		_, known := b.since[name]
		if !known || old == nil || old.UID != n.UID {
			b.since[name] = s.CollectedAt
			continue
		}
		if was, had := old.Labels[b.filter.Label]; was != now || had != has {
			b.since[name] = s.CollectedAt
		}
	}
	for name := range b.since {
		if nodes[name] == nil {
			delete(b.since, name)
		}
	}
}

func (b *builder) values() {
	if b.filter.Label == "" {
		return
	}
	for name, n := range b.nodes {
		if b.filter.Node != "" && name != b.filter.Node {
			continue
		}
		v := Value{Node: name, SeenSince: b.since[name]}
		if value, has := n.Labels[b.filter.Label]; has {
			v.Value = &value
		}
		b.out.Values = append(b.out.Values, v)
	}
	slices.SortFunc(b.out.Values, func(x, y Value) int { return strings.Compare(x.Node, y.Node) })
}

// change fills in the window between the last snapshot and s.
func (b *builder) change(s *snapshot.Snapshot, c Change) Change {
	if c.After.IsZero() {
		c.After = b.last.CollectedAt
	}
	c.Before, c.Run = s.CollectedAt, s.Run
	return c
}

// keep appends one snapshot's changes, in order, that the filter chooses.
func (b *builder) keep(changes []Change) {
	slices.SortStableFunc(changes, func(x, y Change) int {
		return cmp.Or(strings.Compare(x.Node, y.Node), cmp.Compare(order(x.What), order(y.What)), strings.Compare(x.Key, y.Key))
	})
	for _, c := range changes {
		identity := c.What == Cluster || c.What == Added || c.What == Removed || c.What == Recreated
		switch {
		case b.filter.Node != "" && c.Node != b.filter.Node && c.What != Cluster:
		case b.filter.Label != "" && !identity && (c.What != Label || c.Key != b.filter.Label):
		case !b.filter.Since.IsZero() && c.Before.Before(b.filter.Since):
		default:
			b.out.Changes = append(b.out.Changes, c)
		}
	}
}

var whats = []string{Cluster, Removed, Added, Recreated, Ready, Silent, Cordon, Label, Taint, Capacity, Allocatable, Version}

func order(what string) int { return slices.Index(whats, what) }

func some(s string) *string { return &s }
