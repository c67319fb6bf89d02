package check

import (
	"fmt"
	"sort"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// leastPeers is how many like nodes it takes before an absent label means anything.
const leastPeers = 3

var labelMissing = Check{
	ID: "label-missing", Step: 2, Title: "load-bearing labels that a node's peers carry and it does not",
	Required: []inventory.Resource{inventory.Nodes, inventory.Pods},
	Optional: []inventory.Resource{inventory.DaemonSets, inventory.Deployments, inventory.StatefulSets, inventory.Jobs, inventory.CronJobs, inventory.RuntimeClasses},
	Wider:    "keys are taken from the pods, templates and runtime classes that could be read; a label that only an unread one selects is not known to matter",
	Run:      runLabelMissing,
}

func runLabelMissing(in *Input) []report.Finding {
	groups := peerGroups(in)
	lost := map[string]bool{} // node and key with an earlier value known: label-drift has them
	for _, l := range in.Drift.Losses {
		if l.What == snapshot.LostLabel {
			lost[l.Node+"\x00"+l.Key] = true
		}
	}
	var keys []string
	for key := range in.Cluster.SelectedLabels {
		if !matchAny(key, in.Settings.Ignore.Labels) {
			keys = append(keys, key)
		}
	}
	for _, w := range in.Settings.Workloads {
		for key := range w.NodeSelector {
			if in.Cluster.SelectedLabels[key] == nil {
				keys = append(keys, key)
			}
		}
	}
	sort.Strings(keys)
	var out []report.Finding
	for _, n := range in.Health.Nodes {
		if n.Kind != health.Physical || in.ignoredNode(n.Name) || in.Survey.Initialising(n.Name) {
			continue
		}
		group := groups.of[n.Name]
		for i, key := range keys {
			if _, has := n.Labels[key]; has || lost[n.Name+"\x00"+key] || (i > 0 && keys[i-1] == key) {
				continue
			}
			peers := int64(len(groups.members[group]) - 1)
			with := groups.with(group, key)
			if peers < leastPeers || float64(with) < in.Settings.Thresholds.PeersWithLabel*float64(peers) {
				continue
			}
			out = append(out, missingLabel(in, n, key, with, peers))
		}
	}
	return out
}

// peers groups nodes that should look alike: by instance type, else by device
// resource and count.
type peers struct {
	of      map[string]string
	members map[string][]*health.Node
	carry   map[string]int64
}

func peerGroups(in *Input) *peers {
	p := &peers{of: map[string]string{}, members: map[string][]*health.Node{}, carry: map[string]int64{}}
	for _, n := range in.Health.Nodes {
		if n.Kind != health.Physical {
			continue
		}
		group := "type " + n.Labels["node.kubernetes.io/instance-type"]
		if group == "type " {
			group = "type " + n.Labels["beta.kubernetes.io/instance-type"]
		}
		if group == "type " {
			group = "devices " + describeDevices(snapshot.Devices(n.Capacity))
		}
		p.of[n.Name] = group
		p.members[group] = append(p.members[group], n)
	}
	return p
}

func (p *peers) with(group, key string) int64 {
	cached := group + "\x00" + key
	if n, ok := p.carry[cached]; ok {
		return n
	}
	var n int64
	for _, m := range p.members[group] {
		if _, has := m.Labels[key]; has {
			n++
		}
	}
	p.carry[cached] = n
	return n
}

func missingLabel(in *Input, n *health.Node, key string, with, peers int64) report.Finding {
	free := in.Survey.Free(n.Name)
	severity := severe(free)
	if len(in.Survey.Node(n.Name)) == 0 {
		severity = report.Info
	}
	f := in.finding("label-missing", severity, nodeSubject(n.Name), key)
	f.Node, f.Label = n.Name, key
	withDevices(&f, free)
	in.firstSighting(&f)
	f.Title = fmt.Sprintf("node %s lacks label %s, which %d of its %d peers carry", n.Name, key, with, peers)
	if sum(free) > 0 {
		f.Title += fmt.Sprintf(": %s free and not for pods that select it", describeDevices(free))
	}
	f.Detail = "No earlier value of this label is known for this node. " + usersWords(in, key)
	if !n.Created.IsZero() {
		f.Detail += fmt.Sprintf(" The Node object was created %s ago.", since(in.Now, n.Created))
	}
	f.Evidence = []report.Evidence{
		evidence(n, "metadata.labels["+key+"]", "(absent)"),
		evidence(n, "metadata.creationTimestamp", stamp(n.Created)),
	}
	value := "VALUE"
	if use := in.Cluster.SelectedLabels[key]; use != nil && len(use.Values) == 1 {
		value = use.Values[0]
	}
	f.Commands = []string{
		kubectl("get", "nodes", "-L", key),
		kubectl("label", "node", n.Name, key+"="+value),
	}
	return f
}

func usersWords(in *Input, key string) string {
	use := in.Cluster.SelectedLabels[key]
	if use == nil {
		return "A configured workload selects on it."
	}
	text := "Selected on by " + list(use.Users, 3)
	if len(use.Values) > 0 {
		text += " (wanting " + list(use.Values, 3) + ")"
	}
	return text + "."
}
