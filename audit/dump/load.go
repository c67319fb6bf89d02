package dump

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"gpuaudit/audit/inventory"
)

// loader turns objects into the inventory, and tells the newest time of each.
type loader struct {
	c         *inventory.Cluster
	shapes    *inventory.Shapes
	templates *inventory.Templates
	workloads []*inventory.Workload
	leases    map[string]*inventory.Lease
	events    *inventory.EventPass
	pass      *inventory.PodPass
}

func newLoader(c *inventory.Cluster) loader {
	shapes := inventory.NewShapes()
	return loader{c: c, shapes: shapes, templates: inventory.NewTemplates(shapes), leases: map[string]*inventory.Lease{}, events: inventory.NewEventPass()}
}

func (l *loader) finish() {
	l.c.SortNodes(l.leases)
	l.templates.Commit(l.c, l.workloads)
	l.events.Commit(l.c)
}

func (l *loader) beginPods()  { l.pass = inventory.NewPodPass(l.c, l.shapes) }
func (l *loader) commitPods() { l.pass.Commit() }

// load reads one object; timesOnly reads a pod for its times alone.
func (l *loader) load(k kind, raw json.RawMessage, timesOnly bool) (time.Time, error) {
	switch k.resource {
	case inventory.Nodes:
		var n corev1.Node
		if err := json.Unmarshal(raw, &n); err != nil {
			return time.Time{}, err
		}
		l.c.Nodes = append(l.c.Nodes, inventory.NodeOf(&n))
		times := []metav1.Time{n.CreationTimestamp}
		for _, c := range n.Status.Conditions {
			times = append(times, c.LastHeartbeatTime, c.LastTransitionTime)
		}
		return newest(times...), nil
	case inventory.Pods:
		return l.pod(raw, timesOnly)
	case inventory.Leases:
		var lease coordinationv1.Lease
		if err := json.Unmarshal(raw, &lease); err != nil {
			return time.Time{}, err
		}
		if lease.Namespace != "" && lease.Namespace != corev1.NamespaceNodeLease {
			return time.Time{}, nil
		}
		l.leases[lease.Name] = inventory.LeaseOf(&lease)
		return later(newest(lease.CreationTimestamp), l.leases[lease.Name].Renewed), nil
	case inventory.Events:
		return l.event(k, raw)
	case inventory.DaemonSets, inventory.Deployments, inventory.ReplicaSets, inventory.StatefulSets, inventory.Jobs, inventory.CronJobs:
		return l.workload(k, raw)
	}
	return l.other(k, raw)
}

func (l *loader) pod(raw json.RawMessage, timesOnly bool) (time.Time, error) {
	var p corev1.Pod
	if err := json.Unmarshal(raw, &p); err != nil {
		return time.Time{}, err
	}
	if !timesOnly {
		l.pass.Add(&p)
	}
	times := []metav1.Time{p.CreationTimestamp}
	if p.Status.StartTime != nil {
		times = append(times, *p.Status.StartTime)
	}
	for _, c := range p.Status.Conditions {
		times = append(times, c.LastTransitionTime, c.LastProbeTime)
	}
	for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if s.State.Running != nil {
			times = append(times, s.State.Running.StartedAt)
		}
		if s.State.Terminated != nil {
			times = append(times, s.State.Terminated.FinishedAt)
		}
	}
	return newest(times...), nil
}

func (l *loader) event(k kind, raw json.RawMessage) (time.Time, error) {
	if k.group == "events.k8s.io" {
		var e eventsv1.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return time.Time{}, err
		}
		l.events.AddV1(&e)
		at := later(newest(e.CreationTimestamp, e.DeprecatedLastTimestamp, e.DeprecatedFirstTimestamp), e.EventTime.Time)
		if e.Series != nil {
			at = later(at, e.Series.LastObservedTime.Time)
		}
		return at, nil
	}
	var e corev1.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return time.Time{}, err
	}
	l.events.AddCore(&e)
	at := later(newest(e.CreationTimestamp, e.LastTimestamp, e.FirstTimestamp), e.EventTime.Time)
	if e.Series != nil {
		at = later(at, e.Series.LastObservedTime.Time)
	}
	return at, nil
}

