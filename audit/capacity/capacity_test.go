package capacity_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"gpuaudit/audit/capacity"
	"gpuaudit/audit/settings"
)

func prod() map[string]string { return map[string]string{"env": "prod"} }

// divisions are clusters of a few nodes, and how their free devices divide for
// a pod of 2 devices that selects env=prod.
var divisions = []struct {
	name  string
	build func(*world, *corev1.Pod)
	want  string
}{
	{"usable", func(w *world, _ *corev1.Pod) { w.node("a", prod(), gpu, "8") }, "8 = 8 usable"},
	{"not ready before cordoned and unlabelled", func(w *world, _ *corev1.Pod) {
		n := w.node("a", nil, gpu, "8")
		n.Spec.Unschedulable = true
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
	}, "8 = 0 usable + 8 notReady"},
	{"silent", func(w *world, _ *corev1.Pod) {
		w.node("a", prod(), gpu, "8")
		w.node("b", prod(), gpu, "8").Status.Conditions[0].LastHeartbeatTime.Time = now.Add(-24 * time.Hour)
	}, "16 = 8 usable + 8 silent"},
	{"cordoned before label", func(w *world, _ *corev1.Pod) { w.node("a", nil, gpu, "8").Spec.Unschedulable = true }, "8 = 0 usable + 8 cordoned"},
	{"taint that is a cordon", func(w *world, _ *corev1.Pod) {
		w.node("a", prod(), gpu, "8").Spec.Taints = []corev1.Taint{{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoSchedule}}
	}, "8 = 0 usable + 8 cordoned"},
	{"cordon tolerated, another taint not", func(w *world, p *corev1.Pod) {
		w.node("a", prod(), gpu, "8").Spec.Taints = []corev1.Taint{{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoSchedule}, {Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/maintenance", Operator: corev1.TolerationOpExists}}
	}, "8 = 0 usable + 8 taint"},
	{"soft taint", func(w *world, _ *corev1.Pod) {
		w.node("a", prod(), gpu, "8").Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule}}
	}, "8 = 8 usable"},
	{"label missing and other value", func(w *world, _ *corev1.Pod) {
		w.node("a", nil, gpu, "8")
		w.node("b", map[string]string{"env": "test"}, gpu, "4")
	}, "12 = 0 usable + 8 labelMissing + 4 labelOtherValue"},
	{"affinity by node name", func(w *world, p *corev1.Pod) {
		w.node("a", prod(), gpu, "8")
		w.node("b", prod(), gpu, "8")
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a"}}}}}}}}
	}, "16 = 8 usable + 8 affinity"},
	{"reserved for a preemptor, a whole replica left", func(w *world, _ *corev1.Pod) {
		w.node("a", prod(), gpu, "8")
		w.pod("preemptor", "", gpu, "3").Status.NominatedNodeName = "a"
	}, "8 = 4 usable + 3 reserved + 1 remainder"},
	{"one free on each of three", func(w *world, _ *corev1.Pod) {
		for i := range 3 {
			name := fmt.Sprint("n", i)
			w.node(name, prod(), gpu, "8")
			w.pod("r"+name, name, gpu, "7")
		}
	}, "3 = 0 usable + 3 tooSmall"},
	{"odd one left", func(w *world, _ *corev1.Pod) { w.node("a", prod(), gpu, "7") }, "7 = 6 usable + 1 remainder"},
	{"no pod slots", func(w *world, _ *corev1.Pod) {
		w.node("a", prod(), gpu, "8", "pods", "1")
		w.pod("r", "a")
	}, "8 = 0 usable + 8 podSlots"},
	{"cpu for two of four", func(w *world, _ *corev1.Pod) { w.node("a", prod(), gpu, "8", "cpu", "11") }, "8 = 4 usable + 4 cpu"},
	{"cpu before memory when both are short", func(w *world, _ *corev1.Pod) { w.node("a", prod(), gpu, "8", "cpu", "4", "memory", "1Gi") }, "8 = 2 usable + 6 cpu"},
	{"memory is shorter", func(w *world, _ *corev1.Pod) { w.node("a", prod(), gpu, "8", "cpu", "8", "memory", "1Gi") }, "8 = 2 usable + 6 memory"},
	{"scratch space", func(w *world, p *corev1.Pod) {
		w.node("a", prod(), gpu, "8", "ephemeral-storage", "1Mi")
		p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("1Gi")
	}, "8 = 0 usable + 8 ephemeralStorage"},
	{"host port once a node", func(w *world, p *corev1.Pod) {
		w.node("a", prod(), gpu, "8")
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 9000, ContainerPort: 80}}
	}, "8 = 2 usable + 6 podSlots"},
	{"over-commit here takes nothing from there", func(w *world, _ *corev1.Pod) {
		w.node("a", prod(), gpu, "8")
		w.node("b", prod(), gpu, "4")
		w.pod("r", "b", gpu, "8")
	}, "8 = 8 usable"},
	{"elastic nodes have no cards of their own", func(w *world, _ *corev1.Pod) {
		n := w.node("a", prod(), gpu, "100")
		n.Labels["type"] = "virtual-kubelet"
		w.node("b", prod(), gpu, "8")
	}, "8 = 8 usable"},
}

