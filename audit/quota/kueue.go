package quota

import (
	"cmp"
	"regexp"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var (
	insufficient = regexp.MustCompile(`insufficient (?:unused )?quota (?:in cohort )?for (\S+) in flavor (\S+?),? `)
	overMaximum  = regexp.MustCompile(`> maximum capacity \((?:\S+ > )?([^)\s]+)\)`) // "(8 > 4)", since 0.10 "(4)"
	moreNeeded   = regexp.MustCompile(`(\S+) more needed`)
	unusable     = regexp.MustCompile(`(?i)(?:ClusterQueue|LocalQueue) \S* ?(?:is inactive|is stopped|doesn't exist|does not exist)`)
)

// kueue reads a Workload: QuotaReserved that is not True, with the words why.
func kueue(c *inventory.Cluster, w *inventory.Custom) (Item, bool) {
	var reserved *inventory.Condition
	for _, cond := range w.CustomConditions() {
		switch {
		case (cond.Type == "Finished" || cond.Type == "Admitted") && cond.Status == "True":
			return Item{}, false
		case cond.Type == "QuotaReserved":
			found := cond
			reserved = &found
		}
	}
	if reserved == nil || reserved.Status == "True" {
		return Item{}, false
	}
	local, _ := w.Nested("spec", "queueName").(string)
	queue := clusterQueue(c, w.Namespace, local)
	item := Item{Kind: "Workload", Namespace: w.Namespace, Name: w.Name, Since: reserved.Transition,
		Object: "Workload/" + w.Namespace + "/" + w.Name, Path: "status.conditions[QuotaReserved]", Message: reserved.Message,
		Quota: report.Quota{Source: "scheduler", Name: cmp.Or(queue, local), Mode: "exhausted", Reporter: "kueue"}}
	if item.Since.IsZero() {
		item.Since = w.Created
	}
	if kind, name := owner(w); kind != "" {
		item.Kind, item.Name = kind, name
	}
	flavor := ""
	if m := insufficient.FindStringSubmatch(reserved.Message + " "); m != nil {
		item.Quota.Resource, flavor = m[1], m[2]
	}
	item.Quota.Used, item.Quota.Hard = nominal(c, queue, flavor, item.Quota.Resource)
	// It can never fit only where every flavor that was tried says so.
	never := len(overMaximum.FindAllString(reserved.Message, -1))
	if m := overMaximum.FindStringSubmatch(reserved.Message); m != nil && never >= len(insufficient.FindAllString(reserved.Message+" ", -1)) {
		item.Quota.Mode, item.Quota.Hard = "never", m[1]
	} else if m := moreNeeded.FindStringSubmatch(reserved.Message); m != nil {
		item.Wanted = m[1] + " more"
	}
	if wanted := podSetDemand(w); wanted != "" {
		item.Wanted = wanted
	}
	if unusable.MatchString(reserved.Message) {
		item.Quota.Mode = "misspecified" // no quota will ever be given here, however much is free
		return item, true
	}
	lower := strings.ToLower(reserved.Message + " " + reserved.Reason)
	if item.Quota.Resource == "" && !strings.Contains(lower, "quota") && !strings.Contains(lower, "capacity") && reserved.Reason != "Pending" {
		return Item{}, false // waits for something else: an inactive queue, say
	}
	return item, true
}

// clusterQueue is the queue behind a LocalQueue: it holds the quota. "" when the
// LocalQueue was not read or is not there.
func clusterQueue(c *inventory.Cluster, namespace, local string) string {
	for _, q := range c.Custom[KueueLocalQueues] {
		if q.Namespace == namespace && q.Name == local {
			name, _ := q.Nested("spec", "clusterQueue").(string)
			return name
		}
	}
	return ""
}

// nominal gives what a ClusterQueue has promised of a resource in a flavor (""
// for all of its flavors) and its nominal quota; "" where it was not read.
// Source: kueue apis/kueue ClusterQueueSpec.resourceGroups and
// ClusterQueueStatus.flavorsReservation.
func nominal(c *inventory.Cluster, queue, flavor, resource string) (used, hard string) {
	for _, q := range c.Custom[KueueClusterQueues] {
		if q.Name != queue || queue == "" || resource == "" {
			continue
		}
		groups, _ := q.Nested("spec", "resourceGroups").([]any)
		var flavors []any
		for _, g := range groups {
			group, _ := g.(map[string]any)
			list, _ := group["flavors"].([]any)
			flavors = append(flavors, list...)
		}
		reserved, _ := q.Nested("status", "flavorsReservation").([]any)
		return inFlavors(reserved, flavor, resource, "total"), inFlavors(flavors, flavor, resource, "nominalQuota")
	}
	return "", ""
}

// inFlavors sums a field over the flavors that have the resource; "" when none has.
func inFlavors(flavors []any, flavor, resource, field string) string {
	total, found := int64(0), false
	for _, f := range flavors {
		m, _ := f.(map[string]any)
		if name, _ := m["name"].(string); flavor != "" && name != flavor {
			continue
		}
		resources, _ := m["resources"].([]any)
		for _, r := range resources {
			one, _ := r.(map[string]any)
			if name, _ := one["name"].(string); name != resource {
				continue
			}
			if amount, ok := inventory.ParseQuantity(resource, one[field]); ok {
				total, found = inventory.AddAmounts(total, amount), true
			}
		}
	}
	if !found {
		return ""
	}
	return inventory.Quantity(resource, total)
}

// podSetDemand sums the device requests of a Workload's pod sets.
func podSetDemand(w *inventory.Custom) string {
	sets, _ := w.Nested("spec", "podSets").([]any)
	total := inventory.Resources{}
	for _, s := range sets {
		set, _ := s.(map[string]any)
		n, ok := inventory.ParseQuantity("", set["count"])
		if !ok {
			n = 1
		}
		template, _ := set["template"].(map[string]any)
		spec, _ := template["spec"].(map[string]any)
		containers, _ := spec["containers"].([]any)
		for _, item := range containers {
			container, _ := item.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			requests, _ := resources["requests"].(map[string]any)
			if requests == nil {
				requests, _ = resources["limits"].(map[string]any)
			}
			for name, v := range requests {
				if amount, ok := inventory.ParseQuantity(name, v); ok && !inventory.IsPlain(name) {
					total[name] += amount * n
				}
			}
		}
	}
	return demand(total)
}
