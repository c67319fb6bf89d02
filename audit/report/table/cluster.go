package table

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// isQuiet is true for a cluster that was seen whole and of which nothing is to be said.
func isQuiet(c *report.Cluster) bool {
	return c.Status == report.Complete && len(c.Findings) == 0 && len(c.Pending) == 0 && len(outline.TroubledNodes(c)) == 0
}

// cluster writes one cluster's part.
func (p *printer) cluster(c *report.Cluster) {
	sorted := outline.Findings(c)
	title := "CLUSTER " + c.Name
	if c.ServerVersion != "" {
		title += ", Kubernetes " + c.ServerVersion
	}
	if c.Vendor != "" {
		title += ", " + c.Vendor
	}
	p.section(title)
	p.compared(c)
	p.findings(c, sorted)
	p.closed(sorted)
	p.classes(c)
	p.nodes(c)
	p.pending(c)
	p.outcomes(c)
}

func (p *printer) compared(c *report.Cluster) {
	switch {
	case c.Comparison != "":
		p.limited("  ", "not compared with earlier runs: "+c.Comparison, yellow, 3)
	case c.PreviousSnapshot != nil:
		at := c.PreviousSnapshot.CollectedAt
		p.text("  ", fmt.Sprintf("compared with %s, %s ago", at.UTC().Format("2006-01-02 15:04 UTC"), plain.Age(p.now.Sub(at))), dim)
	default:
		p.text("  ", "first snapshot: nothing to compare with", dim)
	}
	for _, note := range c.Notes {
		p.limited("  note: ", note, "", 2)
	}
}

func (p *printer) subsection(title string) {
	p.raw("")
	p.text("  ", title, bold)
}

func (p *printer) classes(c *report.Cluster) {
	classes := outline.Classes(c)
	if len(classes) == 0 {
		return
	}
	p.subsection("Who can get the free devices")
	shown := p.shown(len(classes), maxClasses)
	var rows [][]cell
	for _, k := range classes[:shown] {
		usable := cell{text: outline.AtMost(k.UpperBound && k.Schedulable > 0) + fmt.Sprint(k.Schedulable)}
		if k.Schedulable == 0 && k.ApparentFree > 0 {
			usable.colour = red
		}
		lost := cmp.Or(outline.LostDetail(&k), "nothing lost")
		if len(k.NotModelled) > 0 {
			lost += "; not modelled: " + strings.Join(k.NotModelled, ", ")
		}
		rows = append(rows, []cell{
			{text: k.Name}, {text: outline.Wants(&k)}, {text: plain.Number(k.PendingPods)},
			{text: outline.AtMost(k.UpperBound) + fmt.Sprint(k.ApparentFree)}, usable, {text: fmt.Sprint(k.Replicas)}, {text: lost},
		})
	}
	p.grid([]column{
		{title: "CLASS", min: 8}, {title: "WANTS", min: 12, wrap: true, lines: 4}, {title: "WAIT", right: true}, {title: "FREE", right: true},
		{title: "USABLE", right: true}, {title: "REPLICAS", right: true}, {title: "LOST TO IT", min: 20, wrap: true, lines: p.lines(6)},
	}, rows)
	p.more("  ", len(classes)-shown, "classes")
}

// lines lifts a limit of lines when details are wanted.
func (p *printer) lines(limit int) int {
	if p.details {
		return 0
	}
	return limit
}

func (p *printer) nodes(c *report.Cluster) {
	nodes, title := outline.TroubledNodes(c), "Nodes to look at"
	if len(c.Nodes) <= fewNodes {
		nodes, title = c.Nodes, "Nodes"
	}
	if len(nodes) == 0 {
		return
	}
	p.subsection(title)
	shown := p.shown(len(nodes), maxNodes)
	var rows [][]cell
	for _, n := range nodes[:shown] {
		ready := p.readyCell(&n)
		cordoned := cell{text: "no"}
		if n.Cordoned {
			cordoned = cell{"yes " + plain.Since(n.CordonedSince, p.now, false), yellow}
		}
		rows = append(rows, []cell{
			{text: n.Name}, ready, cordoned, {text: p.age(n.Created)}, {text: outline.NodeDevices(&n)}, {text: outline.Labels(n.Labels)},
		})
	}
	p.grid([]column{
		{title: "NODE", min: 12}, {title: "READY"}, {title: "CORDONED"}, {title: "AGE", right: true},
		{title: "DEVICES IN USE", min: 12, wrap: true, lines: 4}, {title: "LABELS", min: 12, wrap: true, lines: 3},
	}, rows)
	p.more("  ", len(nodes)-shown, "such nodes")
	if rest := len(c.Nodes) - len(nodes); rest > 0 {
		p.text("  ", fmt.Sprintf("%s without a problem not shown", plain.Plural(int64(rest), "node")), dim)
	}
}

