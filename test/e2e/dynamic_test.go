package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/report"
	"gpuaudit/test/controlplane"
)

const driver = "gpu.example.com"

// drivers are a DRA driver's objects for node dra-1: four devices, a class of
// them that also answers for an extended resource, and a claim for two.
const drivers = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  extendedResourceName: example.com/gpu
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com"'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: dra-1}
spec:
  driver: gpu.example.com
  nodeName: dra-1
  pool: {name: dra-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: g0}
  - {name: g1}
  - {name: g2}
  - {name: g3}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: default}
spec:
  devices:
    requests:
    - {name: r, exactly: {deviceClassName: gpu.example.com, count: 2}}
`

// withDriver makes node dra-1, alive, with its driver's objects.
func withDriver(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	size := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "dra-1"}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size,
		Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}}})
	c.KeepAlive(t, "dra-1")
	c.Apply(t, drivers)
}

// allocate gives claim two its devices for pods, as a scheduler does.
func allocate(t *testing.T, c *controlplane.Cluster, pods ...*corev1.Pod) {
	t.Helper()
	claims := c.Admin.ResourceV1().ResourceClaims("default")
	claim, err := claims.Get(t.Context(), "two", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	for _, device := range []string{"g0", "g1"} {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "dra-1", Device: device})
	}
	for _, p := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
	}
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// claiming is a pod that uses claim two.
func claiming(name string) *corev1.Pod {
	claim := "two"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.example.com/c:1", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c"}}}}}
	return p
}

// TestDynamicResources: the real scheduler gives devices to claims; two pods
// that share a claim are charged once, a pod that asks by an extended resource
// name is charged by the claim that the scheduler makes for it.
func TestDynamicResources(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "dra", Scheduler: true})
	withDriver(t, c)
	for _, name := range []string{"a", "b"} {
		c.Pod(t, claiming(name))
	}
	extended := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "extended"}}
	one := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	extended.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.example.com/c:1", Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}}
	c.Pod(t, extended)
	for _, name := range []string{"a", "b", "extended"} {
		controlplane.Eventually(t, 60*time.Second, "the scheduler binds "+name, func() bool {
			p, err := c.Admin.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && p.Spec.NodeName == "dra-1"
		})
	}
	for _, name := range []string{"a", "b"} {
		c.Run(t, "default", name)
	}
	file := write(t, filepath.Join(t.TempDir(), "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: dra, kubeconfig: %q}]\n", c.Kubeconfig(t, "admin")))
	r := audit(t, nil, "run", "-c", file, "--no-store", "-o", "json").report(t)
	k := r.Clusters[0]
	i := slices.IndexFunc(k.Devices, func(d report.Device) bool { return d.Resource == driver })
	if i < 0 {
		t.Fatalf("no device of the driver: %+v", k.Devices)
	}
	d := k.Devices[i]
	if got := fmt.Sprint(d.Source, " ", d.Capacity, " ", value(d.Requested), " ", value(d.Free)); got != "dra 4 3 1" {
		t.Errorf("source, capacity, requested, free: %s", got)
	}
	for _, d := range k.Devices {
		if d.Resource == "example.com/gpu" {
			t.Errorf("charged a second time under the extended name: %+v", d)
		}
	}
	if !slices.ContainsFunc(k.Notes, func(n string) bool { return strings.Contains(n, "resource claims alone") }) {
		t.Errorf("the notes do not speak of claims: %q", k.Notes)
	}
}

func value(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
