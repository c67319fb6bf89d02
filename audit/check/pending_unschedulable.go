package check

import (
	"fmt"
	"sort"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var pendingUnschedulable = Check{
	ID: "pending-unschedulable", Step: 3, Title: "pods that wait too long, by owner and cause",
	Required: []inventory.Resource{inventory.Pods},
	Optional: []inventory.Resource{inventory.Nodes, inventory.Events, inventory.DeviceClasses},
	WiderWithout: map[inventory.Resource]string{
		inventory.Nodes:         "the cause is taken from what was reported, without our own simulation over the nodes",
		inventory.DeviceClasses: "whether a DRA driver serves a resource that no node advertises is not known, so that no cause is read from it",
		inventory.Events:        "the cause is taken from the pods' own conditions, without the reporters' events",
	},
	Run: runPendingUnschedulable,
}

// longWaiting is true for a pod that has waited for as long as the threshold says.
func (in *Input) longWaiting(w Waiting) bool {
	return w.Since == nil || in.Now.Sub(*w.Since) >= in.Settings.Thresholds.Pending
}

func runPendingUnschedulable(in *Input) []report.Finding {
	groups := map[string][]Waiting{}
	for _, w := range in.Waiting {
		// Bound pods are holds; what waits for a quota has checks of its own.
		if w.Bound || w.Cause == "quota" || w.Cause == "terminating" || !in.longWaiting(w) || in.ignoredNamespace(w.Namespace) {
			continue
		}
		key := ownerSubject(w.Pod).String() + "\x00" + w.Cause
		groups[key] = append(groups[key], w)
	}
	keys := make([]string, 0, len(groups))
	for key := range groups {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out []report.Finding
	for _, key := range keys {
		out = append(out, waitingFinding(in, groups[key]))
	}
	return out
}

// causeWords say what a cause means, for a title.
var causeWords = map[string]string{
	"capacity": "no node that is open to it has room for what it asks", "selector": "no node matches its node selector or affinity",
	"taint": "every node that matches is tainted", "volume": "its volume", "topology": "a topology or pod affinity rule",
	"ports": "a host port", "gang": "the rest of its group", "gated": "a scheduling gate", "queue": "its queue",
	"unobserved": "a scheduler to report on it: none has", "deviceMissing": "a device that no node advertises",
	"preempting": "a preemption to finish", "unclassified": "a reason that is not known to this program",
}

func waitingFinding(in *Input, group []Waiting) report.Finding {
	first := group[0]
	devices := int64(0)
	for _, w := range group {
		if w.Since != nil && (first.Since == nil || w.Since.Before(*first.Since)) {
			first = w
		}
		devices += sum(in.Survey.Asked(w.Pod.Shape))
	}
	severity := report.Warning
	if first.Cause == "gated" || first.Cause == "queue" {
		severity = report.Info
	}
	subject := ownerSubject(first.Pod)
	f := in.finding("pending-unschedulable", severity, subject, first.Cause)
	f.Node, f.Since = first.TargetNode, first.Since
	in.firstSighting(&f)
	words := causeWords[first.Cause]
	if words == "" {
		words = first.Cause
	}
	if first.Cause == "gated" {
		words = "gate " + list(first.Gates, 3)
	}
	asks := ""
	if devices > 0 {
		asks = fmt.Sprintf(" asking for %d devices in all", devices)
	}
	f.Title = fmt.Sprintf("%s: %s %s%s for up to %s%s (%s)", subject, count(int64(len(group)), "pod"), waitVerb(len(group)), asks, since(in.Now, *f.Since), waitsFor(words), first.Cause)
	if first.ReportedBy != "" {
		f.Detail = fmt.Sprintf("Reported by %s%s. ", first.ReportedBy, atLeast(first.Attempts))
	} else if first.Message != "" {
		f.Detail = "Reported in its PodScheduled condition. "
	} else {
		f.Detail = "Nobody has reported on it. "
	}
	if len(first.Reasons) > 0 {
		f.Detail += "Reasons: " + list(first.Reasons, 5) + ". "
	}
	for _, o := range first.Opinions {
		f.Detail += "Also said: " + o + " "
	}
	for i, w := range group {
		f.Objects = append(f.Objects, "Pod/"+w.Namespace+"/"+w.Name)
		if i < 3 && w.Message != "" {
			f.Evidence = append(f.Evidence, report.Evidence{Object: "Pod/" + w.Namespace + "/" + w.Name, Path: said(w.ReportedBy), Value: w.Message})
		}
	}
	f.Commands = []string{
		kubectl("describe", "pod", "-n", first.Namespace, first.Name),
		kubectl("get", "events", "-n", first.Namespace, "--field-selector", "involvedObject.name="+first.Name),
	}
	return f
}

// waitsFor joins what is waited for to a title: a thing, or a sentence on the nodes.
func waitsFor(words string) string {
	if strings.HasPrefix(words, "no node ") || strings.HasPrefix(words, "every node ") {
		return ": " + words
	}
	return ", for " + words
}

func atLeast(times int64) string {
	if times == 0 {
		return ""
	}
	return ", at least " + count(times, "time")
}

// said names where a message on a pod stands.
func said(reporter string) string {
	if reporter == "" {
		return "status.conditions[PodScheduled].message"
	}
	return "reported by " + reporter
}

func waitVerb(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}
