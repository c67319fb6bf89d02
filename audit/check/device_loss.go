package check

import (
	"fmt"
	"sort"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

var deviceLoss = Check{
	ID: "device-loss", Step: 1, Title: "devices that a node has lost: unhealthy, fewer than its label says, fewer than before, or the resource vanished",
	Required: []inventory.Resource{inventory.Nodes},
	Run:      runDeviceLoss,
}

func runDeviceLoss(in *Input) []report.Finding {
	before := map[string]map[string]snapshot.Loss{}
	for _, l := range in.Drift.Losses {
		if l.What == snapshot.LostDevice {
			if before[l.Node] == nil {
				before[l.Node] = map[string]snapshot.Loss{}
			}
			before[l.Node][l.Key] = l
		}
	}
	var out []report.Finding
	for _, n := range in.Health.Nodes {
		if n.Kind != health.Physical || in.ignoredNode(n.Name) || in.Survey.Initialising(n.Name) {
			continue
		}
		for _, resource := range lossResources(in, n, before[n.Name]) {
			var earlier *snapshot.Loss
			if l, ok := before[n.Name][resource]; ok {
				earlier = &l
			}
			if f, lost := loseDevices(in, n, resource, earlier); lost {
				out = append(out, f)
			}
		}
	}
	return out
}

func lossResources(in *Input, n *health.Node, before map[string]snapshot.Loss) []string {
	set := map[string]bool{}
	for name := range in.Survey.Node(n.Name) {
		set[name] = true
	}
	for name := range before {
		if in.Survey.IsDevice(name) {
			set[name] = true
		}
	}
	if name, _, ok := in.Survey.LabelCount(n.Name); ok {
		set[name] = true
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// loseDevices compares what is allocatable with every base line there is:
// capacity, the discovery label, the previous snapshot. The largest counts.
func loseDevices(in *Input, n *health.Node, resource string, earlier *snapshot.Loss) (report.Finding, bool) {
	capacity, there := n.Capacity[resource]
	allocatable := n.Allocatable[resource]
	lost := capacity - allocatable
	reason := fmt.Sprintf("%d of %d unhealthy: allocatable is below capacity", lost, capacity)
	if name, label, ok := in.Survey.LabelCount(n.Name); ok && name == resource && label-allocatable > lost {
		lost = label - allocatable
		reason = fmt.Sprintf("the node's own label says %d", label)
	}
	if earlier != nil {
		if was := parse(earlier.Value); was-allocatable >= lost && was > allocatable {
			lost = was - allocatable
			reason = fmt.Sprintf("was %d until %s", was, stamp(earlier.LastHad))
		}
	}
	if lost <= 0 {
		return report.Finding{}, false
	}
	f := in.finding("device-loss", report.Critical, nodeSubject(n.Name), resource)
	f.Node = n.Name
	withDevices(&f, map[string]int64{resource: lost})
	f.Title = fmt.Sprintf("node %s lost %d %s (%s)", n.Name, lost, resource, reason)
	switch {
	case !there:
		f.Detail = "The resource is not advertised at all any more: the device plugin is not registered with the kubelet. "
	case capacity == 0:
		f.Detail = "The resource is advertised as 0 in capacity too, so capacity minus allocatable says nothing: the device plugin is registered and offers no device. "
	default:
		f.Detail = "The device plugin reports these devices as unhealthy; that lasts until they recover or the plugin restarts. "
	}
	if use, ok := in.Survey.Node(n.Name)[resource]; ok && use.Overcommit > 0 {
		f.Detail += fmt.Sprintf("Pods are charged for %d more than is allocatable (over-commit). ", use.Overcommit)
	}
	if earlier != nil {
		f.Since = timePointer(earlier.FirstMissed)
		f.Detail += fmt.Sprintf("Lost between %s and %s.", stamp(earlier.LastHad), stamp(earlier.FirstMissed))
		f.Evidence = append(f.Evidence, report.Evidence{Object: "Node/" + n.Name, Path: "earlier status.capacity[" + resource + "]", Value: earlier.Value})
	}
	in.firstSighting(&f)
	f.Evidence = append(f.Evidence,
		evidence(n, "status.capacity["+resource+"]", presence(n.Capacity, resource)),
		evidence(n, "status.allocatable["+resource+"]", presence(n.Allocatable, resource)))
	f.Commands = []string{
		kubectl("get", "node", n.Name, "-o", "jsonpath={.status.capacity}{\"\\n\"}{.status.allocatable}{\"\\n\"}"),
		kubectl("get", "pods", "-A", "-o", "wide", "--field-selector", "spec.nodeName="+n.Name),
	}
	return f, true
}

func presence(amounts inventory.Resources, name string) string {
	n, ok := amounts[name]
	if !ok {
		return "(key missing)"
	}
	return inventory.Quantity(name, n)
}

func parse(s string) int64 {
	n, ok := inventory.ParseQuantity("", s)
	if !ok {
		return 0
	}
	return n
}
