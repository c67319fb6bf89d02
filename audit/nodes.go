package audit

import (
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/check"
	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// nodes lists the nodes with their devices and load-bearing labels.
func (e *evaluation) nodes() []report.Node {
	if !e.Current.Seen(inventory.Nodes) {
		return nil
	}
	bearing := e.bearing()
	var out []report.Node
	for _, n := range e.in.Health.Nodes {
		out = append(out, e.node(n, bearing))
	}
	return out
}

// bearing are the label keys that some workload or configured class selects nodes by.
func (e *evaluation) bearing() map[string]bool {
	out := map[string]bool{}
	for key := range e.Current.SelectedLabels {
		out[key] = true
	}
	for _, w := range e.Settings.Workloads {
		for key := range w.NodeSelector {
			out[key] = true
		}
	}
	return out
}

func (e *evaluation) node(n *health.Node, bearing map[string]bool) report.Node {
	r := report.Node{
		Name: n.Name, UID: n.UID, Kind: string(n.Kind), Created: moment(n.Created), Since: moment(n.NotReadySince), LastHeartbeat: moment(n.LastHeartbeat),
		Silent: n.Silent, Cordoned: n.Cordoned, CordonedSince: moment(n.CordonedSince), Initialising: e.in.Survey.Initialising(n.Name),
		Devices: map[string]report.NodeDevice{}, Labels: map[string]string{}, ProviderID: n.ProviderID,
	}
	switch n.Ready {
	case inventory.Yes:
		r.Ready = true
	case inventory.No:
		r.Ready = false
	default:
		r.Ready = "unknown"
	}
	if c := n.Condition("Ready"); c != nil {
		r.Reason = c.Reason
		if n.Ready == inventory.Yes {
			r.Since = moment(c.Transition)
		}
	}
	if !n.LastHeartbeat.IsZero() {
		skew := int64(n.ClockSkew / time.Second)
		r.ClockSkewSeconds = &skew
	}
	for name, u := range e.in.Survey.Node(n.Name) {
		d := report.NodeDevice{Capacity: u.Capacity, Allocatable: u.Allocatable}
		if u.Known {
			requested, free := u.Requested, u.Free
			d.Requested, d.Free, d.Held = &requested, &free, u.Held
		}
		r.Devices[name] = d
	}
	for key, value := range n.Labels {
		if bearing[key] {
			r.Labels[key] = value
		}
	}
	for _, t := range n.Taints {
		r.Taints = append(r.Taints, snapshot.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}.String())
	}
	slices.Sort(r.Taints)
	return r
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

func joinWords(list []string) string { return strings.Join(list, "; ") }

// platform says what kind of cluster this looks like.
func platform(in *check.Input) report.Platform {
	p := report.Platform{Virtual: len(in.Health.Virtual) > 0, Markers: in.Health.Virtual, QuotaKinds: in.QuotaKinds}
	seen := map[string]bool{}
	for _, w := range in.Waiting {
		if w.ReportedBy != "" && !seen[w.ReportedBy] {
			seen[w.ReportedBy] = true
			p.Schedulers = append(p.Schedulers, w.ReportedBy)
		}
	}
	slices.Sort(p.Schedulers)
	return p
}

// driversNotSeen words what is missing of Dynamic Resource Allocation.
func driversNotSeen(c *inventory.Cluster) []string {
	var out []string
	for _, k := range []struct {
		resource inventory.Resource
		what     string
	}{
		{inventory.ResourceSlices, "resource slices were not seen: devices of DRA drivers are in no figure"},
		{inventory.ResourceClaims, "resource claims were not seen: what is held or free of DRA drivers' devices is not known, and is not 0"},
		{inventory.DeviceClasses, "device classes were not seen: whether a DRA driver serves a resource that no node advertises is not known"},
	} {
		if !c.Seen(k.resource) {
			out = append(out, k.what)
		}
	}
	return out
}
