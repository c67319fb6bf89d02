package device

import (
	"slices"
	"sort"
	"time"

	"gpuaudit/audit/health"
	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// Input of a survey.
type Input struct {
	Cluster *inventory.Cluster
	Health  *health.Verdict
	Holds   []hold.Hold
	Table   *Table
	// Young is the age under which a node without devices is only starting.
	Young time.Duration
	// HadDevices are nodes that had devices before, by an earlier snapshot.
	HadDevices map[string]bool
}

// Use is one device resource on one node, in Unit.
type Use struct {
	Unit                  string
	Capacity, Allocatable int64
	// Requested is what the scheduler charges; Free is never below 0.
	Requested, Free int64
	// Overcommit is by how much Requested is above Allocatable.
	Overcommit int64
	// Running is charged to pods that really run here; on a dead node none does.
	Running int64
	// Held is charged to pods that do no work.
	Held int64
	// Known is false when pods (or the driver's whole pool) were not seen:
	// then only Capacity and Allocatable mean anything.
	Known  bool
	Source string // plugin or dra
	cards  int64
	share  sharing
}

// Survey is what there is of devices on a cluster.
type Survey struct {
	// Devices are the totals by resource and unit; Unknown what no table row knows.
	Devices []report.Device
	Unknown []report.UnknownDevice

	in       Input
	nodes    map[string]map[string]Use
	aliases  map[string]map[string]string // node, resource -> counted under
	views    map[string]map[string]Use    // node, other name of counted cards
	asked    map[string]bool              // names in views
	partly   map[string]bool              // resources whose cards are charged under two names
	floating map[string]int64             // driver -> devices that are on no one node
	claimsOf map[string][]*inventory.DeviceClaim
	upper    []string
	served   map[string]bool // extended resources that DRA serves
	podsSeen bool
}

// Take surveys a cluster.
func Take(in Input) *Survey {
	s := &Survey{
		in: in, nodes: map[string]map[string]Use{}, aliases: map[string]map[string]string{}, views: map[string]map[string]Use{}, asked: map[string]bool{},
		partly: map[string]bool{}, floating: map[string]int64{}, claimsOf: map[string][]*inventory.DeviceClaim{}, served: map[string]bool{},
	}
	s.podsSeen = in.Cluster.AnySeen(inventory.Pods)
	for _, c := range in.Cluster.Claims {
		s.claimsOf[c.Namespace] = append(s.claimsOf[c.Namespace], c)
	}
	for _, class := range in.Cluster.DeviceClasses {
		s.served[class.ExtendedResource] = class.ExtendedResource != ""
	}
	s.upper = upperBound(in)
	held := s.held()
	for _, n := range in.Health.Nodes {
		s.nodes[n.Name] = s.plugins(n, held[n.Name])
	}
	s.dra(held)
	s.totals()
	return s
}

// held adds up what pods that do no work are charged with, by node and resource.
func (s *Survey) held() map[string]map[string]int64 {
	held := map[string]map[string]int64{}
	for i := range s.in.Holds {
		h := &s.in.Holds[i]
		if h.Kind == hold.Orphan {
			continue
		}
		if held[h.Pod.Node] == nil {
			held[h.Pod.Node] = map[string]int64{}
		}
		for name, n := range h.Pod.Shape.Requests {
			held[h.Pod.Node][name] += n
		}
		for name, n := range s.claimed(h.Pod) {
			held[h.Pod.Node][name] += n
		}
	}
	return held
}

// upperBound lists why free can only be less than what is computed.
func upperBound(in Input) []string {
	out := slices.Clone(in.Health.Virtual)
	switch in.Cluster.Extent(inventory.Pods) {
	case inventory.SeenListed, inventory.SeenSome:
		out = append(out, "pods were read in some namespaces only")
	}
	return out
}

// UpperBound tells whether free devices are an upper bound, and why.
func (s *Survey) UpperBound() (bool, []string) { return len(s.upper) > 0, s.upper }

// plugins reads what device plugins advertise on a node.
func (s *Survey) plugins(n *health.Node, held map[string]int64) map[string]Use {
	out := map[string]Use{}
	s.aliases[n.Name] = map[string]string{}
	names := map[string]bool{}
	for name := range n.Capacity {
		names[name] = true
	}
	for name := range n.Allocatable {
		names[name] = true
	}
	for name := range names {
		row := s.in.Table.Row(name)
		if row.Role != Counted && row.Role != View {
			continue
		}
		// A zero in both maps is a stale entry or a plugin without devices, no class of devices.
		if n.Capacity[name] == 0 && n.Allocatable[name] == 0 {
			continue
		}
		if of := s.countedAs(n, row); of != "" {
			s.aliases[n.Name][name] = of
			continue
		}
		sharing := shared(n.Node, name, row)
		u := Use{Unit: sharing.unit, Capacity: n.Capacity[name], Allocatable: n.Allocatable[name], Source: "plugin", Known: s.podsSeen,
			Requested: n.Load.Requested[name], Running: n.Load.Running[name], Held: held[name], cards: sharing.cards, share: sharing}
		out[name] = u
	}
	s.alternatives(n, out, held)
	for name, u := range out {
		u.settle(n.Dead())
		out[name] = u
	}
	return out
}

// countedAs gives the name under which a view's silicon is counted on this
// node, "" when the row itself counts: a view whose cards nobody else counts
// here stands for them.
func (s *Survey) countedAs(n *health.Node, row Row) string {
	if row.Role != View {
		return ""
	}
	for _, of := range row.CardOf {
		if n.Capacity[of] > 0 || n.Allocatable[of] > 0 {
			return of
		}
	}
	return ""
}

func (u *Use) settle(dead bool) {
	if !u.Known {
		u.Requested, u.Running, u.Held = 0, 0, 0
		return
	}
	if dead {
		u.Running = 0
	}
	u.Free = max(0, u.Allocatable-u.Requested)
	u.Overcommit = max(0, u.Requested-u.Allocatable)
}

// dra adds the devices of ResourceSlices, under their driver's name.
func (s *Survey) dra(held map[string]map[string]int64) {
	used := allocated(s.in.Cluster)
	known := s.podsSeen && s.ClaimsSeen() && s.in.Cluster.Seen(inventory.ResourceSlices)
	counters := false
	for _, p := range pools(s.in.Cluster) {
		counters = counters || p.counters
		for _, d := range p.devices {
			node := s.nodes[d.node]
			if node == nil {
				s.floating[p.driver]++
				continue
			}
			u, ok := node[p.driver]
			if !ok {
				u = Use{Unit: Other, Source: "dra", Known: known, share: sharing{cards: -1}}
				switch {
				case !s.ClaimsSeen():
					u.share.note = "resource claims were not seen: how many of these devices are held is unknown"
				case !known:
					u.share.note = "not everything that charges these devices was seen: how many are held is unknown"
				case p.counters:
					u.share.note = "partitions share counters: free is an upper bound"
				}
			}
			u.Known = u.Known && p.complete
			if !p.complete {
				u.share.note = "not all slices of a pool are there: how many devices it has is unknown"
			}
			u.Capacity++
			if !d.tainted {
				u.Allocatable++
			}
			if used[p.driver+"\x00"+p.name+"\x00"+d.name] {
				u.Requested++
			}
			node[p.driver] = u
		}
	}
	for name, node := range s.nodes {
		for resource, u := range node {
			if u.Source != "dra" {
				continue
			}
			n := s.in.Health.Node(name)
			u.Held = held[name][resource]
			u.Running = max(0, u.Requested-u.Held)
			u.settle(n != nil && n.Dead())
			node[resource] = u
		}
	}
	if counters {
		s.upper = append(s.upper, "DRA partitions share counters")
		sort.Strings(s.upper)
	}
}

// ClaimsSeen is true when every resource claim was seen, or the cluster has
// none: only then is it known what pods hold of DRA drivers' devices.
func (s *Survey) ClaimsSeen() bool { return s.in.Cluster.Seen(inventory.ResourceClaims) }

// HeldUnknown is true for a bound pod that asks for devices by resource claims
// which were not seen: what it holds of them is not known, and is not 0.
func (s *Survey) HeldUnknown(p *inventory.Pod) bool {
	return !s.ClaimsSeen() && (p.Shape.ClaimCount > 0 || len(p.ClaimNames) > 0)
}

// Served is true for an extended resource that a DRA driver serves on nodes
// which do not advertise it.
// Source: kubernetes DeviceClass spec.extendedResourceName (KEP 5004).
func (s *Survey) Served(resource string) bool { return s.served[resource] }

// MayBeServed is Served, and true for every extended resource where device
// classes, which alone tell, were not seen.
func (s *Survey) MayBeServed(resource string) bool {
	return s.served[resource] || (!s.in.Cluster.Seen(inventory.DeviceClasses) && !inventory.IsPlain(resource))
}

// Node gives a node's counted devices by resource.
func (s *Survey) Node(name string) map[string]Use { return s.nodes[name] }

// IsDevice is true for resources that are counted, DRA drivers included.
func (s *Survey) IsDevice(resource string) bool {
	role := s.in.Table.Row(resource).Role
	if role == Counted {
		return true
	}
	for _, node := range s.nodes {
		if _, ok := node[resource]; ok {
			return true
		}
	}
	return false
}

// IsView is true for names that only another view of counted devices: a
// device-sharing scheduler keeps their accounts, the nodes need not advertise them.
func (s *Survey) IsView(resource string) bool { return s.in.Table.Row(resource).Role == View }

// Free gives a node's free devices by resource; empty where pods were not seen.
func (s *Survey) Free(node string) map[string]int64 {
	out := map[string]int64{}
	for name, u := range s.nodes[node] {
		if u.Known && u.Free > 0 {
			out[name] = u.Free
		}
	}
	return out
}

// KeptFromUse gives what a fault of the whole node keeps from use: allocatable
// minus what really running pods hold, and all of it on a dead node. Where
// pods were not seen it is known for dead nodes only.
func (s *Survey) KeptFromUse(node string) map[string]int64 {
	out := map[string]int64{}
	n := s.in.Health.Node(node)
	for name, u := range s.nodes[node] {
		switch {
		case n != nil && n.Dead():
			out[name] = u.Allocatable
		case u.Known:
			out[name] = max(0, u.Allocatable-u.Running)
		}
	}
	return out
}

// Asked gives the counted devices that a shape requests.
func (s *Survey) Asked(shape *inventory.Shape) map[string]int64 {
	out := map[string]int64{}
	for name, n := range shape.Requests {
		if n > 0 && s.in.Table.Row(name).Role == Counted {
			out[name] = n
		}
	}
	if len(out) > 0 {
		return out
	}
	// Only views are asked for (card memory of a shared card, say): they stand for the device.
	for name, n := range shape.Requests {
		if n > 0 && s.in.Table.Row(name).Role == View && (s.asked[name] || s.IsDevice(name)) {
			out[name] = n
		}
	}
	return out
}

// Held gives the counted devices that a bound pod is charged with, claims included.
func (s *Survey) Held(p *inventory.Pod) map[string]int64 {
	out := map[string]int64{}
	for name, n := range s.Asked(p.Shape) {
		counted, n := s.asCounted(p.Node, name, n)
		out[counted] = max(out[counted], n) // two names for the same cards are not two cards
	}
	for driver, n := range s.claimed(p) {
		out[driver] += n
	}
	return out
}

// DeviceNodes are the physical nodes that have devices, sorted.
func (s *Survey) DeviceNodes() []string {
	var out []string
	for _, n := range s.in.Health.Nodes {
		if n.Kind == health.Physical && len(s.nodes[n.Name]) > 0 {
			out = append(out, n.Name)
		}
	}
	return out
}

// Initialising is true for a young node that should have devices and has none yet.
func (s *Survey) Initialising(node string) bool {
	n := s.in.Health.Node(node)
	if n == nil || n.Created.IsZero() || s.in.Cluster.CollectedAt.Sub(n.Created) >= s.in.Young {
		return false
	}
	for _, u := range s.nodes[node] {
		if u.Allocatable > 0 {
			return false
		}
	}
	return promisesDevices(n.Node) || s.in.HadDevices[node]
}

// LabelCount is LabelCount of a node by name.
func (s *Survey) LabelCount(node string) (resource string, count int64, ok bool) {
	n := s.in.Health.Node(node)
	if n == nil {
		return "", 0, false
	}
	return LabelCount(n.Node)
}
