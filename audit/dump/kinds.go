package dump

import (
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/quota"
)

// kind is a kind that is read.
type kind struct {
	resource   inventory.Resource
	group      string
	kind       string
	namespaced bool
	// expected kinds are a gap when they were not collected.
	expected bool
	// builtin kinds that were not collected are unseen; others count as not installed.
	builtin bool
}

var kinds = []kind{
	{inventory.Nodes, "", "Node", false, true, true},
	{inventory.Pods, "", "Pod", true, true, true},
	{inventory.Leases, "coordination.k8s.io", "Lease", true, true, true},
	{inventory.DaemonSets, "apps", "DaemonSet", true, true, true},
	{inventory.Events, "", "Event", true, true, true},
	{inventory.Events, "events.k8s.io", "Event", true, true, true},
	{inventory.ResourceQuotas, "", "ResourceQuota", true, true, true},
	{inventory.Services, "", "Service", true, true, true},
	{inventory.EndpointSlices, "discovery.k8s.io", "EndpointSlice", true, true, true},
	{inventory.Namespaces, "", "Namespace", false, true, true},
	{inventory.Deployments, "apps", "Deployment", true, false, true},
	{inventory.ReplicaSets, "apps", "ReplicaSet", true, false, true},
	{inventory.StatefulSets, "apps", "StatefulSet", true, false, true},
	{inventory.Jobs, "batch", "Job", true, false, true},
	{inventory.CronJobs, "batch", "CronJob", true, false, true},
	{inventory.RuntimeClasses, "node.k8s.io", "RuntimeClass", false, false, true},
	{inventory.NodeMetrics, "metrics.k8s.io", "NodeMetrics", false, false, false},
	{inventory.ResourceSlices, "resource.k8s.io", "ResourceSlice", false, false, false},
	{inventory.ResourceClaims, "resource.k8s.io", "ResourceClaim", true, false, false},
	{inventory.DeviceClasses, "resource.k8s.io", "DeviceClass", false, false, false},
	{quota.KueueWorkloads, "kueue.x-k8s.io", "Workload", true, false, false},
	{quota.KueueClusterQueues, "kueue.x-k8s.io", "ClusterQueue", false, false, false},
	{quota.KueueLocalQueues, "kueue.x-k8s.io", "LocalQueue", true, false, false},
	{quota.VolcanoQueues, "scheduling.volcano.sh", "Queue", false, false, false},
	{quota.VolcanoPodGroups, "scheduling.volcano.sh", "PodGroup", true, false, false},
	{quota.ElasticQuotas, "scheduling.sigs.k8s.io", "ElasticQuota", true, false, false},
	{quota.SigsPodGroups, "scheduling.sigs.k8s.io", "PodGroup", true, false, false},
}

// byKind finds a kind by apiVersion and kind. Kinds that look like a quota, a
// queue or a pod group are read whatever their group.
func byKind(apiVersion, name string) (kind, bool) {
	group := ""
	if i := strings.IndexByte(apiVersion, '/'); i >= 0 {
		group = apiVersion[:i]
	}
	for _, k := range kinds {
		if k.kind == name && k.group == group {
			return k, true
		}
	}
	lower := strings.ToLower(name)
	if group != "" && looksLikeQuota(lower) {
		return kind{inventory.Resource(lower + "s." + group), group, name, true, false, false}, true
	}
	return kind{}, false
}

func looksLikeQuota(name string) bool {
	return strings.Contains(name, "quota") || strings.Contains(name, "queue") || strings.Contains(name, "podgroup")
}

// byPlural finds the kind that a base name declares: pods, leases,
// leases.coordination.k8s.io, workloads.kueue.x-k8s.io, and with the hyphens of
// some support bundles resource-quotas.
func byPlural(name string) (kind, bool) {
	if k, ok := plural(name); ok {
		return k, true
	}
	if short, _, _ := strings.Cut(name, "."); strings.Contains(short, "-") {
		return plural(strings.ReplaceAll(short, "-", "") + name[len(short):])
	}
	if short, group, found := strings.Cut(name, "."); found && strings.Contains(group, ".") && looksLikeQuota(short) && strings.HasSuffix(short, "s") {
		return kind{inventory.Resource(name), group, strings.TrimSuffix(short, "s"), true, false, false}, true
	}
	return kind{}, false
}

func plural(name string) (kind, bool) {
	for _, k := range kinds {
		plural, _, _ := strings.Cut(string(k.resource), ".")
		if name == string(k.resource) || name == plural+"."+k.group || (k.builtin && name == plural) {
			return k, true
		}
		// Kinds whose plural is nobody else's may leave the group out.
		if name == plural && !ambiguous[plural] {
			return k, true
		}
	}
	return kind{}, false
}

// ambiguous plurals belong to several groups.
var ambiguous = map[string]bool{"workloads": true, "queues": true, "podgroups": true, "nodes": true}
