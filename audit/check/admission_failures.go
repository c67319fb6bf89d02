package check

import (
	"fmt"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var admissionFailures = Check{
	ID: "admission-failures", Step: 1, Title: "nodes on which pods keep failing at admission",
	Required: []inventory.Resource{inventory.Nodes, inventory.Pods},
	Optional: []inventory.Resource{inventory.ResourceSlices, inventory.ResourceClaims},
	WiderWithout: map[inventory.Resource]string{
		inventory.ResourceSlices: slicesNotSeen,
		inventory.ResourceClaims: claimsNotSeen,
	},
	Run: runAdmissionFailures,
}

func runAdmissionFailures(in *Input) []report.Finding {
	var out []report.Finding
	for _, n := range in.Health.Nodes {
		if !n.Rejecting || n.Kind != health.Physical || in.ignoredNode(n.Name) {
			continue
		}
		free := in.Survey.Free(n.Name)
		f := in.finding("admission-failures", severe(free), nodeSubject(n.Name))
		f.Node = n.Name
		withDevices(&f, free)
		newest, oldest := n.Load.Rejected[0], n.Load.Rejected[0]
		reasons := map[string]int64{}
		for _, r := range n.Load.Rejected {
			if in.Now.Sub(r.At) > in.Settings.Thresholds.AdmissionWindow {
				continue
			}
			oldest = r
			reasons[r.Reason]++
			f.Objects = append(f.Objects, "Pod/"+r.Namespace+"/"+r.Name)
		}
		f.Since, f.SinceAtLeast = timePointer(oldest.At), true
		f.Title = fmt.Sprintf("node %s refuses pods at admission: %s in %s, last %s ago (%s)", n.Name,
			count(int64(n.Rejections), "pod"), age(in.Settings.Thresholds.AdmissionWindow), since(in.Now, newest.At), newest.Reason)
		f.Detail = "The scheduler binds pods here and the kubelet refuses them, so they end as Failed, hold nothing and their owners make new ones. " +
			"The node's free devices cannot be used. Typical causes: the scheduler's cache is stale, two schedulers share the node, pods with spec.nodeName set by hand, or a device plugin that fails to allocate."
		f.Evidence = []report.Evidence{
			{Object: "Pod/" + newest.Namespace + "/" + newest.Name, Path: "status.reason", Value: newest.Reason},
			{Object: "Pod/" + newest.Namespace + "/" + newest.Name, Path: "status.message", Value: newest.Message},
		}
		f.Commands = []string{
			kubectl("get", "pods", "-A", "-o", "wide", "--field-selector", "spec.nodeName="+n.Name+",status.phase=Failed"),
			kubectl("describe", "node", n.Name),
		}
		out = append(out, f)
	}
	return out
}
