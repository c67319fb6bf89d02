package check

import (
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var metricsAPI = Check{
	ID: "metrics-api", Step: 7, Title: "metrics.k8s.io: kubectl top shows nothing here",
	Gap: []inventory.Resource{inventory.NodeMetrics, inventory.Discovery},
	Ready: func(in *Input) string {
		if in.MetricsAPI == "unknown" {
			return "nothing was read of metrics.k8s.io"
		}
		return ""
	},
	Run: runMetricsAPI,
}

func runMetricsAPI(in *Input) []report.Finding {
	if in.MetricsAPI != "unavailable" {
		return nil
	}
	f := in.finding("metrics-api", report.Info, in.clusterSubject())
	in.firstSighting(&f)
	switch {
	case in.Cluster.MetricsServed == inventory.No:
		f.Title = "the metrics API is not served: kubectl top shows nothing"
		f.Detail = "The server does not know metrics.k8s.io: no metrics-server is installed."
	default:
		f.Title = "the metrics API gives no figures: kubectl top shows nothing"
		f.Detail = "metrics.k8s.io is known and answers without figures for the nodes."
	}
	for _, g := range in.Cluster.GapsOf(inventory.NodeMetrics) {
		f.Evidence = append(f.Evidence, report.Evidence{Object: "nodes.metrics.k8s.io", Path: string(g.Reason), Value: g.Message})
	}
	f.Commands = []string{"kubectl get apiservice v1beta1.metrics.k8s.io", "kubectl top nodes"}
	return []report.Finding{f}
}
