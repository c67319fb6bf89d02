package snapshot

import (
	"sort"
	"time"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
)

// NodeOf keeps a node as read. Plain resources are kept beside devices.
func NodeOf(n *health.Node) Node {
	out := Node{
		Name: n.Name, UID: n.UID, Created: n.Created, Kind: string(n.Kind), Labels: n.Labels, Cordoned: n.Cordoned,
		CordonedSince: pointer(n.CordonedSince), Silent: n.Silent, Capacity: n.Capacity, Allocatable: n.Allocatable,
		ProviderID: n.ProviderID, OSImage: n.OSImage, Kernel: n.Kernel, Kubelet: n.Kubelet,
	}
	for _, t := range n.Taints {
		taint := Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}
		if t.TimeAdded != nil {
			taint.Added = pointer(t.TimeAdded.UTC())
		}
		out.Taints = append(out.Taints, taint)
	}
	sort.SliceStable(out.Taints, func(i, j int) bool { return out.Taints[i].String() < out.Taints[j].String() })
	for _, c := range n.Conditions {
		if c.Type == "Ready" {
			out.Ready = c.Status
		}
		out.Conditions = append(out.Conditions, Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Transition: pointer(c.Transition)})
	}
	for key, m := range n.LabelManagers {
		if _, there := n.Labels[key]; !there {
			continue
		}
		if out.SetBy == nil {
			out.SetBy = map[string]SetBy{}
		}
		out.SetBy[key] = SetBy{Manager: m.Name, Operation: m.Operation, Time: m.Time}
	}
	return out
}

func pointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Devices gives the amounts of resources that may be devices.
func Devices(amounts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, amount := range amounts {
		if amount > 0 && !inventory.IsPlain(name) {
			out[name] = amount
		}
	}
	return out
}
