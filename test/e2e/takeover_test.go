package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/report"
	"gpuaudit/test/controlplane"
)

// TestRealTakeover: a mutating admission policy hands the pods of a namespace to
// a second scheduler. Its words are read by who reported them, and the
// workload whose template names another scheduler is found.
func TestRealTakeover(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "takeover", Scheduler: true, ControllerManager: true, APIServerFlags: []string{"--feature-gates=MutatingAdmissionPolicy=true"}})
	c.StartScheduler(t, "vendor-scheduler")
	size := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size,
		Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}}})
	c.KeepAlive(t, "n0")
	c.Namespace(t, "prod")
	c.Apply(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: take-over}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{spec: Object.spec{schedulerName: "vendor-scheduler"}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: take-over}
spec:
  policyName: take-over
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: prod}}
`)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: takeover, kubeconfig: %q}]\nthresholds: {pending: 0s}\n", c.Kubeconfig(t, "admin")))
	var got report.Cluster
	// A policy takes effect some seconds after it was made: workloads made before it are not touched.
	n := 0
	controlplane.Eventually(t, 90*time.Second, "the policy hands a pod to the second scheduler", func() bool {
		n++
		c.Apply(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: train-%d, namespace: prod}
spec:
  serviceName: train
  selector: {matchLabels: {app: train-%d}}
  template:
    metadata: {labels: {app: train-%d}}
    spec:
      containers:
      - {name: c, image: x, resources: {requests: {nvidia.com/gpu: "4"}, limits: {nvidia.com/gpu: "4"}}}
`, n, n, n))
		for range 10 {
			got = audit(t, nil, "run", "-c", config, "--no-store", "-o", "json").report(t).Clusters[0]
			for _, p := range got.Pending {
				if p.SchedulerName == "vendor-scheduler" && p.ReportedBy != "" {
					return true
				}
				if p.Name == fmt.Sprintf("train-%d-0", n) && p.SchedulerName == "default-scheduler" {
					return false
				}
			}
		}
		return false
	})
	for _, p := range got.Pending {
		if p.SchedulerName == "vendor-scheduler" && p.ReportedBy != "" && (p.ReportedBy != "vendor-scheduler" || p.Cause != "capacity") {
			t.Errorf("pod %s waits for %s by %q, want capacity by vendor-scheduler: %s", p.Name, p.Cause, p.ReportedBy, p.Message)
		}
	}
	f := finding(&got, "scheduler-takeover", "vendor-scheduler")
	if f == nil || len(f.Objects) == 0 {
		t.Fatalf("the takeover is not reported: %+v", got.Findings)
	}
	t.Log(f.Title, f.Evidence)
}
