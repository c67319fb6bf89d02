package inventory

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnerOf gives the pod's controller; for a ReplicaSet of a Deployment the
// Deployment, whose name is the ReplicaSet's without the template hash.
// Source: kubernetes pkg/controller/deployment/sync.go (getNewReplicaSet).
func OwnerOf(pod *corev1.Pod) Owner {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return Owner{}
	}
	owner := Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: string(ref.UID)}
	if ref.Kind == "ReplicaSet" {
		if hash := pod.Labels["pod-template-hash"]; hash != "" {
			if name, ok := strings.CutSuffix(ref.Name, "-"+hash); ok && name != "" {
				return Owner{APIVersion: ref.APIVersion, Kind: "Deployment", Name: name}
			}
		}
	}
	return owner
}

// reduce keeps what decides why a pod waits or what it holds. Environment,
// arguments, volumes' contents and other annotations are not kept.
func (p *PodPass) reduce(pod *corev1.Pod, requests Resources, owner Owner) *Pod {
	out := &Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Created: timeOf(pod.CreationTimestamp),
		Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase), Reason: pod.Status.Reason, Message: Said(pod.Status.Message),
		Shape: p.shapes.Of(&pod.Spec, requests, pod.Annotations), Naive: NaiveRequests(pod), Owner: owner,
		SchedulerName: pod.Spec.SchedulerName, PriorityClass: pod.Spec.PriorityClassName,
		HasContainerStatuses: len(pod.Status.ContainerStatuses) > 0,
		HasInitStatuses:      len(pod.Status.InitContainerStatuses) > 0,
		Nominated:            pod.Status.NominatedNodeName,
		NativeGang:           pod.Spec.SchedulingGroup != nil,
	}
	if out.Phase == "" {
		out.Phase = string(corev1.PodPending)
	}
	if pod.Spec.Priority != nil {
		out.Priority = *pod.Spec.Priority
	}
	if out.SchedulerName == "" {
		out.SchedulerName = corev1.DefaultSchedulerName
	}
	out.StartTime = pointerTime(pod.Status.StartTime)
	out.Deletion = pointerTime(pod.DeletionTimestamp)
	for _, gate := range pod.Spec.SchedulingGates {
		out.Gates = append(out.Gates, gate.Name)
	}
	out.TargetNode = TargetNode(out.Shape.Affinity)
	out.Gang, out.Queue = gang(pod), queue(pod.Labels, pod.Annotations)
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			out.ClaimNames = append(out.ClaimNames, *s.ResourceClaimName)
		}
	}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			out.ClaimNames = append(out.ClaimNames, *c.ResourceClaimName)
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		out.ClaimNames = append(out.ClaimNames, s.ResourceClaimName)
	}
	readConditions(out, pod.Status.Conditions)
	readContainers(out, pod)
	return out
}

func pointerTime(t *metav1.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

func readConditions(out *Pod, conditions []corev1.PodCondition) {
	for _, c := range conditions {
		got := &Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: Said(c.Message),
			Heartbeat: timeOf(c.LastProbeTime), Transition: timeOf(c.LastTransitionTime)}
		switch c.Type {
		case corev1.PodScheduled:
			out.Scheduled = got
		case corev1.PodReady:
			out.Ready = got
		}
	}
}

// readContainers keeps why containers wait. What one wrote when it ended is not
// kept: it may be the end of its log (terminationMessagePolicy).
func readContainers(out *Pod, pod *corev1.Pod) {
	read := func(statuses []corev1.ContainerStatus, init bool) {
		for _, s := range statuses {
			switch {
			case s.State.Waiting != nil:
				out.Waiting = append(out.Waiting, ContainerState{Name: s.Name, Init: init, Reason: s.State.Waiting.Reason, Message: Said(s.State.Waiting.Message)})
			case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
				out.Waiting = append(out.Waiting, ContainerState{Name: s.Name, Init: init, Reason: s.State.Terminated.Reason,
					Message: fmt.Sprintf("exit code %d", s.State.Terminated.ExitCode)})
			case init && s.State.Running != nil:
				started := timeOf(s.State.Running.StartedAt)
				if !started.IsZero() && (out.InitRunningSince == nil || started.After(*out.InitRunningSince)) {
					out.InitRunningSince = &started
				}
			}
		}
	}
	read(pod.Status.InitContainerStatuses, true)
	read(pod.Status.ContainerStatuses, false)
}

// Keys by which pods name their pod group and queue, by scheduler.
var (
	gangKeys = []string{
		"scheduling.k8s.io/group-name",          // Volcano, kube-batch (annotation)
		"scheduling.volcano.sh/group-name",      // Volcano (annotation)
		"scheduling.x-k8s.io/pod-group",         // scheduler-plugins (label)
		"pod-group.scheduling.sigs.k8s.io",      // scheduler-plugins, Koordinator (label)
		"pod-group.scheduling.sigs.k8s.io/name", // older scheduler-plugins (label)
		"gang.scheduling.koordinator.sh/name",   // Koordinator (annotation)
		"kueue.x-k8s.io/pod-group-name",         // Kueue plain pod groups (label)
		"yunikorn.apache.org/task-group-name",   // YuniKorn (annotation)
		"pod-group-name",                        // KAI (annotation)
	}
	queueKeys = []string{
		"kueue.x-k8s.io/queue-name",
		"scheduling.volcano.sh/queue-name",
		"quota.scheduling.koordinator.sh/name",
		"kai.scheduler/queue",
		"runai/queue",
		"yunikorn.apache.org/queue",
	}
)

func gang(pod *corev1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return firstOf(gangKeys, pod.Labels, pod.Annotations)
}

func queue(labels, annotations map[string]string) string {
	return firstOf(queueKeys, labels, annotations)
}

func firstOf(keys []string, maps ...map[string]string) string {
	for _, key := range keys {
		for _, m := range maps {
			if v := m[key]; v != "" {
				return v
			}
		}
	}
	return ""
}
