package check

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/pending"
	"gpuaudit/audit/report"
)

var quotaBlockedDaemonSet = Check{
	ID: "quota-blocked-daemonset", Step: 5, Title: "DaemonSets that lack pods because of a quota, native or a scheduler's",
	Required: []inventory.Resource{inventory.DaemonSets, inventory.Pods, inventory.Nodes},
	Optional: []inventory.Resource{inventory.Events, inventory.ResourceQuotas, inventory.RuntimeClasses},
	WiderWithout: map[inventory.Resource]string{
		inventory.Events:         "a DaemonSet whose pods were refused is seen by our own count of matching nodes only, not by the controller's words",
		inventory.ResourceQuotas: "whether a native quota refused the pods is known from the controller's words only",
		inventory.RuntimeClasses: "what a runtime class adds to the pods' requests is not known",
	},
	Run: runQuotaBlockedDaemonSet,
}

// blocked gathers what is known of one DaemonSet's missing or waiting pods.
type blocked struct {
	namespace, name string
	workload        *inventory.Workload
	pods            []Waiting
	nodes           map[string]bool
	quota           *report.Quota
	refused         *inventory.Event
	missing         []string
	since           time.Time
}

func runQuotaBlockedDaemonSet(in *Input) []report.Finding {
	by := map[string]*blocked{}
	get := func(namespace, name string) *blocked {
		key := namespace + "/" + name
		if by[key] == nil {
			by[key] = &blocked{namespace: namespace, name: name, workload: in.Cluster.Workload("DaemonSet", namespace, name), nodes: map[string]bool{}}
		}
		return by[key]
	}
	for _, w := range in.Waiting {
		if w.Cause == "quota" && w.Pod.Owner.Kind == "DaemonSet" && in.longWaiting(w) {
			b := get(w.Namespace, w.Pod.Owner.Name)
			b.pods = append(b.pods, w)
			b.quota = firstQuota(b.quota, w.Quota)
			if w.TargetNode != "" {
				b.nodes[w.TargetNode] = true
			}
			b.earliest(w.Since)
		}
	}
	for _, e := range in.Cluster.Events {
		if e.Kind != "DaemonSet" || e.Reason != "FailedCreate" || in.Now.Sub(e.Last) > in.Settings.Thresholds.EventsFresh {
			continue
		}
		if quota, ok := pending.ParseFailedCreate(e.Message); ok {
			b := get(e.RefNamespace, e.Name)
			if b.refused == nil || e.Last.After(b.refused.Last) {
				b.refused = e
			}
			q := quota
			b.quota = firstQuota(b.quota, &q)
			b.earliest(timePointer(e.First))
		}
	}
	uncovered(in, get)
	return blockedFindings(in, by)
}

func (b *blocked) earliest(t *time.Time) {
	if t != nil && !t.IsZero() && (b.since.IsZero() || t.Before(b.since)) {
		b.since = *t
	}
}

func firstQuota(a, b *report.Quota) *report.Quota {
	if a == nil || (a.Name == "" && b != nil && b.Name != "") {
		return b
	}
	return a
}

// uncovered adds DaemonSets that lack pods on nodes that match. It names a
// native quota of the namespace that leaves no room; without one, and without
// the controller's word, the cause is not known and that is said.
func uncovered(in *Input, get func(namespace, name string) *blocked) {
	for _, c := range in.Daemons {
		if len(c.Missing) == 0 {
			continue
		}
		w := c.Workload
		known := get(w.Namespace, w.Name)
		known.missing = c.Missing
		if known.quota == nil {
			known.quota = exhausted(in, w)
		}
		if known.since.IsZero() && known.quota != nil {
			known.earliest(timePointer(w.Created))
		}
	}
}

// exhausted finds a native quota of the namespace that leaves no room for one
// more pod of the workload.
func exhausted(in *Input, w *inventory.Workload) *report.Quota {
	for _, q := range in.Cluster.Quotas {
		if q.Namespace != w.Namespace || len(q.Scopes) > 0 || q.ScopeSelector != nil {
			continue
		}
		wants := w.Shape.Requests.Clone()
		wants.Add(w.Overhead)
		wants["pods"], wants["count/pods"] = 1, 1
		for _, name := range []string{"pods", "count/pods", "cpu", "memory"} {
			for _, key := range []string{name, "requests." + name} {
				hard, ok := q.Hard[resourceName(key)]
				if !ok {
					hard, ok = q.SpecHard[resourceName(key)]
				}
				if !ok {
					continue
				}
				used := q.Used[resourceName(key)]
				if inventory.Amount(name, used)+wants[name] > inventory.Amount(name, hard) {
					return &report.Quota{Source: "native", Name: q.Name, Resource: key, Mode: "exhausted", Used: used.String(), Hard: hard.String()}
				}
			}
		}
	}
	return nil
}

