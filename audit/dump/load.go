package dump

import (
	"encoding/json"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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

// load reads one object; timesOnly reads a pod for its times alone. An error of
// the decoder, which names no field, gets the fields that are wrong.
func (l *loader) load(k kind, raw json.RawMessage, timesOnly bool) (stamp, error) {
	if endless(raw) {
		if wrong := wrongFields(raw); len(wrong) > 0 {
			return stamp{}, errors.New(strings.Join(wrong, "; "))
		}
	}
	at, err := l.decode(k, raw, timesOnly)
	if err != nil {
		if wrong := wrongFields(raw); len(wrong) > 0 {
			return stamp{}, errors.New(strings.Join(wrong, "; "))
		}
	}
	return at, err
}

func (l *loader) decode(k kind, raw json.RawMessage, timesOnly bool) (stamp, error) {
	switch k.resource {
	case inventory.Nodes:
		var n corev1.Node
		if err := json.Unmarshal(raw, &n); err != nil {
			return stamp{}, err
		}
		if err := inventory.NodeAmounts(&n); err != nil {
			return stamp{}, err
		}
		l.c.Nodes = append(l.c.Nodes, inventory.NodeOf(&n))
		out := stamp{plane: newest(n.CreationTimestamp), node: n.Name}
		for _, c := range n.Status.Conditions {
			out.kubelet = later(out.kubelet, newest(c.LastHeartbeatTime, c.LastTransitionTime))
			out.ready = out.ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		return out, nil
	case inventory.Pods:
		return l.pod(raw, timesOnly)
	case inventory.Leases:
		var lease coordinationv1.Lease
		if err := json.Unmarshal(raw, &lease); err != nil {
			return stamp{}, err
		}
		if lease.Namespace != "" && lease.Namespace != corev1.NamespaceNodeLease {
			return stamp{}, nil
		}
		l.leases[lease.Name] = inventory.LeaseOf(&lease)
		return stamp{plane: newest(lease.CreationTimestamp), kubelet: l.leases[lease.Name].Renewed, node: lease.Name}, nil
	case inventory.Events:
		return l.event(k, raw)
	case inventory.DaemonSets, inventory.Deployments, inventory.ReplicaSets, inventory.StatefulSets, inventory.Jobs, inventory.CronJobs:
		return l.workload(k, raw)
	}
	return l.other(k, raw)
}

func (l *loader) pod(raw json.RawMessage, timesOnly bool) (stamp, error) {
	var p corev1.Pod
	if err := json.Unmarshal(raw, &p); err != nil {
		return stamp{}, err
	}
	if !timesOnly {
		if err := inventory.PodAmounts(&p); err != nil {
			return stamp{}, err
		}
		l.pass.Add(&p)
	}
	out := stamp{plane: newest(p.CreationTimestamp), node: p.Spec.NodeName}
	var times []metav1.Time
	if p.Status.StartTime != nil {
		times = append(times, *p.Status.StartTime)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			out.plane = later(out.plane, newest(c.LastTransitionTime, c.LastProbeTime))
			continue
		}
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
	out.kubelet = newest(times...)
	return out, nil
}

func (l *loader) event(k kind, raw json.RawMessage) (stamp, error) {
	if k.group == "events.k8s.io" {
		var e eventsv1.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return stamp{}, err
		}
		l.events.AddV1(&e)
		at := later(newest(e.DeprecatedLastTimestamp, e.DeprecatedFirstTimestamp), e.EventTime.Time)
		if e.Series != nil {
			at = later(at, e.Series.LastObservedTime.Time)
		}
		return stamp{plane: newest(e.CreationTimestamp), kubelet: at, node: e.DeprecatedSource.Host}, nil
	}
	var e corev1.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return stamp{}, err
	}
	l.events.AddCore(&e)
	at := later(newest(e.LastTimestamp, e.FirstTimestamp), e.EventTime.Time)
	if e.Series != nil {
		at = later(at, e.Series.LastObservedTime.Time)
	}
	return stamp{plane: newest(e.CreationTimestamp), kubelet: at, node: e.Source.Host}, nil
}

func (l *loader) workload(k kind, raw json.RawMessage) (stamp, error) {
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
		return stamp{}, err
	}
	l.workloads = append(l.workloads, w)
	return stamp{plane: w.Created}, nil
}

func as[T any](raw json.RawMessage, reduce func(*T) *inventory.Workload, into *T) (*inventory.Workload, error) {
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, err
	}
	return reduce(into), nil
}

func (l *loader) other(k kind, raw json.RawMessage) (stamp, error) {
	c := l.c
	var at stamp
	var err error
	switch k.resource {
	case inventory.Namespaces:
		var n corev1.Namespace
		err = json.Unmarshal(raw, &n)
		c.Namespaces = append(c.Namespaces, n.Name)
		if n.Name == metav1.NamespaceSystem {
			c.UID = string(n.UID)
		}
		at.plane = newest(n.CreationTimestamp)
	case inventory.ResourceQuotas:
		var q corev1.ResourceQuota
		if err = json.Unmarshal(raw, &q); err == nil {
			err = inventory.QuotaAmounts(&q)
		}
		c.Quotas = append(c.Quotas, inventory.QuotaOf(&q))
		at.plane = newest(q.CreationTimestamp)
	case inventory.Services:
		var s corev1.Service
		err = json.Unmarshal(raw, &s)
		if out, ok := inventory.ServiceOf(&s); ok {
			c.Services = append(c.Services, out)
		}
		at.plane = newest(s.CreationTimestamp)
	case inventory.EndpointSlices:
		var s discoveryv1.EndpointSlice
		err = json.Unmarshal(raw, &s)
		if out, ok := inventory.EndpointSliceOf(&s); ok {
			c.Endpoints = append(c.Endpoints, out)
		}
		at.plane = newest(s.CreationTimestamp)
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
		at = stamp{plane: newest(m.CreationTimestamp), kubelet: newest(m.Timestamp), node: m.Name}
	default:
		return l.custom(k, raw)
	}
	return at, err
}

func (l *loader) custom(k kind, raw json.RawMessage) (stamp, error) {
	// Items of a typed list may leave their kind to the list.
	var u unstructured.Unstructured
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return stamp{}, err
	}
	if u.GetKind() == "" {
		u.SetKind(k.kind)
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
	return stamp{plane: newest(u.GetCreationTimestamp())}, nil
}
