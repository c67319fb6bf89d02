package inventory

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LooksLikeExporter recognises a device metrics exporter by its workload's name
// or an image's name: NVIDIA's dcgm-exporter and those of other vendors.
func LooksLikeExporter(names ...string) bool {
	for _, name := range names {
		name = strings.ToLower(name)
		if i := strings.IndexByte(name, '@'); i >= 0 {
			name = name[:i]
		}
		name = name[strings.LastIndexByte(name, '/')+1:]
		if strings.Contains(name, "dcgm") {
			return true
		}
		for _, device := range []string{"gpu", "nvidia", "nvml", "amd", "rocm", "npu", "xpu", "gaudi", "habana", "ascend", "neuron", "metax", "mlu", "dcu", "device"} {
			for _, role := range []string{"exporter", "metrics", "monitor"} {
				if strings.Contains(name, device) && strings.Contains(name, role) && !strings.Contains(name, "node-exporter") {
					return true
				}
			}
		}
	}
	return false
}

// Templates turns controllers into Workloads and notes what their templates select on.
type Templates struct {
	Shapes *Shapes
	uses   labelUses
}

// NewTemplates begins a read of controllers.
func NewTemplates(shapes *Shapes) *Templates { return &Templates{Shapes: shapes, uses: labelUses{}} }

// Commit adds the workloads, and what they select on, to the cluster.
func (t *Templates) Commit(c *Cluster, list []*Workload) {
	c.Workloads = append(c.Workloads, list...)
	for _, w := range list {
		for _, s := range w.selects {
			t.uses.add(s[0], s[1], w.Ref())
		}
		w.selects = nil
	}
	t.uses.mergeInto(c)
	t.uses = labelUses{}
}

func (t *Templates) workload(kind string, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) *Workload {
	w := &Workload{
		Kind: kind, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID), Created: timeOf(meta.CreationTimestamp),
		Generation: meta.Generation, Deleting: meta.DeletionTimestamp != nil,
		PriorityClass: template.Spec.PriorityClassName, SchedulerName: template.Spec.SchedulerName,
		Queue: queue(meta.Labels, meta.Annotations),
		Gang:  firstOf(gangKeys, template.Labels, template.Annotations),
	}
	if w.Queue == "" {
		w.Queue = queue(template.Labels, template.Annotations)
	}
	if w.SchedulerName == "" {
		w.SchedulerName = corev1.DefaultSchedulerName
	}
	if ref := metav1.GetControllerOf(meta); ref != nil {
		w.Owner = Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: string(ref.UID)}
	}
	spec := defaultedSpec(&template.Spec)
	w.Shape = t.Shapes.Of(spec, PodRequests(&corev1.Pod{Spec: *spec}), template.Annotations)
	w.HostNetwork, w.ownOverhead = spec.HostNetwork, len(spec.Overhead) > 0
	SelectedKeys(spec, func(key, value string) { w.selects = append(w.selects, [2]string{key, value}) })
	for i := range spec.Containers {
		w.Images = append(w.Images, spec.Containers[i].Image)
	}
	return w
}

// defaultedSpec sets requests that a template leaves to its limits, as the API
// server does for pods (kubernetes pkg/apis/core/v1/defaults.go, SetDefaults_Pod).
func defaultedSpec(in *corev1.PodSpec) *corev1.PodSpec {
	spec := in.DeepCopy()
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for name, limit := range list[i].Resources.Limits {
				if list[i].Resources.Requests == nil {
					list[i].Resources.Requests = corev1.ResourceList{}
				}
				if _, ok := list[i].Resources.Requests[name]; !ok {
					list[i].Resources.Requests[name] = limit
				}
			}
		}
	}
	return spec
}

