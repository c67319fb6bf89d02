package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/capacity"
	"gpuaudit/audit/report"
)

func unblocked(repairs []report.Repair) map[string]int {
	out := map[string]int{}
	for _, r := range repairs {
		out[r.Finding] = r.PendingPodsUnblocked
	}
	return out
}

// TestPodsThatFitAreNotUnblocked: of the pods that wait, those that fit
// somewhere now are nobody's merit, and the others count although their kind fits.
func TestPodsThatFitAreNotUnblocked(t *testing.T) {
	for _, c := range []struct{ free, cordoned, waiting, want int }{
		{0, 8, 3, 3}, {2, 8, 9, 7}, {2, 4, 9, 4}, {9, 8, 9, 0}, {10, 8, 9, 0},
	} {
		w := &world{}
		w.node("a", nil, gpu, fmt.Sprint(c.free))
		w.node("b", nil, gpu, fmt.Sprint(c.cordoned)).Spec.Unschedulable = true
		for i := range c.waiting {
			w.pod(fmt.Sprint("w", i), "", gpu, "1")
		}
		e := w.evaluate()
		got := unblocked(e.model.Repairs([]capacity.Fault{{Finding: "f", Node: "b", Uncordon: true}}, e.classes, e.waiting))
		if got["f"] != c.want {
			t.Errorf("%+v: %d pods would start", c, got["f"])
		}
	}
}

// TestRoomThatIsTakenIsNotGivenTwice: the pods that fit on the node already
// take their room there before the repair's gain is handed out.
func TestRoomThatIsTakenIsNotGivenTwice(t *testing.T) {
	w := &world{}
	w.node("a", nil, gpu, "8")
	w.pod("ghost", "a", gpu, "4")
	for i := range 12 {
		w.pod(fmt.Sprint("w", i), "", gpu, "1")
	}
	e := w.evaluate()
	got := unblocked(e.model.Repairs([]capacity.Fault{{Finding: "f", Node: "a", Release: map[string]int64{gpu: 4}, ReleasePods: 1}}, e.classes, e.waiting))
	if got["f"] != 4 {
		t.Errorf("%d pods would start, 4 fit beside those that fit now", got["f"])
	}
}

// TestRepairsNeedEverything: what is broken twice gains nothing by half a repair.
func TestRepairsNeedEverything(t *testing.T) {
	w := &world{}
	n := w.node("a", nil, gpu, "8")
	n.Spec.Unschedulable = true
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	w.pod("p", "", gpu, "1").Spec.NodeSelector = map[string]string{"env": "prod"}
	e := w.evaluate()
	label := map[string]string{"env": "prod"}
	repairs := e.model.Repairs([]capacity.Fault{
		{Finding: "cordon", Node: "a", Uncordon: true}, {Finding: "ready", Node: "a", Ready: true, Uncordon: true},
		{Finding: "label", Node: "a", Labels: label}, {Finding: "all", Node: "a", Ready: true, Uncordon: true, Labels: label},
	}, e.classes, e.waiting)
	want := []report.Repair{{Finding: "all", Gains: []report.Gain{{Class: "prod", Devices: 8}}, Devices: 8, PendingPodsUnblocked: 1, Order: 1}}
	if diff := cmp.Diff(want, repairs); diff != "" {
		t.Error(diff)
	}
}

// TestOrder: the same waiting pods are not started twice, and the order of
// repairs does not depend on the order of faults.
func TestOrder(t *testing.T) {
	w := &world{}
	var faults []capacity.Fault
	for i := range 6 {
		name := fmt.Sprint("n", i)
		w.node(name, nil, gpu, "8").Spec.Unschedulable = true
		faults = append(faults, capacity.Fault{Finding: "f-" + name, Node: name, Uncordon: true})
	}
	for i := range 12 {
		w.pod(fmt.Sprint("w", i), "", gpu, "1")
	}
	e := w.evaluate()
	want := e.model.Repairs(faults, e.classes, e.waiting)
	if len(want) != 6 {
		t.Fatalf("%d repairs", len(want))
	}
	for i, r := range want {
		if r.Order != i+1 || r.Finding != faults[i].Finding || r.PendingPodsUnblocked != 8 {
			t.Errorf("repair %d is %+v", i, r)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		r.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		if diff := cmp.Diff(want, e.model.Repairs(faults, e.classes, e.waiting)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestOrderCountsWhatStillWaits: a repair that frees less for classes comes
// later, and of equal ones the one that starts more of the pods that still wait.
func TestOrderCountsWhatStillWaits(t *testing.T) {
	w := &world{}
	for _, name := range []string{"a", "b", "c"} {
		w.node(name, map[string]string{"pool": map[string]string{"a": "x", "b": "x", "c": "y"}[name]}, gpu, "8").Spec.Unschedulable = true
	}
	for i := range 10 {
		pool := "x"
		if i > 6 {
			pool = "y"
		}
		w.pod(fmt.Sprint("w", i), "", gpu, "1").Spec.NodeSelector = map[string]string{"pool": pool}
	}
	e := w.evaluate()
	var order []string
	for _, r := range e.model.Repairs([]capacity.Fault{{Finding: "a", Node: "a", Uncordon: true}, {Finding: "b", Node: "b", Uncordon: true}, {Finding: "c", Node: "c", Uncordon: true}}, e.classes, e.waiting) {
		order = append(order, r.Finding)
	}
	// a starts 7; then none of x waits and c starts 3, b none.
	if !slices.Equal(order, []string{"a", "c", "b"}) {
		t.Error(order)
	}
}

// crowd is a large cluster: every fifth node is cordoned, many shapes wait.
func crowd(nodes int) (*evaluated, []capacity.Fault) {
	w := &world{}
	envs := []string{"a", "b", "c"}
	var faults []capacity.Fault
	for i := range nodes {
		n := w.node(fmt.Sprintf("n%05d", i), map[string]string{"env": envs[i%3], "zone": fmt.Sprint(i % 7)}, gpu, "8")
		if i%5 == 0 {
			n.Spec.Unschedulable = true
			faults = append(faults, capacity.Fault{Finding: "f-" + n.Name, Node: n.Name, Uncordon: true})
		}
		for j := range 2 {
			w.pod(fmt.Sprintf("r%d-%d", i, j), n.Name, gpu, "2", "cpu", "4").Spec.NodeSelector = map[string]string{"env": envs[i%3]}
		}
	}
	for i := range nodes / 2 {
		p := w.pod(fmt.Sprintf("w%d", i), "", gpu, fmt.Sprint(1+i%8), "cpu", fmt.Sprint(1+i%9))
		p.Spec.NodeSelector = map[string]string{"env": []string{"a", "b", "z"}[i%3], "zone": fmt.Sprint(i % 7)}
	}
	return w.evaluate(), faults
}

func BenchmarkCrowd(b *testing.B) {
	for _, nodes := range []int{1250, 2500, 5000} {
		e, faults := crowd(nodes)
		b.Run(fmt.Sprintf("classes/%d", nodes), func(b *testing.B) {
			for b.Loop() {
				for _, c := range e.classes {
					e.model.Report(c, true)
				}
			}
		})
		b.Run(fmt.Sprintf("repairs/%d", nodes), func(b *testing.B) {
			for b.Loop() {
				e.model.Repairs(faults, e.classes, e.waiting)
			}
		})
	}
}
