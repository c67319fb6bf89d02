package outline

import (
	"cmp"
	"slices"

	"gpuaudit/audit/report"
)

// TroubledNodes are the nodes that a reader should look at, worst first: not
// ready, silent, cordoned, short of devices or holding some for pods that do no
// work, named by an open finding, or with free devices that a class cannot get.
// Devices that are merely too few for another replica are no trouble.
func TroubledNodes(c *report.Cluster) []report.Node {
	found, lost := map[string]bool{}, map[string]bool{}
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Open() && f.Node != "" {
			found[f.Node] = true
		}
	}
	for _, k := range c.Classes {
		for _, l := range k.Lost {
			if l.Reason == report.LostRemainder || l.Reason == report.LostTooSmall {
				continue
			}
			for _, n := range l.Nodes {
				lost[n] = true
			}
		}
	}
	ranks := map[string]int{}
	var out []report.Node
	for _, n := range c.Nodes {
		if rank, troubled := trouble(&n, found[n.Name], lost[n.Name]); troubled {
			ranks[n.Name] = rank
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b report.Node) int { return cmp.Compare(ranks[a.Name], ranks[b.Name]) })
	return out
}

// trouble ranks what is wrong with a node, 0 the worst.
func trouble(n *report.Node, found, lost bool) (rank int, troubled bool) {
	short, held := false, false
	for _, d := range n.Devices {
		short = short || d.Allocatable < d.Capacity || d.Requested != nil && *d.Requested > d.Allocatable
		held = held || d.Held > 0
	}
	for i, bad := range []bool{n.Ready != true, n.Silent, n.Cordoned, short, found, held, n.Initialising, lost} {
		if bad {
			return i, true
		}
	}
	return 0, false
}
