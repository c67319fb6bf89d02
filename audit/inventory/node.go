package inventory

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keptNodeAnnotation says whether a node annotation is kept: those in which
// device-sharing plugins register their cards, and virtual clusters' marks.
func keptNodeAnnotation(key string) bool {
	switch {
	case strings.HasPrefix(key, "hami.io/node-") && strings.HasSuffix(key, "-register"),
		strings.HasPrefix(key, "4pd.io/node-") && strings.HasSuffix(key, "-register"),
		key == "volcano.sh/node-vgpu-register",
		strings.HasPrefix(key, "vcluster.loft.sh/"),
		strings.HasPrefix(key, "k3k.io/"):
		return true
	}
	return false
}

// NodeOf reduces a Node object. What it does not keep: other annotations,
// image lists, addresses, volumes.
func NodeOf(in *corev1.Node) *Node {
	n := &Node{
		Name:        in.Name,
		UID:         string(in.UID),
		Created:     in.CreationTimestamp.UTC(),
		Labels:      maps.Clone(in.Labels),
		Taints:      in.Spec.Taints,
		Cordoned:    in.Spec.Unschedulable,
		Capacity:    FromList(in.Status.Capacity),
		Allocatable: FromList(in.Status.Allocatable),
		ProviderID:  in.Spec.ProviderID,
		OSImage:     in.Status.NodeInfo.OSImage,
		Kernel:      in.Status.NodeInfo.KernelVersion,
		Kubelet:     in.Status.NodeInfo.KubeletVersion,
		HasManagers: len(in.ManagedFields) > 0,
	}
	if in.CreationTimestamp.IsZero() {
		n.Created = time.Time{}
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if in.DeletionTimestamp != nil {
		t := in.DeletionTimestamp.UTC()
		n.Deleting = &t
	}
	for key, value := range in.Annotations {
		if keptNodeAnnotation(key) {
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[key] = value
		}
	}
	for _, c := range in.Status.Conditions {
		n.Conditions = append(n.Conditions, Condition{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: Said(c.Message),
			Heartbeat: timeOf(c.LastHeartbeatTime), Transition: timeOf(c.LastTransitionTime),
		})
	}
	readManagers(n, in.ManagedFields)
	return n
}

// timeOf gives the zero time for null and for the zero times that some
// controllers write, so that nobody prints an age of two thousand years.
func timeOf(t metav1.Time) time.Time {
	if t.IsZero() || t.Unix() <= 0 {
		return time.Time{}
	}
	return t.UTC()
}

// readManagers finds in managedFields who set each label and the cordon last.
// Entries give the time of the manager's last change of any of its fields, so
// the time is the latest at which the label can have been set.
func readManagers(n *Node, entries []metav1.ManagedFieldsEntry) {
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]json.RawMessage `json:"f:labels"`
			} `json:"f:metadata"`
			Spec struct {
				Unschedulable json.RawMessage `json:"f:unschedulable"`
			} `json:"f:spec"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue // fields of another shape tell us nothing
		}
		m := Manager{Name: entry.Manager, Operation: string(entry.Operation)}
		if entry.Time != nil {
			m.Time = timeOf(*entry.Time)
		}
		for key := range fields.Metadata.Labels {
			label, ok := strings.CutPrefix(key, "f:")
			if !ok {
				continue
			}
			if n.LabelManagers == nil {
				n.LabelManagers = map[string]Manager{}
			}
			if old, seen := n.LabelManagers[label]; !seen || old.Time.Before(m.Time) {
				n.LabelManagers[label] = m
			}
		}
		if fields.Spec.Unschedulable != nil && (n.CordonManager == nil || n.CordonManager.Time.Before(m.Time)) {
			manager := m
			n.CordonManager = &manager
		}
	}
}

// LeaseOf reduces a lease of namespace kube-node-lease; its name is the node's.
func LeaseOf(in *coordinationv1.Lease) *Lease {
	l := &Lease{}
	if in.Spec.RenewTime != nil {
		l.Renewed = in.Spec.RenewTime.UTC()
	}
	if in.Spec.AcquireTime != nil {
		l.Acquired = in.Spec.AcquireTime.UTC()
	}
	if in.Spec.LeaseDurationSeconds != nil {
		l.Duration = time.Duration(*in.Spec.LeaseDurationSeconds) * time.Second
	}
	return l
}

// KeptAnnotation is true for the annotations of any object that checks read:
// those of device sharing, of queues and of pod groups. All others are never kept.
func KeptAnnotation(key string) bool {
	if keptNodeAnnotation(key) {
		return true
	}
	for _, list := range [][]string{gangKeys, queueKeys, deviceTypeAnnotations} {
		for _, k := range list {
			if k == key {
				return true
			}
		}
	}
	return key == "resource.kubernetes.io/extended-resource-claim"
}
