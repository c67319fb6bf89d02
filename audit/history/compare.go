package history

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"gpuaudit/audit/snapshot"
)

// compare finds what changed between the last snapshot and s.
func (b *builder) compare(s *snapshot.Snapshot, nodes map[string]*snapshot.Node) {
	var changes []Change
	add := func(c Change) { changes = append(changes, b.change(s, c)) }
	for name, old := range b.nodes {
		if nodes[name] == nil {
			add(Change{Node: name, What: Removed, Old: some(old.UID), Note: was(old)})
		}
	}
	for name, n := range nodes {
		if old := b.nodes[name]; old != nil {
			compareNode(old, n, add)
			continue
		}
		created := n.Created
		c := Change{Node: name, What: Added, New: some(n.UID)}
		if !created.IsZero() {
			c.At = &created
		}
		gone := b.gone(name)
		if gone == nil {
			add(c)
			continue
		}
		// It was there earlier: what it lost on the way is part of the story.
		c.Note = "had been there until " + stamp(gone.LastSeen)
		add(c)
		compareNode(&gone.Node, n, func(c Change) {
			if c.What != Recreated {
				c.WithRecreation, c.After = true, gone.LastSeen
				add(c)
			}
		})
	}
	b.keep(changes)
}

// gone is what is remembered of a node that was missing in the last snapshot.
func (b *builder) gone(name string) *snapshot.Gone {
	for i := range b.last.Gone {
		if b.last.Gone[i].Node.Name == name {
			return &b.last.Gone[i]
		}
	}
	return nil
}

func was(n *snapshot.Node) string {
	switch {
	case n.Ready != "True":
		return "was not ready"
	case n.Cordoned:
		return "was cordoned"
	}
	return ""
}

func compareNode(old, now *snapshot.Node, add func(Change)) {
	recreated := old.UID != now.UID
	name := now.Name
	with := func(c Change) {
		c.Node, c.WithRecreation = name, recreated
		add(c)
	}
	if recreated {
		c := Change{What: Recreated, Old: some(old.UID), New: some(now.UID)}
		if !now.Created.IsZero() {
			created := now.Created
			c.At = &created
		}
		with(c)
	}
	compareReady(old, now, recreated, with)
	if old.Cordoned != now.Cordoned {
		c := Change{What: Cordon, Old: flag(old.Cordoned), New: flag(now.Cordoned)}
		if now.Cordoned {
			c.At = now.CordonedSince
		}
		with(c)
	}
	if old.Silent != now.Silent {
		with(Change{What: Silent, Old: flag(old.Silent), New: flag(now.Silent)})
	}
	compareLabels(old, now, with)
	compareTaints(old, now, with)
	compareAmounts(Capacity, old.Capacity, now.Capacity, with)
	compareAmounts(Allocatable, old.Allocatable, now.Allocatable, with)
	for _, v := range [...]struct{ key, old, now string }{
		{"kubelet", old.Kubelet, now.Kubelet}, {"kernel", old.Kernel, now.Kernel},
		{"osImage", old.OSImage, now.OSImage}, {"providerID", old.ProviderID, now.ProviderID},
	} {
		if v.old != v.now {
			with(Change{What: Version, Key: v.key, Old: filled(v.old), New: filled(v.now)})
		}
	}
}

func compareReady(old, now *snapshot.Node, recreated bool, with func(Change)) {
	before, after := readyCondition(old), readyCondition(now)
	c := Change{What: Ready, Old: filled(old.Ready), New: filled(now.Ready)}
	if after != nil {
		c.At = after.Transition
		c.Note = after.Reason
	}
	switch {
	case old.Ready != now.Ready:
		with(c)
	case recreated || before == nil || after == nil || before.Transition == nil || after.Transition == nil:
	case !before.Transition.Equal(*after.Transition):
		c.Note = "was something else in between"
		with(c)
	}
}

func readyCondition(n *snapshot.Node) *snapshot.Condition {
	for i := range n.Conditions {
		if n.Conditions[i].Type == "Ready" {
			return &n.Conditions[i]
		}
	}
	return nil
}

func compareLabels(old, now *snapshot.Node, with func(Change)) {
	if equal(old.Labels, now.Labels) {
		return
	}
	for key, value := range old.Labels {
		switch current, has := now.Labels[key]; {
		case !has:
			with(Change{What: Label, Key: key, Old: some(value)})
		case current != value:
			with(labelSet(now, Change{What: Label, Key: key, Old: some(value), New: some(current)}))
		}
	}
	for key, value := range now.Labels {
		if _, had := old.Labels[key]; !had {
			with(labelSet(now, Change{What: Label, Key: key, New: some(value)}))
		}
	}
}

// labelSet adds who wrote the label last. The manager's time is that of its
// last write of any field: the label was set at or before it, so it is no
// moment of the change.
func labelSet(n *snapshot.Node, c Change) Change {
	if by, ok := n.SetBy[c.Key]; ok {
		c.SetBy = &by
	}
	return c
}

func compareTaints(old, now *snapshot.Node, with func(Change)) {
	if len(old.Taints) == 0 && len(now.Taints) == 0 || slices.Equal(old.Taints, now.Taints) {
		return
	}
	before, after := taints(old), taints(now)
	for key, t := range before {
		if _, has := after[key]; !has {
			with(Change{What: Taint, Key: key, Old: some(t.Value)})
		}
	}
	for key, t := range after {
		earlier, had := before[key]
		if had && earlier.Value == t.Value {
			continue
		}
		c := Change{What: Taint, Key: key, New: some(t.Value), At: t.Added}
		if had {
			c.Old = some(earlier.Value)
		}
		with(c)
	}
}

func taints(n *snapshot.Node) map[string]snapshot.Taint {
	out := make(map[string]snapshot.Taint, len(n.Taints))
	for _, t := range n.Taints {
		out[t.Key+":"+t.Effect] = t
	}
	return out
}

// compareAmounts compares device resources. One that is missing is absent, not 0.
func compareAmounts(what string, old, now map[string]int64, with func(Change)) {
	if equal(old, now) {
		return
	}
	before, after := snapshot.Devices(old), snapshot.Devices(now)
	amount := func(m map[string]int64, key string) *string {
		if v, ok := m[key]; ok {
			return some(strconv.FormatInt(v, 10))
		}
		return nil
	}
	for key, value := range before {
		if current, has := after[key]; !has || current != value {
			with(Change{What: what, Key: key, Old: amount(old, key), New: amount(now, key)})
		}
	}
	for key := range after {
		if _, had := before[key]; !had {
			with(Change{What: what, Key: key, Old: amount(old, key), New: amount(now, key)})
		}
	}
}

// equal knows maps that two snapshots share (see snapshot.Sequence) without
// looking into them: on most days that is nearly all.
func equal[V comparable](old, now map[string]V) bool {
	return reflect.ValueOf(old).Pointer() == reflect.ValueOf(now).Pointer() || maps.Equal(old, now)
}

func flag(b bool) *string { return some(strconv.FormatBool(b)) }

// filled is nil for an empty text: not known.
func filled(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
