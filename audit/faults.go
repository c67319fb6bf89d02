package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuaudit/audit/capacity"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// faults turns the findings that take capacity into repairs to simulate.
func (e *evaluation) faults() []capacity.Fault {
	lost := map[string]map[string]string{}      // node -> label -> value that is missed
	recreated := map[string]map[string]string{} // those lost by a recreation
	needed := map[string]map[string]string{}    // those that workloads select nodes by
	bearing := e.bearing()
	for _, l := range e.drift.Losses {
		if l.What != snapshot.LostLabel {
			continue
		}
		put(lost, l.Node, l.Key, l.Value)
		if bearing[l.Key] {
			put(needed, l.Node, l.Key, l.Value)
		}
		if l.Recreated {
			put(recreated, l.Node, l.Key, l.Value)
		}
	}
	pods := map[string]*inventory.Pod{}
	for i := range e.in.Holds {
		pods[e.in.Holds[i].Pod.Ref()] = e.in.Holds[i].Pod
	}
	var out []capacity.Fault
	for i := range e.found {
		if f, ok := e.fault(&e.found[i], labels{lost, recreated, needed}, pods); ok {
			f.Finding, f.Node, f.Derived = e.found[i].ID, e.found[i].Node, e.found[i].CausedBy != ""
			out = append(out, f)
		}
	}
	return out
}

func put(m map[string]map[string]string, node, key, value string) {
	if m[node] == nil {
		m[node] = map[string]string{}
	}
	m[node][key] = value
}

// labels are what nodes lost of them: node -> key -> value that is missed.
type labels struct{ lost, recreated, needed map[string]map[string]string }

func (e *evaluation) fault(f *report.Finding, l labels, pods map[string]*inventory.Pod) (capacity.Fault, bool) {
	switch f.Check {
	case "node-not-ready":
		n := e.in.Health.Node(f.Node)
		acts := []string{fmt.Sprintf("bring node %s back to life", f.Node)}
		if n != nil && n.Cordoned {
			acts = append(acts, "uncordon it")
		}
		return capacity.Fault{Ready: true, Uncordon: true, Labels: l.needed[f.Node], Action: inWords(append(acts, setLabels(l.needed[f.Node])...))}, n != nil
	case "node-cordoned":
		acts := append([]string{"put node " + f.Node + " back into service"}, setLabels(l.needed[f.Node])...)
		return capacity.Fault{Uncordon: true, Labels: l.needed[f.Node], Action: inWords(acts)}, true
	case "admission-failures":
		return capacity.Fault{Admit: true, Action: "make node " + f.Node + " admit pods again"}, true
	case "node-recreated":
		if back := l.recreated[f.Node]; len(back) > 0 {
			return capacity.Fault{Labels: back, Action: "give node " + f.Node + " back the labels it lost"}, true
		}
	case "label-drift":
		if value, ok := l.lost[f.Node][f.Label]; ok && f.Label != "" {
			return capacity.Fault{Labels: map[string]string{f.Label: value}, Action: fmt.Sprintf("set label %s=%s on node %s again", f.Label, value, f.Node)}, true
		}
	case "label-missing":
		if use := e.Current.SelectedLabels[f.Label]; use != nil && len(use.Values) == 1 {
			return capacity.Fault{Labels: map[string]string{f.Label: use.Values[0]}, Action: fmt.Sprintf("set label %s=%s on node %s, if it is meant to have it", f.Label, use.Values[0], f.Node)}, true
		}
	case "device-loss":
		return capacity.Fault{Restore: f.DevicesByResource, Action: "make the lost devices of node " + f.Node + " allocatable again"}, true
	case "ghost-hold", "stuck-starting", "terminating-hold", "dead-node-hold":
		if p := pods[f.Subject.Namespace+"/"+f.Subject.Name]; p != nil {
			return capacity.Fault{Release: p.Shape.Requests, ReleasePods: 1, Action: fmt.Sprintf("remove pod %s from node %s", p.Ref(), p.Node)}, true
		}
	case "quota-blocked", "quota-blocked-daemonset":
		if held := e.heldByQuota(f.Subject); len(held) > 0 {
			return capacity.Fault{Waiting: held, Action: fmt.Sprintf("let the quota admit %s", f.Subject)}, true
		}
	}
	return capacity.Fault{}, false
}

// setLabels words the labels that a node out of service lacks as well: without
// them its return gives nothing to those who select on them.
func setLabels(labels map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, fmt.Sprintf("set label %s=%s", key, labels[key]))
	}
	return out
}

// inWords joins "a", "a and b", "a, b and c".
func inWords(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// heldByQuota are the unbound pods of a workload that wait for quota.
func (e *evaluation) heldByQuota(subject report.Subject) []*inventory.Pod {
	var out []*inventory.Pod
	for _, w := range e.in.Waiting {
		if w.Bound || w.Cause != "quota" || w.Namespace != subject.Namespace {
			continue
		}
		if (w.Pod.Owner.Kind == subject.Kind && w.Pod.Owner.Name == subject.Name) || (subject.Kind == "Pod" && w.Name == subject.Name) {
			out = append(out, w.Pod)
		}
	}
	return out
}
