package sample

import (
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
)

func sortNodes(nodes []report.Node) {
	slices.SortFunc(nodes, func(a, b report.Node) int { return strings.Compare(a.Name, b.Name) })
}

// findingsC are in order of impact.
func findingsC() []report.Finding {
	out := slices.Concat(nodeFindingsC(), workloadFindingsC(), platformFindingsC())
	for i, f := range out {
		out[i] = finding("C", f)
	}
	return out
}

func nodeFindingsC() []report.Finding {
	dead := report.Subject{Kind: "Node", Name: "52ew76fke2"}
	recreated := report.Subject{Kind: "Node", Name: "ujx4guefbh"}
	return []report.Finding{
		{
			Check: "node-not-ready", Severity: report.Critical, State: report.StateOngoing, Subject: dead, Node: dead.Name,
			Title:  "Node 52ew76fke2 is not ready since 155d: 8 cards stranded",
			Detail: "Ready is False. 7 cards are free and 1 is held by a bound pod that was never started. The not-ready taint keeps the scheduler away.",
			Since:  ago(155*day + 3*time.Hour), FirstSeen: ago(day), Devices: 8, Impact: report.Impact{Devices: 8, PendingPodsUnblocked: 3},
			Evidence: []report.Evidence{
				{Object: "Node/52ew76fke2", Path: "status.conditions[Ready].status", Value: "False"},
				{Object: "Node/52ew76fke2", Path: "status.conditions[Ready].lastTransitionTime", Value: "2025-12-27T22:00:00Z"},
				{Object: "Node/52ew76fke2", Path: "status.allocatable[nvidia.com/gpu]", Value: "8"},
			},
			Commands: []string{"kubectl --context C describe node 52ew76fke2", "kubectl --context C get node 52ew76fke2 -o yaml --show-managed-fields"},
		},
		{
			Check: "node-recreated", Severity: report.Critical, State: report.StateNew, Subject: recreated, Node: recreated.Name,
			Title:  "Node ujx4guefbh was recreated 14h ago and lost node_env=prod: 5 free cards out of reach",
			Detail: "The Node object has a new UID. Lost with the old one: label node_env=prod. 3 waiting pods would start if it came back.",
			Since:  ago(14 * time.Hour), Devices: 5, Impact: report.Impact{Devices: 5, PendingPodsUnblocked: 3},
			Evidence: []report.Evidence{
				{Object: "Node/ujx4guefbh", Path: "metadata.uid", Value: "b81d0c52-new, was 4a17e9f0-old"},
				{Object: "Node/ujx4guefbh", Path: "metadata.creationTimestamp", Value: "2026-05-31T11:00:00Z"},
				{Object: "Node/ujx4guefbh", Path: "metadata.labels[node_env]", Value: "absent, was prod"},
			},
			Commands: []string{"kubectl --context C get node ujx4guefbh --show-labels", "kubectl --context C label node ujx4guefbh node_env=prod"},
		},
		{
			Check: "label-drift", Severity: report.Critical, State: report.StateNew, Subject: recreated, Node: recreated.Name, Label: "node_env",
			Title: "Node ujx4guefbh lost label node_env=prod", Detail: "Workloads select on node_env; 88 running pods and 3 waiting ones want prod.",
			Since: ago(14 * time.Hour), Devices: 5, CausedBy: findingID("node-recreated", recreated),
			Evidence: []report.Evidence{{Object: "Node/ujx4guefbh", Path: "metadata.labels[node_env]", Value: "absent, was prod"}},
			Commands: []string{"kubectl --context C label node ujx4guefbh node_env=prod"},
		},
		{
			Check: "node-cordoned", Severity: report.Critical, State: report.StateOngoing, Subject: dead, Node: dead.Name,
			Title: "Node 52ew76fke2 is cordoned since 154d", Detail: "By whom is not known: managedFields are stripped on this cluster.",
			Since: ago(154 * day), FirstSeen: ago(day), Devices: 7, CausedBy: findingID("node-not-ready", dead),
			Evidence: []report.Evidence{{Object: "Node/52ew76fke2", Path: "spec.unschedulable", Value: "true"}},
			Commands: []string{"kubectl --context C describe node 52ew76fke2"},
		},
	}
}