func (p *printer) age(t *time.Time) string { return plain.Since(t, p.now, false) }

func (p *printer) readyCell(n *report.Node) cell {
	since := p.age(n.Since)
	switch {
	case n.Ready == true && n.Silent:
		return cell{"silent " + p.age(n.LastHeartbeat), red}
	case n.Ready == true && n.Initialising:
		return cell{"starting", yellow}
	case n.Ready == true:
		return cell{text: "yes"}
	case n.Ready == false:
		return cell{"NO " + since, red}
	}
	return cell{"UNKNOWN " + since, red}
}

func (p *printer) pending(c *report.Cluster) {
	groups := outline.Waiting(c)
	if len(groups) == 0 {
		return
	}
	p.subsection("Waiting pods, by owner and cause")
	shown := p.shown(len(groups), maxGroups)
	var rows [][]cell
	for _, g := range groups[:shown] {
		message := g.Message
		if g.ReportedBy != "" && message != "" {
			message = g.ReportedBy + ": " + message
		}
		cause := g.Cause
		if g.Bound {
			cause, message = "bound to "+cmp.Or(g.TargetNode, "nodes"), cmp.Or(message, "never started there")
		}
		rows = append(rows, []cell{
			{text: fmt.Sprint(len(g.Pods))}, {text: outline.OwnerText(&g)}, {text: cause}, {text: p.age(g.Oldest)}, {text: message},
		})
	}
	p.grid([]column{
		{title: "PODS", right: true}, {title: "OWNER", min: 14, wrap: true, lines: 3}, {title: "CAUSE", min: 10, wrap: true, lines: 2},
		{title: "SINCE", right: true}, {title: "SCHEDULER SAYS", min: 20, wrap: true, lines: p.lines(3)},
	}, rows)
	p.more("  ", len(groups)-shown, "groups of waiting pods")
}

// outcomes says how far each check could be judged; without details only
// those that were not judged in full.
func (p *printer) outcomes(c *report.Cluster) {
	var rows [][]cell
	var found, clean []string
	for _, o := range c.Checks {
		switch o.Outcome {
		case report.OutcomeFindings:
			found = append(found, o.ID)
		case report.OutcomeClean:
			clean = append(clean, o.ID)
		default:
			rows = append(rows, []cell{{text: o.ID}, {string(o.Outcome), yellow}, {text: o.Reason}})
		}
	}
	if c.Status == report.Unreachable && !p.details {
		p.raw("")
		p.text("  ", "no check was evaluated", yellow)
		return
	}
	var gaps []string
	for _, g := range c.Gaps {
		if g.Accepted || p.details {
			gaps = append(gaps, outline.GapText(&g))
		}
	}
	if len(rows) == 0 && len(gaps) == 0 && !p.details {
		return
	}
	p.subsection("How much was seen")
	if p.details {
		p.listed("  findings: ", found)
		p.listed("  clean: ", clean)
	}
	for _, text := range gaps {
		p.limited("  gap: ", text, "", 3)
	}
	p.grid([]column{{title: "CHECK", min: 14}, {title: "OUTCOME"}, {title: "WHY", min: 20, wrap: true, lines: p.lines(3)}}, rows)
}

// listed writes names after a label, nothing when there are none.
func (p *printer) listed(label string, names []string) {
	if len(names) > 0 {
		p.text(label, strings.Join(names, ", "), "")
	}
}
