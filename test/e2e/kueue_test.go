package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gpuaudit/audit/report"
	"gpuaudit/test/controlplane"
)

// TestRealKueue: Kueue's own controller holds Jobs back whose pods do not exist.
// We say which ClusterQueue, how much of it is promised, and whether waiting helps.
func TestRealKueue(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "kueue", ControllerManager: true})
	size := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size,
		Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}}})
	c.KeepAlive(t, "n0")
	c.Namespace(t, "prod")
	c.StartKueue(t)
	c.Apply(t, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: cards}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  namespaceSelector: {}
  queueingStrategy: BestEffortFIFO
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: cards
      resources: [{name: nvidia.com/gpu, nominalQuota: 4}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: train, namespace: prod}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lost, namespace: prod}
spec: {clusterQueue: nowhere}
`)
	job(t, c, "first", "train", 3)
	waitWorkload(t, c, "first", "QuotaReserved", "True")
	job(t, c, "second", "train", 2)
	job(t, c, "never", "train", 8)
	job(t, c, "astray", "lost", 1)
	for _, name := range []string{"second", "never", "astray"} {
		waitWorkload(t, c, name, "QuotaReserved", "False")
	}
	c.Pod(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "gated", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "train", "kueue.x-k8s.io/managed": "true"}},
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}, Containers: []corev1.Container{{Name: "c", Image: "x",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}, Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}}})

	// Kueue writes what a ClusterQueue has promised some moments after it promised it.
	controlplane.Eventually(t, 60*time.Second, "the ClusterQueue's status has what the first job reserved", func() bool {
		client, err := dynamic.NewForConfig(c.Config)
		if err != nil {
			return false
		}
		queue, err := client.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"}).Get(context.Background(), "team-a", metav1.GetOptions{})
		return err == nil && strings.Contains(fmt.Sprint(queue.Object["status"]), "total:3")
	})

	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: kueue, kubeconfig: %q}]\nthresholds: {pending: 0s}\n", c.Kubeconfig(t, "admin")))
	dump := filepath.Join(dir, "dump")
	if r := audit(t, nil, "dump", "-c", config, "--cluster", "kueue", "--out", dump); r.code != 0 {
		t.Fatalf("dump: exit %d\n%s", r.code, r.stderr)
	}
	for source, args := range map[string][]string{"live": {"-c", config}, "dump": {"-c", config, "--from", dump}} {
		got := audit(t, nil, append([]string{"run", "--no-store", "-o", "json"}, args...)...).report(t).Clusters[0]
		for _, f := range got.Findings {
			if f.Check == "quota-blocked" {
				t.Logf("%s: %s\n%s\n%+v\n%+v", source, f.Title, f.Detail, *f.Quota, f.Evidence)
			}
		}
		if f := finding(&got, "quota-blocked", "first"); f != nil {
			t.Errorf("%s: the admitted job is said to be held: %s", source, f.Title)
		}
		held(t, source, &got, "second", report.Quota{Source: "scheduler", Name: "team-a", Resource: "nvidia.com/gpu", Mode: "exhausted", Used: "3", Hard: "4", Reporter: "kueue"})
		held(t, source, &got, "never", report.Quota{Source: "scheduler", Name: "team-a", Resource: "nvidia.com/gpu", Mode: "never", Used: "3", Hard: "4", Reporter: "kueue"})
		held(t, source, &got, "astray", report.Quota{Source: "scheduler", Name: "nowhere", Mode: "misspecified", Reporter: "kueue"})
		for _, p := range got.Pending {
			t.Logf("%s: pod %s: %s %v by %q", source, p.Name, p.Cause, p.Reasons, p.ReportedBy)
			if p.Name == "gated" && p.Cause != "quota" && p.Cause != "queue" {
				t.Errorf("%s: pod gated waits for %s, want quota or queue", source, p.Cause)
			}
		}
	}
}

func held(t *testing.T, source string, c *report.Cluster, name string, want report.Quota) {
	t.Helper()
	f := finding(c, "quota-blocked", name)
	switch {
	case f == nil:
		t.Errorf("%s: job %s is not reported as held", source, name)
	case f.Quota == nil || *f.Quota != want:
		t.Errorf("%s: job %s: quota %+v, want %+v", source, name, f.Quota, want)
	case f.Since == nil || time.Since(*f.Since) > 10*time.Minute || f.Subject.Kind != "Job":
		t.Errorf("%s: job %s: %s since %v", source, name, f.Subject, f.Since)
	}
}

// job makes a Job as Kueue's webhook would leave it: suspended.
func job(t *testing.T, c *controlplane.Cluster, name, queue string, cards int) {
	c.Apply(t, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: prod, labels: {kueue.x-k8s.io/queue-name: %s}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: x
        resources: {requests: {nvidia.com/gpu: "%d"}, limits: {nvidia.com/gpu: "%d"}}
`, name, queue, cards, cards))
}

// waitWorkload waits until Kueue says so of a Job's Workload.
func waitWorkload(t *testing.T, c *controlplane.Cluster, name, condition, status string) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	workloads := client.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}).Namespace("prod")
	controlplane.Eventually(t, 90*time.Second, fmt.Sprintf("the Workload of %s has %s=%s", name, condition, status), func() bool {
		list, err := workloads.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, w := range list.Items {
			if !strings.HasPrefix(w.GetName(), "job-"+name+"-") {
				continue
			}
			conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
			for _, one := range conditions {
				m, _ := one.(map[string]any)
				if m["type"] == condition && m["status"] == status {
					return true
				}
			}
		}
		return false
	})
}
