package sample

import (
	"fmt"
	"time"

	"gpuaudit/audit/report"
)

// Incident is the morning on which cluster C shows 13 free cards of which no
// production pod can get one. A and B have nothing critical.
func Incident() *report.Report {
	return build("20260601T010000Z-5f2c", clusterA(), clusterB(), clusterC())
}

func healthyCluster(name string, nodes int, partlyUsed int64) report.Cluster {
	c := report.Cluster{
		Name: name, UID: "kube-system-uid-" + name, ServerVersion: "v1.30.4", Vendor: "vendor-" + name,
		Status: report.Complete, CollectedAt: ptr(Now.Add(-20 * time.Second)),
		PreviousSnapshot: &report.SnapshotRef{
			Key: "clusters/" + name + "/snapshots/20260531T010000Z-91aa.json.gz", CollectedAt: Now.Add(-day),
		},
		ChainHead: "sha256:0d1e" + name,
	}
	for i := range nodes {
		used := int64(8)
		if i == nodes-1 {
			used = partlyUsed
		}
		n := node(fmt.Sprintf("gpu-%s-%03d", name, i+1), "prod", used)
		c.Nodes = append(c.Nodes, n)
	}
	c.Devices = []report.Device{device(c.Nodes)}
	free := *c.Devices[0].Free
	c.Classes = []report.Class{{
		Name: "prod", Source: "observed", Resource: GPU, Requests: map[string]string{GPU: "1"},
		NodeSelector: map[string]string{"node_env": "prod"}, Owners: []string{"Deployment/prod/inference"},
		PendingPods: ptr(0), RunningPods: ptr(nodes * 8), EligibleNodes: nodes,
		ApparentFree: free, Schedulable: free, Replicas: free, MaxReplicasNode: free,
	}}
	c.Baseline = report.Baseline{
		Nodes: ptr(nodes), ReadyNodes: ptr(nodes), CordonedNodes: ptr(0), Pods: ptr(nodes * 21), PendingPods: ptr(0),
		MetricsAPI: "available", ManagedFields: "present",
	}
	return c
}

func clusterA() report.Cluster {
	c := healthyCluster("A", 18, 5)
	c.Baseline.CPUUtilization = &report.Utilization{Min: 0.006, Mean: 0.021, Max: 0.039}
	c.Baseline.MemoryUtilization = &report.Utilization{Min: 0.07, Mean: 0.13, Max: 0.22}
	c.Baseline.DeviceMetrics = "vendor"
	return finish(c, nil)
}

func clusterB() report.Cluster {
	c := healthyCluster("B", 36, 2)
	c.Baseline.CPUUtilization = &report.Utilization{Min: 0.01, Mean: 0.024, Max: 0.05}
	c.Baseline.MemoryUtilization = &report.Utilization{Min: 0.10, Mean: 0.14, Max: 0.20}
	c.Baseline.DeviceMetrics = "full"
	return finish(c, nil)
}

// The full production nodes of cluster C.
var fullNodes = []string{
	"525rgh6geb", "52rjchz3vu", "53kgjtadmb", "53w6m3besu", "uihaekjigl", "uitkiiydfe",
	"ujlwuw7exp", "uk4xh2k2ji", "ukd7tcmmdk", "ukqaky3d6f", "uljewrj4ah",
}

func nodesC() []report.Node {
	dead := node("52ew76fke2", "prod", 1)
	dead.Ready, dead.Reason, dead.Since = false, "KubeletNotReady", ago(155*day+3*time.Hour)
	dead.LastHeartbeat = ago(155*day + 3*time.Hour)
	dead.Cordoned, dead.CordonedSince = true, ago(154*day)
	dead.Taints = []string{
		"node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule",
		"node.kubernetes.io/unschedulable:NoSchedule",
	}
	d := dead.Devices[GPU]
	d.Held = 1
	dead.Devices[GPU] = d
	out := []report.Node{dead}
	for _, name := range fullNodes {
		out = append(out, node(name, "prod", 8))
	}
	recreated := node("ujx4guefbh", "", 3)
	recreated.UID, recreated.Created, recreated.Since = "b81d0c52-new", ago(14*time.Hour), ago(14*time.Hour)
	out = append(out, node("ui7rqebujn", "test", 8), recreated, node("ulvq4g3iqi", "test", 7))
	sortNodes(out)
	return out
}

func clusterC() report.Cluster {
	nodes := nodesC()
	c := report.Cluster{
		Name: "C", UID: "kube-system-uid-C", ServerVersion: "v1.28.9", Vendor: "vendor-C",
		Status: report.Complete, CollectedAt: ptr(Now.Add(-18 * time.Second)),
		PreviousSnapshot: &report.SnapshotRef{
			Key: "clusters/C/snapshots/20260531T010000Z-91aa.json.gz", CollectedAt: Now.Add(-day),
		},
		Gaps: []report.Gap{{
			Resource: "nodes.metrics.k8s.io", Reason: "error", Checks: []string{},
			Message:  "the server does not serve metrics.k8s.io",
			Accepted: true, AcceptedReason: "the vendor does not install a metrics server",
		}},
		Baseline: report.Baseline{
			Nodes: ptr(15), ReadyNodes: ptr(14), CordonedNodes: ptr(1), Pods: ptr(412), PendingPods: ptr(8),
			MetricsAPI: "unavailable", DeviceMetrics: "serviceWithoutPods", ManagedFields: "stripped",
		},
		Devices: []report.Device{device(nodes)}, Nodes: nodes, Classes: classesC(), Pending: pendingC(),
		Findings: findingsC(), ChainHead: "sha256:77ab41C",
		Platform: report.Platform{
			Virtual: true, Markers: []string{"kernel of nodes names a virtual kubelet platform"},
			Schedulers: []string{"x-scheduler"},
		},
	}
	c.Devices[0].UpperBound = true
	c.Repairs = repairsC()
	return finish(c, nil)
}

