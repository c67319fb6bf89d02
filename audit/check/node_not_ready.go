package check

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var nodeNotReady = Check{
	ID: "node-not-ready", Step: 1, Title: "nodes that are not ready, or ready and silent",
	Required: []inventory.Resource{inventory.Nodes},
	Optional: []inventory.Resource{inventory.Leases, inventory.Pods, inventory.ResourceSlices},
	WiderWithout: map[inventory.Resource]string{
		inventory.Leases:         "silence is judged by the Ready condition alone, with the wider threshold",
		inventory.Pods:           "what runs on a dead node is not known without pods",
		inventory.ResourceSlices: slicesNotSeen,
	},
	Run: runNodeNotReady,
}

// slicesNotSeen is what checks of nodes do without resource slices.
const slicesNotSeen = "devices of DRA drivers are in no figure without resource slices"

func runNodeNotReady(in *Input) []report.Finding {
	var out []report.Finding
	if in.Health.AllSilent {
		out = append(out, allSilent(in))
	}
	for _, n := range in.Health.Nodes {
		if n.Kind == health.Fake || in.ignoredNode(n.Name) {
			continue
		}
		switch {
		case n.Ready != inventory.Yes:
			if n.NotReadySince.IsZero() || in.Now.Sub(n.NotReadySince) > in.Settings.Thresholds.NotReady {
				out = append(out, notReady(in, n))
			}
		case n.Silent && !in.Health.AllSilent:
			out = append(out, silentNode(in, n))
		}
	}
	return out
}

func notReady(in *Input, n *health.Node) report.Finding {
	kept := in.Survey.KeptFromUse(n.Name)
	f := in.finding("node-not-ready", severe(kept), nodeSubject(n.Name))
	f.Node, f.Since = n.Name, timePointer(n.NotReadySince)
	withDevices(&f, kept)
	state := "NotReady"
	ready := n.Condition(string(corev1.NodeReady))
	switch {
	case n.NeverReported:
		state += " (never reported, since creation)"
	case n.Ready == inventory.Unknown:
		state += " (Unknown)"
	default:
		state += " (kubelet alive)"
	}
	f.Title = fmt.Sprintf("node %s is %s for %s%s", n.Name, state, since(in.Now, n.NotReadySince), stranded(kept))
	if ready != nil {
		f.Detail = fmt.Sprintf("Ready is %s, reason %s", ready.Status, orNone(ready.Reason))
		if ready.Message != "" {
			f.Detail += ": " + strings.TrimRight(ready.Message, ". ")
		}
		f.Detail += ". "
		f.Evidence = append(f.Evidence,
			evidence(n, "status.conditions[Ready].status", ready.Status),
			evidence(n, "status.conditions[Ready].reason", ready.Reason),
			evidence(n, "status.conditions[Ready].lastTransitionTime", stamp(ready.Transition)))
	} else {
		f.Detail = "The node has no Ready condition at all. "
	}
	f.Detail += heartbeatWords(in, n) + bindableWords(n)
	f.Evidence = append(f.Evidence, heartbeatEvidence(n)...)
	f.Commands = nodeCommands(n.Name)
	return f
}

func silentNode(in *Input, n *health.Node) report.Finding {
	kept := in.Survey.KeptFromUse(n.Name)
	f := in.finding("node-not-ready", severe(kept), nodeSubject(n.Name))
	f.Node, f.Since = n.Name, timePointer(n.LastHeartbeat)
	withDevices(&f, kept)
	f.Title = fmt.Sprintf("node %s says Ready but is silent for %s%s", n.Name, since(in.Now, n.LastHeartbeat), stranded(kept))
	f.Detail = "Ready is still True, but neither the Ready condition nor the lease has been refreshed. "
	if n.ByConditionAlone {
		f.Detail = "Ready is still True, but the condition has not been refreshed (leases were not seen, so the wider threshold was used). "
	}
	f.Detail += heartbeatWords(in, n) + bindableWords(n)
	f.Evidence = heartbeatEvidence(n)
	f.Commands = nodeCommands(n.Name)
	return f
}

func allSilent(in *Input) report.Finding {
	f := in.finding("node-not-ready", report.Critical, in.clusterSubject())
	silent := 0
	for _, n := range in.Health.Nodes {
		if n.Silent {
			silent++
			f.Objects = append(f.Objects, "Node/"+n.Name)
			if f.Since == nil || n.LastHeartbeat.After(*f.Since) {
				f.Since = timePointer(n.LastHeartbeat)
			}
		}
	}
	f.Title = fmt.Sprintf("all %s are silent: a matter of the platform, not of the nodes", count(int64(silent), "node"))
	f.Detail = "No node's heartbeat or lease has moved lately. Either the control plane does not take status updates, " +
		"or this is a virtual cluster that stopped syncing, or the API server's clock is wrong. Nodes are not judged one by one."
	f.Commands = []string{"kubectl get leases -n kube-node-lease", "kubectl get nodes -o wide"}
	return f
}

func stranded(kept map[string]int64) string {
	if sum(kept) == 0 {
		return ""
	}
	return ": " + describeDevices(kept) + " stranded"
}

func heartbeatWords(in *Input, n *health.Node) string {
	if n.LastHeartbeat.IsZero() {
		return "It has never sent a heartbeat. "
	}
	return fmt.Sprintf("Last sign of life %s ago (%s). ", since(in.Now, n.LastHeartbeat), stamp(n.LastHeartbeat))
}

func bindableWords(n *health.Node) string {
	if n.Bindable {
		return "It carries no not-ready or unreachable taint and is not cordoned: the scheduler can still bind pods there, which will never start."
	}
	return "The scheduler binds no new pods there (cordon, not-ready or unreachable taint)."
}

func heartbeatEvidence(n *health.Node) []report.Evidence {
	var out []report.Evidence
	if ready := n.Condition(string(corev1.NodeReady)); ready != nil {
		out = append(out, evidence(n, "status.conditions[Ready].lastHeartbeatTime", stamp(ready.Heartbeat)))
	}
	if n.Lease != nil {
		out = append(out, report.Evidence{Object: "Lease/kube-node-lease/" + n.Name, Path: "spec.renewTime", Value: stamp(n.Lease.Renewed)})
	}
	return out
}

func evidence(n *health.Node, path, value string) report.Evidence {
	return report.Evidence{Object: "Node/" + n.Name, Path: path, Value: value}
}

func orNone(s string) string {
	if s == "" {
		return "not given"
	}
	return s
}

func nodeCommands(name string) []string {
	return []string{
		kubectl("describe", "node", name),
		kubectl("get", "pods", "-A", "-o", "wide", "--field-selector", "spec.nodeName="+name),
		kubectl("get", "lease", "-n", "kube-node-lease", name, "-o", "yaml"),
	}
}