// TestWaterfall: of the free devices of a few nodes, what one class gets and
// what it loses, and for which reason.
func TestWaterfall(t *testing.T) {
	for _, c := range divisions {
		t.Run(c.name, func(t *testing.T) {
			w := &world{}
			p := w.pod("p", "", gpu, "2", "cpu", "4", "memory", "1Gi")
			p.Spec.NodeSelector = prod()
			c.build(w, p)
			name := "prod"
			if p.Spec.Affinity != nil {
				name = "prod+not a"
			}
			if got := waterfall(t, w.evaluate().class(t, name)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestNames: names are what the classes select, and no two are the same, not
// even when a selected value reads like a made name.
func TestNames(t *testing.T) {
	w := &world{}
	w.node("a", nil, gpu, "16")
	for i, c := range [][2]string{{"prod", "1"}, {"prod", "8"}, {"prod x8", "4"}, {"", "1"}} {
		p := w.pod(fmt.Sprint("p", i), "", gpu, c[1])
		if c[0] != "" {
			p.Spec.NodeSelector = map[string]string{"env": c[0]}
		}
	}
	seen := map[string]bool{}
	for _, c := range w.evaluate().classes {
		if seen[c.Name] {
			t.Errorf("two classes are called %q", c.Name)
		}
		seen[c.Name] = true
	}
	for _, want := range []string{"prod", "any", "prod x8"} {
		if !seen[want] {
			t.Errorf("no class is called %q among %v", want, seen)
		}
	}
}

// TestBounded: only so many observed classes are reported, the rest is counted;
// a DaemonSet's pods and pods without devices are none.
func TestBounded(t *testing.T) {
	w := &world{}
	w.node("a", nil, gpu, "8")
	for i := range capacity.MaxClasses + 3 {
		w.pod(fmt.Sprint("p", i), "", gpu, "1").Spec.NodeSelector = map[string]string{"team": fmt.Sprint(i)}
	}
	w.pod("plain", "", "cpu", "1")
	e := w.evaluate()
	if _, left := e.model.Classes(e.cluster, nil); len(e.classes) != capacity.MaxClasses || left != 3 {
		t.Errorf("%d classes and %d left out, want %d and 3", len(e.classes), left, capacity.MaxClasses)
	}
}

// TestConfigured: a configured class counts its pods and has the same waterfall.
func TestConfigured(t *testing.T) {
	w := &world{}
	w.node("a", map[string]string{"env": "prod"}, gpu, "8")
	w.node("b", nil, gpu, "4")
	w.pod("r", "a", gpu, "3").Spec.NodeSelector = map[string]string{"env": "prod"}
	w.pod("p", "", gpu, "2").Spec.NodeSelector = map[string]string{"env": "prod"}
	w.pod("other", "", gpu, "2")
	c := w.evaluate(settings.Workload{Name: "training", Requests: map[string]int64{gpu: 2}, NodeSelector: map[string]string{"env": "prod"}}).class(t, "training")
	if got := waterfall(t, c); got != "9 = 4 usable + 4 labelMissing + 1 remainder" {
		t.Error(got)
	}
	if *c.PendingPods != 1 || *c.RunningPods != 1 || c.EligibleNodes != 1 || c.Source != "configured" {
		t.Errorf("pending %d, running %d, eligible %d, %s", *c.PendingPods, *c.RunningPods, c.EligibleNodes, c.Source)
	}
}

// TestTwoNames: a pod that asks for cores gets what whole cards left over, and the other way round.
func TestTwoNames(t *testing.T) {
	const card, core = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
	w := &world{}
	w.node("a", nil, card, "16", core, "32")
	w.pod("r", "a", core, "20")
	w.pod("s", "a", card, "4")
	w.pod("p", "", core, "2")
	w.pod("q", "", card, "1")
	got := map[string]string{}
	e := w.evaluate()
	for _, c := range e.classes {
		r := e.model.Report(c, true)
		if r.Resource != "" && *r.PendingPods == 1 {
			got[r.Resource] = waterfall(t, r)
			if !r.UpperBound {
				t.Errorf("class %q of %s is no upper bound", r.Name, r.Resource)
			}
		}
	}
	if got[core] != "12 = 12 usable" || got[card] != "6 = 6 usable" {
		t.Error(got)
	}
}
