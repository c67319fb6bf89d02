package check

import (
	"fmt"
	"sort"
	"strings"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
)

// Exporters is what there is of device metrics.
type Exporters struct {
	// State is a report's deviceMetrics: full, partial, notReady, paused,
	// vendor, serviceWithoutPods, none or unknown.
	State string
	// Missing are ready nodes with devices and no ready exporter pod.
	Missing []string
	// DaemonSets and Services found, as Kind/namespace/name.
	DaemonSets, Services []string
	Why                  string
}

// FindExporters looks for device metrics exporters. What could not be read is
// unknown, never none.
func FindExporters(c *inventory.Cluster, nodes *health.Verdict, deviceNodes []string) Exporters {
	for _, r := range []inventory.Resource{inventory.DaemonSets, inventory.Services, inventory.EndpointSlices} {
		if !c.Seen(r) {
			return Exporters{State: "unknown", Why: string(r) + " were not seen"}
		}
	}
	var out Exporters
	var sets []*inventory.Workload
	for _, w := range c.Workloads {
		if w.Kind == "DaemonSet" && inventory.LooksLikeExporter(append([]string{w.Name}, w.Images...)...) {
			sets = append(sets, w)
			out.DaemonSets = append(out.DaemonSets, w.Ref())
		}
	}
	backed := false
	for _, s := range c.Services {
		ref := "Service/" + s.Namespace + "/" + s.Name
		out.Services = append(out.Services, ref)
		for _, e := range c.Endpoints {
			if e.Namespace == s.Namespace && e.Service == s.Name && e.Ready > 0 {
				backed = true
			}
		}
		backed = backed || s.External != ""
	}
	running := len(c.ExporterNodes) > 0
	switch {
	case len(sets) == 0 && !running && !backed && len(out.Services) > 0:
		out.State = "serviceWithoutPods"
		out.Missing = deviceNodes
		return out
	case len(sets) == 0 && !running && !backed:
		out.State, out.Missing = "none", deviceNodes
		return out
	}
	out.judgeCoverage(c, sets, nodes, deviceNodes, backed)
	return out
}

func (out *Exporters) judgeCoverage(c *inventory.Cluster, sets []*inventory.Workload, nodes *health.Verdict, deviceNodes []string, backed bool) {
	covered := map[string]bool{}
	for _, m := range c.ExporterNodes {
		for n := range m {
			covered[n] = true
		}
	}
	for _, e := range c.Endpoints {
		if serviceKnown(c, e) {
			for _, n := range e.Nodes {
				covered[n] = true
			}
		}
	}
	for _, name := range deviceNodes {
		if n := nodes.Node(name); n != nil && n.Dead() {
			continue // nothing runs there; node-not-ready has it
		}
		if !covered[name] {
			out.Missing = append(out.Missing, name)
		}
	}
	sort.Strings(out.Missing)
	var desired, ready int32
	for _, w := range sets {
		desired += w.Desired
		ready += w.Ready
	}
	podsSeen := c.Extent(inventory.Pods) == inventory.SeenWhole
	switch {
	case len(covered) == 0 && len(sets) > 0 && desired == 0 && !backed:
		out.State = "paused"
	case len(covered) == 0 && len(sets) > 0 && ready == 0 && !backed:
		out.State = "notReady"
	case !podsSeen && len(covered) == 0 && ready < desired:
		out.State = "partial"
	case podsSeen && len(out.Missing) > 0 && len(covered) > 0:
		out.State = "partial"
	case !dcgm(sets, c):
		out.State = "vendor"
	default:
		out.State = "full"
	}
	if out.State == "full" || out.State == "vendor" {
		out.Missing = nil
	}
}

func serviceKnown(c *inventory.Cluster, e *inventory.EndpointSlice) bool {
	for _, s := range c.Services {
		if s.Namespace == e.Namespace && s.Name == e.Service {
			return true
		}
	}
	return false
}

// dcgm is true when NVIDIA's own exporter is among those found.
func dcgm(sets []*inventory.Workload, c *inventory.Cluster) bool {
	for _, w := range sets {
		for _, name := range append([]string{w.Name}, w.Images...) {
			if strings.Contains(strings.ToLower(name), "dcgm") {
				return true
			}
		}
	}
	for _, s := range c.Services {
		if strings.Contains(strings.ToLower(s.Name), "dcgm") {
			return true
		}
	}
	for ref := range c.ExporterNodes {
		if strings.Contains(strings.ToLower(ref), "dcgm") {
			return true
		}
	}
	return false
}

func (e Exporters) words() string {
	switch e.State {
	case "none":
		return "no device metrics exporter found"
	case "serviceWithoutPods":
		return "the exporter's service " + list(e.Services, 2) + " has no pod behind it"
	case "notReady":
		return "exporter " + list(e.DaemonSets, 2) + " has no ready pod"
	case "paused":
		return "exporter " + list(e.DaemonSets, 2) + " wants no pod anywhere"
	case "partial":
		return fmt.Sprintf("%s with devices and no exporter pod", count(int64(len(e.Missing)), "node"))
	}
	return e.State
}
