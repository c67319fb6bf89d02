// Package sample holds whole reports for tests and examples: a realistic
// incident on three clusters, a report full of hostile text, one of clusters
// that could be seen in part or not at all, a large one and one with Chinese
// names. Every call builds a new report, so that a test may change what it got.
package sample

import (
	"fmt"
	"time"

	"gpuaudit/audit/report"
)

// Now is when the sample reports were made.
var Now = time.Date(2026, 6, 1, 1, 0, 0, 0, time.UTC)

// GPU is the device resource of the samples.
const GPU = "nvidia.com/gpu"

const checklistURL = "https://audit.example.com/checklist.html"

var anchors = map[int]string{
	1: "nodes-not-ready", 2: "labels", 3: "pending-pods", 4: "device-holds", 5: "quotas",
	6: "recreated-nodes", 7: "monitoring", 8: "audit-trail", 9: "model-agreement",
}

func ptr[T any](v T) *T { return &v }

func ago(d time.Duration) *time.Time { return ptr(Now.Add(-d)) }

const day = 24 * time.Hour

// checkSteps are all checks in the order in which a report lists them.
var checkSteps = []struct {
	id   string
	step int
}{
	{"node-not-ready", 1}, {"node-cordoned", 1}, {"device-loss", 1}, {"admission-failures", 1},
	{"label-missing", 2}, {"label-drift", 2}, {"pending-unschedulable", 3}, {"scheduler-takeover", 3},
	{"ghost-hold", 4}, {"stuck-starting", 4}, {"terminating-hold", 4}, {"dead-node-hold", 4}, {"orphan-pod", 4},
	{"quota-blocked-daemonset", 5}, {"quota-blocked", 5}, {"node-recreated", 6}, {"node-disappeared", 6},
	{"device-metrics", 7}, {"metrics-api", 7}, {"audit-trail", 8}, {"model-disagreement", 9},
}

func stepOf(check string) int {
	for _, c := range checkSteps {
		if c.id == check {
			return c.step
		}
	}
	panic("no check " + check)
}

// finding fills what follows from the rest: id, step and link.
func finding(cluster string, f report.Finding) report.Finding {
	f.Step = stepOf(f.Check)
	f.ID = report.FindingID(cluster, f.Check, f.Subject, f.Label)
	f.Link = checklistURL + "#" + anchors[f.Step]
	f.LastSeen = ptr(Now)
	if f.FirstSeen == nil {
		f.FirstSeen = ptr(Now)
	}
	if f.Devices > 0 && f.DevicesByResource == nil {
		f.DevicesByResource = map[string]int64{GPU: f.Devices}
	}
	return f
}

// finish computes a cluster's check outcomes from its findings and limits.
func finish(c report.Cluster, limits map[string]report.CheckOutcome) report.Cluster {
	found := map[string]int{}
	for _, f := range c.Findings {
		found[f.Check]++
	}
	for _, check := range checkSteps {
		o := report.CheckOutcome{ID: check.id, Outcome: report.OutcomeClean}
		if found[check.id] > 0 {
			o.Outcome = report.OutcomeFindings
		}
		if limit, ok := limits[check.id]; ok {
			o.Outcome, o.Reason = limit.Outcome, limit.Reason
		}
		c.Checks = append(c.Checks, o)
	}
	return c
}

// build wraps clusters in a report and counts them.
func build(runID string, clusters ...report.Cluster) *report.Report {
	return &report.Report{
		SchemaVersion: report.SchemaVersion, RunID: runID, GeneratedAt: Now,
		Tool: report.Tool{Name: "audit", Version: "v0.1.0"}, Summary: report.Summarise(clusters), Clusters: clusters,
	}
}

// node is a ready node of eight cards of which used are requested.
func node(name, env string, used int64) report.Node {
	labels := map[string]string{}
	if env != "" {
		labels["node_env"] = env
	}
	return report.Node{
		Name: name, UID: fmt.Sprintf("uid-%s", name), Kind: "physical", Created: ago(300 * day), Ready: true,
		Reason: "KubeletReady", Since: ago(120 * day), LastHeartbeat: ago(40 * time.Second),
		ClockSkewSeconds: ptr(int64(0)),
		Devices: map[string]report.NodeDevice{GPU: {
			Capacity: 8, Allocatable: 8, Requested: ptr(used), Free: ptr(8 - used),
		}},
		Labels: labels,
	}
}

// device sums one resource of nodes.
func device(nodes []report.Node) report.Device {
	var capacity, allocatable, requested, free, most, held int64
	for _, n := range nodes {
		d := n.Devices[GPU]
		capacity += d.Capacity
		allocatable += d.Allocatable
		requested += *d.Requested
		free += *d.Free
		held += d.Held
		most = max(most, *d.Free)
	}
	return report.Device{
		Resource: GPU, Source: "plugin", Unit: "card", Vendor: "NVIDIA",
		Physical: ptr(capacity), PhysicalHealthy: ptr(allocatable),
		Capacity: capacity, Allocatable: allocatable, Requested: ptr(requested), Free: ptr(free),
		Occupancy: ptr(float64(requested) / float64(allocatable)), Overcommitted: ptr(int64(0)), MaxFreeOnOneNode: ptr(most),
		Held: &report.Held{Ghost: held}, Reclaimable: ptr(int64(0)), Nominated: ptr(int64(0)),
		Naive: report.Naive{Requested: ptr(requested), Free: ptr(free)},
	}
}
