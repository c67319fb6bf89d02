package check

import (
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var deviceMetrics = Check{
	ID: "device-metrics", Step: 7, Title: "device metrics: exporter absent, service without pods, or nodes without an exporter pod",
	Required: []inventory.Resource{inventory.Nodes, inventory.DaemonSets, inventory.Services, inventory.EndpointSlices},
	Optional: []inventory.Resource{inventory.Pods},
	Wider:    "coverage is taken from the exporter's own status, not node by node",
	Run:      runDeviceMetrics,
}

func runDeviceMetrics(in *Input) []report.Finding {
	nodes := in.Survey.DeviceNodes()
	e := FindExporters(in.Cluster, in.Health, nodes)
	if len(nodes) == 0 || e.State == "full" || e.State == "vendor" || e.State == "unknown" {
		return nil
	}
	f := in.finding("device-metrics", report.Info, in.clusterSubject())
	in.firstSighting(&f)
	f.Title = "device metrics: " + e.words()
	f.Detail = "Without an exporter nobody sees what the devices really do: occupancy counts requests, not use."
	for _, n := range e.Missing {
		f.Objects = append(f.Objects, "Node/"+n)
	}
	for _, s := range e.Services {
		f.Evidence = append(f.Evidence, report.Evidence{Object: s, Path: "endpoints", Value: e.State})
	}
	for _, d := range e.DaemonSets {
		f.Evidence = append(f.Evidence, report.Evidence{Object: d, Path: "status", Value: e.State})
	}
	f.Commands = []string{
		"kubectl get daemonsets,services -A | grep -i -e dcgm -e exporter",
		"kubectl get endpointslices -A | grep -i -e dcgm -e exporter",
	}
	return []report.Finding{f}
}
