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

func runSchedulerTakeover(in *Input) []report.Finding {
	type pair struct{ reporter, named string }
	groups := map[pair][]Waiting{}
	for _, w := range in.Waiting {
		if w.ReportedBy == "" || w.SchedulerName == "" || w.ReportedBy == w.SchedulerName || in.ignoredNamespace(w.Namespace) || sameScheduler(w.ReportedBy, w.SchedulerName) {
			continue
		}
		groups[pair{w.ReportedBy, w.SchedulerName}] = append(groups[pair{w.ReportedBy, w.SchedulerName}], w)
	}
	keys := make([]pair, 0, len(groups))
	for p := range groups {
		keys = append(keys, p)
	}
	sort.Slice(keys, func(i, j int) bool {
		if keys[i].reporter != keys[j].reporter {
			return keys[i].reporter < keys[j].reporter
		}
		return keys[i].named < keys[j].named
	})
	var out []report.Finding
	for _, p := range keys {
		group := groups[p]
		f := in.finding("scheduler-takeover", report.Warning, report.Subject{Kind: "Scheduler", Name: p.reporter}, p.named)
		for _, w := range group {
			f.Objects = append(f.Objects, "Pod/"+w.Namespace+"/"+w.Name)
			if w.Since != nil && (f.Since == nil || w.Since.Before(*f.Since)) {
				f.Since = w.Since
			}
			if len(f.Evidence) < 3 {
				f.Evidence = append(f.Evidence,
					podEvidence(w.Pod, "spec.schedulerName", w.SchedulerName),
					report.Evidence{Object: "Event about Pod/" + w.Namespace + "/" + w.Name, Path: "reporting component", Value: w.ReportedBy})
			}
		}
		in.firstSighting(&f)
		f.Title = fmt.Sprintf("%s reports on %s whose spec names %s", p.reporter, count(int64(len(group)), "pod"), p.named)
		f.Detail = "Something (an admission webhook, most often) hands these pods to another scheduler than their spec says. " +
			"Its rules and quotas decide, and its messages mean what it means by them; the named scheduler's logs show nothing."
		f.Commands = []string{
			"kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies",
			kubectl("get", "events", "-A", "--field-selector", "reportingComponent="+p.reporter),
		}
		out = append(out, f)
	}
	return out
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
