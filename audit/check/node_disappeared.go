package check

import (
	"fmt"

	"gpuaudit/audit/checklist"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

var nodeDisappeared = Check{
	ID: "node-disappeared", Step: 6, Title: "nodes with devices that are gone",
	Required: []inventory.Resource{inventory.Nodes},
	Ready:    comparedReady,
	Run:      runNodeDisappeared,
}

func runNodeDisappeared(in *Input) []report.Finding {
	var out []report.Finding
	for _, g := range in.Drift.Gone {
		devices := map[string]int64{}
		for name, n := range snapshot.Devices(g.Node.Capacity) {
			if in.Survey.IsDevice(name) {
				devices[name] = n
			}
		}
		// Autoscaler churn is no loss; a dead node that was taken away ends its findings.
		if g.Churn || g.Removed || len(devices) == 0 || in.ignoredNode(g.Node.Name) {
			continue
		}
		f := in.finding("node-disappeared", report.Critical, nodeSubject(g.Node.Name))
		f.Node, f.Since = g.Node.Name, timePointer(g.FirstMissed)
		withDevices(&f, devices)
		f.Title = fmt.Sprintf("node %s is gone with %s: seen last %s ago", g.Node.Name, describeDevices(devices), since(in.Now, g.LastSeen))
		f.Detail = fmt.Sprintf("It was ready at %s (UID %s) and was missed first at %s; nothing marks it as autoscaled. "+
			"If its vendor brings it back, what it had before is remembered and will be compared.", stamp(g.LastSeen), orNone(g.Node.UID), stamp(g.FirstMissed))
		f.Evidence = []report.Evidence{
			{Object: "Node/" + g.Node.Name, Path: "earlier metadata.uid", Value: g.Node.UID},
			{Object: "Node/" + g.Node.Name, Path: "earlier spec.providerID", Value: orNone(g.Node.ProviderID)},
		}
		f.Commands = []string{kubectl("get", "node", g.Node.Name), checklist.Shell("kubectl", "get", "events", "-A", "--field-selector", "involvedObject.kind=Node,involvedObject.name="+g.Node.Name)}
		out = append(out, f)
	}
	return out
}
