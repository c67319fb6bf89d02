package pending

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/report"
)

func TestRollup(t *testing.T) {
	at := func(d time.Duration) *time.Time { v := ago(d); return &v }
	var pods []report.Pending
	for i := range 83 {
		pods = append(pods, report.Pending{Namespace: "prod", Name: fmt.Sprintf("big-%02d", i), Owner: "Job/big", Cause: Capacity, Since: at(time.Duration(i) * time.Minute), Attempts: 2,
			Message: "m" + fmt.Sprint(i), ReportedBy: "s", Reasons: []string{"Insufficient nvidia.com/gpu"}})
	}
	pods = append(pods,
		report.Pending{Namespace: "prod", Name: "big-99", Owner: "Job/big", Cause: Quota, Quota: &report.Quota{Name: "q"}},
		report.Pending{Namespace: "kube-system", Name: "agent-b", Owner: "DaemonSet/agent", Cause: Ports, TargetNode: "node-b"},
		report.Pending{Namespace: "kube-system", Name: "agent-a", Owner: "DaemonSet/agent", Cause: Ports, TargetNode: "node-a", Since: at(time.Hour), Message: "said"},
		report.Pending{Namespace: "kube-system", Name: "agent-c", Owner: "DaemonSet/agent", Cause: Ports, TargetNode: "node-c", Bound: true},
		report.Pending{Namespace: "prod", Name: "alone", Cause: Gated},
		report.Pending{Namespace: "test", Name: "big-00", Owner: "Job/big", Cause: Capacity},
	)
	want := []Row{
		{Namespace: "kube-system", Owner: "DaemonSet/agent", Cause: Ports, Pods: 2, Names: []string{"agent-a", "agent-b"}, Nodes: []string{"node-a", "node-b"}, Since: at(time.Hour), Message: "said"},
		{Namespace: "kube-system", Owner: "DaemonSet/agent", Cause: Ports, Bound: true, Pods: 1, Names: []string{"agent-c"}, Nodes: []string{"node-c"}},
		{Namespace: "prod", Owner: "Job/big", Cause: Capacity, Pods: 83, Names: []string{"big-00", "big-01", "big-02", "big-03", "big-04", "big-05", "big-06", "big-07"}, Since: at(82 * time.Minute),
			Attempts: 166, ReportedBy: "s", Message: "m82", Reasons: []string{"Insufficient nvidia.com/gpu"}},
		{Namespace: "prod", Owner: "Job/big", Cause: Quota, Pods: 1, Names: []string{"big-99"}, Quota: &report.Quota{Name: "q"}},
		{Namespace: "prod", Owner: "Pod/alone", Cause: Gated, Pods: 1, Names: []string{"alone"}},
		{Namespace: "test", Owner: "Job/big", Cause: Capacity, Pods: 1, Names: []string{"big-00"}},
	}
	shuffle := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		shuffle.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, Rollup(pods)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if got := Rollup(nil); len(got) != 0 {
		t.Errorf("rows of nothing: %v", got)
	}
}
