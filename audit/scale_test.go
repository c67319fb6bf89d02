package audit_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gpuaudit/audit"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/markdown"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/report/table"
	"gpuaudit/audit/settings"
	"gpuaudit/audit/snapshot"
)

var scaleNow = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

// fleet is a cluster of n nodes with thirty pods each: one in fifty nodes is
// dead, one in forty lost its label, one pod in a hundred waits.
func fleet(nodes, podsEach int) *inventory.Cluster {
	c := &inventory.Cluster{Name: "fleet", UID: "u", Source: inventory.Live, CollectedAt: scaleNow, Custom: map[inventory.Resource][]*inventory.Custom{},
		RuntimeClasses: map[string]*inventory.RuntimeClass{}}
	for _, r := range []inventory.Resource{inventory.Nodes, inventory.Pods, inventory.Leases, inventory.Events, inventory.DaemonSets, inventory.ResourceQuotas, inventory.Services, inventory.EndpointSlices, inventory.Namespaces} {
		c.SetExtent(r, inventory.SeenWhole)
	}
	size := corev1.ResourceList{"cpu": resource.MustParse("128"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%05d", i), UID: types.UID(fmt.Sprintf("u%d", i)), Labels: map[string]string{"env": "prod"}, CreationTimestamp: metav1.NewTime(scaleNow.AddDate(0, -3, 0))}}
		n.Status = corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(scaleNow), LastTransitionTime: metav1.NewTime(scaleNow.AddDate(0, -3, 0))}}}
		if i%50 == 7 {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		}
		if i%40 == 3 {
			n.Labels = map[string]string{}
		}
		c.Nodes = append(c.Nodes, inventory.NodeOf(n))
	}
	c.SortNodes(map[string]*inventory.Lease{})
	pass := inventory.NewPodPass(c, inventory.NewShapes())
	for i := range nodes * podsEach {
		pass.Add(fleetPod(i, nodes))
	}
	pass.Commit()
	return c
}

func fleetPod(i, nodes int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("p%d", i)), CreationTimestamp: metav1.NewTime(scaleNow.Add(-time.Hour))}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("job%d", i/200), UID: "j", Controller: new(bool)}}
	*p.OwnerReferences[0].Controller = true
	request := corev1.ResourceList{"cpu": resource.MustParse("1")}
	if i%5 == 0 {
		request["nvidia.com/gpu"] = resource.MustParse("1")
	}
	p.Spec = corev1.PodSpec{NodeSelector: map[string]string{"env": "prod"}, NodeName: fmt.Sprintf("n%05d", i%nodes), Containers: []corev1.Container{{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Requests: request}}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	if i%100 == 1 {
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/10 nodes are available: 10 Insufficient cpu."}}
	}
	return p
}

func evaluated(c *inventory.Cluster, previous *snapshot.Snapshot) audit.Result {
	return audit.Evaluate(audit.Input{Current: c, Previous: previous, Settings: settings.Default(), Run: "run"})
}

// BenchmarkScale shows that every stage grows with the size of the cluster and
// no faster: compare the times for a node at the three sizes.
func BenchmarkScale(b *testing.B) {
	for _, nodes := range []int{1250, 2500, 5000} {
		c := fleet(nodes, 30)
		first := evaluated(c, nil)
		r := &report.Report{SchemaVersion: report.SchemaVersion, RunID: "r", GeneratedAt: scaleNow, Clusters: []report.Cluster{evaluated(c, first.Snapshot).Report}}
		r.Summary = report.Summarise(r.Clusters)
		for name, stage := range map[string]func() error{
			"evaluate":       func() error { evaluated(c, nil); return nil },
			"evaluate-again": func() error { evaluated(c, first.Snapshot); return nil },
			"json":           func() error { _, err := report.Encode(r); return err },
			"html":           func() error { _, err := page.Render(r, page.Options{}); return err },
			"table":          func() error { return table.Render(io.Discard, r, table.Options{Width: 120, Details: true}) },
			"markdown":       func() error { markdown.Render(r); return nil },
			"snapshot":       func() error { _, err := snapshot.Encode(first.Snapshot); return err },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, nodes), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := stage(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(nodes), "µs/node")
			})
		}
	}
}

// TestMemoryDoesNotGrowWithPods: pods that simply run are added up and
// forgotten, so three times as many of them keep hardly more memory.
func TestMemoryDoesNotGrowWithPods(t *testing.T) {
	kept := func(podsEach int) float64 {
		const nodes = 200
		c := fleet(nodes, 0)
		pass := inventory.NewPodPass(c, inventory.NewShapes())
		before := heap()
		for i := range nodes * podsEach {
			p := fleetPod(i*100, nodes) // none that waits
			p.OwnerReferences[0].Name = "job"
			pass.Add(p)
		}
		pass.Commit()
		grown := float64(heap()) - float64(before)
		runtime.KeepAlive(c)
		return grown
	}
	few, many := kept(20), kept(200)
	if many > 1.5*few+512<<10 {
		t.Errorf("ten times the pods keep %.0f KB instead of %.0f KB", many/1024, few/1024)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestClassesAreBounded: however many shapes of pods there are, a report names a
// bounded number of classes and says how many it left out.
func TestClassesAreBounded(t *testing.T) {
	c := fleet(10, 0)
	pass := inventory.NewPodPass(c, inventory.NewShapes())
	for i := range 300 {
		p := fleetPod(i*100+5, 10)
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse(fmt.Sprint(i + 1))}
		pass.Add(p)
	}
	pass.Commit()
	got := evaluated(c, nil).Report
	if len(got.Classes) > 50 || !strings.Contains(strings.Join(got.Notes, " "), "more observed workload classes") {
		t.Errorf("%d classes, notes %q", len(got.Classes), got.Notes)
	}
}
