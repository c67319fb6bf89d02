package table

import (
	"cmp"
	"fmt"
	"strings"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

func severity(s report.Severity) (word, colour string) {
	switch s {
	case report.Critical:
		return "CRITICAL", red
	case report.Warning:
		return "WARNING", yellow
	case report.Info:
		return "info", ""
	}
	return string(s), ""
}

// findings writes the open findings by impact, each with what it causes and one next command.
func (p *printer) findings(c *report.Cluster, sorted outline.Sorted) {
	if len(sorted.Open) == 0 {
		p.subsection("No open finding")
		return
	}
	p.subsection("Findings, by impact")
	shown := p.shown(len(sorted.Open), maxFindings)
	for _, item := range sorted.Open[:shown] {
		f := &item.Finding
		word, colour := severity(f.Severity)
		p.text("  "+p.paint(colour, plain.Pad(word, 8))+"  ", f.Title, "")
		const indent = "            "
		p.text(indent, p.facts(c, f), dim)
		if p.details {
			p.evidence(indent, f)
		}
		for _, e := range item.Effects {
			p.text(indent+"also: ", fmt.Sprintf("%s (%s, %s)", e.Title, e.Check, outline.StateText(&e, p.now)), "")
		}
		if len(f.Commands) > 0 {
			p.command(indent, f.Commands[0])
		}
	}
	p.more("  ", len(sorted.Open)-shown, "findings")
}

// facts is the line under a finding's title.
func (p *printer) facts(c *report.Cluster, f *report.Finding) string {
	parts := []string{outline.StateText(f, p.now)}
	if f.Since != nil {
		parts = append(parts, "since "+plain.Since(f.Since, p.now, f.SinceAtLeast))
	}
	if worth := outline.Worth(c, f); worth != "" {
		parts = append(parts, worth)
	}
	parts = append(parts, fmt.Sprintf("step %d", f.Step), f.ID)
	return strings.Join(parts, " · ")
}

func (p *printer) evidence(indent string, f *report.Finding) {
	if f.Detail != "" {
		p.text(indent, f.Detail, "")
	}
	for _, e := range f.Evidence {
		p.limited(indent+"- ", fmt.Sprintf("%s %s: %s", e.Object, e.Path, e.Value), "", 4)
	}
}

// closed writes what was resolved and what somebody accepted.
func (p *printer) closed(sorted outline.Sorted) {
	if len(sorted.Resolved) > 0 {
		p.subsection("Resolved")
		shown := p.shown(len(sorted.Resolved), maxFindings)
		for _, f := range sorted.Resolved[:shown] {
			p.text("  ", fmt.Sprintf("%s (%s)", f.Title, cmp.Or(f.Resolution, "gone")), green)
		}
		p.more("  ", len(sorted.Resolved)-shown, "resolved findings")
	}
	if len(sorted.Acknowledged) > 0 {
		p.subsection("Acknowledged")
		shown := p.shown(len(sorted.Acknowledged), maxFindings)
		for _, f := range sorted.Acknowledged[:shown] {
			p.text("  ", f.Title+outline.AckText(f.Ack), dim)
		}
		p.more("  ", len(sorted.Acknowledged)-shown, "acknowledged findings")
	}
}
