package check

import (
	"fmt"
	"sort"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

var schedulerTakeover = Check{
	ID: "scheduler-takeover", Step: 3, Title: "another scheduler reports on pods than the one in their spec",
	Required: []inventory.Resource{inventory.Pods, inventory.Events},
	Run:      runSchedulerTakeover,
}

// takeover is a scheduler that has pods which name another one: in their own
// spec, or, when something rewrote that on the way, in their workload's template.
type takeover struct {
	scheduler, named string
	template         bool
}

func runSchedulerTakeover(in *Input) []report.Finding {
	groups := map[takeover][]Waiting{}
	for _, w := range in.Waiting {
		if in.ignoredNamespace(w.Namespace) || w.SchedulerName == "" {
			continue
		}
		if w.ReportedBy != "" && w.ReportedBy != w.SchedulerName && !sameScheduler(w.ReportedBy, w.SchedulerName) {
			t := takeover{w.ReportedBy, w.SchedulerName, false}
			groups[t] = append(groups[t], w)
			continue
		}
		owner := in.Cluster.Workload(w.Pod.Owner.Kind, w.Namespace, w.Pod.Owner.Name)
		if owner != nil && owner.SchedulerName != w.SchedulerName && !sameScheduler(w.SchedulerName, owner.SchedulerName) {
			t := takeover{w.SchedulerName, owner.SchedulerName, true}
			groups[t] = append(groups[t], w)
		}
	}
	var out []report.Finding
	for t, group := range groups {
		out = append(out, takeoverFinding(in, t, group))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

func takeoverFinding(in *Input, t takeover, group []Waiting) report.Finding {
	severity, key := report.Warning, t.named
	if t.template {
		// The pods' own spec names who has them: nothing is hidden, only changed.
		severity, key = report.Info, "template "+t.named
	}
	f := in.finding("scheduler-takeover", severity, report.Subject{Kind: "Scheduler", Name: t.scheduler}, key)
	for _, w := range group {
		f.Objects = append(f.Objects, "Pod/"+w.Namespace+"/"+w.Name)
		if w.Since != nil && (f.Since == nil || w.Since.Before(*f.Since)) {
			f.Since = w.Since
		}
		if len(f.Evidence) >= 6 {
			continue
		}
		f.Evidence = append(f.Evidence, podEvidence(w.Pod, "spec.schedulerName", w.SchedulerName))
		if t.template {
			f.Evidence = append(f.Evidence, report.Evidence{Object: w.Pod.Owner.Kind + "/" + w.Namespace + "/" + w.Pod.Owner.Name, Path: "spec.template.spec.schedulerName", Value: t.named})
			continue
		}
		f.Evidence = append(f.Evidence, report.Evidence{Object: "Event about Pod/" + w.Namespace + "/" + w.Name, Path: "reporting component", Value: w.ReportedBy})
	}
	in.firstSighting(&f)
	f.Title = fmt.Sprintf("%s reports on %s whose spec names %s", t.scheduler, count(int64(len(group)), "pod"), t.named)
	f.Detail = "Something (an admission webhook, most often) hands these pods to another scheduler than their spec says. " +
		"Its rules and quotas decide, and its messages mean what it means by them; the named scheduler's logs show nothing."
	if t.template {
		f.Title = fmt.Sprintf("%s has %s whose workload's template names %s", t.scheduler, count(int64(len(group)), "waiting pod"), t.named)
		f.Detail = "An admission webhook or policy rewrites spec.schedulerName when these pods are made (some device-sharing schedulers are installed so). " +
			"The rules and quotas of " + t.scheduler + " decide about them, not those of the scheduler that the template names."
	}
	f.Commands = []string{
		"kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies",
		kubectl("get", "events", "-A", "--field-selector", "reportingComponent="+t.scheduler),
	}
	return f
}

// sameScheduler knows reporters that name themselves otherwise than pods name them.
func sameScheduler(reporter, named string) bool {
	switch reporter {
	case "koord-scheduler", "koordinator-scheduler":
		return named == "koord-scheduler" || named == "koordinator-scheduler"
	case "kai-scheduler", "runai-scheduler":
		return named == "kai-scheduler" || named == "runai-scheduler"
	case "vc-scheduler", "volcano", "volcano-scheduler":
		return named == "volcano" || named == "vc-scheduler" || named == "volcano-scheduler"
	}
	return false
}
