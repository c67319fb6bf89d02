package check

import (
	"fmt"
	"sort"
	"strings"

	"gpuaudit/audit/drift"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// flapNodes is from how many nodes on that lost the same machine-written
// labels are one fact about the daemon that writes them.
const flapNodes = 3

var labelDrift = Check{
	ID: "label-drift", Step: 2, Title: "labels or taints removed, added or changed since an earlier run",
	Required: []inventory.Resource{inventory.Nodes},
	Optional: []inventory.Resource{inventory.Pods},
	Wider:    "which labels somebody selects on is not known without pods, so every lost label counts as one that nobody selects on",
	Ready:    comparedReady,
	Run:      runLabelDrift,
}

func comparedReady(in *Input) string {
	if in.Drift.Compared {
		return ""
	}
	return in.Drift.Why
}

func runLabelDrift(in *Input) []report.Finding {
	byNode := map[string][]snapshot.Loss{}
	flaps := discoveryFlaps(in)
	var out []report.Finding
	for _, l := range in.Drift.Losses {
		switch {
		case l.What != snapshot.LostLabel && l.What != snapshot.LostTaint:
		case l.What == snapshot.LostLabel && flaps.has(l):
		case l.What == snapshot.LostLabel && in.loadBearing(l.Key):
			out = append(out, lostLabel(in, l))
		case l.What == snapshot.LostTaint:
			// A taint is lost only with its Node object: node-recreated has it.
		default:
			byNode[l.Node] = append(byNode[l.Node], l)
		}
	}
	out = append(out, flaps.findings(in)...)
	return append(out, minorDrift(in, byNode)...)
}

func (in *Input) loadBearing(key string) bool {
	d := drift.Input{Cluster: in.Cluster, Settings: in.Settings}
	return d.LoadBearing(key)
}

func lostLabel(in *Input, l snapshot.Loss) report.Finding {
	f := in.finding("label-drift", report.Critical, nodeSubject(l.Node), l.Key)
	f.Node, f.Label = l.Node, l.Key
	free := in.Survey.Free(l.Node)
	withDevices(&f, free)
	f.Since = timePointer(l.FirstMissed)
	now := "gone"
	if !l.Absent {
		now = "now " + l.Now
	}
	effect := ""
	if sum(free) > 0 {
		effect = fmt.Sprintf(": %s free and not for pods that select it", describeDevices(free))
	}
	if l.Recreated {
		f.Since = l.RecreatedAt
		f.CausedBy = report.FindingID(in.Cluster.Name, "node-recreated", nodeSubject(l.Node))
		f.Title = fmt.Sprintf("node %s lost label %s=%s when its Node object was made again (%s)%s", l.Node, l.Key, l.Value, now, effect)
		f.Detail = fmt.Sprintf("The old object (UID %s) had it, the new one (UID %s) does not. ", orNone(l.OldUID), orNone(l.NewUID))
	} else {
		f.Title = fmt.Sprintf("label %s=%s was taken from node %s (%s)%s", l.Key, l.Value, l.Node, now, effect)
		f.Detail = "The Node object is the same one, so somebody or something edited it. "
	}
	if f.Since == nil {
		f.Since = timePointer(l.FirstMissed)
	}
	f.Detail += fmt.Sprintf("It was there at %s and missed first at %s. %s", stamp(l.LastHad), stamp(l.FirstMissed), usersWords(in, l.Key))
	f.Evidence = []report.Evidence{
		{Object: "Node/" + l.Node, Path: "earlier metadata.labels[" + l.Key + "] at " + stamp(l.LastHad), Value: l.Value},
		{Object: "Node/" + l.Node, Path: "metadata.labels[" + l.Key + "]", Value: absentOr(l)},
	}
	f.Evidence = append(f.Evidence, setBy(in, l.Node, l.Key)...)
	f.Commands = []string{
		kubectl("get", "node", l.Node, "--show-labels"),
		kubectl("label", "node", l.Node, l.Key+"="+l.Value, "--overwrite"),
	}
	return f
}

// setBy names who wrote the label last before it was lost, where that is known.
func setBy(in *Input, node, key string) []report.Evidence {
	if in.Previous == nil {
		return nil
	}
	for i := range in.Previous.Nodes {
		n := &in.Previous.Nodes[i]
		if n.Name != node {
			continue
		}
		if by, ok := n.SetBy[key]; ok {
			return []report.Evidence{{Object: "Node/" + node, Path: "earlier metadata.managedFields", Value: fmt.Sprintf("%s set by %q (%s), at or before %s", key, by.Manager, by.Operation, stamp(by.Time))}}
		}
	}
	return nil
}

func absentOr(l snapshot.Loss) string {
	if l.Absent {
		return "(absent)"
	}
	return l.Now
}

// flaps are machine-written labels that many nodes miss at once: a matter of
// the discovery daemon, reported once.
type flaps struct {
	nodes map[string][]snapshot.Loss // by group of keys' prefix
	lost  map[string]bool
}

func discoveryFlaps(in *Input) *flaps {
	f := &flaps{nodes: map[string][]snapshot.Loss{}, lost: map[string]bool{}}
	perNode := map[string]map[string]bool{}
	for _, l := range in.Drift.Losses {
		if l.What == snapshot.LostLabel && l.Absent && !l.Recreated && drift.Discovered(l.Key) {
			prefix, _, _ := strings.Cut(l.Key, "/")
			if perNode[prefix] == nil {
				perNode[prefix] = map[string]bool{}
			}
			perNode[prefix][l.Node] = true
		}
	}
	for _, l := range in.Drift.Losses {
		if l.What != snapshot.LostLabel || !l.Absent || l.Recreated || !drift.Discovered(l.Key) {
			continue
		}
		prefix, _, _ := strings.Cut(l.Key, "/")
		if len(perNode[prefix]) >= flapNodes {
			f.lost[l.Node+"\x00"+l.Key] = true
			f.nodes["discovery"] = append(f.nodes["discovery"], l)
		}
	}
	return f
}

func (f *flaps) has(l snapshot.Loss) bool { return f.lost[l.Node+"\x00"+l.Key] }

func (f *flaps) findings(in *Input) []report.Finding {
	losses := f.nodes["discovery"]
	if len(losses) == 0 {
		return nil
	}
	nodes, keys, bearing := map[string]bool{}, map[string]bool{}, map[string]bool{}
	first := losses[0].FirstMissed
	for _, l := range losses {
		nodes[l.Node], keys[l.Key] = true, true
		if in.loadBearing(l.Key) {
			bearing[l.Key] = true
		}
		if l.FirstMissed.Before(first) {
			first = l.FirstMissed
		}
	}
	again := first.Before(in.Now)
	severity := report.Info
	switch {
	case again && len(bearing) > 0:
		severity = report.Critical
	case again || len(bearing) > 0:
		severity = report.Warning
	}
	out := in.finding("label-drift", severity, in.clusterSubject(), "discovery labels")
	out.Since = timePointer(first)
	word := "transient?"
	if again {
		word = "still so since " + stamp(first)
	}
	out.Title = fmt.Sprintf("discovery labels missing on %s (%s)", count(int64(len(nodes)), "node"), word)
	out.Detail = "Labels that a feature-discovery daemon writes are gone from nodes that are otherwise unchanged: " + list(sorted(keys), 5) +
		". A restart of the daemon does this for a minute or so."
	devices := map[string]int64{}
	if len(bearing) > 0 {
		out.Detail += " Pods that select on " + list(sorted(bearing), 5) + " cannot be placed on these nodes meanwhile."
		for name := range nodes {
			for resource, n := range in.Survey.Free(name) {
				devices[resource] += n
			}
		}
	}
	withDevices(&out, devices)
	for _, name := range sorted(nodes) {
		out.Objects = append(out.Objects, "Node/"+name)
	}
	out.Commands = []string{"kubectl get pods -A -o wide | grep -i -e feature-discovery -e nfd", kubectl("get", "nodes", "-L", sorted(keys)[0])}
	return []report.Finding{out}
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for v := range set {
		out = append(out, v)
	}
	sort.Strings(out)
	return out
}

// minorDrift is what nobody selects on: one finding a node, or one for all
// nodes on which the very same happened.
func minorDrift(in *Input, losses map[string][]snapshot.Loss) []report.Finding {
	words := map[string][]string{}
	recreated := map[string]bool{}
	warn := map[string]bool{}
	for node, list := range losses {
		for _, l := range list {
			words[node] = append(words[node], "lost label "+l.Key+"="+l.Value)
			recreated[node] = recreated[node] || l.Recreated
		}
	}
	for _, c := range in.Drift.Changes {
		words[c.Node] = append(words[c.Node], changeWords(c))
		if drift.CountLabel(c.Key) && !c.Added && parse(c.New) < parse(c.Old) {
			warn[c.Node] = true
		}
	}
	same := map[string][]string{}
	for node, list := range words {
		sort.Strings(list)
		key := strings.Join(list, "\x00")
		if recreated[node] {
			key += "\x00recreated " + node
		}
		same[key] = append(same[key], node)
	}
	var out []report.Finding
	for key, nodes := range same {
		sort.Strings(nodes)
		changes := strings.Split(strings.Split(key, "\x00recreated ")[0], "\x00")
		if len(nodes) >= flapNodes {
			f := in.finding("label-drift", report.Info, in.clusterSubject(), key)
			f.Title = fmt.Sprintf("%s on %s", list(changes, 2), count(int64(len(nodes)), "node"))
			fillMinor(in, &f, nodes, changes)
			out = append(out, f)
			continue
		}
		for _, node := range nodes {
			severity := report.Info
			if warn[node] {
				severity = report.Warning
			}
			f := in.finding("label-drift", severity, nodeSubject(node), "other keys")
			f.Node = node
			f.Title = fmt.Sprintf("node %s: %s", node, list(changes, 2))
			if recreated[node] {
				f.CausedBy = report.FindingID(in.Cluster.Name, "node-recreated", nodeSubject(node))
			}
			fillMinor(in, &f, []string{node}, changes)
			out = append(out, f)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

func fillMinor(in *Input, f *report.Finding, nodes, changes []string) {
	in.firstSighting(f)
	f.Detail = fmt.Sprintf("Between %s and %s: %s. Nothing seen selects on these.", stamp(in.Drift.PreviousAt), stamp(in.Now), list(changes, 12))
	for _, c := range changes {
		if strings.Contains(c, "kubernetes.io/hostname") {
			f.Detail += " Pods pinned to a node by kubernetes.io/hostname break when it changes."
			break
		}
	}
	for _, n := range nodes {
		f.Objects = append(f.Objects, "Node/"+n)
	}
	f.Commands = []string{kubectl("get", "node", nodes[0], "--show-labels")}
}

func changeWords(c drift.Change) string {
	switch {
	case c.What == snapshot.LostTaint && c.Added:
		return "new taint " + c.Key
	case c.What == snapshot.LostTaint:
		return "taint " + c.Key + " removed"
	case c.Added:
		return "new label " + c.Key + "=" + c.New
	}
	return "label " + c.Key + " changed from " + c.Old + " to " + c.New
}