func workloadFindingsC() []report.Finding {
	quota := &report.Quota{Source: "scheduler", Mode: "exhausted", Reporter: "x-scheduler"}
	dead := report.Subject{Kind: "Node", Name: "52ew76fke2"}
	message := "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 InsufficientQuota"
	return []report.Finding{
		{
			Check: "quota-blocked-daemonset", Severity: report.Critical, State: report.StateNew,
			Subject: report.Subject{Kind: "DaemonSet", Namespace: "kube-system", Name: "loongcollector"}, Node: "ujx4guefbh",
			Title:  "DaemonSet kube-system/loongcollector lacks 1 pod for 14h: quota of x-scheduler",
			Detail: "x-scheduler reports InsufficientQuota (x23191). The namespace has no ResourceQuota: the quota is the scheduler's own. Nodes: ujx4guefbh.",
			Since:  ago(14 * time.Hour), Quota: quota, Objects: []string{"kube-system/loongcollector-7xk2p"},
			Evidence: []report.Evidence{{Object: "Event/kube-system/loongcollector-7xk2p", Path: "message", Value: message}},
			Commands: []string{"kubectl --context C -n kube-system describe pod loongcollector-7xk2p", "kubectl --context C get resourcequota -n kube-system"},
		},
		{
			Check: "quota-blocked-daemonset", Severity: report.Warning, State: report.StateNew,
			Subject: report.Subject{Kind: "DaemonSet", Namespace: "observability", Name: "promtail"}, Node: "ujx4guefbh",
			Title:  "DaemonSet observability/promtail lacks 1 pod for 14h: quota of x-scheduler",
			Detail: "x-scheduler reports InsufficientQuota (x23188).",
			Since:  ago(14 * time.Hour), Quota: quota, Objects: []string{"observability/promtail-9fq4z"},
			Evidence: []report.Evidence{{Object: "Event/observability/promtail-9fq4z", Path: "message", Value: message}},
			Commands: []string{"kubectl --context C -n observability describe pod promtail-9fq4z"},
		},
		{
			Check: "ghost-hold", Severity: report.Critical, State: report.StateNew,
			Subject: report.Subject{Kind: "Pod", Namespace: "prod", Name: "inference-5d8f7-b2x9q"}, Node: "52ew76fke2",
			Title:  "Pod prod/inference-5d8f7-b2x9q holds 1 card on dead node 52ew76fke2 and never started",
			Detail: "Bound, Pending, no startTime, no container status. PodScheduled is not True: something other than a normal scheduler bound it.",
			Since:  ago(14 * time.Hour), Devices: 1, CausedBy: findingID("node-not-ready", dead),
			Evidence: []report.Evidence{
				{Object: "Pod/prod/inference-5d8f7-b2x9q", Path: "spec.nodeName", Value: "52ew76fke2"},
				{Object: "Pod/prod/inference-5d8f7-b2x9q", Path: "status.startTime", Value: "absent"},
			},
			Commands: []string{"kubectl --context C -n prod delete pod inference-5d8f7-b2x9q"},
		},
		{
			Check: "quota-blocked", Severity: report.Warning, State: report.StateNew,
			Subject: report.Subject{Kind: "Namespace", Name: "prod"},
			Title:   "2 pods of prod wait for 14h: quota of x-scheduler", Detail: "Owners: edit-client, task-monitor. No ResourceQuota exists in prod.",
			Since: ago(14 * time.Hour), Quota: quota, Objects: []string{"prod/edit-client-6c9d8b7f5-4wz8k", "prod/task-monitor-0"},
			Evidence: []report.Evidence{{Object: "Event/prod/task-monitor-0", Path: "message", Value: message}},
			Commands: []string{"kubectl --context C -n prod describe pod task-monitor-0"},
		},
		{
			Check: "scheduler-takeover", Severity: report.Warning, State: report.StateOngoing,
			Subject: report.Subject{Kind: "Scheduler", Name: "x-scheduler"},
			Title:   "x-scheduler reports on 8 pods whose spec names default-scheduler", Detail: "An admission webhook may hand every pod to it.",
			Since: ago(day), SinceAtLeast: true, FirstSeen: ago(day),
			Evidence: []report.Evidence{{Object: "Pod/prod/task-monitor-0", Path: "spec.schedulerName", Value: "default-scheduler"}},
			Commands: []string{"kubectl --context C get mutatingwebhookconfigurations"},
		},
	}
}

func platformFindingsC() []report.Finding {
	return []report.Finding{
		{
			Check: "metrics-api", Severity: report.Warning, State: report.StateOngoing, Subject: report.Subject{Kind: "APIService", Name: "v1beta1.metrics.k8s.io"},
			Title: "metrics.k8s.io is not served: kubectl top shows nothing", Detail: "CPU and memory use of this cluster are unknown.",
			Since: ago(day), SinceAtLeast: true, FirstSeen: ago(day), Commands: []string{"kubectl --context C get apiservice v1beta1.metrics.k8s.io"},
		},
		{
			Check: "audit-trail", Severity: report.Info, State: report.StateOngoing, Subject: report.Subject{Kind: "Cluster", Name: "C"},
			Title: "managedFields are stripped: nobody can tell who changed a label", Detail: "No node and no pod has managedFields.",
			Since: ago(day), SinceAtLeast: true, FirstSeen: ago(day), Commands: []string{"kubectl --context C get node -o yaml --show-managed-fields"},
		},
		{
			Check: "device-metrics", Severity: report.Info, State: report.StateOngoing, Subject: report.Subject{Kind: "Service", Namespace: "kube-system", Name: "dcgm-exporter"},
			Title: "Service kube-system/dcgm-exporter has no pod behind it: real card use is unknown", Detail: "The headless Service on port 9400 selects no pod.",
			Since: ago(day), SinceAtLeast: true, FirstSeen: ago(day), Commands: []string{"kubectl --context C -n kube-system get endpointslices"},
		},
	}
}
