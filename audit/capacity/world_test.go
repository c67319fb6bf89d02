package capacity_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gpuaudit/audit/capacity"
	"gpuaudit/audit/device"
	"gpuaudit/audit/health"
	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
)

const gpu = "nvidia.com/gpu"

var now = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

// world is a cluster under construction.
type world struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod
}

// list reads pairs of name and quantity.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// node adds a ready node with room for everything, and the given resources.
func (w *world) node(name string, labels map[string]string, pairs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("u-" + name), Labels: labels, CreationTimestamp: metav1.NewTime(now.Add(-90 * 24 * time.Hour))}}
	n.Status.Capacity = list("cpu", "128", "memory", "1Ti", "ephemeral-storage", "1Ti", "pods", "110")
	for k, v := range list(pairs...) {
		n.Status.Capacity[k] = v
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}
	w.nodes = append(w.nodes, n)
	return n
}

// pod adds a pod, Running when bound, else Pending, that requests the given resources.
func (w *world) pod(name, node string, pairs ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, UID: types.UID("u-" + name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}}
	p.Status.Phase = corev1.PodPending
	if node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	w.pods = append(w.pods, p)
	return p
}

// evaluated is everything that is derived from a world.
type evaluated struct {
	cluster *inventory.Cluster
	survey  *device.Survey
	model   *capacity.Model
	classes []*capacity.Class
	waiting []*inventory.Pod
}

func (w *world) evaluate(workloads ...settings.Workload) *evaluated {
	c := &inventory.Cluster{Name: "c", Source: inventory.Live, CollectedAt: now}
	for _, r := range []inventory.Resource{inventory.Nodes, inventory.Pods, inventory.Leases} {
		c.SetExtent(r, inventory.SeenWhole)
	}
	for _, n := range w.nodes {
		c.Nodes = append(c.Nodes, inventory.NodeOf(n))
	}
	c.SortNodes(nil)
	pass := inventory.NewPodPass(c, inventory.NewShapes())
	for _, p := range w.pods {
		pass.Add(p)
	}
	pass.Commit()
	c.Finish()
	t := settings.Default().Thresholds
	h := health.Judge(c, t)
	s := device.Take(device.Input{Cluster: c, Health: h, Holds: hold.Find(c, h, t), Table: device.NewTable(nil), Young: t.Initialising})
	e := &evaluated{cluster: c, survey: s, model: capacity.NewModel(c, h, s)}
	e.classes, _ = e.model.Classes(c, workloads)
	for _, p := range c.Pods {
		if p.Phase == "Pending" && p.Node == "" {
			e.waiting = append(e.waiting, p)
		}
	}
	return e
}

// class reports the class of that name.
func (e *evaluated) class(t *testing.T, name string) report.Class {
	t.Helper()
	var names []string
	for _, c := range e.classes {
		if c.Name == name {
			return e.model.Report(c, true)
		}
		names = append(names, c.Name)
	}
	t.Fatalf("no class %q among %q", name, names)
	return report.Class{}
}

// waterfall words a class's division of its free devices, and holds it to the sum.
func waterfall(t *testing.T, c report.Class) string {
	t.Helper()
	out, sum := fmt.Sprintf("%d = %d usable", c.ApparentFree, c.Schedulable), c.Schedulable
	for _, l := range c.Lost {
		out += fmt.Sprintf(" + %d %s", l.Devices, l.Reason)
		sum += l.Devices
	}
	if sum != c.ApparentFree {
		t.Errorf("class %q: usable and lost are %d together, free are %d", c.Name, sum, c.ApparentFree)
	}
	return out
}
