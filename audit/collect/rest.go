package collect

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"gpuaudit/audit/inventory"
)

// together bounds how many kinds of one cluster are read at once.
const together = 4

// rest reads everything beside nodes and pods, several kinds at once.
func (r *reader) rest(ctx context.Context) {
	var mu sync.Mutex // guards the inventory and the template reader
	var wg sync.WaitGroup
	slots := make(chan struct{}, together)
	start := func(f func()) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f()
		})
	}
	for _, job := range r.builtins(&mu) {
		start(func() { r.builtin(ctx, job, &mu) })
	}
	for _, k := range table {
		if take := r.taker(k); take != nil {
			start(func() { r.custom(ctx, k, &mu, take) })
		}
	}
	wg.Wait()
}

// job reads one built-in kind in one namespace.
type job struct {
	kind resource
	read func(ctx context.Context, namespace string) error
}

func (r *reader) builtin(ctx context.Context, j job, mu *sync.Mutex) {
	failed := map[string]error{}
	spaces := r.spaces(j.kind)
	for _, ns := range spaces {
		if err := j.read(ctx, ns); err != nil {
			if ctx.Err() != nil && reason(err) != inventory.GapForbidden {
				err = ctx.Err()
			}
			failed[ns] = err
		}
	}
	mu.Lock()
	defer mu.Unlock()
	r.seen(j.kind, failed, len(spaces))
}

// take makes a read of a typed list whose items go into the inventory under
// the lock, when the whole list was had.
func take[L listOf, T any](mu *sync.Mutex, get func(ctx context.Context, ns string, o metav1.ListOptions) (L, error), items func(L) []T, reduce func(*T) func()) func(context.Context, string) error {
	return func(ctx context.Context, ns string) error {
		return read(ctx, func(ctx context.Context, o metav1.ListOptions) (L, error) { return get(ctx, ns, o) },
			func(l L) int { return len(items(l)) },
			func(l L, i int) func() {
				mu.Lock()
				defer mu.Unlock()
				f := reduce(&items(l)[i])
				if f == nil {
					return nil
				}
				return func() { mu.Lock(); defer mu.Unlock(); f() }
			})
	}
}

