package check

import (
	"fmt"
	"strings"

	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// claimsNotSeen is what all checks of holds do without resource claims.
const claimsNotSeen = "what pods hold by resource claims is not known, and is not 0"

var ghostHold = Check{
	ID: "ghost-hold", Step: 4, Title: "pods bound to a node that the kubelet never took",
	Required: []inventory.Resource{inventory.Pods},
	Optional: []inventory.Resource{inventory.Nodes, inventory.ResourceClaims},
	WiderWithout: map[inventory.Resource]string{
		inventory.Nodes:          "whether a pod's node is alive is not known without nodes, so only the age counts",
		inventory.ResourceClaims: claimsNotSeen,
	},
	Run: func(in *Input) []report.Finding { return holds(in, hold.Ghost) },
}

var stuckStarting = Check{
	ID: "stuck-starting", Step: 4, Title: "pods taken by the kubelet that do not start",
	Required: []inventory.Resource{inventory.Pods},
	Optional: []inventory.Resource{inventory.Nodes, inventory.ResourceClaims},
	WiderWithout: map[inventory.Resource]string{
		inventory.Nodes:          "whether a pod's node is alive is not known without nodes, so only the age counts",
		inventory.ResourceClaims: claimsNotSeen,
	},
	Run: func(in *Input) []report.Finding { return holds(in, hold.StuckStarting) },
}

var terminatingHold = Check{
	ID: "terminating-hold", Step: 4, Title: "pods whose deletion is overdue",
	Required: []inventory.Resource{inventory.Pods},
	Optional: []inventory.Resource{inventory.ResourceClaims},
	Wider:    claimsNotSeen,
	Run:      func(in *Input) []report.Finding { return holds(in, hold.Terminating) },
}

var deadNodeHold = Check{
	ID: "dead-node-hold", Step: 4, Title: "pods that run on paper only, on a node that is not ready or silent",
	Required: []inventory.Resource{inventory.Pods, inventory.Nodes},
	Optional: []inventory.Resource{inventory.Leases, inventory.ResourceClaims},
	WiderWithout: map[inventory.Resource]string{
		inventory.Leases:         "silence is judged by the Ready condition alone, with the wider threshold",
		inventory.ResourceClaims: claimsNotSeen,
	},
	Run: func(in *Input) []report.Finding { return holds(in, hold.DeadNode) },
}

var orphanPod = Check{
	ID: "orphan-pod", Step: 4, Title: "pods bound to a node that does not exist",
	Required: []inventory.Resource{inventory.Pods, inventory.Nodes},
	Optional: []inventory.Resource{inventory.ResourceClaims},
	Wider:    claimsNotSeen,
	Run:      func(in *Input) []report.Finding { return holds(in, hold.Orphan) },
}

func holds(in *Input, kind hold.Kind) []report.Finding {
	var out []report.Finding
	for i := range in.Holds {
		h := &in.Holds[i]
		if h.Kind == kind && !in.ignoredNamespace(h.Pod.Namespace) && !in.ignoredNode(h.Pod.Node) {
			out = append(out, holdFinding(in, h))
		}
	}
	return out
}

func holdFinding(in *Input, h *hold.Hold) report.Finding {
	p := h.Pod
	held := in.Survey.Held(p)
	f := in.finding(string(h.Kind), severe(held), podSubject(p))
	f.Node, f.Since = p.Node, timePointer(h.Since)
	withDevices(&f, held)
	what := "holds no device"
	if sum(held) > 0 {
		what = "holds " + describeDevices(held)
	}
	if in.Survey.HeldUnknown(p) {
		// A claim of a bound pod is allocated: it does hold something.
		f.Severity = report.Critical
		what = strings.TrimPrefix(what+" and what its resource claims were given, which was not seen", "holds no device and ")
		what = "holds " + strings.TrimPrefix(what, "holds ")
	}
	lasting := since(in.Now, h.Since)
	switch h.Kind {
	case hold.Ghost:
		f.Title = fmt.Sprintf("pod %s is bound to node %s for %s and never started: %s", p.Ref(), p.Node, lasting, what)
		f.Detail = "Phase Pending, no startTime, no container status: " + h.Reason + ". The scheduler charges it all the same, and so does kubectl describe node."
	case hold.StuckStarting:
		f.Title = fmt.Sprintf("pod %s on node %s is starting for %s (%s): %s", p.Ref(), p.Node, lasting, h.Reason, what)
		f.Detail = "The kubelet has taken the pod and it still does not run."
		for _, c := range p.Waiting {
			f.Evidence = append(f.Evidence, podEvidence(p, "status.containerStatuses["+c.Name+"].state", c.Reason+" "+c.Message))
		}
	case hold.Terminating:
		f.Title = fmt.Sprintf("pod %s on node %s should be gone for %s: %s", p.Ref(), p.Node, lasting, what)
		f.Detail = "metadata.deletionTimestamp, which already contains the grace period, is past. The scheduler charges the pod until its object is gone; a native quota may have stopped charging it before."
		f.Evidence = append(f.Evidence, podEvidence(p, "metadata.deletionTimestamp", stamp(*p.Deletion)))
	case hold.DeadNode:
		f.Title = fmt.Sprintf("pod %s is Running on paper on dead node %s for %s: %s", p.Ref(), p.Node, lasting, what)
		f.Detail = "Its node is not ready or silent, so nobody knows whether it still runs; its devices stay charged."
	case hold.Orphan:
		f.Title = fmt.Sprintf("pod %s is bound to node %s, which does not exist: %s", p.Ref(), p.Node, what)
		f.Detail = "The Node object is gone and the pod is not: pod garbage collection has not taken it."
	}
	if h.OnDeadNode && h.Kind != hold.DeadNode {
		f.Detail += " Its node is not alive."
	}
	if h.ForeignBinding {
		f.Detail += " PodScheduled is not True on this bound pod: something other than a normal scheduler bound it."
	}
	if p.Owner.Kind != "" {
		f.Detail += " Owner: " + p.Owner.String() + "."
	}
	f.Evidence = append(f.Evidence, holdEvidence(p)...)
	f.Commands = []string{
		kubectl("describe", "pod", "-n", p.Namespace, p.Name),
		kubectl("delete", "pod", "-n", p.Namespace, p.Name),
	}
	if h.Kind == hold.Terminating || h.Kind == hold.Orphan || h.OnDeadNode {
		f.Commands[1] = kubectl("delete", "pod", "-n", p.Namespace, p.Name, "--force", "--grace-period=0")
	}
	return f
}

func holdEvidence(p *inventory.Pod) []report.Evidence {
	out := []report.Evidence{
		podEvidence(p, "spec.nodeName", p.Node),
		podEvidence(p, "status.phase", p.Phase),
	}
	start := "(absent)"
	if p.StartTime != nil {
		start = stamp(*p.StartTime)
	}
	out = append(out, podEvidence(p, "status.startTime", start))
	if p.Scheduled != nil {
		out = append(out, podEvidence(p, "status.conditions[PodScheduled]", p.Scheduled.Status+" since "+stamp(p.Scheduled.Transition)))
	} else {
		out = append(out, podEvidence(p, "status.conditions[PodScheduled]", "(absent)"))
	}
	return out
}

func podEvidence(p *inventory.Pod, path, value string) report.Evidence {
	return report.Evidence{Object: "Pod/" + p.Ref(), Path: path, Value: value}
}
