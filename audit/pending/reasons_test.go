package pending

import (
	"slices"
	"testing"
	"time"

	"gpuaudit/audit/inventory"
)

func TestNodeReasons(t *testing.T) {
	preempt := " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	for _, c := range []struct {
		what   string
		events []*inventory.Event
		want   []string
		fresh  bool
	}{
		{"new wording", []*inventory.Event{event("default-scheduler", "FailedScheduling", mixed+preempt)},
			[]string{"node(s) were unschedulable", "Insufficient nvidia.com/gpu", "Insufficient cpu", "node(s) didn't match Pod's node affinity/selector"}, true},
		{"old wording", []*inventory.Event{event("default-scheduler", "FailedScheduling", "0/4 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate, 3 node(s) didn't match node selector.")},
			[]string{"node(s) had untolerated taint", "node(s) didn't match Pod's node affinity/selector"}, true},
		{"the newest of several", []*inventory.Event{event("a", "FailedScheduling", gpus, last(10*time.Minute)), event("b", "FailedScheduling", taints)}, []string{"node(s) had untolerated taint"}, true},
		{"too old", []*inventory.Event{event("default-scheduler", "FailedScheduling", gpus, last(time.Hour))}, nil, false},
		{"of an earlier pod", []*inventory.Event{event("default-scheduler", "FailedScheduling", gpus, func(e *inventory.Event) { e.RefUID = "other" })}, nil, false},
		{"another scheduler's reasons are not comparable", []*inventory.Event{event("volcano", "FailedScheduling", noFit)}, nil, false},
		{"an autoscaler's neither", []*inventory.Event{event("karpenter", "FailedScheduling", gpus)}, nil, false},
		{"and hides none", []*inventory.Event{event("default-scheduler", "FailedScheduling", gpus, last(5*time.Minute)), event("karpenter", "FailedScheduling", "incompatible with nodepool")}, []string{"Insufficient nvidia.com/gpu"}, true},
		{"none", nil, nil, false},
	} {
		got, fresh := NodeReasons(pod(), c.events, now, 900)
		if !slices.Equal(got, c.want) || fresh != c.fresh {
			t.Errorf("%s: %q, %v; want %q, %v", c.what, got, fresh, c.want, c.fresh)
		}
	}
}

func TestModelled(t *testing.T) {
	for reason, want := range map[string]bool{
		"Insufficient nvidia.com/gpu": true, "Too many pods": true, "node(s) had untolerated taint": true,
		"node(s) had volume node affinity conflict": false, "cannot allocate all claims": false, "": false,
	} {
		if Modelled(NormalReason(reason)) != want {
			t.Errorf("%q: modelled %v", reason, !want)
		}
	}
}
