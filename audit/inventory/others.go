package inventory

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// QuotaOf reduces a ResourceQuota.
func QuotaOf(in *corev1.ResourceQuota) *ResourceQuota {
	return &ResourceQuota{
		Namespace: in.Namespace, Name: in.Name, UID: string(in.UID), Created: timeOf(in.CreationTimestamp),
		SpecHard: in.Spec.Hard, Hard: in.Status.Hard, Used: in.Status.Used,
		Scopes: in.Spec.Scopes, ScopeSelector: in.Spec.ScopeSelector,
	}
}

// RuntimeClassOf reduces a RuntimeClass.
func RuntimeClassOf(in *nodev1.RuntimeClass) *RuntimeClass {
	out := &RuntimeClass{Name: in.Name}
	if in.Scheduling != nil {
		out.NodeSelector, out.Tolerations = in.Scheduling.NodeSelector, in.Scheduling.Tolerations
	}
	if in.Overhead != nil {
		out.Overhead = FromList(in.Overhead.PodFixed)
	}
	return out
}

// ServiceOf reduces a Service; ok is false for one that no metrics exporter can stand behind.
func ServiceOf(in *corev1.Service) (out *Service, ok bool) {
	if !LooksLikeExporter(in.Name) && !selectsExporter(in.Spec.Selector) {
		return nil, false
	}
	out = &Service{Namespace: in.Namespace, Name: in.Name, Selector: in.Spec.Selector,
		Headless: in.Spec.ClusterIP == corev1.ClusterIPNone, External: in.Spec.ExternalName}
	for _, p := range in.Spec.Ports {
		out.Ports = append(out.Ports, p.Port)
	}
	return out, true
}

func selectsExporter(selector map[string]string) bool {
	for _, v := range selector {
		if LooksLikeExporter(v) {
			return true
		}
	}
	return false
}

// EndpointSliceOf reduces an EndpointSlice; ok is false for one without a service.
func EndpointSliceOf(in *discoveryv1.EndpointSlice) (out *EndpointSlice, ok bool) {
	service := in.Labels[discoveryv1.LabelServiceName]
	if service == "" {
		return nil, false
	}
	out = &EndpointSlice{Namespace: in.Namespace, Service: service}
	for _, e := range in.Endpoints {
		// A nil ready means ready (discovery/v1 EndpointConditions).
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			out.NotReady++
			continue
		}
		out.Ready++
		if e.NodeName != nil {
			out.Nodes = append(out.Nodes, *e.NodeName)
		}
	}
	return out, true
}

// UsageOf reads a NodeMetrics object.
func UsageOf(in *metricsv1beta1.NodeMetrics) Usage {
	u := Usage{At: timeOf(in.Timestamp)}
	if q, ok := in.Usage[corev1.ResourceCPU]; ok {
		u.MilliCPU = q.MilliValue()
	}
	if q, ok := in.Usage[corev1.ResourceMemory]; ok {
		u.Memory = q.Value()
	}
	return u
}

// CustomOf keeps metadata's names, labels and named annotations, spec and
// status of an object of another kind.
func CustomOf(r Resource, in *unstructured.Unstructured) *Custom {
	out := &Custom{Resource: r, Kind: in.GetKind(), Namespace: in.GetNamespace(), Name: in.GetName(), UID: string(in.GetUID()), Object: map[string]any{}}
	if t := in.GetCreationTimestamp(); !t.IsZero() {
		out.Created = t.UTC()
	}
	labels := map[string]any{}
	for k, v := range in.GetLabels() {
		labels[k] = v
	}
	meta := map[string]any{"labels": labels}
	if refs, ok, _ := unstructured.NestedSlice(in.Object, "metadata", "ownerReferences"); ok {
		meta["ownerReferences"] = refs
	}
	out.Object["metadata"] = meta
	for _, key := range []string{"spec", "status", "resourceGroups"} {
		if v, ok := in.Object[key]; ok {
			out.Object[key] = v
		}
	}
	// A Kueue Workload carries whole pod templates; their environment and
	// arguments are not kept anywhere.
	scrub(out.Object)
	return out
}

// scrub removes what may carry secrets from free-form objects.
func scrub(v any) {
	switch x := v.(type) {
	case map[string]any:
		for _, key := range []string{"env", "envFrom", "args", "command", "managedFields", "annotations"} {
			delete(x, key)
		}
		for _, child := range x {
			scrub(child)
		}
	case []any:
		for _, child := range x {
			scrub(child)
		}
	}
}

// Nested gives a value of a custom object by path, nil when absent.
func (c *Custom) Nested(path ...string) any {
	var v any = c.Object
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// CustomConditions reads status.conditions of a custom object.
func (c *Custom) CustomConditions() []Condition {
	list, _ := c.Nested("status", "conditions").([]any)
	var out []Condition
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		at, _ := time.Parse(time.RFC3339, text("lastTransitionTime"))
		out = append(out, Condition{Type: text("type"), Status: text("status"), Reason: text("reason"), Message: Said(text("message")), Transition: at.UTC()})
	}
	return out
}

// ParseQuantity reads a quantity of a custom object, a string or a number; ok is
// false for what no amount can be (see WrongAmount).
func ParseQuantity(name string, v any) (amount int64, ok bool) {
	switch v.(type) {
	case string, int64, float64:
	default:
		return 0, false
	}
	q, err := ReadQuantity(fmt.Sprint(v))
	if err != nil || WrongAmount(string(corev1.ResourceCPU), q) != "" { // fractions of a share are rounded up
		return 0, false
	}
	return Amount(name, q), true
}
