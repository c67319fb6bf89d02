package device

import (
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"gpuaudit/audit/inventory"
)

// pool is one pool of a DRA driver at its newest generation.
type pool struct {
	driver, name string
	complete     bool
	counters     bool
	devices      []poolDevice
}

type poolDevice struct {
	name, node string
	tainted    bool
}

// pools picks the newest generation of every pool. A pool of which slices are
// missing says nothing about how many devices it has.
// Source: kubernetes dynamic-resource-allocation/structured (pools.go).
func pools(c *inventory.Cluster) []*pool {
	type key struct{ driver, pool string }
	newest := map[key]int64{}
	for _, s := range c.Slices {
		k := key{s.Driver, s.Pool}
		if g, ok := newest[k]; !ok || s.Generation > g {
			newest[k] = s.Generation
		}
	}
	by := map[key]*pool{}
	slices := map[key]int64{}
	want := map[key]int64{}
	for _, s := range c.Slices {
		k := key{s.Driver, s.Pool}
		if s.Generation != newest[k] {
			continue
		}
		p := by[k]
		if p == nil {
			p = &pool{driver: s.Driver, name: s.Pool}
			by[k] = p
		}
		slices[k]++
		want[k] = max(want[k], s.PoolSlices)
		p.counters = p.counters || s.SharedCounters
		for _, d := range s.Devices {
			p.counters = p.counters || d.Counters || d.MultiAlloc
			p.devices = append(p.devices, poolDevice{name: d.Name, node: deviceNode(c, s, &d), tainted: len(d.Taints) > 0})
		}
	}
	out := make([]*pool, 0, len(by))
	for k, p := range by {
		p.complete = slices[k] == want[k]
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].driver != out[j].driver {
			return out[i].driver < out[j].driver
		}
		return out[i].name < out[j].name
	})
	return out
}

// deviceNode gives the one node that a device is on, "" when several can reach it.
func deviceNode(c *inventory.Cluster, s *inventory.DeviceSlice, d *inventory.SliceDevice) string {
	switch {
	case d.Node != "":
		return d.Node
	case s.Node != "":
		return s.Node
	case s.NodeSelector == nil:
		return ""
	}
	selector, err := nodeaffinity.NewNodeSelector(s.NodeSelector)
	if err != nil {
		return ""
	}
	found := ""
	for _, n := range c.Nodes {
		node := &corev1.Node{}
		node.Name, node.Labels = n.Name, n.Labels
		if selector.Match(node) {
			if found != "" {
				return ""
			}
			found = n.Name
		}
	}
	return found
}

// allocated lists the devices that claims hold, each once, by driver and pool.
// Claims with admin access only look on and are not charged.
func allocated(c *inventory.Cluster) map[string]bool {
	out := map[string]bool{}
	for _, claim := range c.Claims {
		for _, r := range claim.Results {
			if !r.AdminAccess {
				out[r.Driver+"\x00"+r.Pool+"\x00"+r.Device] = true
			}
		}
	}
	return out
}

// claimed gives what a pod's claims hold, by driver.
func (s *Survey) claimed(p *inventory.Pod) map[string]int64 {
	out := map[string]int64{}
	names := map[string]bool{}
	for _, n := range p.ClaimNames {
		names[n] = true
	}
	for _, claim := range s.claimsOf[p.Namespace] {
		mine := names[claim.Name]
		for _, user := range claim.ReservedFor {
			mine = mine || user == p.Name
		}
		if !mine {
			continue
		}
		for _, r := range claim.Results {
			if !r.AdminAccess {
				out[r.Driver]++
			}
		}
	}
	return out
}
