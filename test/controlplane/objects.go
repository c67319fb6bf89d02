package controlplane

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace makes a namespace unless it is there.
func (c *Cluster) Namespace(t testing.TB, name string) {
	t.Helper()
	ctx := context.Background()
	_, err := c.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// Node makes a node with its status.
func (c *Cluster) Node(t testing.TB, n *corev1.Node) *corev1.Node {
	t.Helper()
	ctx := context.Background()
	status := n.Status
	taints := n.Spec.Taints
	created, err := c.Admin.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status = status
	if created, err = c.Admin.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server's own admission taints new nodes as not ready; a node that
	// a test makes is as the test says.
	created.Spec.Taints = taints
	if created, err = c.Admin.CoreV1().Nodes().Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return created
}

// Pod makes a pod; with a status it is set too.
func (c *Cluster) Pod(t testing.TB, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	ctx := context.Background()
	status := p.Status
	created, err := c.Admin.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status.Phase != "" {
		created.Status = status
		if created, err = c.Admin.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return created
}

// KeepAlive renews nodes' leases and Ready conditions until the test ends.
func (c *Cluster) KeepAlive(t testing.TB, nodes ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	c.beat(ctx, nodes)
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.beat(ctx, nodes)
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func (c *Cluster) beat(ctx context.Context, nodes []string) {
	c.ensureLeaseNamespace(ctx)
	for _, name := range nodes {
		now := metav1.NewMicroTime(time.Now())
		seconds := int32(40)
		leases := c.Admin.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, _ = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}}, metav1.CreateOptions{})
		} else if err == nil {
			lease.Spec.RenewTime = &now
			_, _ = leases.Update(ctx, lease, metav1.UpdateOptions{}) // the next beat tries again
		}
		c.heartbeat(ctx, name)
	}
}

// heartbeat refreshes a node's Ready condition, as a kubelet does.
func (c *Cluster) heartbeat(ctx context.Context, name string) {
	n, err := c.Admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return // deleted, or the next beat tries again
	}
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
		}
	}
	_, _ = c.Admin.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}) // the next beat tries again
}

// Run marks a pod as running, as its kubelet would.
func (c *Cluster) Run(t testing.TB, namespace, name string) {
	t.Helper()
	ctx := context.Background()
	p, err := c.Admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
	if _, err := c.Admin.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) ensureLeaseNamespace(ctx context.Context) {
	_, _ = c.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}, metav1.CreateOptions{})
}
