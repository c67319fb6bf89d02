package check

import (
	"fmt"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var auditTrail = Check{
	ID: "audit-trail", Step: 8, Title: "managedFields stripped: label changes cannot be traced",
	Required: []inventory.Resource{inventory.Nodes},
	Ready: func(in *Input) string {
		if in.ManagedFields == "unknown" {
			return "managedFields are absent from what was read, and that proves nothing: kubectl leaves them out by default, so only an API read can tell"
		}
		return ""
	},
	Run: runAuditTrail,
}

func runAuditTrail(in *Input) []report.Finding {
	if in.ManagedFields != "stripped" {
		return nil
	}
	f := in.finding("audit-trail", report.Info, in.clusterSubject())
	in.firstSighting(&f)
	f.Title = "managedFields are stripped: who changed a label cannot be told on this cluster"
	f.Detail = fmt.Sprintf("None of %d nodes and %d pods read from the API carries metadata.managedFields. A proxy or a virtual cluster's layer takes them away. Label changes make no event, so the snapshots kept by this program are the only history.",
		len(in.Cluster.Nodes), in.Cluster.PodCount)
	f.Evidence = []report.Evidence{{Object: "Cluster/" + in.Cluster.Name, Path: "metadata.managedFields of nodes", Value: fmt.Sprintf("0 of %d", len(in.Cluster.Nodes))}}
	f.Commands = []string{"kubectl get nodes --show-managed-fields -o yaml | grep -c managedFields"}
	return []report.Finding{f}
}
