package pending

import (
	"strings"
	"time"

	"gpuaudit/audit/inventory"
)

// NodeReasons gives the reasons that a kube-scheduler gave about a pod lately,
// in the form of NormalReason; fresh is false when it has said nothing within
// the given seconds. Other schedulers' reasons are not comparable.
func NodeReasons(p *inventory.Pod, events []*inventory.Event, now time.Time, seconds int64) (reasons []string, fresh bool) {
	var newest *inventory.Event
	for _, e := range events {
		if e.Kind != "Pod" || e.RefNamespace != p.Namespace || e.Name != p.Name || (e.RefUID != "" && p.UID != "" && e.RefUID != p.UID) || e.Reason != "FailedScheduling" || IsAutoscaler(e.Reporter) {
			continue
		}
		if newest == nil || e.Last.After(newest.Last) {
			newest = e
		}
	}
	if newest == nil || now.Sub(newest.Last) > time.Duration(seconds)*time.Second {
		return nil, false
	}
	r := Parse(newest.Reporter, newest.Reason, newest.Message)
	if r.Dialect != KubeScheduler || !strings.Contains(newest.Message, "nodes are available: ") {
		return nil, false
	}
	seen := map[string]bool{}
	for _, reason := range r.Reasons {
		n := NormalReason(reason)
		if !seen[n] {
			seen[n] = true
			reasons = append(reasons, n)
		}
	}
	return reasons, len(reasons) > 0
}

// NormalReason gives one wording to reasons that changed theirs over versions.
func NormalReason(reason string) string {
	lower := strings.ToLower(reason)
	switch {
	case strings.Contains(lower, "taint"):
		return "node(s) had untolerated taint"
	case strings.Contains(lower, "node selector"), strings.Contains(lower, "node affinity/selector"), strings.Contains(lower, "pod's node affinity"):
		return "node(s) didn't match Pod's node affinity/selector"
	case strings.Contains(lower, "unschedulable"):
		return "node(s) were unschedulable"
	}
	return strings.TrimSpace(reason)
}

// Modelled is true for reasons that our simulation can give.
func Modelled(reason string) bool {
	switch reason {
	case "node(s) had untolerated taint", "node(s) didn't match Pod's node affinity/selector", "node(s) were unschedulable",
		"node(s) didn't have free ports for the requested pod ports", "Too many pods":
		return true
	}
	return strings.HasPrefix(reason, "Insufficient ")
}
