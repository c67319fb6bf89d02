package demo

import (
	"crypto/sha256"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const gpu = "nvidia.com/gpu"

// uid derives a stable UID from what an object is, so that the same story has
// the same objects every day.
func uid(parts ...any) types.UID {
	h := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

func at(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

func quantities(pairs map[string]string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range pairs {
		out[corev1.ResourceName(name)] = resource.MustParse(q)
	}
	return out
}

// scene is one cluster at one moment, being put together.
type scene struct {
	cluster    string
	now        time.Time
	nodes      []corev1.Node
	leases     []coordinationv1.Lease
	pods       []corev1.Pod
	sets       []appsv1.DaemonSet
	events     []corev1.Event
	services   []corev1.Service
	slices     []discoveryv1.EndpointSlice
	metrics    []metricsv1beta1.NodeMetrics
	noMetrics  bool
	namespaces []string
}

func (s *scene) node(name, env string, created time.Time, incarnation int) *corev1.Node {
	labels := map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"node.kubernetes.io/instance-type": "gpu.8x",
	}
	if env != "" {
		labels["node_env"] = env
	}
	capacity := quantities(map[string]string{"cpu": "128", "memory": "1Ti", "pods": "110", "ephemeral-storage": "2Ti", gpu: "8"})
	n := corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid(s.cluster, "node", name, incarnation), CreationTimestamp: at(created), Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "vendor://" + s.cluster + "/" + name},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.30.4", OSImage: "Ubuntu 22.04.4 LTS", KernelVersion: "5.15.0-105-generic", OperatingSystem: "linux", Architecture: "amd64"},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
				LastHeartbeatTime: at(s.now.Add(-90 * time.Second)), LastTransitionTime: at(created.Add(2 * time.Minute)),
			}},
		},
	}
	s.nodes = append(s.nodes, n)
	s.lease(name, s.now.Add(-6*time.Second))
	return &s.nodes[len(s.nodes)-1]
}

func (s *scene) lease(node string, renewed time.Time) {
	seconds := int32(40)
	renew := metav1.NewMicroTime(renewed.UTC())
	s.leases = append(s.leases, coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: corev1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &renew},
	})
}

// die makes the last node dead since a moment, with the taints that the
// control plane sets, and cordoned.
func (s *scene) die(n *corev1.Node, since time.Time) {
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.",
		LastHeartbeatTime: at(since.Add(-time.Minute)), LastTransitionTime: at(since),
	}}
	n.Spec.Unschedulable = true
	added := at(since)
	cordoned := at(since.Add(3 * time.Hour))
	n.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added},
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &cordoned},
	}
	s.leases[len(s.leases)-1].Spec.RenewTime = &metav1.MicroTime{Time: since.Add(-time.Minute).UTC()}
}

// podSpec is what a pod of the story asks for.
type podSpec struct {
	namespace, name, kind, owner, hash string
	node                               string
	gpus                               int
	cpu, memory                        string
	selector                           map[string]string
	created                            time.Time
	target                             string // of a DaemonSet's pod
	priorityClass                      string
}

func (s *scene) pod(p podSpec) *corev1.Pod {
	if p.cpu == "" {
		p.cpu = "8"
	}
	if p.memory == "" {
		p.memory = "64Gi"
	}
	requests := map[string]string{"cpu": p.cpu, "memory": p.memory}
	limits := map[string]string{}
	if p.gpus > 0 {
		requests[gpu], limits[gpu] = fmt.Sprint(p.gpus), fmt.Sprint(p.gpus)
	}
	controller := true
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, UID: uid(s.cluster, "pod", p.namespace, p.name), CreationTimestamp: at(p.created), Labels: map[string]string{"app": p.owner}},
		Spec: corev1.PodSpec{
			NodeName: p.node, NodeSelector: p.selector, SchedulerName: corev1.DefaultSchedulerName, PriorityClassName: p.priorityClass,
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/" + p.owner + ":1", Resources: corev1.ResourceRequirements{Requests: quantities(requests), Limits: quantities(limits)}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: p.kind, Name: p.owner, UID: uid(s.cluster, p.kind, p.namespace, p.owner), Controller: &controller}
	if p.kind == "ReplicaSet" {
		pod.Labels["pod-template-hash"] = p.hash
		owner.Name = p.owner + "-" + p.hash
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	if p.target != "" {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{p.target}}}}},
		}}}
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	s.pods = append(s.pods, pod)
	return &s.pods[len(s.pods)-1]
}

// runs marks a pod as running since a moment.
func runs(p *corev1.Pod, since time.Time) {
	start := at(since)
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &start
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: start},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start},
	}
	ready := true
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: ready, Started: &ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}}}
}

// waits gives a pod the condition and the event with which its scheduler
// refuses it.
func (s *scene) waits(p *corev1.Pod, reporter, message string, since time.Time, count int32) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message, LastTransitionTime: at(since)}}
	s.event(p, reporter, message, since, count)
}

func (s *scene) event(p *corev1.Pod, reporter, message string, since time.Time, count int32) {
	s.events = append(s.events, corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name + ".17f3", UID: uid(s.cluster, "event", p.Namespace, p.Name), CreationTimestamp: at(since)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Reason:         "FailedScheduling", Message: message, Type: corev1.EventTypeWarning, Count: count,
		Source: corev1.EventSource{Component: reporter}, FirstTimestamp: at(since), LastTimestamp: at(s.now.Add(-20 * time.Second)),
	})
}

func (s *scene) daemonSet(namespace, name, image string, desired, ready int32, created time.Time) {
	labels := map[string]string{"app": name}
	s.sets = append(s.sets, appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid(s.cluster, "DaemonSet", namespace, name), CreationTimestamp: at(created), Generation: 1},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Resources: corev1.ResourceRequirements{Requests: quantities(map[string]string{"cpu": "100m", "memory": "256Mi"})}}}},
		}},
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: desired, CurrentNumberScheduled: desired, NumberReady: ready, ObservedGeneration: 1},
	})
}

// cover runs one pod of a DaemonSet on every named node.
func (s *scene) cover(namespace, name string, nodes []string, since time.Time) {
	for _, n := range nodes {
		p := s.pod(podSpec{namespace: namespace, name: name + "-" + n, kind: "DaemonSet", owner: name, node: n, cpu: "100m", memory: "256Mi", target: n, created: since})
		runs(p, since)
	}
}

func (s *scene) service(namespace, name string, port int32, nodes []string) {
	s.services = append(s.services, corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid(s.cluster, "Service", namespace, name)},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Name: "metrics", Port: port}}},
	})
	slice := discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name + "-x7k2p", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	ready := true
	for i, n := range nodes {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)}, NodeName: &n, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	s.slices = append(s.slices, slice)
}

func (s *scene) use(node string, cpuShare, memoryShare float64) {
	s.metrics = append(s.metrics, metricsv1beta1.NodeMetrics{
		TypeMeta:   metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "NodeMetrics"},
		ObjectMeta: metav1.ObjectMeta{Name: node}, Timestamp: at(s.now.Add(-15 * time.Second)), Window: metav1.Duration{Duration: 30 * time.Second},
		Usage: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpuShare*128000), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(memoryShare*float64(int64(1)<<40)), resource.BinarySI),
		},
	})
}
