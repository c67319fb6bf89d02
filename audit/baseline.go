package audit

import (
	"gpuaudit/audit/check"
	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// baseline is the cluster at a glance; what was not seen is null or unknown.
func baseline(c *inventory.Cluster, nodes *health.Verdict, in *check.Input) report.Baseline {
	b := report.Baseline{MetricsAPI: in.MetricsAPI, DeviceMetrics: in.DeviceMetrics, ManagedFields: in.ManagedFields}
	if c.Seen(inventory.Nodes) {
		total, ready, cordoned := 0, 0, 0
		for _, n := range nodes.Nodes {
			total++
			if n.Ready == inventory.Yes {
				ready++
			}
			if n.Cordoned {
				cordoned++
			}
		}
		b.Nodes, b.ReadyNodes, b.CordonedNodes = &total, &ready, &cordoned
		b.CPUUtilization, b.MemoryUtilization = utilization(c)
	}
	if c.Seen(inventory.Pods) {
		pods, waiting := c.PodCount, c.PendingCount
		b.Pods, b.PendingPods = &pods, &waiting
	}
	return b
}

// utilization is real use over allocatable, over the nodes that have figures.
func utilization(c *inventory.Cluster) (cpu, memory *report.Utilization) {
	var cpus, memories []float64
	for _, n := range c.Nodes {
		u, ok := c.Usage[n.Name]
		if !ok {
			continue
		}
		if a := n.Allocatable["cpu"]; a > 0 {
			cpus = append(cpus, float64(u.MilliCPU)/float64(a))
		}
		if a := n.Allocatable["memory"]; a > 0 {
			memories = append(memories, float64(u.Memory)/float64(a))
		}
	}
	return spread(cpus), spread(memories)
}

func spread(values []float64) *report.Utilization {
	if len(values) == 0 {
		return nil
	}
	u := report.Utilization{Min: values[0], Max: values[0]}
	for _, v := range values {
		u.Min, u.Max = min(u.Min, v), max(u.Max, v)
		u.Mean += v / float64(len(values))
	}
	return &u
}

// metricsAPI says whether kubectl top shows anything.
func metricsAPI(c *inventory.Cluster) string {
	switch {
	case len(c.Usage) > 0:
		return "available"
	case c.MetricsServed == inventory.No, c.Usage != nil:
		return "unavailable"
	case c.MetricsServed == inventory.Yes:
		gaps := c.GapsOf(inventory.NodeMetrics)
		if len(gaps) == 0 {
			return "unknown"
		}
		switch gaps[0].Reason {
		case inventory.GapForbidden, inventory.GapNotCollected, inventory.GapCredentials, inventory.GapTimeout:
			return "unknown" // it may well work for others
		}
		return "unavailable"
	}
	return "unknown"
}

// managedFields says whether changes can be traced. Stripped needs an API read
// in which no node and no pod has any; kubectl leaves the field out of dumps.
func managedFields(c *inventory.Cluster) string {
	switch {
	case c.NodesWithManagers > 0 || c.PodsWithManagers > 0:
		return "present"
	case c.Source == inventory.Live && c.Seen(inventory.Nodes) && len(c.Nodes) > 0 && c.AnySeen(inventory.Pods):
		return "stripped"
	}
	return "unknown"
}