// DaemonSet reduces a DaemonSet.
func (t *Templates) DaemonSet(in *appsv1.DaemonSet) *Workload {
	w := t.workload("DaemonSet", &in.ObjectMeta, &in.Spec.Template)
	w.Selector = matchLabels(in.Spec.Selector)
	w.Desired, w.Current, w.Ready = in.Status.DesiredNumberScheduled, in.Status.CurrentNumberScheduled, in.Status.NumberReady
	w.Misscheduled = in.Status.NumberMisscheduled
	w.ObservedGeneration = in.Status.ObservedGeneration
	for _, c := range in.Status.Conditions {
		w.Conditions = append(w.Conditions, Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: Said(c.Message), Transition: timeOf(c.LastTransitionTime)})
	}
	return w
}

// Deployment reduces a Deployment.
func (t *Templates) Deployment(in *appsv1.Deployment) *Workload {
	w := t.workload("Deployment", &in.ObjectMeta, &in.Spec.Template)
	w.Selector = matchLabels(in.Spec.Selector)
	w.Desired, w.Current, w.Ready = replicas(in.Spec.Replicas), in.Status.Replicas, in.Status.ReadyReplicas
	w.Suspended, w.ObservedGeneration = in.Spec.Paused, in.Status.ObservedGeneration
	for _, c := range in.Status.Conditions {
		w.Conditions = append(w.Conditions, Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: Said(c.Message),
			Heartbeat: timeOf(c.LastUpdateTime), Transition: timeOf(c.LastTransitionTime)})
	}
	return w
}

// ReplicaSet reduces a ReplicaSet.
func (t *Templates) ReplicaSet(in *appsv1.ReplicaSet) *Workload {
	w := t.workload("ReplicaSet", &in.ObjectMeta, &in.Spec.Template)
	w.Selector = matchLabels(in.Spec.Selector)
	w.Desired, w.Current, w.Ready = replicas(in.Spec.Replicas), in.Status.Replicas, in.Status.ReadyReplicas
	w.ObservedGeneration = in.Status.ObservedGeneration
	for _, c := range in.Status.Conditions {
		w.Conditions = append(w.Conditions, Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: Said(c.Message), Transition: timeOf(c.LastTransitionTime)})
	}
	return w
}

// StatefulSet reduces a StatefulSet.
func (t *Templates) StatefulSet(in *appsv1.StatefulSet) *Workload {
	w := t.workload("StatefulSet", &in.ObjectMeta, &in.Spec.Template)
	w.Selector = matchLabels(in.Spec.Selector)
	w.Desired, w.Current, w.Ready = replicas(in.Spec.Replicas), in.Status.Replicas, in.Status.ReadyReplicas
	w.ObservedGeneration = in.Status.ObservedGeneration
	return w
}

// Job reduces a Job.
func (t *Templates) Job(in *batchv1.Job) *Workload {
	w := t.workload("Job", &in.ObjectMeta, &in.Spec.Template)
	w.Desired = replicas(in.Spec.Parallelism)
	w.Current = in.Status.Active
	if in.Status.Ready != nil {
		w.Ready = *in.Status.Ready
	}
	w.Suspended = in.Spec.Suspend != nil && *in.Spec.Suspend
	for _, c := range in.Status.Conditions {
		w.Conditions = append(w.Conditions, Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: Said(c.Message), Transition: timeOf(c.LastTransitionTime)})
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			w.Finished = true
		}
	}
	if in.Spec.Completions != nil && w.Desired > *in.Spec.Completions-in.Status.Succeeded {
		w.Desired = max(0, *in.Spec.Completions-in.Status.Succeeded)
	}
	return w
}

// CronJob reduces a CronJob; it has no replicas of its own.
func (t *Templates) CronJob(in *batchv1.CronJob) *Workload {
	w := t.workload("CronJob", &in.ObjectMeta, &in.Spec.JobTemplate.Spec.Template)
	w.Suspended = in.Spec.Suspend != nil && *in.Spec.Suspend
	return w
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func matchLabels(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	return s.MatchLabels
}
