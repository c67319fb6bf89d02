package check

import (
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/pending"
	"gpuaudit/audit/quota"
	"gpuaudit/audit/report"
)

var quotaBlocked = Check{
	ID: "quota-blocked", Step: 5, Title: "workloads held back by a quota, native or a scheduler's",
	Required: []inventory.Resource{inventory.Pods},
	Optional: []inventory.Resource{inventory.Events, inventory.ResourceQuotas, inventory.Deployments, inventory.StatefulSets, inventory.Jobs,
		quota.KueueWorkloads, quota.KueueClusterQueues, quota.KueueLocalQueues, quota.VolcanoQueues, quota.VolcanoPodGroups, quota.ElasticQuotas},
	Wider: "workloads whose pods were refused at creation are seen by the inputs that could be read only",
	Run:   runQuotaBlocked,
}

// held gathers one workload that a quota keeps waiting.
type held struct {
	subject  report.Subject
	quota    report.Quota
	pods     int
	wanted   string
	since    time.Time
	evidence []report.Evidence
}

func resourceName(s string) corev1.ResourceName { return corev1.ResourceName(s) }

func runQuotaBlocked(in *Input) []report.Finding {
	by := map[string]*held{}
	note := func(subject report.Subject, q *report.Quota, since *time.Time, e report.Evidence) *held {
		key := subject.String()
		h := by[key]
		if h == nil {
			h = &held{subject: subject}
			by[key] = h
		}
		if q != nil && (h.quota.Name == "" || h.quota.Mode == "") {
			h.quota = *q
		}
		if since != nil && (h.since.IsZero() || since.Before(h.since)) {
			h.since = *since
		}
		if len(h.evidence) < 3 {
			h.evidence = append(h.evidence, e)
		}
		return h
	}
	for _, w := range in.Waiting {
		// A bound pod is a hold, whatever its scheduler says of it meanwhile.
		if w.Cause != "quota" || w.Bound || w.Pod.Owner.Kind == "DaemonSet" || !in.longWaiting(w) {
			continue
		}
		h := note(ownerSubject(w.Pod), w.Quota, w.Since,
			report.Evidence{Object: "Pod/" + w.Namespace + "/" + w.Name, Path: reported(w.ReportedBy, w.Attempts), Value: w.Message})
		h.pods++
	}
	refusedCreations(in, note)
	for _, q := range quota.Queued(in.Cluster) {
		blocking := q.Quota
		h := note(report.Subject{Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, &blocking, timePointer(q.Since), report.Evidence{Object: q.Object, Path: q.Path, Value: q.Message})
		h.wanted = q.Wanted
	}
	keys := make([]string, 0, len(by))
	for key := range by {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out []report.Finding
	for _, key := range keys {
		if !in.ignoredNamespace(by[key].subject.Namespace) {
			out = append(out, heldFinding(in, by[key]))
		}
	}
	return append(out, brokenPromises(in)...)
}

// refusedCreations finds controllers whose pods do not exist because their
// creation was refused: by events, and by a Deployment's ReplicaFailure.
func refusedCreations(in *Input, note func(report.Subject, *report.Quota, *time.Time, report.Evidence) *held) {
	for _, e := range in.Cluster.Events {
		if e.Reason != "FailedCreate" || e.Kind == "DaemonSet" || in.Now.Sub(e.Last) > in.Settings.Thresholds.EventsFresh {
			continue
		}
		blocking, ok := pending.ParseFailedCreate(e.Message)
		if !ok {
			continue
		}
		subject := report.Subject{Kind: e.Kind, Namespace: e.RefNamespace, Name: e.Name}
		if w := in.Cluster.Workload(e.Kind, e.RefNamespace, e.Name); w != nil {
			if w.Current >= w.Desired || w.Finished || w.Deleting {
				continue
			}
			if w.Owner.Kind != "" {
				subject.Kind, subject.Name = w.Owner.Kind, w.Owner.Name
			}
		}
		note(subject, &blocking, timePointer(e.First), report.Evidence{Object: "Event/" + e.RefNamespace + "/" + e.Name,
			Path: fmt.Sprintf("%s by %s, at least x%d, last %s", e.Reason, orNone(e.Reporter), e.Count, stamp(e.Last)), Value: e.Message})
	}
	for _, w := range in.Cluster.Workloads {
		if w.Kind != "Deployment" || w.Current >= w.Desired {
			continue
		}
		for _, c := range w.Conditions {
			if c.Type != "ReplicaFailure" || c.Status != "True" {
				continue
			}
			if blocking, ok := pending.ParseFailedCreate(c.Message); ok {
				note(report.Subject{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}, &blocking, timePointer(c.Transition),
					report.Evidence{Object: w.Ref(), Path: "status.conditions[ReplicaFailure]", Value: c.Message})
			}
		}
	}
}

func ownerSubject(p *inventory.Pod) report.Subject {
	if p.Owner.Kind == "" {
		return podSubject(p)
	}
	return report.Subject{Kind: p.Owner.Kind, Namespace: p.Namespace, Name: p.Owner.Name}
}

func heldFinding(in *Input, h *held) report.Finding {
	f := in.finding("quota-blocked", report.Warning, h.subject)
	q := h.quota
	f.Quota, f.Since = &q, timePointer(h.since)
	in.firstSighting(&f)
	source := "a native quota"
	if q.Source == "scheduler" {
		source = "a scheduler's quota"
	}
	if q.Name != "" {
		source += " " + q.Name
	}
	if q.Reporter != "" {
		source += " (says " + q.Reporter + ")"
	}
	what := ""
	switch {
	case h.pods > 0:
		what = " with " + count(int64(h.pods), "waiting pod")
	case h.wanted != "":
		what = " (wants " + h.wanted + ")"
	}
	verb := "is held back by " + source
	if q.Mode == "never" {
		verb = "can never fit into " + source
	}
	f.Title = fmt.Sprintf("%s%s %s for %s", h.subject, what, verb, since(in.Now, *f.Since))
	var detail []string
	switch q.Mode {
	case "never":
		detail = append(detail, "It asks for more than the quota could ever give, so waiting does not help: this is a misconfiguration of the quota or of the request.")
	case "scope":
		detail = append(detail, "The priority class may only be used where a quota permits it: the cure is a ResourceQuota that selects the class in this namespace, or another class, not a larger quota.")
	case "misspecified":
		detail = append(detail, misspecifiedWords(q))
	}
	switch {
	case q.Resource == "":
	case q.Used == "" && q.Hard == "":
		detail = append(detail, "Resource "+q.Resource+"; how much of it is used of how much is not given.")
	default:
		detail = append(detail, fmt.Sprintf("Resource %s, used %s of %s.", q.Resource, orNone(q.Used), orNone(q.Hard)))
	}
	if q.Source == "scheduler" && q.Name == "" {
		detail = append(detail, hiddenQuotaWords(in, q.Reporter))
	}
	f.Detail = strings.TrimSpace(strings.Join(detail, " "))
	f.Evidence = h.evidence
	f.Commands = quotaCommands(q, h.subject.Namespace, h.spokenOf())
	return f
}

// spokenOf is the object that the events are about: the pod or the ReplicaSet,
// not the Deployment above them.
func (h *held) spokenOf() string {
	for _, e := range h.evidence {
		kind, rest, _ := strings.Cut(e.Object, "/")
		if _, name, ok := strings.Cut(rest, "/"); ok && (kind == "Event" || kind == "Pod") {
			return name
		}
	}
	return h.subject.Name
}

// brokenPromises are scheduler quotas whose guaranteed minimum exceeds what
// their pool can give them now.
func brokenPromises(in *Input) []report.Finding {
	var out []report.Finding
	for _, b := range quota.BrokenMinimums(in.Cluster) {
		f := in.finding("quota-blocked", report.Warning, report.Subject{Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}, b.Resource)
		f.Quota = &report.Quota{Source: "scheduler", Name: b.Name, Resource: b.Resource, Mode: "misspecified", Used: b.Runtime, Hard: b.Min}
		in.firstSighting(&f)
		f.Title = fmt.Sprintf("quota %s guarantees %s of %s and the pool can give only %s", b.Name, b.Min, b.Resource, b.Runtime)
		f.Detail = "The quota tree promises more than there is: devices were lost, or minimums were set too high."
		f.Commands = []string{kubectl("get", strings.ToLower(b.Kind), "-n", b.Namespace, b.Name, "-o", "yaml")}
		out = append(out, f)
	}
	return out
}

// misspecifiedWords say what a quota or a LimitRange demands of pods.
func misspecifiedWords(q report.Quota) string {
	switch {
	case q.Source == "scheduler":
		return "Its queue gives nothing, however much is free: it does not exist, is stopped, or is inactive for want of something it names. The cure is the queue, not a larger quota."
	case q.Name == "LimitRange":
		return "The namespace's LimitRange refuses the requests or limits that the template sets: change one of both."
	}
	return "The quota demands requests or limits that the template does not set: set them, or have a LimitRange set them."
}

// quotaCommands show the quota that holds an object, by who reported it, and
// what was said about the object. Where the quota's kind is not known, what was said comes first.
func quotaCommands(q report.Quota, namespace, name string) []string {
	said := kubectl("get", "events", "-n", namespace, "--field-selector", "involvedObject.name="+name)
	switch {
	case q.Source != "scheduler":
		return []string{kubectl("get", "resourcequota", "-n", namespace, "-o", "yaml"), said}
	case q.Reporter == "kueue":
		return []string{kubectl("get", "workloads.kueue.x-k8s.io,localqueues.kueue.x-k8s.io", "-n", namespace), kubectl("get", "clusterqueues.kueue.x-k8s.io", "-o", "yaml"), said}
	case strings.Contains(q.Reporter, "volcano"):
		return []string{kubectl("get", "podgroups.scheduling.volcano.sh", "-n", namespace), kubectl("get", "queues.scheduling.volcano.sh", "-o", "yaml"), said}
	}
	return []string{said, "kubectl api-resources --verbs=list -o name | grep -Ei 'quota|queue|podgroup'"}
}