func (r *reader) builtins(mu *sync.Mutex) []job {
	c, t, core := r.cluster, r.client.typed, r.client.typed.CoreV1()
	add := func(w *inventory.Workload) func() { return func() { r.workloads = append(r.workloads, w) } }
	return []job{
		{find(inventory.Events), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*corev1.EventList, error) {
			return core.Events(ns).List(ctx, o)
		}, func(l *corev1.EventList) []corev1.Event { return l.Items }, func(e *corev1.Event) func() {
			if !inventory.KeptEvent(e.InvolvedObject.Kind, e.Reason) {
				return nil
			}
			e.ManagedFields = nil
			return func() { r.events.AddCore(e) }
		})},
		{find(inventory.Namespaces), take(mu, func(ctx context.Context, _ string, o metav1.ListOptions) (*corev1.NamespaceList, error) {
			return core.Namespaces().List(ctx, o)
		}, func(l *corev1.NamespaceList) []corev1.Namespace { return l.Items }, func(n *corev1.Namespace) func() {
			name, uid := n.Name, string(n.UID)
			return func() {
				c.Namespaces = append(c.Namespaces, name)
				if name == metav1.NamespaceSystem {
					c.UID = uid
				}
			}
		})},
		{find(inventory.ResourceQuotas), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*corev1.ResourceQuotaList, error) {
			l, err := core.ResourceQuotas(ns).List(ctx, o)
			for i := 0; err == nil && i < len(l.Items); i++ {
				err = inventory.QuotaAmounts(&l.Items[i])
			}
			return l, err
		}, func(l *corev1.ResourceQuotaList) []corev1.ResourceQuota { return l.Items }, func(q *corev1.ResourceQuota) func() {
			out := inventory.QuotaOf(q)
			return func() { c.Quotas = append(c.Quotas, out) }
		})},
		{find(inventory.Services), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*corev1.ServiceList, error) {
			return core.Services(ns).List(ctx, o)
		}, func(l *corev1.ServiceList) []corev1.Service { return l.Items }, func(s *corev1.Service) func() {
			out, ok := inventory.ServiceOf(s)
			if !ok {
				return nil
			}
			return func() { c.Services = append(c.Services, out) }
		})},
		{find(inventory.EndpointSlices), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
			return t.DiscoveryV1().EndpointSlices(ns).List(ctx, o)
		}, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items }, func(s *discoveryv1.EndpointSlice) func() {
			out, ok := inventory.EndpointSliceOf(s)
			if !ok {
				return nil
			}
			return func() { c.Endpoints = append(c.Endpoints, out) }
		})},
		{find(inventory.DaemonSets), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*appsv1.DaemonSetList, error) {
			return t.AppsV1().DaemonSets(ns).List(ctx, o)
		}, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items }, func(w *appsv1.DaemonSet) func() { return add(r.templates.DaemonSet(w)) })},
		{find(inventory.Deployments), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*appsv1.DeploymentList, error) {
			return t.AppsV1().Deployments(ns).List(ctx, o)
		}, func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, func(w *appsv1.Deployment) func() { return add(r.templates.Deployment(w)) })},
		{find(inventory.StatefulSets), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*appsv1.StatefulSetList, error) {
			return t.AppsV1().StatefulSets(ns).List(ctx, o)
		}, func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items }, func(w *appsv1.StatefulSet) func() { return add(r.templates.StatefulSet(w)) })},
		{find(inventory.Jobs), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*batchv1.JobList, error) {
			return t.BatchV1().Jobs(ns).List(ctx, o)
		}, func(l *batchv1.JobList) []batchv1.Job { return l.Items }, func(w *batchv1.Job) func() { return add(r.templates.Job(w)) })},
		{find(inventory.CronJobs), take(mu, func(ctx context.Context, ns string, o metav1.ListOptions) (*batchv1.CronJobList, error) {
			return t.BatchV1().CronJobs(ns).List(ctx, o)
		}, func(l *batchv1.CronJobList) []batchv1.CronJob { return l.Items }, func(w *batchv1.CronJob) func() { return add(r.templates.CronJob(w)) })},
		{find(inventory.RuntimeClasses), take(mu, func(ctx context.Context, _ string, o metav1.ListOptions) (*nodev1.RuntimeClassList, error) {
			return t.NodeV1().RuntimeClasses().List(ctx, o)
		}, func(l *nodev1.RuntimeClassList) []nodev1.RuntimeClass { return l.Items }, func(x *nodev1.RuntimeClass) func() {
			out := inventory.RuntimeClassOf(x)
			return func() { c.RuntimeClasses[out.Name] = out }
		})},
	}
}

// taker says what becomes of an object of a kind that is not built in; nil for built-in kinds.
func (r *reader) taker(k resource) func(*unstructured.Unstructured) {
	c := r.cluster
	switch {
	case k.builtin:
		return nil
	case k.name == inventory.NodeMetrics:
		return func(u *unstructured.Unstructured) {
			var m metricsv1beta1.NodeMetrics
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m) == nil {
				if c.Usage == nil {
					c.Usage = map[string]inventory.Usage{}
				}
				c.Usage[m.Name] = inventory.UsageOf(&m)
			}
		}
	case k.name == inventory.ResourceSlices:
		return func(u *unstructured.Unstructured) { c.Slices = append(c.Slices, inventory.SliceOf(u)) }
	case k.name == inventory.ResourceClaims:
		return func(u *unstructured.Unstructured) { c.Claims = append(c.Claims, inventory.ClaimOf(u)) }
	case k.name == inventory.DeviceClasses:
		return func(u *unstructured.Unstructured) {
			c.DeviceClasses = append(c.DeviceClasses, inventory.DeviceClassOf(u))
		}
	}
	return func(u *unstructured.Unstructured) {
		c.Custom[k.name] = append(c.Custom[k.name], inventory.CustomOf(k.name, u))
	}
}
