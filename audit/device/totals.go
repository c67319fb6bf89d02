package device

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuaudit/audit/health"
	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// total adds one resource in one unit up over the physical nodes.
type total struct {
	device         report.Device
	known          bool
	cards          int64
	cardsKnown     bool
	healthy        int64
	healthyKnown   bool
	requested      int64
	free           int64
	over, most     int64
	naive          int64
	naiveAll       int64 // allocatable of the nodes that naive looks at
	notes          map[string]bool
	nodesUnhealthy int
}

func (s *Survey) totals() {
	by := map[[2]string]*total{}
	// What the usual sum counts although no total does: pods bound to nodes that
	// do not exist or do not advertise what is asked for, elastic and fake nodes.
	naive, naiveAll := s.in.Cluster.Unplaced.Naive.Clone(), inventory.Resources{}
	for _, n := range s.in.Health.Nodes {
		for name, amount := range n.Load.Naive {
			if _, counted := s.nodes[n.Name][name]; !counted || n.Kind != health.Physical {
				naive[name] += amount
			}
		}
		if n.Kind != health.Physical {
			naiveAll.Add(n.Allocatable)
			continue
		}
		for name, u := range s.nodes[n.Name] {
			key := [2]string{name, u.Unit}
			t := by[key]
			if t == nil {
				row := s.in.Table.Row(name)
				t = &total{known: true, cardsKnown: true, healthyKnown: true, notes: map[string]bool{},
					device: report.Device{Resource: name, Source: u.Source, Unit: u.Unit, Vendor: row.Vendor}}
				by[key] = t
			}
			t.add(n, u)
			if impossible(n.Node) && strings.HasPrefix(name, "nvidia.com/") {
				t.notes[fmt.Sprintf("inconsistent device advertisement (stale) on node %s: more cards and slices than the node has cards", n.Name)] = true
			}
			if name == "nvidia.com/gpu" && len(migNames(n.Node)) > 0 {
				t.notes["some nodes are cut into MIG slices: a free whole card there may not be usable"] = true
			}
		}
	}
	s.chargedWhereNone(by)
	for _, key := range slices.SortedFunc(maps.Keys(by), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		t := by[key]
		t.naive += naive[key[0]]
		t.naiveAll += naiveAll[key[0]]
		delete(naive, key[0]) // once, where a name has several units
		delete(naiveAll, key[0])
		s.holds(key[0], t)
		s.finish(t)
		s.Devices = append(s.Devices, t.device)
	}
	s.addAliases()
	slices.SortFunc(s.Devices, func(a, b report.Device) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Unit, b.Unit))
	})
	s.unknowns()
}

// chargedWhereNone adds what pods are charged with on nodes that advertise none
// of it (its plugin is gone, say): the scheduler has that as over-commit.
func (s *Survey) chargedWhereNone(by map[[2]string]*total) {
	if !s.podsSeen {
		return
	}
	for _, n := range s.in.Health.Nodes {
		for name, amount := range n.Load.Requested {
			row := s.in.Table.Row(name)
			_, counted := s.nodes[n.Name][name]
			if amount <= 0 || counted || row.Role != Counted || s.served[name] || s.aliases[n.Name][name] != "" || n.Kind != health.Physical {
				continue
			}
			t := totalOf(by, name)
			if t == nil {
				t = &total{known: true, cardsKnown: true, healthyKnown: true, notes: map[string]bool{},
					device: report.Device{Resource: name, Source: "plugin", Unit: row.Unit, Vendor: row.Vendor}}
				by[[2]string{name, row.Unit}] = t
			}
			if s.MayBeServed(name) {
				t.known = false
				t.notes[fmt.Sprintf("pods on node %s ask for %d and the node advertises none; whether a DRA driver serves it is unknown, since device classes were not seen", n.Name, amount)] = true
				continue
			}
			t.requested += amount
			t.over += amount
			t.notes[fmt.Sprintf("pods on node %s are charged with %d, and the node advertises none", n.Name, amount)] = true
		}
	}
}

// totalOf gives the total of a resource; of several units the first by name.
func totalOf(by map[[2]string]*total, resource string) *total {
	var out *total
	for key, t := range by {
		if key[0] == resource && (out == nil || key[1] < out.device.Unit) {
			out = t
		}
	}
	return out
}

