// Package quota reads the quota, queue and pod group objects of schedulers:
// which workloads they hold back though no pod exists, and which promises they
// cannot keep. The kinds are read as free-form objects, since their types
// belong to other projects.
package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// The kinds that are read where they exist.
const (
	KueueWorkloads     inventory.Resource = "workloads.kueue.x-k8s.io"
	KueueClusterQueues inventory.Resource = "clusterqueues.kueue.x-k8s.io"
	KueueLocalQueues   inventory.Resource = "localqueues.kueue.x-k8s.io"
	VolcanoQueues      inventory.Resource = "queues.scheduling.volcano.sh"
	VolcanoPodGroups   inventory.Resource = "podgroups.scheduling.volcano.sh"
	ElasticQuotas      inventory.Resource = "elasticquotas.scheduling.sigs.k8s.io"
	SigsPodGroups      inventory.Resource = "podgroups.scheduling.sigs.k8s.io"
)

// Item is a workload that a scheduler's quota holds back before pods exist.
type Item struct {
	Kind, Namespace, Name string
	// Object, Path and Message are the place and the words it was read from.
	Object, Path, Message string
	Quota                 report.Quota
	// Wanted is what it asks for, such as "8 nvidia.com/gpu".
	Wanted string
	Since  time.Time
}

// Queued lists the Kueue workloads and Volcano pod groups that wait for quota,
// sorted. Demand comes from these objects: their pods may not exist yet.
func Queued(c *inventory.Cluster) []Item {
	var out []Item
	for _, w := range c.Custom[KueueWorkloads] {
		if item, ok := kueue(c, w); ok {
			out = append(out, item)
		}
	}
	for _, g := range c.Custom[VolcanoPodGroups] {
		if item, ok := volcano(c, g); ok {
			out = append(out, item)
		}
	}
	slices.SortFunc(out, func(a, b Item) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

func owner(c *inventory.Custom) (kind, name string) {
	refs, _ := c.Nested("metadata", "ownerReferences").([]any)
	for _, r := range refs {
		m, _ := r.(map[string]any)
		if controller, _ := m["controller"].(bool); controller || len(refs) == 1 {
			kind, _ = m["kind"].(string)
			name, _ = m["name"].(string)
			return kind, name
		}
	}
	return "", ""
}

func demand(total inventory.Resources) string {
	var parts []string
	for _, name := range total.Names() {
		if total[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", total[name], name))
		}
	}
	return strings.Join(parts, " + ")
}

// volcano reads a PodGroup that waits in its queue: phase Pending, with a word
// about quota in a condition or in an event of any type.
func volcano(c *inventory.Cluster, g *inventory.Custom) (Item, bool) {
	phase, _ := g.Nested("status", "phase").(string)
	if phase != "" && phase != "Pending" && phase != "Inqueue" && phase != "Unknown" {
		return Item{}, false
	}
	queue, _ := g.Nested("spec", "queue").(string)
	if queue == "" {
		queue = "default"
	}
	item := Item{Kind: "PodGroup", Namespace: g.Namespace, Name: g.Name, Since: g.Created, Object: "PodGroup/" + g.Namespace + "/" + g.Name,
		Quota: report.Quota{Source: "scheduler", Name: queue, Mode: "exhausted", Reporter: "volcano"}}
	minimum, _ := g.Nested("spec", "minResources").(map[string]any)
	wanted := inventory.Resources{}
	for name, v := range minimum {
		key := strings.TrimPrefix(name, "requests.")
		if amount, ok := inventory.ParseQuantity(key, v); ok && !inventory.IsPlain(key) {
			wanted[key] = amount
		}
	}
	item.Wanted = demand(wanted)
	for _, cond := range g.CustomConditions() {
		if speaksOfQuota(cond.Reason + " " + cond.Message) {
			item.Path, item.Message = "status.conditions["+cond.Type+"]", cond.Message
			return item, true
		}
	}
	for _, e := range c.Events {
		if e.Kind == "PodGroup" && e.RefNamespace == g.Namespace && e.Name == g.Name && speaksOfQuota(e.Reason+" "+e.Message) {
			item.Path, item.Message, item.Quota.Reporter = "event "+e.Reason, e.Message, e.Reporter
			if !e.First.IsZero() {
				item.Since = e.First
			}
			return item, true
		}
	}
	return Item{}, false
}

func speaksOfQuota(s string) bool {
	lower := strings.ToLower(s)
	return strings.Contains(lower, "quota") || strings.Contains(lower, "overused") || strings.Contains(lower, "queue resource")
}

// Promise is a quota whose guaranteed minimum is above what its pool gives.
type Promise struct {
	Kind, Namespace, Name, Resource string
	Min, Runtime                    string
}

// BrokenMinimums finds Koordinator elastic quotas whose runtime share is below
// their minimum. Source: the quota.scheduling.koordinator.sh/runtime figure
// that Koordinator publishes, in the status or an annotation.
func BrokenMinimums(c *inventory.Cluster) []Promise {
	var out []Promise
	for _, q := range c.Custom[ElasticQuotas] {
		minimum, _ := q.Nested("spec", "min").(map[string]any)
		runtime, _ := q.Nested("status", "runtime").(map[string]any)
		for name, v := range minimum {
			least, ok := inventory.ParseQuantity(name, v)
			given, known := inventory.ParseQuantity(name, runtime[name])
			if ok && known && given < least {
				out = append(out, Promise{Kind: "ElasticQuota", Namespace: q.Namespace, Name: q.Name, Resource: name,
					Min: inventory.Quantity(name, least), Runtime: inventory.Quantity(name, given)})
			}
		}
	}
	slices.SortFunc(out, func(a, b Promise) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Resource, b.Resource))
	})
	return out
}

// Kinds lists API kinds that look like quota, queue or pod group, as
// plural.group, without the native ResourceQuota.
func Kinds(c *inventory.Cluster) []string {
	set := map[string]bool{}
	for _, k := range c.APIKinds {
		plural := strings.ToLower(k.Plural)
		if plural == "resourcequotas" || strings.Contains(plural, "/") {
			continue
		}
		if strings.Contains(plural, "quota") || strings.Contains(plural, "queue") || strings.Contains(plural, "podgroup") {
			set[plural+"."+k.Group] = true
		}
	}
	for r := range c.Custom {
		plural := string(r)
		if strings.Contains(plural, "quota") || strings.Contains(plural, "queue") || strings.Contains(plural, "podgroup") {
			set[plural] = true
		}
	}
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
