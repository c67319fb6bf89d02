// Command load fills a test cluster with running pods of about 7 KB:
// load KUBECONFIG NODES PODS. Never use it on a cluster that anybody needs.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	cfg.QPS = -1
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	c := kubernetes.NewForConfigOrDie(cfg)
	ctx := context.Background()
	var nodes, pods int
	fmt.Sscan(os.Args[2], &nodes)
	fmt.Sscan(os.Args[3], &pods)
	run := func(n int, f func(i int)) {
		ch := make(chan int)
		var wg sync.WaitGroup
		for range 24 {
			wg.Go(func() {
				for i := range ch {
					f(i)
				}
			})
		}
		for i := range n {
			ch <- i
		}
		close(ch)
		wg.Wait()
	}
	size := corev1.ResourceList{"cpu": resource.MustParse("128"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	run(nodes, func(i int) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%d", i), Labels: map[string]string{"node_env": "prod"}}}
		n, err := c.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		if err != nil {
			return
		}
		n.Status = corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now()}}}
		c.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	})
	var env []corev1.EnvVar
	for i := range 40 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("VAR_%d", i), Value: strings.Repeat("x", 90)})
	}
	run(pods, func(i int) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("bench-%d", i)}, Spec: corev1.PodSpec{NodeName: fmt.Sprintf("bench-%d", i%nodes),
			Containers: []corev1.Container{{Name: "a", Image: "x", Env: env, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}, {Name: "b", Image: "y", Env: env[:10]}}}}
		if i%5 == 0 { // one pod in five has a card
			card := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
			p.Spec.Containers[1].Resources = corev1.ResourceRequirements{Requests: card, Limits: card}
		}
		p, err := c.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			panic(err)
		}
		now := metav1.Now()
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
		p.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: now}, {Type: "PodScheduled", Status: "True", LastTransitionTime: now}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Ready: true, Image: "x", ImageID: "sha256:x", State: running}, {Name: "b", Ready: true, Image: "y", ImageID: "sha256:y", State: running}}
		if _, err := c.CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
			panic(err)
		}
	}) // Nodes that live: without a young lease every pod with a card would be looked at in full.
	run(nodes, func(i int) {
		name, now, seconds := fmt.Sprintf("bench-%d", i), metav1.NewMicroTime(time.Now()), int32(40)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}}
		if _, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
			panic(err)
		}
	})
}
