// Package oracle sets the program's arithmetic against the scheduler's own code.
package oracle

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpu = "nvidia.com/gpu"

// world makes random nodes and pods from one seed.
type world struct{ r *rand.Rand }

func (w *world) one(options ...string) string { return options[w.r.IntN(len(options))] }
func (w *world) chance(percent int) bool      { return w.r.IntN(100) < percent }

func (w *world) list(most int, gpus bool) corev1.ResourceList {
	out := corev1.ResourceList{}
	if w.chance(80) {
		out[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(w.r.IntN(most*1000)), resource.DecimalSI)
	}
	if w.chance(80) {
		out[corev1.ResourceMemory] = *resource.NewQuantity(int64(w.r.IntN(most))<<30, resource.BinarySI)
	}
	if w.chance(30) {
		out[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(w.r.IntN(most))<<30, resource.BinarySI)
	}
	if gpus && w.chance(60) {
		out[gpu] = *resource.NewQuantity(int64(w.r.IntN(5)), resource.DecimalSI)
	}
	if gpus && w.chance(15) {
		out["amd.com/gpu"] = *resource.NewQuantity(int64(w.r.IntN(3)), resource.DecimalSI)
	}
	return out
}

func (w *world) node(i int) *corev1.Node {
	labels := map[string]string{"kubernetes.io/hostname": fmt.Sprintf("n%d", i)}
	for _, key := range []string{"env", "zone", "tier"} {
		if w.chance(70) {
			labels[key] = w.one("a", "b", "c")
		}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), UID: types.UID(fmt.Sprintf("u%d", i)), Labels: labels}}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(int64(4+w.r.IntN(28))*1000, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(8+w.r.IntN(56))<<30, resource.BinarySI),
		corev1.ResourcePods: *resource.NewQuantity(int64(2+w.r.IntN(8)), resource.DecimalSI), corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(20+w.r.IntN(80))<<30, resource.BinarySI),
	}
	if w.chance(75) {
		n.Status.Capacity[gpu] = *resource.NewQuantity(8, resource.DecimalSI)
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	if q, ok := n.Status.Allocatable[gpu]; ok && w.chance(20) {
		q.Sub(*resource.NewQuantity(int64(w.r.IntN(4)), resource.DecimalSI))
		n.Status.Allocatable[gpu] = q
	}
	for range w.r.IntN(3) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: w.one("dedicated", "gpu", "x/y"), Value: w.one("", "a", "b"),
			Effect: corev1.TaintEffect(w.one("NoSchedule", "NoExecute", "PreferNoSchedule"))})
	}
	if w.chance(20) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func (w *world) container(name string, most int) corev1.Container {
	c := corev1.Container{Name: name, Image: "x", Resources: corev1.ResourceRequirements{Requests: w.list(most, true)}}
	if w.chance(15) {
		c.Ports = []corev1.ContainerPort{{HostPort: int32(9000 + w.r.IntN(3)), ContainerPort: 80, Protocol: corev1.Protocol(w.one("TCP", "UDP")), HostIP: w.one("", "127.0.0.1", "10.0.0.1")}}
	}
	return c
}

func (w *world) pod(i int, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("p%d", i))}}
	for j := range 1 + w.r.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, w.container(fmt.Sprintf("c%d", j), 6))
	}
	always := corev1.ContainerRestartPolicyAlways
	for j := range w.r.IntN(3) {
		c := w.container(fmt.Sprintf("i%d", j), 6)
		if w.chance(40) {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if w.chance(20) {
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	}
	if w.chance(15) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7"), corev1.ResourceMemory: resource.MustParse("9Gi")}}
	}
	p.Spec.NodeName = node
	if node != "" {
		p.Status.Phase = corev1.PodRunning
		w.resize(p)
		return p
	}
	p.Status.Phase = corev1.PodPending
	w.place(p)
	return p
}

// resize gives some pods the status of an in-place resize.
func (w *world) resize(p *corev1.Pod) {
	if !w.chance(25) {
		return
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, AllocatedResources: w.plain(), Resources: &corev1.ResourceRequirements{Requests: w.plain()}})
	}
	if w.chance(60) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: w.one(corev1.PodReasonDeferred, corev1.PodReasonInfeasible)})
	}
}

func (w *world) plain() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(w.r.IntN(9000)), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(w.r.IntN(9))<<30, resource.BinarySI)}
}

// place gives a waiting pod selectors, affinity and tolerations.
func (w *world) place(p *corev1.Pod) {
	if w.chance(40) {
		p.Spec.NodeSelector = map[string]string{w.one("env", "zone", "absent"): w.one("a", "b")}
	}
	if w.chance(40) {
		var terms []corev1.NodeSelectorTerm
		for range 1 + w.r.IntN(2) {
			term := corev1.NodeSelectorTerm{}
			if w.chance(80) {
				e := corev1.NodeSelectorRequirement{Key: w.one("env", "zone", "tier", "absent"), Operator: corev1.NodeSelectorOperator(w.one("In", "NotIn", "Exists", "DoesNotExist"))}
				if e.Operator == corev1.NodeSelectorOpIn || e.Operator == corev1.NodeSelectorOpNotIn {
					e.Values = []string{w.one("a", "b"), w.one("b", "c")}
				}
				term.MatchExpressions = []corev1.NodeSelectorRequirement{e}
			}
			if w.chance(30) {
				term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("n%d", w.r.IntN(6))}}}
			}
			terms = append(terms, term)
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	for range w.r.IntN(3) {
		t := corev1.Toleration{Key: w.one("dedicated", "gpu", "x/y", corev1.TaintNodeUnschedulable, ""), Operator: corev1.TolerationOperator(w.one("Exists", "Equal")), Effect: corev1.TaintEffect(w.one("", "NoSchedule", "NoExecute"))}
		if t.Operator == corev1.TolerationOpEqual {
			t.Value = w.one("", "a", "b")
		}
		if t.Key == "" {
			t.Operator, t.Value = corev1.TolerationOpExists, ""
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, t)
	}
}
