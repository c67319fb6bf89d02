package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/test/controlplane"
)

// TestRealScheduler: as many replicas as we say fit are bound by the real
// scheduler, the rest waits for the cause that we give, and its messages agree
// with our reasons.
func TestRealScheduler(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "sched", Scheduler: true})
	size := func(gpus, cpu, pods string) corev1.ResourceList {
		return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus), "cpu": resource.MustParse(cpu), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse(pods), "ephemeral-storage": resource.MustParse("100Gi")}
	}
	var names []string
	for i, n := range []struct {
		labels map[string]string
		taints []corev1.Taint
		cordon bool
		size   corev1.ResourceList
	}{
		{map[string]string{"env": "prod"}, nil, false, size("8", "64", "110")},                                                             // 4 replicas
		{map[string]string{"env": "prod"}, nil, false, size("7", "20", "110")},                                                             // 2 by cpu
		{map[string]string{"env": "prod"}, nil, false, size("8", "64", "1")},                                                               // 1 by pod slots
		{map[string]string{"env": "test"}, nil, false, size("8", "64", "110")},                                                             // other label
		{nil, nil, false, size("8", "64", "110")},                                                                                          // no label
		{map[string]string{"env": "prod"}, []corev1.Taint{{Key: "team", Value: "a", Effect: "NoSchedule"}}, false, size("8", "64", "110")}, // tainted
		{map[string]string{"env": "prod"}, []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: "NoSchedule"}}, true, size("8", "64", "110")},
		{map[string]string{"env": "prod"}, nil, false, size("1", "64", "110")}, // too small
	} {
		name := fmt.Sprintf("n%d", i)
		names = append(names, name)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: n.labels}, Spec: corev1.NodeSpec{Taints: n.taints, Unschedulable: n.cordon},
			Status: corev1.NodeStatus{Capacity: n.size, Allocatable: n.size, Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now()}}}}
		c.Node(t, node)
	}
	c.KeepAlive(t, names...)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: sched, kubeconfig: %q}]\nthresholds: {pending: 0s}\nworkloads: [{name: prod, requests: {nvidia.com/gpu: 2, cpu: 8, memory: 1Gi}, nodeSelector: {env: prod}}]\n", c.Kubeconfig(t, "admin")))
	before := audit(t, nil, "run", "-c", config, "--no-store", "-o", "json").report(t).Clusters[0].Classes[0]
	if before.Replicas != 7 || before.ApparentFree != 56 {
		t.Fatalf("before: %d replicas of %d free, want 7 of 56: %+v", before.Replicas, before.ApparentFree, before.Lost)
	}
	ctx := context.Background()
	const more = 3
	for i := range before.Replicas + more {
		c.Pod(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i)}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"env": "prod"},
			Containers: []corev1.Container{{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("2")},
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}}})
	}
	bound, refused := 0, 0
	controlplane.Eventually(t, 60*time.Second, "the scheduler has dealt with every pod", func() bool {
		pods, err := c.Admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		bound, refused = 0, 0
		for _, p := range pods.Items {
			for _, cond := range p.Status.Conditions {
				switch {
				case cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionTrue:
					bound++
				case cond.Type == corev1.PodScheduled:
					refused++
				}
			}
		}
		return bound+refused == len(pods.Items)
	})
	if int64(bound) != before.Replicas || refused != more {
		t.Errorf("the scheduler bound %d and refused %d, we said that %d fit", bound, refused, before.Replicas)
	}
	after := audit(t, nil, "run", "-c", config, "--no-store", "-o", "json").report(t).Clusters[0]
	if after.Classes[0].Replicas != 0 {
		t.Errorf("after: %d replicas are said to fit", after.Classes[0].Replicas)
	}
	waiting := 0
	for _, p := range after.Pending {
		if p.Bound {
			continue
		}
		waiting++
		if p.Cause != "capacity" || p.ReportedBy != "default-scheduler" {
			t.Errorf("pod %s waits for %s by %q, want capacity by default-scheduler: %s", p.Name, p.Cause, p.ReportedBy, p.Message)
		}
	}
	if waiting != more {
		t.Errorf("%d pods wait, want %d", waiting, more)
	}
	for _, f := range after.Findings {
		if f.Check == "model-disagreement" {
			t.Errorf("we disagree with the scheduler: %s %s", f.Title, f.Detail)
		}
	}
}