func classesC() []report.Class {
	return []report.Class{
		{
			Name: "batch", Source: "observed", Resource: GPU, Requests: map[string]string{GPU: "1", "cpu": "8", "memory": "64Gi"},
			Owners: []string{"Job/batch/embedding"}, PendingPods: ptr(0), RunningPods: ptr(3), EligibleNodes: 14,
			ApparentFree: 13, Schedulable: 6, Replicas: 6, MaxReplicasNode: 5, UpperBound: true,
			Lost: []report.Lost{{Reason: report.LostNotReady, Devices: 7, Nodes: []string{"52ew76fke2"}, Step: 1, Detail: "Ready is False since 155d"}},
		},
		{
			Name: "prod", Source: "configured", Resource: GPU, Requests: map[string]string{GPU: "1", "cpu": "8", "memory": "64Gi"},
			NodeSelector: map[string]string{"node_env": "prod"},
			Owners:       []string{"Deployment/prod/inference", "Deployment/prod/task-monitor"},
			NotModelled:  []string{"inter-pod affinity"}, PendingPods: ptr(3), RunningPods: ptr(88), EligibleNodes: 11,
			ApparentFree: 13, UpperBound: true,
			Lost: []report.Lost{
				{Reason: report.LostNotReady, Devices: 7, Nodes: []string{"52ew76fke2"}, Step: 1, Detail: "Ready is False since 155d"},
				{Reason: report.LostLabelMissing, Devices: 5, Nodes: []string{"ujx4guefbh"}, Step: 2, Detail: "node_env is absent, wanted prod"},
				{Reason: report.LostLabelOtherValue, Devices: 1, Nodes: []string{"ulvq4g3iqi"}, Step: 2, Detail: "node_env=test, wanted prod"},
			},
		},
	}
}

func repairsC() []report.Repair {
	return []report.Repair{
		{
			Finding: findingID("node-not-ready", report.Subject{Kind: "Node", Name: "52ew76fke2"}), Order: 1,
			Action: "have the vendor repair or remove node 52ew76fke2", Devices: 7, PendingPodsUnblocked: 3,
			Gains: []report.Gain{{Class: "batch", Devices: 7}, {Class: "prod", Devices: 7}},
		},
		{
			Finding: findingID("node-recreated", report.Subject{Kind: "Node", Name: "ujx4guefbh"}), Order: 2,
			Action: "restore node_env=prod on node ujx4guefbh", Devices: 5, PendingPodsUnblocked: 3,
			Gains: []report.Gain{{Class: "prod", Devices: 5}},
		},
	}
}

func findingID(check string, s report.Subject, extra ...string) string {
	if len(extra) == 0 {
		extra = []string{""}
	}
	return report.FindingID("C", check, s, extra...)
}

func pendingC() []report.Pending {
	quota := &report.Quota{Source: "scheduler", Name: "", Resource: "", Mode: "exhausted", Reporter: "x-scheduler"}
	blocked := func(ns, name, owner, target string, attempts int64) report.Pending {
		return report.Pending{
			Namespace: ns, Name: name, UID: "uid-" + name, Since: ago(14 * time.Hour), SchedulerName: "default-scheduler",
			ReportedBy: "x-scheduler", Cause: "quota", Reasons: []string{"InsufficientQuota", "QuotaNotSelected"},
			Message:  "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 InsufficientQuota",
			Attempts: attempts, Owner: owner, TargetNode: target, Quota: quota,
		}
	}
	out := []report.Pending{
		blocked("kube-system", "loongcollector-7xk2p", "DaemonSet/kube-system/loongcollector", "ujx4guefbh", 23191),
		blocked("observability", "promtail-9fq4z", "DaemonSet/observability/promtail", "ujx4guefbh", 23188),
		blocked("prod", "edit-client-6c9d8b7f5-4wz8k", "Deployment/prod/edit-client", "", 11020),
		{
			Namespace: "prod", Name: "inference-5d8f7-b2x9q", UID: "uid-ghost", Since: ago(14 * time.Hour),
			SchedulerName: "default-scheduler", ReportedBy: "x-scheduler", Cause: "unobserved", Requests: map[string]string{GPU: "1"},
			TargetNode: "52ew76fke2", Bound: true, Owner: "Deployment/prod/inference", Class: "prod",
		},
	}
	for _, suffix := range []string{"h7k2m", "p9x4c", "w3n8d"} {
		out = append(out, report.Pending{
			Namespace: "prod", Name: "inference-5d8f7-" + suffix, UID: "uid-" + suffix, Since: ago(6 * time.Minute),
			SchedulerName: "default-scheduler", ReportedBy: "x-scheduler", Cause: "capacity",
			Reasons: []string{"Insufficient nvidia.com/gpu", "node(s) were unschedulable", "node(s) didn't match Pod's node affinity/selector"},
			Message: "0/15 nodes are available: 1 node(s) were unschedulable, 11 Insufficient nvidia.com/gpu, 3 Insufficient cpu, " +
				"3 node(s) didn't match Pod's node affinity/selector.",
			Attempts: 9, Requests: map[string]string{GPU: "1", "cpu": "8"}, Owner: "Deployment/prod/inference", Class: "prod",
		})
	}
	return append(out, blocked("prod", "task-monitor-0", "StatefulSet/prod/task-monitor", "", 10977))
}
