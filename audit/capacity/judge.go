package capacity

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// precedence of the reasons; it is ours, not the scheduler's.
var precedence = []string{
	report.LostNotReady, report.LostSilent, report.LostCordoned, report.LostAdmission, report.LostTaint,
	report.LostLabelMissing, report.LostLabelOtherValue, report.LostAffinity, report.LostReserved,
	report.LostTooSmall, report.LostPodSlots, report.LostCPU, report.LostMemory, report.LostEphemeralStorage, report.LostRemainder,
}

// steps of the checklist that cover each reason.
var steps = map[string]int{
	report.LostNotReady: 1, report.LostSilent: 1, report.LostCordoned: 1, report.LostAdmission: 1, report.LostTaint: 2,
	report.LostLabelMissing: 2, report.LostLabelOtherValue: 2, report.LostAffinity: 2, report.LostReserved: 3,
	report.LostTooSmall: 3, report.LostPodSlots: 3, report.LostCPU: 3, report.LostMemory: 3, report.LostEphemeralStorage: 3, report.LostRemainder: 3,
}

type loss struct {
	reason  string
	devices int64
	detail  string
}

// verdict is what a class gets of one node's free devices.
type verdict struct {
	replicas int64
	lost     []loss
	// eligible is true when nothing but room can keep the class off the node.
	eligible bool
}

// judge divides a node's free devices into whole replicas and what is lost,
// each device for one reason.
func (n *node) judge(c *Class) verdict {
	free := n.devices[c.Resource]
	if reason, detail := n.excluded(c.Shape); reason != "" {
		if free <= 0 {
			return verdict{}
		}
		return verdict{lost: []loss{{reason, free, detail}}}
	}
	v := verdict{eligible: true}
	if free <= 0 {
		return v
	}
	left := free
	if reserved := min(left, n.reserved[c.Resource]); reserved > 0 {
		v.lost = append(v.lost, loss{report.LostReserved, reserved, "nominated for a preemptor"})
		left -= reserved
	}
	replicas, reason, detail := n.room(c, left)
	v.replicas = replicas
	if rest := left - replicas*c.need(); rest > 0 {
		v.lost = append(v.lost, loss{reason, rest, detail})
	}
	return v
}

// excluded finds the first reason, by precedence, why no pod of the shape gets
// onto the node at all.
func (n *node) excluded(shape *inventory.Shape) (reason, detail string) {
	switch {
	case n.notReady:
		return report.LostNotReady, ""
	case n.silent:
		return report.LostSilent, ""
	}
	if n.cordoned && n.cordonHolds(shape) {
		return report.LostCordoned, ""
	}
	if n.rejecting {
		return report.LostAdmission, ""
	}
	if t, bad := n.untolerated(shape.Tolerations); bad {
		return report.LostTaint, t.ToString()
	}
	missing, other := "", ""
	for _, key := range slices.Sorted(maps.Keys(shape.NodeSelector)) {
		want := shape.NodeSelector[key]
		has, there := n.object.Labels[key]
		switch {
		case !there && missing == "":
			missing = key + " absent"
		case there && has != want && other == "":
			other = key + " is " + has
		}
	}
	switch {
	case missing != "":
		return report.LostLabelMissing, missing
	case other != "":
		return report.LostLabelOtherValue, other
	case !n.matches(shape):
		return report.LostAffinity, ""
	}
	return "", ""
}

// cordonHolds is true unless the shape tolerates what the cordon is made of.
func (n *node) cordonHolds(shape *inventory.Shape) bool {
	if n.CordonTaint == "" {
		return !toleratesUnschedulable(shape.Tolerations)
	}
	for _, t := range n.taints {
		if t.Key == n.CordonTaint && t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(shape.Tolerations, &t) {
			return true
		}
	}
	return false
}

// room counts the whole replicas that fit into what is left, and names the
// first thing that the next one lacks.
func (n *node) room(c *Class, devices int64) (replicas int64, reason, detail string) {
	need := c.need()
	if need <= 0 {
		return 0, report.LostTooSmall, ""
	}
	replicas = devices / need
	reason = report.LostRemainder
	if replicas == 0 {
		return 0, report.LostTooSmall, fmt.Sprintf("fewer than %d free", need)
	}
	limit := func(n int64, why, what string) {
		if n < replicas {
			replicas, reason, detail = max(0, n), why, what
		}
	}
	// In the order of the contract: of two things that are equally short the first counts.
	if port := n.portConflict(c.Shape.HostPorts); port != nil {
		limit(0, report.LostPodSlots, fmt.Sprintf("host port %d is taken", port.Port))
	} else if len(c.Shape.HostPorts) > 0 {
		limit(1, report.LostPodSlots, "one replica a node by its host port")
	}
	if n.pods != -1 {
		limit(n.pods, report.LostPodSlots, "no pod slot left")
	}
	for _, r := range []struct{ name, why string }{
		{"cpu", report.LostCPU}, {"memory", report.LostMemory}, {"ephemeral-storage", report.LostEphemeralStorage},
	} {
		if fit, judged := n.fit(c.Shape, r.name); judged {
			limit(fit, r.why, "")
		}
	}
	for _, name := range c.Shape.Requests.Names() {
		if name == c.Resource || name == "cpu" || name == "memory" || name == "ephemeral-storage" || name == "pods" {
			continue
		}
		if fit, judged := n.fit(c.Shape, name); judged {
			limit(fit, report.LostTooSmall, "lacks "+name)
		}
	}
	return replicas, reason, detail
}

// fit is how many replicas one resource has room for; judged is false where it
// does not limit.
func (n *node) fit(shape *inventory.Shape, name string) (int64, bool) {
	want := shape.Requests[name]
	if want <= 0 {
		return 0, false
	}
	free, stated := n.free[name]
	if !stated && (inventory.IsPlain(name) || n.survey.IsView(name)) {
		return 0, false
	}
	return max(0, free-n.reserved[name]) / want, true
}
