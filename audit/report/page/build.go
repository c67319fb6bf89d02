package page

import (
	"fmt"
	"html/template"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// view is everything that the template writes, as it is to be read.
type view struct {
	Style            template.CSS
	Title, Made, Run string
	Tool             string
	Verdict          string
	VerdictClass     string
	Counts           []count
	Unseen           []said
	Losses           []lossCard
	Actions          []action
	MoreActions      int
	NothingToDo      string
	Clusters         []clusterView
	MoreClusters     []string
	Measured         []measured
	Steps            []step
	OneCluster       bool
}

type count struct {
	N           int
	Word, Class string
}

// said is something that is said about a cluster.
type said struct{ Cluster, Anchor, Text string }

type lossCard struct {
	Cluster, Anchor, Vendor, Status string
	Lines                           []string
	Bar                             []segment
	Alt                             string
	Headline, Unit                  string
	Bad                             bool
}

// segment is a part of a bar, in per cent of its width.
type segment struct {
	X, W  string
	Class string
}

type action struct{ Cluster, Anchor, Text, Gain, Link, Step, Finding, Command string }

type measured struct {
	Cluster, Anchor, Status            string
	Bad                                bool
	Nodes, Ready, Cordoned, CPU, Mem   string
	Top, DeviceMetrics, Waiting, Gaps  string
	ManagedFields, CollectedAt, Server string
}

type builder struct {
	options Options
	now     time.Time
	out     *view
	// What may still be written of all clusters: findings in full, bytes of
	// their text, rows of nodes.
	findings, findingText, nodeRows int

	steps map[int]bool
}

// build makes the view of a report. Only what the view holds comes from the
// report's clean copy, so no raw text reaches the template.
func build(r *report.Report, o Options) *view {
	anchors := map[string]string{}
	raw := make([]string, len(r.Clusters))
	for i := range r.Clusters {
		raw[i] = r.Clusters[i].Name
	}
	r = clean(r)
	b := &builder{options: o, now: r.GeneratedAt, findings: maxFindings, findingText: maxFindingText, nodeRows: maxAllNodeRows, steps: map[int]bool{}, out: &view{
		Style: style, Made: stamp(r.GeneratedAt), Run: r.RunID, Tool: r.Tool.Name + " " + r.Tool.Version, OneCluster: len(r.Clusters) == 1,
	}}
	rawOf := map[*report.Cluster]string{}
	for i := range r.Clusters {
		anchors[r.Clusters[i].Name] = fmt.Sprintf("cluster-%d", i+1)
		rawOf[&r.Clusters[i]] = raw[i]
	}
	b.out.Title = "GPU audit, " + b.out.Made
	if b.out.OneCluster {
		b.out.Title = "GPU audit of " + r.Clusters[0].Name + ", " + b.out.Made
	}
	b.verdict(r)
	b.actions(r, anchors)
	for i, c := range outline.ByLoss(r) {
		anchor := anchors[c.Name]
		for _, line := range outline.Unseen(c, b.now) {
			b.out.Unseen = append(b.out.Unseen, said{c.Name, anchor, line})
		}
		b.out.Losses = append(b.out.Losses, b.loss(c, anchor))
		b.out.Measured = append(b.out.Measured, b.measured(c, anchor))
		if i >= maxClusterDetail {
			b.out.MoreClusters = append(b.out.MoreClusters, c.Name)
			continue
		}
		b.out.Clusters = append(b.out.Clusters, b.cluster(c, anchor, rawOf[c]))
	}
	b.checklist()
	return b.out
}

func (b *builder) verdict(r *report.Report) {
	s := r.Summary
	b.out.Counts = []count{
		{s.Critical, "critical", "critical"}, {s.Warning, "warning", "warning"}, {s.Info, "info", "info"},
		{s.New, "new", ""}, {s.Ongoing, "ongoing", ""}, {s.Unverified, "unverified", ""}, {s.Resolved, "resolved", ""},
		{s.Acknowledged, "acknowledged", ""},
	}
	clusters := plain.Plural(int64(s.Clusters), "cluster")
	switch {
	case s.Clusters == 0:
		b.out.Verdict, b.out.VerdictClass = "No cluster was audited.", "bad"
	case s.Unreachable+s.Partial > 0:
		b.out.Verdict = fmt.Sprintf("%s: %d seen whole, %d in part, %d not at all.", clusters, s.Complete, s.Partial, s.Unreachable)
		b.out.VerdictClass = "bad"
	case s.Critical > 0:
		b.out.Verdict = fmt.Sprintf("%s, all seen whole. %s.", clusters, criticalText(s.Critical))
		b.out.VerdictClass = "bad"
	default:
		b.out.Verdict, b.out.VerdictClass = clusters+", all seen whole. No critical finding is open.", "good"
	}
}

func criticalText(n int) string {
	if n == 1 {
		return "1 critical finding is open"
	}
	return fmt.Sprintf("%d critical findings are open", n)
}

func (b *builder) actions(r *report.Report, anchors map[string]string) {
	all := outline.Actions(r)
	shown, more := cut(all, maxActions)
	b.out.MoreActions = more
	for _, a := range shown {
		b.out.Actions = append(b.out.Actions, action{
			Cluster: a.Cluster, Anchor: anchors[a.Cluster], Text: a.Text, Gain: a.Gain, Finding: a.Finding, Command: a.Command,
			Step: fmt.Sprintf("step %d", a.Step), Link: b.link(findLink(r, a), a.Step),
		})
	}
	switch {
	case len(all) > 0:
	case len(r.Clusters) == 0 || r.Summary.Complete < r.Summary.Clusters:
		b.out.NothingToDo = "Make what was not seen readable. In what was seen, no critical finding is open."
	default:
		b.out.NothingToDo = "Nothing urgent: no critical finding is open."
	}
}

func findLink(r *report.Report, a outline.Action) string {
	for i := range r.Clusters {
		for j := range r.Clusters[i].Findings {
			if f := &r.Clusters[i].Findings[j]; f.ID == a.Finding {
				return f.Link
			}
		}
	}
	return ""
}

// loss is what a cluster loses, in one picture and a few words.
func (b *builder) loss(c *report.Cluster, anchor string) lossCard {
	card := lossCard{Cluster: c.Name, Anchor: anchor, Vendor: c.Vendor, Status: string(c.Status), Bad: c.Status != report.Complete}
	classes := outline.Classes(c)
	if len(classes) == 0 || c.Status == report.Unreachable {
		card.Lines = outline.Losses(c, maxLossLines)
		return card
	}
	k := &classes[0]
	free, usable := atMost(k.ApparentFree, k.UpperBound), atMost(k.Schedulable, k.UpperBound)
	card.Headline = free + " free, " + usable + " usable"
	card.Unit = fmt.Sprintf("%s, for %s pods", plural(outline.Unit(c, k.Resource)), k.Name)
	card.Bad = card.Bad || outline.Lost(k) > 0
	if k.ApparentFree > 0 {
		total, at := float64(k.ApparentFree), float64(k.Schedulable)
		card.Bar = append(card.Bar, segment{percent(0, total), percent(at, total), "usable"})
		for _, l := range k.Lost {
			card.Bar = append(card.Bar, segment{percent(at, total), percent(float64(l.Devices), total), "lost"})
			at += float64(l.Devices)
		}
		card.Alt = card.Headline + ", lost: " + lossWords(k.Lost)
	}
	var most int64
	for i := range classes {
		most = max(most, outline.Lost(&classes[i]))
	}
	for _, l := range k.Lost {
		card.Lines = append(card.Lines, fmt.Sprintf("%d lost: %s", l.Devices, reasonText(l.Reason)))
	}
	others, more := cut(classes[1:], maxLossLines)
	for _, o := range others {
		card.Lines = append(card.Lines, fmt.Sprintf("%s pods: %s of %s usable", o.Name, atMost(o.Schedulable, o.UpperBound), atMost(o.ApparentFree, o.UpperBound)))
	}
	if more > 0 {
		card.Lines = append(card.Lines, fmt.Sprintf("and %d more classes", more))
	}
	if kept := outline.KeptFromUse(c); kept > most {
		card.Lines = append(card.Lines, fmt.Sprintf("findings keep %s from use, free or held", outline.Units(kept, outline.MainUnit(c))))
	}
	return card
}

func atMost(n int64, upperBound bool) string { return bounded(&n, upperBound) }

func plural(unit string) string {
	switch unit {
	case "memory", "cores":
		return unit
	}
	return unit + "s"
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "0"
	}
	return fmt.Sprintf("%.3f", max(0, min(100, 100*part/whole)))
}

func (b *builder) measured(c *report.Cluster, anchor string) measured {
	v := &c.Baseline
	m := measured{
		Cluster: c.Name, Anchor: anchor, Status: string(c.Status), Bad: c.Status != report.Complete,
		Nodes: number(v.Nodes), Ready: number(v.ReadyNodes), Cordoned: number(v.CordonedNodes), CPU: use(v.CPUUtilization), Mem: use(v.MemoryUtilization),
		Top: outline.TopWord(v.MetricsAPI), DeviceMetrics: outline.Words(v.DeviceMetrics), Waiting: number(v.PendingPods), Gaps: outline.Gaps(c),
		ManagedFields: outline.Words(v.ManagedFields),
	}
	return m
}
