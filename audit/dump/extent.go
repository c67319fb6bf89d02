package dump

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"gpuaudit/audit/inventory"
)

// extents says of every resource how much of it was seen, and adds a gap for
// what was not. The last call adds the gaps.
func (r *reader) extents(last bool) {
	named := map[inventory.Resource]bool{}
	for _, k := range r.cluster.APIKinds {
		name := k.Plural
		if k.Group != "" {
			name += "." + k.Group
		}
		named[inventory.Resource(name)] = true
	}
	done := map[inventory.Resource]bool{}
	for _, k := range kinds {
		if done[k.resource] {
			continue
		}
		done[k.resource] = true
		r.extent(k, named[k.resource] && !k.builtin, last)
	}
	for _, resource := range r.others(done) {
		r.extent(kind{resource: resource, namespaced: true}, false, last)
	}
	if !last {
		return
	}
	c := r.cluster
	if c.MetricsServed == inventory.Unknown && c.Extent(inventory.Discovery) == inventory.SeenWhole {
		c.MetricsServed = inventory.No
		for _, k := range c.APIKinds {
			if k.Group == "metrics.k8s.io" {
				c.MetricsServed = inventory.Yes
			}
		}
	}
	if r.whole[inventory.NodeMetrics] && c.Usage == nil {
		c.Usage = map[string]inventory.Usage{} // collected, and empty: nothing answers
	}
}

// others are resources outside the list of kinds that objects, files or refusals show.
func (r *reader) others(done map[inventory.Resource]bool) []inventory.Resource {
	all := map[inventory.Resource]bool{}
	for resource := range r.whole {
		all[resource] = true
	}
	for resource := range r.scoped {
		all[resource] = true
	}
	for resource := range r.failing {
		all[resource] = true
	}
	maps.DeleteFunc(all, func(resource inventory.Resource, _ bool) bool { return done[resource] })
	return slices.Sorted(maps.Keys(all))
}

func (r *reader) extent(k kind, named, last bool) {
	c := r.cluster
	if gaps := r.known[k.resource]; len(gaps) > 0 && !r.whole[k.resource] {
		if r.failing[k.resource] && len(r.scoped[k.resource]) > 0 {
			r.partial(k, last)
		}
		c.SetExtent(k.resource, inventory.NotSeen)
		if len(r.scoped[k.resource]) > 0 {
			c.SetExtent(k.resource, inventory.SeenSome)
		}
		if last {
			c.Gaps = append(c.Gaps, gaps...)
		}
		return
	}
	switch {
	case r.whole[k.resource]:
		c.SetExtent(k.resource, inventory.SeenWhole)
	case len(r.scoped[k.resource]) > 0:
		r.partial(k, last)
	case k.expected || named:
		c.SetExtent(k.resource, inventory.NotSeen)
		if last {
			c.AddGap(inventory.Gap{Resource: k.resource, Reason: inventory.GapNotCollected,
				Message: fmt.Sprintf("not in the dump; collect it with: kubectl get %s%s -o json > %s.json", k.resource, allNamespaces(k), k.resource)})
		}
	case k.builtin:
		c.SetExtent(k.resource, inventory.NotSeen)
	default:
		c.SetExtent(k.resource, inventory.NotInstalled)
	}
}

func allNamespaces(k kind) string {
	if k.namespaced {
		return " -A"
	}
	return ""
}

// partial is a resource that was read namespace by namespace: the namespaces
// of the list that no file covers are a gap.
func (r *reader) partial(k kind, last bool) {
	c := r.cluster
	if k.resource == inventory.Leases {
		// Only the kubelets' leases are used.
		if r.scoped[k.resource]["kube-node-lease"] {
			c.SetExtent(k.resource, inventory.SeenWhole)
			return
		}
	}
	if listed := c.ListedNamespaces; len(listed) > 0 {
		// Only these were asked for.
		c.SetExtent(k.resource, inventory.SeenListed)
		return
	}
	var missing []string
	for _, n := range c.Namespaces {
		refused := slices.ContainsFunc(r.known[k.resource], func(g inventory.Gap) bool { return g.Namespace == n })
		if !r.scoped[k.resource][n] && !refused {
			missing = append(missing, n)
		}
	}
	sort.Strings(missing)
	switch {
	case len(c.Namespaces) == 0:
		c.SetExtent(k.resource, inventory.SeenSome)
		if last {
			var have []string
			for n := range r.scoped[k.resource] {
				have = append(have, n)
			}
			sort.Strings(have)
			c.AddGap(inventory.Gap{Resource: k.resource, Reason: inventory.GapNotCollected,
				Message: "collected for some namespaces (" + strings.Join(have, ", ") + "), and without a list of namespaces it is not known whether these are all"})
		}
	case len(missing) > 0:
		c.SetExtent(k.resource, inventory.SeenSome)
		if last {
			for _, n := range missing {
				c.AddGap(inventory.Gap{Resource: k.resource, Namespace: n, Reason: inventory.GapNotCollected, Message: fmt.Sprintf("no file covers namespace %q", n)})
			}
		}
	default:
		c.SetExtent(k.resource, inventory.SeenWhole)
	}
}
