package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark"

	"gpuaudit/audit/checklist"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
)

type findingView struct {
	ID, Check, Severity, State, Title, Detail, Worth, Since, FirstSeen, LastSeen string
	Subject, Node, Label, Quota, CausedBy, Devices                               string
	Objects                                                                      string
	Evidence                                                                     []report.Evidence
	MoreEvidence                                                                 int
	Commands                                                                     []string
	StepNumber                                                                   int
	StepTitle, Question, Link                                                    string
	Effect                                                                       bool
	Open                                                                         bool
}

// step is a step of the checklist that findings of the page point to.
type step struct {
	Number          int
	Title, Question string
	Link            string
	Why, Do         template.HTML
}

func (b *builder) findingsOf(v *clusterView, c *report.Cluster) {
	sorted := outline.Findings(c)
	for _, item := range sorted.Open {
		for i, f := range append([]report.Finding{item.Finding}, item.Effects...) {
			size := textOf(&f)
			if b.findings == 0 || size > b.findingText {
				v.FindingsLeftOut++
				continue
			}
			b.findings--
			b.findingText -= size
			v.Findings = append(v.Findings, b.finding(c, &f, i > 0))
		}
	}
	resolved, more := cut(sorted.Resolved, maxFindings/10)
	v.MoreClosed = more
	for _, f := range resolved {
		how := fmt.Sprintf("%s; first seen %s", cmp.Or(f.Resolution, "gone"), moment(f.FirstSeen, b.now, false))
		if f.ResolvedAt != nil {
			how += ", resolved " + stamp(*f.ResolvedAt)
		}
		v.Resolved = append(v.Resolved, closed{f.ID, f.Title, how})
	}
	acknowledged, more := cut(sorted.Acknowledged, maxFindings/10)
	v.MoreClosed += more
	for _, f := range acknowledged {
		v.Acknowledged = append(v.Acknowledged, closed{f.ID, f.Title, strings.TrimSpace(strings.Trim(outline.AckText(f.Ack), " ()"))})
	}
}

// textOf is about how many bytes of the cluster's text a finding brings.
func textOf(f *report.Finding) int {
	n := len(f.Title) + len(f.Detail) + len(f.Subject.Name) + len(f.Label) + len(f.ID)
	for _, e := range f.Evidence[:min(len(f.Evidence), maxEvidence)] {
		n += len(e.Object) + len(e.Path) + len(e.Value)
	}
	for _, o := range f.Objects[:min(len(f.Objects), maxObjects)] {
		n += len(o)
	}
	for _, c := range f.Commands {
		n += len(c)
	}
	return n
}

func (b *builder) finding(c *report.Cluster, f *report.Finding, effect bool) findingView {
	v := findingView{
		ID: f.ID, Check: f.Check, Severity: string(f.Severity), State: outline.StateText(f, b.now), Title: f.Title, Detail: f.Detail,
		Worth: outline.Worth(c, f), Since: moment(f.Since, b.now, f.SinceAtLeast), FirstSeen: moment(f.FirstSeen, b.now, false),
		LastSeen: moment(f.LastSeen, b.now, false), Subject: f.Subject.String(), Node: f.Node, Label: f.Label, CausedBy: f.CausedBy,
		Objects: names(f.Objects, maxObjects), Commands: f.Commands, StepNumber: f.Step, Link: b.link(f.Link, f.Step), Effect: effect,
		Open: f.Severity == report.Critical && !effect,
	}
	v.Evidence, v.MoreEvidence = cut(f.Evidence, maxEvidence)
	if f.Quota != nil {
		v.Quota = quotaText(f.Quota)
	}
	if f.Devices > 0 && f.Impact.Devices == 0 {
		v.Devices = outline.Units(f.Devices, outline.MainUnit(c)) + ", counted at the cause"
		if f.CausedBy == "" {
			v.Devices = outline.Units(f.Devices, outline.MainUnit(c)) + ", counted elsewhere"
		}
	}
	if s, ok := checklist.ByNumber(f.Step); ok {
		v.StepTitle, v.Question = s.Title, s.Question
		b.steps[f.Step] = true
	}
	return v
}

// quotaText says whose quota it is and how it holds back.
func quotaText(q *report.Quota) string {
	first := "a " + q.Source + " quota"
	if q.Source == "native" {
		first = "ResourceQuota"
	}
	parts := []string{first}
	for _, p := range []struct{ label, value string }{
		{"", q.Name}, {"resource ", q.Resource}, {"", q.Mode}, {"used ", q.Used}, {"hard ", q.Hard}, {"reported by ", q.Reporter},
	} {
		if p.value != "" {
			parts = append(parts, p.label+p.value)
		}
	}
	return strings.Join(parts, ", ")
}

// checklist adds the steps that the page's findings point to, so that the page
// can be read without it.
func (b *builder) checklist() {
	for _, s := range checklist.All() {
		if !b.steps[s.Number] {
			continue
		}
		b.out.Steps = append(b.out.Steps, step{
			Number: s.Number, Title: s.Title, Question: s.Question, Link: b.link("", s.Number), Why: markdown(s.Why), Do: markdown(s.Do),
		})
	}
}

// markdown turns the program's own text of a step into HTML.
func markdown(own string) template.HTML {
	var out bytes.Buffer
	if err := goldmark.Convert([]byte(own), &out); err != nil {
		return template.HTML(template.HTMLEscapeString(own)) //nolint:gosec // escaped here
	}
	return template.HTML(out.String()) //nolint:gosec // rendered from the program's own embedded text; raw HTML is dropped
}

func stepsByCheck() map[string]int {
	out := map[string]int{}
	for _, s := range checklist.All() {
		for _, id := range s.Checks {
			out[id] = s.Number
		}
	}
	return out
}

// urgent gives findings in the order of their impact.
func urgent(list []report.Finding) []report.Finding {
	out := slices.Clone(list)
	slices.SortStableFunc(out, outline.ByImpact)
	return out
}
