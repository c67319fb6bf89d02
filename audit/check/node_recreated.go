package check

import (
	"fmt"
	"sort"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

var nodeRecreated = Check{
	ID: "node-recreated", Step: 6, Title: "nodes made again under an old name, and what they lost by it",
	Required: []inventory.Resource{inventory.Nodes},
	Optional: []inventory.Resource{inventory.Pods},
	Wider:    "which lost labels somebody selects on is not known without pods",
	Ready:    comparedReady,
	Run:      runNodeRecreated,
}

// recreation gathers what one recreation cost.
type recreation struct {
	node    string
	oldUID  string
	newUID  string
	at      string
	losses  []snapshot.Loss
	fresh   bool // found in this very run
	bearing bool
	devices bool
	// lasting is true when something is lost that keeps the finding open.
	lasting bool
}

func runNodeRecreated(in *Input) []report.Finding {
	byNode := map[string]*recreation{}
	get := func(node string) *recreation {
		if byNode[node] == nil {
			byNode[node] = &recreation{node: node}
		}
		return byNode[node]
	}
	for _, r := range in.Drift.Recreated {
		g := get(r.Node)
		g.fresh, g.oldUID, g.newUID, g.at = true, r.OldUID, r.NewUID, stamp(r.LastSeen)
	}
	for _, l := range in.Drift.Losses {
		if !l.Recreated {
			continue
		}
		g := get(l.Node)
		g.losses = append(g.losses, l)
		if g.newUID == "" {
			g.oldUID, g.newUID, g.at = l.OldUID, l.NewUID, stamp(l.LastHad)
		}
		switch l.What {
		case snapshot.LostLabel:
			if in.loadBearing(l.Key) {
				g.bearing, g.lasting = true, true
			}
		case snapshot.LostDevice:
			g.devices, g.lasting = true, true
		default:
			g.lasting = true
		}
	}
	var names []string
	for name, g := range byNode {
		if g.fresh || g.lasting {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out []report.Finding
	for _, name := range names {
		out = append(out, recreatedFinding(in, byNode[name]))
	}
	return out
}

func recreatedFinding(in *Input, g *recreation) report.Finding {
	severity := report.Info
	free := map[string]int64{}
	switch {
	case g.bearing || g.devices:
		severity = report.Critical
	case g.lasting:
		severity = report.Warning
	}
	if g.bearing {
		free = in.Survey.Free(g.node)
	}
	f := in.finding("node-recreated", severity, nodeSubject(g.node))
	f.Node = g.node
	withDevices(&f, free)
	n := in.Health.Node(g.node)
	if n != nil {
		f.Since = timePointer(n.Created)
	}
	in.firstSighting(&f)
	lost := lostWords(in, g.losses)
	f.Title = fmt.Sprintf("node %s was made again %s ago", g.node, since(in.Now, *f.Since))
	if len(lost) > 0 {
		f.Title += " and lost " + list(lost, 4)
	} else {
		f.Title += "; nothing that it had is missing"
	}
	if sum(free) > 0 {
		f.Title += fmt.Sprintf(": %s free and not for pods that select it", describeDevices(free))
	}
	f.Detail = fmt.Sprintf("Same name, new UID: %s, seen last at %s, is now %s. A Node object that is deleted and made again starts with nothing but what its creator sets.",
		orNone(g.oldUID), g.at, orNone(g.newUID))
	if n != nil {
		f.Evidence = append(f.Evidence, evidence(n, "metadata.uid", n.UID), evidence(n, "metadata.creationTimestamp", stamp(n.Created)))
	}
	f.Evidence = append(f.Evidence, report.Evidence{Object: "Node/" + g.node, Path: "earlier metadata.uid", Value: g.oldUID})
	for _, l := range g.losses {
		f.Evidence = append(f.Evidence, report.Evidence{Object: "Node/" + g.node, Path: "earlier " + l.What + " " + l.Key, Value: l.Value})
		f.Commands = append(f.Commands, repairCommand(l)...)
	}
	f.Commands = append([]string{kubectl("get", "node", g.node, "-o", "yaml")}, f.Commands...)
	return f
}

// lostWords lists losses, those that somebody depends on first.
func lostWords(in *Input, losses []snapshot.Loss) []string {
	var first, second, rest []string
	for _, l := range losses {
		switch l.What {
		case snapshot.LostLabel:
			word := "label " + l.Key + "=" + l.Value
			if in.loadBearing(l.Key) {
				first = append(first, word)
			} else {
				rest = append(rest, word)
			}
		case snapshot.LostTaint:
			second = append(second, "taint "+l.Value)
		case snapshot.LostCordon:
			second = append(second, "its cordon (a node taken out of service is back in it)")
		case snapshot.LostDevice:
			second = append(second, fmt.Sprintf("%d %s (was %s)", parse(l.Value)-parse(l.Now), l.Key, l.Value))
		}
	}
	return append(append(first, second...), rest...)
}

func repairCommand(l snapshot.Loss) []string {
	switch l.What {
	case snapshot.LostLabel:
		return []string{kubectl("label", "node", l.Node, l.Key+"="+l.Value, "--overwrite")}
	case snapshot.LostTaint:
		return []string{kubectl("taint", "node", l.Node, strings.TrimSpace(l.Value))}
	case snapshot.LostCordon:
		return []string{kubectl("cordon", l.Node)}
	}
	return nil
}