func (t *total) add(n *health.Node, u Use) {
	t.device.Capacity += u.Capacity
	t.device.Allocatable += u.Allocatable
	t.known = t.known && u.Known
	t.requested += u.Requested
	t.free += u.Free
	t.over += u.Overcommit
	t.most = max(t.most, u.Free)
	t.naive += n.Load.Naive[t.device.Resource]
	if u.cards < 0 || u.Source == "dra" {
		t.cardsKnown = false
	} else {
		t.cards += u.cards
	}
	switch {
	case u.share.perCard > 0 && u.cards >= 0:
		t.healthy += u.Allocatable / u.share.perCard
	default:
		t.healthyKnown = false
	}
	if u.share.note != "" {
		t.notes[u.share.note] = true
	}
	if u.Allocatable < u.Capacity {
		t.nodesUnhealthy++
	}
}

// holds fills in what pods that do no work, placeholders and preemptors keep.
func (s *Survey) holds(resource string, t *total) {
	if !s.podsSeen {
		return
	}
	held := report.Held{}
	for i := range s.in.Holds {
		h := &s.in.Holds[i]
		if u, ok := s.nodes[h.Pod.Node][resource]; !ok || u.Unit != t.device.Unit || !s.physical(h.Pod.Node) {
			continue
		}
		n := s.Held(h.Pod)[resource]
		switch h.Kind {
		case hold.Ghost:
			held.Ghost += n
		case hold.StuckStarting:
			held.StuckStarting += n
		case hold.Terminating:
			held.Terminating += n
		case hold.DeadNode:
			held.DeadNode += n
		}
	}
	t.device.Held = &held
	var reclaimable, nominated int64
	for _, n := range s.in.Health.Nodes {
		if u, ok := s.nodes[n.Name][resource]; ok && u.Unit == t.device.Unit && n.Kind == health.Physical && !n.Dead() {
			reclaimable += n.Load.Reclaimable[resource]
		}
	}
	for _, p := range s.in.Cluster.Pods {
		if p.Node == "" && p.Nominated != "" {
			if u, ok := s.nodes[p.Nominated][resource]; ok && u.Unit == t.device.Unit {
				nominated += p.Shape.Requests[resource]
			}
		}
	}
	t.device.Reclaimable, t.device.Nominated = &reclaimable, &nominated
}

func (s *Survey) physical(node string) bool {
	n := s.in.Health.Node(node)
	return n != nil && n.Kind == health.Physical
}

func (s *Survey) finish(t *total) {
	d := &t.device
	d.UpperBound = s.UpperBoundOf(d.Resource)
	for note := range t.notes {
		d.Notes = append(d.Notes, note)
	}
	if len(s.upper) > 0 {
		d.Notes = append(d.Notes, "free is an upper bound: "+strings.Join(s.upper, "; "))
	}
	slices.Sort(d.Notes)
	if t.cardsKnown {
		cards := t.cards
		d.Physical = &cards
		if t.healthyKnown {
			healthy := t.healthy
			d.PhysicalHealthy = &healthy
			if healthy < cards {
				d.Notes = append(d.Notes, fmt.Sprintf("%d of %d cards healthy", healthy, cards))
			}
		}
	} else {
		for _, note := range d.Notes {
			if strings.Contains(note, "uncertain") {
				d.PhysicalNote = "uncertain"
			}
		}
		if d.PhysicalNote == "" {
			d.PhysicalNote = "not advertised"
		}
	}
	if !t.known {
		return
	}
	requested, free, over, most := t.requested, t.free, t.over, t.most
	d.Requested, d.Free, d.Overcommitted, d.MaxFreeOnOneNode = &requested, &free, &over, &most
	if d.Allocatable > 0 {
		occupancy := min(1, float64(requested)/float64(d.Allocatable))
		d.Occupancy = &occupancy
	}
	if d.Source == "plugin" {
		naive := t.naive
		naiveFree := d.Allocatable + t.naiveAll - naive
		d.Naive = report.Naive{Requested: &naive, Free: &naiveFree}
	}
}

