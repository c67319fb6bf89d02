package check

import (
	"fmt"

	"gpuaudit/audit/checklist"
	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var nodeCordoned = Check{
	ID: "node-cordoned", Step: 1, Title: "nodes taken out of service: unschedulable, or a taint that is a cordon in effect",
	Required: []inventory.Resource{inventory.Nodes},
	Optional: []inventory.Resource{inventory.Pods, inventory.ResourceSlices, inventory.ResourceClaims},
	WiderWithout: map[inventory.Resource]string{
		inventory.Pods:           "what runs on a cordoned node is not known without pods, so what it keeps from use is not known either",
		inventory.ResourceSlices: slicesNotSeen,
		inventory.ResourceClaims: claimsNotSeen,
	},
	Run: runNodeCordoned,
}

func runNodeCordoned(in *Input) []report.Finding {
	var out []report.Finding
	for _, n := range in.Health.Nodes {
		if !n.Cordoned || n.Kind != health.Physical || in.ignoredNode(n.Name) {
			continue
		}
		f := cordoned(in, n)
		if f.SinceAtLeast || in.Now.Sub(*f.Since) > in.Settings.Thresholds.Cordoned {
			out = append(out, f)
		}
	}
	return out
}

func cordoned(in *Input, n *health.Node) report.Finding {
	kept := in.Survey.KeptFromUse(n.Name)
	severity := report.Info
	switch {
	case sum(kept) > 0:
		severity = report.Critical
	case len(in.Survey.Node(n.Name)) > 0:
		severity = report.Warning
	}
	f := in.finding("node-cordoned", severity, nodeSubject(n.Name))
	f.Node, f.Since = n.Name, timePointer(n.CordonedSince)
	in.firstSighting(&f)
	withDevices(&f, kept)
	how := "spec.unschedulable"
	if n.CordonTaint != "" {
		how = "taint " + n.CordonTaint
	}
	atLeast := ""
	if f.SinceAtLeast {
		atLeast = "at least "
	}
	f.Title = fmt.Sprintf("node %s is cordoned (%s) for %s%s%s", n.Name, how, atLeast, since(in.Now, *f.Since), stranded(kept))
	if m := n.CordonManager; m != nil && n.CordonTaint == "" {
		f.Detail = fmt.Sprintf("Cordoned by %q (%s), at or before %s. ", m.Name, m.Operation, stamp(m.Time))
	} else {
		f.Detail = "Who cordoned it is not recorded on the object. "
	}
	f.Detail += "Running pods stay, new ones are not bound here; DaemonSet pods still are."
	f.Evidence = []report.Evidence{evidence(n, "spec.unschedulable", fmt.Sprint(n.Node.Cordoned))}
	for i := range n.Taints {
		t := &n.Taints[i]
		added := ""
		if t.TimeAdded != nil {
			added = ", added " + stamp(t.TimeAdded.Time)
		}
		f.Evidence = append(f.Evidence, evidence(n, "spec.taints", t.ToString()+added))
	}
	f.Commands = []string{kubectl("describe", "node", n.Name), checklist.Shell("kubectl", "uncordon", n.Name)}
	if n.CordonTaint != "" {
		f.Commands[1] = kubectl("taint", "node", n.Name, n.CordonTaint+"-")
	}
	return f
}
