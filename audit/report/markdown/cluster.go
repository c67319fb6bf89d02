package markdown

import (
	"cmp"
	"fmt"
	"strings"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// cluster writes one cluster's part.
func (w *writer) cluster(c *report.Cluster) {
	w.heading(2, "Cluster "+text(c.Name))
	w.identity(c)
	w.findings(c)
	w.classes(c)
	w.nodes(c)
	w.pending(c)
	w.seen(c)
}

// identity says what was audited, when, and against what.
func (w *writer) identity(c *report.Cluster) {
	if c.Vendor != "" {
		w.line("- Vendor: %s", text(c.Vendor))
	}
	w.line("- Kubernetes: %s; kube-system UID: %s", text(cmp.Or(c.ServerVersion, "unknown")), uid(c.UID))
	if c.CollectedAt != nil {
		w.line("- Read at: %s", stamp(*c.CollectedAt))
	} else {
		w.line("- Read at: never in this run")
	}
	switch {
	case c.Comparison != "":
		w.line("- Not compared with earlier runs: %s", text(c.Comparison))
	case c.PreviousSnapshot != nil:
		w.line("- Compared with: %s (%s)", stamp(c.PreviousSnapshot.CollectedAt), code(c.PreviousSnapshot.Key))
	default:
		w.line("- First snapshot: nothing to compare with")
	}
	if c.ChainHead != "" {
		w.line("- Head of the chain of snapshots: %s", code(c.ChainHead))
	}
	for _, note := range c.Notes {
		w.line("- Note: %s", text(note))
	}
}

func uid(s string) string {
	if s == "" {
		return "unknown"
	}
	return code(s)
}

func (w *writer) findings(c *report.Cluster) {
	sorted := outline.Findings(c)
	w.heading(3, "Findings")
	if len(sorted.Open) == 0 {
		w.line("No open finding.")
	}
	shown := min(len(sorted.Open), maxFindings)
	for _, item := range sorted.Open[:shown] {
		w.finding(c, &item.Finding)
		for _, effect := range item.Effects {
			w.finding(c, &effect)
		}
	}
	w.more(len(sorted.Open)-shown, "findings")
	if len(sorted.Resolved) > 0 {
		w.heading(3, "Resolved")
		for _, f := range sorted.Resolved[:min(len(sorted.Resolved), maxFindings)] {
			w.line("- %s: %s; first seen %s (%s)", text(f.Title), text(cmp.Or(f.Resolution, "gone")), w.when(f.FirstSeen, false), code(f.ID))
		}
		w.more(len(sorted.Resolved)-maxFindings, "resolved findings")
	}
	if len(sorted.Acknowledged) > 0 {
		w.heading(3, "Acknowledged")
		for _, f := range sorted.Acknowledged[:min(len(sorted.Acknowledged), maxFindings)] {
			w.line("- %s%s (%s)", text(f.Title), text(outline.AckText(f.Ack)), code(f.ID))
		}
		w.more(len(sorted.Acknowledged)-maxFindings, "acknowledged findings")
	}
}

// finding writes one finding with all that a vendor needs to check it.
func (w *writer) finding(c *report.Cluster, f *report.Finding) {
	severity := string(f.Severity)
	if f.Severity != report.Info {
		severity = strings.ToUpper(severity)
	}
	w.heading(4, text(severity)+": "+text(f.Title))
	if f.Detail != "" {
		w.line("%s\n", text(f.Detail))
	}
	w.line("- State: %s; first seen %s", text(outline.StateText(f, w.now)), w.when(f.FirstSeen, false))
	w.line("- Since: %s", w.when(f.Since, f.SinceAtLeast))
	if worth := outline.Worth(c, f); worth != "" {
		w.line("- Keeps from use: %s", worth)
	} else if f.CausedBy != "" {
		w.line("- Caused by: %s, where its devices are counted", code(f.CausedBy))
	}
	if f.Quota != nil {
		w.line("- Quota: %s", text(quotaText(f.Quota)))
	}
	if len(f.Objects) > 0 {
		shown := f.Objects[:min(len(f.Objects), 10)]
		names := make([]string, len(shown))
		for i, o := range shown {
			names[i] = code(o)
		}
		rest := ""
		if n := len(f.Objects) - len(shown); n > 0 {
			rest = fmt.Sprintf(" and %d more", n)
		}
		w.line("- Objects: %s%s", strings.Join(names, ", "), rest)
	}
	w.line("- Checklist: %s; check %s; id %s", link(fmt.Sprintf("step %d", f.Step), f.Link), code(f.Check), code(f.ID))
	if len(f.Evidence) > 0 {
		lines := make([]string, len(f.Evidence))
		for i, e := range f.Evidence {
			lines[i] = fmt.Sprintf("%s  %s: %s", e.Object, e.Path, plain.Cut(plain.Line(e.Value), 2000))
		}
		w.line("\nEvidence, as read:\n\n%s", strings.TrimSuffix(fence("text", lines), "\n"))
	}
	if len(f.Commands) > 0 {
		w.line("\nCommands:\n\n%s", strings.TrimSuffix(fence("sh", f.Commands), "\n"))
	}
}

// quotaText says whose quota it is and how it holds back.
func quotaText(q *report.Quota) string {
	parts := []string{"a " + q.Source + " quota"}
	if q.Source == "native" {
		parts[0] = "ResourceQuota"
	}
	for _, p := range []struct{ label, value string }{
		{"", q.Name}, {"resource ", q.Resource}, {"", q.Mode}, {"used ", q.Used}, {"hard ", q.Hard}, {"reported by ", q.Reporter},
	} {
		if p.value != "" {
			parts = append(parts, p.label+p.value)
		}
	}
	return strings.Join(parts, ", ")
}

func (w *writer) classes(c *report.Cluster) {
	classes := outline.Classes(c)
	if len(classes) == 0 {
		return
	}
	w.heading(3, "Who can get the free devices")
	shown := min(len(classes), maxClasses)
	var rows [][]string
	for _, k := range classes[:shown] {
		lost := cmp.Or(outline.LostDetail(&k), "nothing")
		if len(k.NotModelled) > 0 {
			lost += "; not modelled: " + strings.Join(k.NotModelled, ", ")
		}
		rows = append(rows, []string{
			cut(k.Name, 60), cut(outline.Wants(&k), maxCell), plain.Number(k.PendingPods), outline.AtMost(k.UpperBound) + fmt.Sprint(k.ApparentFree),
			outline.AtMost(k.UpperBound && k.Schedulable > 0) + fmt.Sprint(k.Schedulable), fmt.Sprint(k.Replicas), cut(lost, 2*maxCell),
		})
	}
	w.table([]string{"Class", "Wants", "Waiting", "Free", "Usable", "Replicas", "Lost to it"},
		[]bool{false, false, true, true, true, true, false}, rows)
	w.more(len(classes)-shown, "classes")
}

func (w *writer) nodes(c *report.Cluster) {
	nodes := outline.TroubledNodes(c)
	if len(nodes) == 0 {
		return
	}
	w.heading(3, "Nodes to look at")
	shown := min(len(nodes), maxNodes)
	var rows [][]string
	for _, n := range nodes[:shown] {
		cordoned := "no"
		if n.Cordoned {
			cordoned = "yes, " + plain.Since(n.CordonedSince, w.now, false)
		}
		rows = append(rows, []string{
			cut(n.Name, 60), w.readyText(&n), cordoned, plain.Since(n.Created, w.now, false),
			cut(outline.NodeDevices(&n), 80), cut(outline.Labels(n.Labels), maxCell),
		})
	}
	w.table([]string{"Node", "Ready", "Cordoned", "Age", "Devices in use", "Labels that workloads select on"},
		[]bool{false, false, false, true, false, false}, rows)
	w.more(len(nodes)-shown, "such nodes")
}

func (w *writer) readyText(n *report.Node) string {
	since := plain.Since(n.Since, w.now, false)
	switch {
	case n.Ready == true && n.Silent:
		return "**silent** for " + plain.Since(n.LastHeartbeat, w.now, false)
	case n.Ready == true:
		return "yes"
	case n.Ready == false:
		return "**no**, " + since
	}
	return "**unknown**, " + since
}

func (w *writer) pending(c *report.Cluster) {
	groups := outline.Waiting(c)
	if len(groups) == 0 {
		return
	}
	w.heading(3, "Waiting pods")
	shown := min(len(groups), maxGroups)
	var rows [][]string
	for _, g := range groups[:shown] {
		cause := text(g.Cause)
		if g.Bound {
			cause = "bound to " + cut(cmp.Or(g.TargetNode, "nodes"), 60) + ", never started"
		}
		rows = append(rows, []string{
			fmt.Sprint(len(g.Pods)), cut(outline.OwnerText(&g), 80), cause, plain.Since(g.Oldest, w.now, false), cut(g.ReportedBy, 40), cut(g.Message, maxCell),
		})
	}
	w.table([]string{"Pods", "Owner", "Cause", "Since", "Reported by", "Message"}, []bool{true, false, false, true, false, false}, rows)
	w.more(len(groups)-shown, "groups of waiting pods")
}

// seen says how far each check could be judged, and what was not seen.
func (w *writer) seen(c *report.Cluster) {
	w.heading(3, "How much was seen")
	for _, g := range c.Gaps {
		w.line("- Gap: %s", text(outline.GapText(&g)))
	}
	clean := []string{}
	for _, o := range c.Checks {
		switch o.Outcome {
		case report.OutcomeClean:
			clean = append(clean, code(o.ID))
		case report.OutcomeLimited:
			w.line("- Limited: %s: %s", code(o.ID), text(o.Reason))
		case report.OutcomeNotEvaluated:
			w.line("- **Not evaluated**: %s: %s", code(o.ID), text(o.Reason))
		}
	}
	if len(clean) > 0 {
		w.line("- Looked at and clean: %s", strings.Join(clean, ", "))
	}
	if len(c.Gaps) == 0 && len(c.Checks) == 0 {
		w.line("No check was evaluated.")
	}
}
