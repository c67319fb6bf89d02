package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

// PodRequests is what the scheduler charges a pod with: app containers summed,
// sidecars added, init containers by maximum, overhead, pod-level cpu and
// memory, and in-place resize by the greatest of spec, allocated and actual.
// Source: k8s.io/component-helpers/resource, as used by the scheduler's NodeInfo.
func PodRequests(pod *corev1.Pod) Resources {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			boundRequests(list[i].Resources.Requests)
		}
	}
	return FromList(resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
}

// boundRequests keeps absurd requests from wrapping around while the library sums them.
func boundRequests(list corev1.ResourceList) {
	for name, q := range list {
		if q.Value() > maxAmount || q.Sign() < 0 {
			list[name] = *k8sresource.NewQuantity(Amount(string(name), q), q.Format)
		}
	}
}

// NaiveRequests is what the usual one-liner over `kubectl get pods -o json`
// sums: app containers alone.
func NaiveRequests(pod *corev1.Pod) Resources {
	out := Resources{}
	for i := range pod.Spec.Containers {
		for name, q := range pod.Spec.Containers[i].Resources.Requests {
			out[string(name)] = AddAmounts(out[string(name)], Amount(string(name), q))
		}
	}
	return out
}

// IsPlain is true for the resources that every node has; any other name may be a device.
func IsPlain(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods, corev1.ResourceStorage:
		return true
	}
	return strings.HasPrefix(name, "hugepages-") || strings.HasPrefix(name, "attachable-volumes-")
}

// WantsDevices is true when some amount is not of a plain resource.
func (r Resources) WantsDevices() bool {
	for name, amount := range r {
		if amount > 0 && !IsPlain(name) {
			return true
		}
	}
	return false
}

// Shapes interns shapes, so that the pods of a workload share one.
type Shapes struct{ byKey map[string]*Shape }

// NewShapes gives an empty set.
func NewShapes() *Shapes { return &Shapes{byKey: map[string]*Shape{}} }

// Of gives the shape of a pod spec with the given charged requests.
func (s *Shapes) Of(spec *corev1.PodSpec, requests Resources, annotations map[string]string) *Shape {
	shape := &Shape{
		Requests:     requests,
		NodeSelector: spec.NodeSelector,
		Tolerations:  spec.Tolerations,
		HostPorts:    hostPorts(spec),
		ClaimCount:   len(spec.ResourceClaims),
		NotModelled:  notModelled(spec, annotations),
	}
	if spec.RuntimeClassName != nil {
		shape.RuntimeClass = *spec.RuntimeClassName
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		shape.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return s.Intern(shape)
}

// Intern gives the one shape that equals the given one.
func (s *Shapes) Intern(shape *Shape) *Shape {
	shape.key = shapeKey(shape)
	if known, ok := s.byKey[shape.key]; ok {
		return known
	}
	s.byKey[shape.key] = shape
	return shape
}

func shapeKey(s *Shape) string {
	// Maps are written in key order by encoding/json; lists keep the order of
	// the spec, except those whose order means nothing.
	tolerations := slices.Clone(s.Tolerations)
	sort.SliceStable(tolerations, func(i, j int) bool { return tolerationKey(tolerations[i]) < tolerationKey(tolerations[j]) })
	b, err := json.Marshal([]any{s.Requests, s.NodeSelector, s.Affinity, tolerations, s.HostPorts, s.RuntimeClass, s.ClaimCount, s.NotModelled})
	if err != nil { // only strings and numbers are in it
		return fmt.Sprint(err)
	}
	return string(b)
}

func tolerationKey(t corev1.Toleration) string {
	return t.Key + "\x00" + string(t.Operator) + "\x00" + t.Value + "\x00" + string(t.Effect)
}

// hostPorts lists the ports that a pod takes on its node, sidecars included.
// Source: the scheduler's NodePorts plugin (getContainerPorts).
func hostPorts(spec *corev1.PodSpec) []HostPort {
	var out []HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			port := p.HostPort
			if port <= 0 {
				continue
			}
			hp := HostPort{IP: p.HostIP, Protocol: string(p.Protocol), Port: port}
			if hp.IP == "" {
				hp.IP = "0.0.0.0"
			}
			if hp.Protocol == "" {
				hp.Protocol = "TCP"
			}
			out = append(out, hp)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if p := spec.InitContainers[i].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Port != b.Port {
			return a.Port < b.Port
		}
		if a.Protocol != b.Protocol {
			return a.Protocol < b.Protocol
		}
		return a.IP < b.IP
	})
	return slices.Compact(out)
}

// notModelled names what of a spec can keep a pod from a node and is not simulated.
func notModelled(spec *corev1.PodSpec, annotations map[string]string) []string {
	var out []string
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			out = append(out, "podAffinity")
		}
		if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			out = append(out, "podAntiAffinity")
		}
	}
	for _, c := range spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			out = append(out, "topologySpread")
			break
		}
	}
	for _, v := range spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil {
			out = append(out, "volumes")
			break
		}
	}
	if len(spec.ResourceClaims) > 0 {
		out = append(out, "resourceClaims")
	}
	for _, key := range deviceTypeAnnotations {
		if annotations[key] != "" {
			out = append(out, "deviceTypeAnnotations")
			break
		}
	}
	sort.Strings(out)
	return out
}

// deviceTypeAnnotations narrow the cards of a shared-device scheduler down; the
// annotation names are HAMi's.
var deviceTypeAnnotations = []string{
	"nvidia.com/use-gputype", "nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid",
	"hami.io/use-gputype", "hami.io/nouse-gputype",
}

// SelectedKeys calls yield for every label key and value that a spec selects
// nodes by; the value is empty where the selection is by presence or absence.
func SelectedKeys(spec *corev1.PodSpec, yield func(key, value string)) {
	for key, value := range spec.NodeSelector {
		yield(key, value)
	}
	terms := func(expressions []corev1.NodeSelectorRequirement) {
		for _, e := range expressions {
			if e.Operator == corev1.NodeSelectorOpIn {
				for _, v := range e.Values {
					yield(e.Key, v)
				}
				continue
			}
			yield(e.Key, "")
		}
	}
	if a := spec.Affinity; a != nil {
		if a.NodeAffinity != nil {
			if req := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
				for _, t := range req.NodeSelectorTerms {
					terms(t.MatchExpressions)
				}
			}
		}
		topology := func(list []corev1.PodAffinityTerm) {
			for _, t := range list {
				yield(t.TopologyKey, "")
			}
		}
		if a.PodAffinity != nil {
			topology(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			topology(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for _, c := range spec.TopologySpreadConstraints {
		yield(c.TopologyKey, "")
	}
}

// TargetNode gives the node that a required affinity on metadata.name pins a
// pod to, as the DaemonSet controller writes it; "" when there is none.
// Source: kubernetes pkg/controller/daemon/util, ReplaceDaemonSetPodNodeNameNodeAffinity.
func TargetNode(affinity *corev1.NodeSelector) string {
	if affinity == nil || len(affinity.NodeSelectorTerms) == 0 {
		return ""
	}
	name := ""
	for _, term := range affinity.NodeSelectorTerms {
		found := ""
		for _, f := range term.MatchFields {
			if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				found = f.Values[0]
			}
		}
		if found == "" || (name != "" && name != found) {
			return ""
		}
		name = found
	}
	return name
}