// addAliases lists names whose silicon is counted under another name.
func (s *Survey) addAliases() {
	type key struct{ name, of string }
	by := map[key]*report.Device{}
	for _, n := range s.in.Health.Nodes {
		if n.Kind != health.Physical {
			continue
		}
		for name, of := range s.aliases[n.Name] {
			k := key{name, of}
			d := by[k]
			if d == nil {
				row := s.in.Table.Row(name)
				d = &report.Device{Resource: name, Source: "plugin", Unit: row.Unit, Vendor: row.Vendor, AliasOf: of,
					PhysicalNote: "the same cards are counted as " + of, UpperBound: s.UpperBoundOf(name)}
				by[k] = d
			}
			d.Capacity += n.Capacity[name]
			d.Allocatable += n.Allocatable[name]
			if s.podsSeen {
				if d.Requested == nil {
					d.Requested = new(int64)
				}
				*d.Requested += n.Load.Requested[name]
			}
		}
	}
	for _, d := range by {
		s.Devices = append(s.Devices, *d)
	}
	s.unadvertised()
}

// unadvertised lists views that pods ask for and no node advertises: how much
// of them there is stays unknown, and is not 0.
func (s *Survey) unadvertised() {
	asked := map[string]int64{}
	for _, n := range s.in.Health.Nodes {
		for name, amount := range n.Load.Requested {
			if amount > 0 && s.in.Table.Row(name).Role == View {
				asked[name] += amount
			}
		}
	}
	for _, d := range s.Devices {
		delete(asked, d.Resource)
	}
	for name, amount := range asked {
		row := s.in.Table.Row(name)
		s.Unknown = append(s.Unknown, report.UnknownDevice{Resource: name, Requested: &amount, Note: "requested by pods and not advertised by any node: how much there is stays unknown (" + row.Vendor + ")"})
	}
}

// unknowns lists extended resources that no row knows.
func (s *Survey) unknowns() {
	by := map[string]*report.UnknownDevice{}
	for _, n := range s.in.Health.Nodes {
		if n.Kind != health.Physical {
			continue
		}
		for name, amount := range n.Capacity {
			if amount == 0 || s.in.Table.Row(name).Role != Unknown {
				continue
			}
			u := by[name]
			if u == nil {
				u = &report.UnknownDevice{Resource: name, Note: "unknown accelerator: not in the device table, listed and not added to anything; name it under devices in the configuration"}
				by[name] = u
				if s.podsSeen {
					u.Requested = new(int64)
				}
			}
			u.Nodes++
			u.Capacity += amount
			u.Allocatable += n.Allocatable[name]
			if u.Requested != nil {
				*u.Requested += n.Load.Requested[name]
			}
		}
	}
	for _, u := range by {
		s.Unknown = append(s.Unknown, *u)
	}
	for driver, n := range s.floating {
		s.Unknown = append(s.Unknown, report.UnknownDevice{Resource: driver, Capacity: n, Allocatable: n,
			Note: "devices of a DRA driver that belong to no one node: listed and not added to anything"})
	}
	slices.SortFunc(s.Unknown, func(a, b report.UnknownDevice) int { return strings.Compare(a.Resource, b.Resource) })
	s.heldOnElastic()
}

// heldOnElastic notes real requests on nodes whose capacity means nothing.
func (s *Survey) heldOnElastic() {
	held := map[string]int64{}
	for _, n := range s.in.Health.Nodes {
		if n.Kind == health.Physical {
			continue
		}
		for name, amount := range n.Load.Requested {
			if amount > 0 && s.in.Table.Row(name).Role == Counted {
				held[name] += amount
			}
		}
	}
	for name, amount := range held {
		found := false
		for i := range s.Devices {
			if s.Devices[i].Resource == name {
				s.Devices[i].Notes = append(s.Devices[i].Notes, fmt.Sprintf("%d more held by pods on elastic or fake nodes, whose capacity is unknown", amount))
				found = true
				break
			}
		}
		if !found {
			s.Unknown = append(s.Unknown, report.UnknownDevice{Resource: name, Requested: &amount, Note: "held by pods on elastic or fake nodes, whose capacity is unknown"})
		}
	}
	slices.SortFunc(s.Unknown, func(a, b report.UnknownDevice) int { return strings.Compare(a.Resource, b.Resource) })
}
