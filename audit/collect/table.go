// Package collect reads live clusters into the inventory: with get and list
// alone, page by page, under one deadline a cluster. What cannot be read is a
// gap with its reason, never a failure of the rest and never an empty list.
package collect

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/quota"
)

// resource is one kind that is read.
type resource struct {
	name       inventory.Resource
	group      string
	version    string
	plural     string
	namespaced bool
	// builtin kinds that answer 404 are a gap; others are then not installed.
	builtin bool
	// only is the one namespace that is read of it, "" for all.
	only string
}

// table lists everything that is ever read; the least role follows from it.
var table = []resource{
	{inventory.Nodes, "", "v1", "nodes", false, true, ""},
	{inventory.Leases, "coordination.k8s.io", "v1", "leases", true, true, "kube-node-lease"},
	{inventory.Namespaces, "", "v1", "namespaces", false, true, ""},
	{inventory.Pods, "", "v1", "pods", true, true, ""},
	{inventory.Events, "", "v1", "events", true, true, ""},
	{inventory.ResourceQuotas, "", "v1", "resourcequotas", true, true, ""},
	{inventory.Services, "", "v1", "services", true, true, ""},
	{inventory.EndpointSlices, "discovery.k8s.io", "v1", "endpointslices", true, true, ""},
	{inventory.DaemonSets, "apps", "v1", "daemonsets", true, true, ""},
	{inventory.Deployments, "apps", "v1", "deployments", true, true, ""},
	{inventory.StatefulSets, "apps", "v1", "statefulsets", true, true, ""},
	{inventory.Jobs, "batch", "v1", "jobs", true, true, ""},
	{inventory.CronJobs, "batch", "v1", "cronjobs", true, true, ""},
	{inventory.RuntimeClasses, "node.k8s.io", "v1", "runtimeclasses", false, true, ""},
	{inventory.NodeMetrics, "metrics.k8s.io", "v1beta1", "nodes", false, false, ""},
	{inventory.ResourceSlices, "resource.k8s.io", "v1", "resourceslices", false, false, ""},
	{inventory.ResourceClaims, "resource.k8s.io", "v1", "resourceclaims", true, false, ""},
	{inventory.DeviceClasses, "resource.k8s.io", "v1", "deviceclasses", false, false, ""},
	{quota.KueueWorkloads, "kueue.x-k8s.io", "v1beta1", "workloads", true, false, ""},
	{quota.KueueClusterQueues, "kueue.x-k8s.io", "v1beta1", "clusterqueues", false, false, ""},
	{quota.KueueLocalQueues, "kueue.x-k8s.io", "v1beta1", "localqueues", true, false, ""},
	{quota.VolcanoQueues, "scheduling.volcano.sh", "v1beta1", "queues", false, false, ""},
	{quota.VolcanoPodGroups, "scheduling.volcano.sh", "v1beta1", "podgroups", true, false, ""},
	{quota.ElasticQuotas, "scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", true, false, ""},
	{quota.SigsPodGroups, "scheduling.sigs.k8s.io", "v1alpha1", "podgroups", true, false, ""},
}

// Resources lists the names of what is read, as gaps and dumps call it.
func Resources() []string {
	out := make([]string, 0, len(table))
	for _, r := range table {
		out = append(out, string(r.name))
	}
	return sortedStrings(out)
}

func find(name inventory.Resource) resource {
	for _, r := range table {
		if r.name == name {
			return r
		}
	}
	return resource{}
}

// single are the kinds of which one object is read by name: a pod whose node
// is in no list, and that node, are asked for again.
var single = []string{"nodes", "pods"}

// Rules is the least role that an audit needs: list, one rule a group, and get
// for the kinds that are read by name.
func Rules() []rbacv1.PolicyRule {
	by := map[string][]string{}
	var groups []string
	for _, r := range table {
		if _, ok := by[r.group]; !ok {
			groups = append(groups, r.group)
		}
		if !slices.Contains(by[r.group], r.plural) {
			by[r.group] = append(by[r.group], r.plural)
		}
	}
	slices.Sort(groups)
	out := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: slices.Clone(single), Verbs: []string{"get"}}}
	for _, g := range groups {
		slices.Sort(by[g])
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{g}, Resources: by[g], Verbs: []string{"list"}})
	}
	return out
}