func blockedFindings(in *Input, by map[string]*blocked) []report.Finding {
	keys := make([]string, 0, len(by))
	for key := range by {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out []report.Finding
	for _, key := range keys {
		b := by[key]
		if in.ignoredNamespace(b.namespace) || (b.refused != nil && len(b.pods) == 0 && len(b.missing) == 0 && in.Daemons != nil && b.workload != nil) {
			continue // refused once, and complete by now
		}
		out = append(out, blockedFinding(in, b))
	}
	return out
}

func blockedFinding(in *Input, b *blocked) report.Finding {
	subject := report.Subject{Kind: "DaemonSet", Namespace: b.namespace, Name: b.name}
	severity := report.Warning
	if b.namespace == "kube-system" || (b.workload != nil && strings.HasPrefix(b.workload.PriorityClass, "system-")) || systemPod(b) {
		severity = report.Critical
	}
	if b.quota == nil {
		severity = report.Warning
	}
	f := in.finding("quota-blocked-daemonset", severity, subject)
	f.Quota, f.Since = b.quota, timePointer(b.since)
	in.firstSighting(&f)
	for _, n := range b.missing {
		b.nodes[n] = true
	}
	nodes := sorted(b.nodes)
	if len(nodes) == 1 {
		f.Node = nodes[0]
	}
	for _, n := range nodes {
		f.Objects = append(f.Objects, "Node/"+n)
	}
	f.Title = fmt.Sprintf("DaemonSet %s/%s %s", b.namespace, b.name, blockedWords(in, b, nodes, *f.Since))
	f.Detail = blockedDetail(in, b)
	f.Evidence = blockedEvidence(b)
	f.Commands = []string{kubectl("describe", "daemonset", "-n", b.namespace, b.name)}
	shown := report.Quota{Source: "native"} // of an unknown cause, the quota that anybody may look at
	if b.quota != nil {
		shown = *b.quota
	}
	f.Commands = append(f.Commands, quotaCommands(shown, b.namespace, b.name)...)
	if len(b.pods) > 0 {
		f.Commands = append(f.Commands, kubectl("describe", "pod", "-n", b.namespace, b.pods[0].Name))
	}
	return f
}

func systemPod(b *blocked) bool {
	for _, p := range b.pods {
		if strings.HasPrefix(p.Pod.PriorityClass, "system-") {
			return true
		}
	}
	return false
}

func blockedWords(in *Input, b *blocked, nodes []string, from time.Time) string {
	where := "on " + count(int64(len(nodes)), "node")
	if len(nodes) == 0 {
		where = "(" + count(int64(len(b.pods)), "pod") + ")"
	}
	if b.quota == nil {
		return fmt.Sprintf("lacks pods %s; the cause is not known", where)
	}
	source := "a native quota"
	if b.quota.Source == "scheduler" {
		source = "a scheduler's own quota"
	}
	name := ""
	if b.quota.Name != "" {
		name = " " + b.quota.Name
	}
	if b.quota.Reporter != "" {
		name += " (says " + b.quota.Reporter + ")"
	}
	return fmt.Sprintf("is blocked %s by %s%s for %s", where, source, name, since(in.Now, from))
}

func blockedDetail(in *Input, b *blocked) string {
	var text string
	switch {
	case b.quota == nil:
		text = "Nodes match it and have no pod of it, no event tells why (events live about an hour), and no ResourceQuota of its namespace seen here is exhausted. "
		if b.workload != nil {
			text += fmt.Sprintf("Its own status says desired %d, current %d, ready %d; equal numbers there prove nothing. ", b.workload.Desired, b.workload.Current, b.workload.Ready)
		}
	case b.quota.Mode == "scope":
		text = "The pods' priority class may only be used where a quota permits it: the cure is a ResourceQuota whose scope selects that class in this namespace, or another priority class, not a larger quota. "
	case b.quota.Mode == "misspecified":
		text = misspecifiedWords(*b.quota) + " "
	case b.quota.Source == "scheduler":
		text = "Its pods exist and the scheduler holds them back. " + hiddenQuotaWords(in, b.quota.Reporter)
	default:
		text = fmt.Sprintf("Quota %s on %s: used %s of %s. ", orNone(b.quota.Name), orNone(b.quota.Resource), orNone(b.quota.Used), orNone(b.quota.Hard))
	}
	return strings.TrimSpace(text)
}

// hiddenQuotaWords says where to look for a quota that no ResourceQuota shows.
func hiddenQuotaWords(in *Input, reporter string) string {
	if reporter == "" {
		reporter = "its scheduler"
	}
	if len(in.QuotaKinds) > 0 {
		return fmt.Sprintf("No ResourceQuota explains it; kinds on this server that may: %s. ", list(in.QuotaKinds, 6))
	}
	return fmt.Sprintf("No ResourceQuota explains it and the server shows no kind that looks like a quota, queue or pod group: the quota is the platform's own. Ask its vendor which quota %s applies to these pods, how much of it is used and by whom. ", reporter)
}

func blockedEvidence(b *blocked) []report.Evidence {
	var out []report.Evidence
	if b.refused != nil {
		out = append(out, report.Evidence{Object: "Event/" + b.refused.RefNamespace + "/" + b.refused.Name,
			Path: fmt.Sprintf("%s by %s, at least x%d, last %s", b.refused.Reason, orNone(b.refused.Reporter), b.refused.Count, stamp(b.refused.Last)), Value: b.refused.Message})
	}
	for i, p := range b.pods {
		if i == 3 {
			break
		}
		out = append(out, report.Evidence{Object: "Pod/" + p.Namespace + "/" + p.Name, Path: reported(p.ReportedBy, p.Attempts), Value: p.Message})
	}
	return out
}