func (l *loader) workload(k kind, raw json.RawMessage) (time.Time, error) {
	var w *inventory.Workload
	var err error
	switch k.resource {
	case inventory.DaemonSets:
		w, err = as(raw, l.templates.DaemonSet, &appsv1.DaemonSet{})
	case inventory.Deployments:
		w, err = as(raw, l.templates.Deployment, &appsv1.Deployment{})
	case inventory.ReplicaSets:
		w, err = as(raw, l.templates.ReplicaSet, &appsv1.ReplicaSet{})
	case inventory.StatefulSets:
		w, err = as(raw, l.templates.StatefulSet, &appsv1.StatefulSet{})
	case inventory.Jobs:
		w, err = as(raw, l.templates.Job, &batchv1.Job{})
	case inventory.CronJobs:
		w, err = as(raw, l.templates.CronJob, &batchv1.CronJob{})
	}
	if err != nil {
		return time.Time{}, err
	}
	l.workloads = append(l.workloads, w)
	return w.Created, nil
}

func as[T any](raw json.RawMessage, reduce func(*T) *inventory.Workload, into *T) (*inventory.Workload, error) {
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, err
	}
	return reduce(into), nil
}

func (l *loader) other(k kind, raw json.RawMessage) (time.Time, error) {
	c := l.c
	var at time.Time
	var err error
	switch k.resource {
	case inventory.Namespaces:
		var n corev1.Namespace
		err = json.Unmarshal(raw, &n)
		c.Namespaces = append(c.Namespaces, n.Name)
		if n.Name == metav1.NamespaceSystem {
			c.UID = string(n.UID)
		}
		at = newest(n.CreationTimestamp)
	case inventory.ResourceQuotas:
		var q corev1.ResourceQuota
		err = json.Unmarshal(raw, &q)
		c.Quotas = append(c.Quotas, inventory.QuotaOf(&q))
		at = newest(q.CreationTimestamp)
	case inventory.Services:
		var s corev1.Service
		err = json.Unmarshal(raw, &s)
		if out, ok := inventory.ServiceOf(&s); ok {
			c.Services = append(c.Services, out)
		}
		at = newest(s.CreationTimestamp)
	case inventory.EndpointSlices:
		var s discoveryv1.EndpointSlice
		err = json.Unmarshal(raw, &s)
		if out, ok := inventory.EndpointSliceOf(&s); ok {
			c.Endpoints = append(c.Endpoints, out)
		}
		at = newest(s.CreationTimestamp)
	case inventory.PriorityClasses:
		var p schedulingv1.PriorityClass
		err = json.Unmarshal(raw, &p)
		c.PriorityClasses[p.Name] = p.Value
	case inventory.RuntimeClasses:
		var r nodev1.RuntimeClass
		err = json.Unmarshal(raw, &r)
		c.RuntimeClasses[r.Name] = inventory.RuntimeClassOf(&r)
	case inventory.NodeMetrics:
		var m metricsv1beta1.NodeMetrics
		err = json.Unmarshal(raw, &m)
		if c.Usage == nil {
			c.Usage = map[string]inventory.Usage{}
		}
		c.Usage[m.Name] = inventory.UsageOf(&m)
		c.MetricsServed = inventory.Yes
		at = newest(m.Timestamp)
	default:
		return l.custom(k, raw)
	}
	return at, err
}

func (l *loader) custom(k kind, raw json.RawMessage) (time.Time, error) {
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(raw); err != nil {
		return time.Time{}, err
	}
	switch k.resource {
	case inventory.ResourceSlices:
		l.c.Slices = append(l.c.Slices, inventory.SliceOf(&u))
	case inventory.ResourceClaims:
		l.c.Claims = append(l.c.Claims, inventory.ClaimOf(&u))
	case inventory.DeviceClasses:
		l.c.DeviceClasses = append(l.c.DeviceClasses, inventory.DeviceClassOf(&u))
	default:
		l.c.Custom[k.resource] = append(l.c.Custom[k.resource], inventory.CustomOf(k.resource, &u))
	}
	return newest(u.GetCreationTimestamp()), nil
}

// newest of some times that servers and kubelets set. A deletion time may lie
// ahead and is never among them.
func newest(times ...metav1.Time) time.Time {
	var out time.Time
	for _, t := range times {
		out = later(out, t.Time)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a
}
