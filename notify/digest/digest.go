// Package digest chooses what a reader has to see in ten seconds of a report:
// what could not be audited, what of the free devices can really be used, then
// findings by impact, each with its link and one next action. It is pure and
// knows no medium: texts in it are raw.
package digest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// Route says which part of a report goes where.
type Route struct {
	Name        string
	Clusters    []string // patterns; empty is all
	Checks      []string // empty is all
	MinSeverity report.Severity
	Mention     string
}

// Input of a digest.
type Input struct {
	Report *report.Report
	Route  Route
	// Last is the time of the report that this route's last delivered digest was
	// about; zero for none. What was first seen after it is new here.
	Last time.Time
	// Told are the findings, by Key, that this digest told the route of, with
	// their severity then. Nil where that is not kept: then Last decides.
	Told map[string]report.Severity
	// Resolved are findings, by cluster, that earlier runs found resolved and
	// that this route may not have been told of.
	Resolved map[string][]report.Finding
	// Missed names slots whose digest could not be delivered since.
	Missed []string
	// ReportURL links to the whole report, "" for none. ReportUntil is when a
	// presigned link ends; zero for one that does not.
	ReportURL   string
	ReportUntil time.Time
	// ChecklistURL is where links of findings without a base of their own lead.
	ChecklistURL string
	// Heads are the chain heads by cluster, which the medium's own time stamps.
	Heads map[string]string
}

// Item is one finding, or one line about a cluster.
type Item struct {
	Cluster  string
	Severity report.Severity
	// Word is new, the age of an ongoing finding, or resolved.
	Word   string
	Text   string
	Link   string
	Step   int
	Action string
	// Command is true when Action is a command line.
	Command bool
}

// Digest is what to post.
type Digest struct {
	Title    string
	Mention  string
	Summary  string
	Unseen   []Item
	Capacity []Item
	Findings []Item // those for the first message, by impact
	More     []Item // the rest, for the thread
	Resolved []Item
	Waiting  []Item
	Missed   []string
	Quiet    string // says that nothing is open, when all was seen
	Notes    []string
	Footer   []string
	Report   string
	// Attach are the clusters whose own report belongs to this digest: something
	// is open in them, or was not seen.
	Attach []string
	// Told are the open findings of this digest by Key, for the next one's Input.
	Told map[string]report.Severity
	// Problems is true when anything is open, unseen or missed; Changed when
	// anything is new or resolved.
	Problems, Changed bool
}

// firstFindings is how many findings the first message holds.
const firstFindings = 12

// Build makes a route's digest of a report.
func Build(in Input) *Digest {
	r := in.Report
	d := &Digest{Mention: in.Route.Mention, Report: in.ReportURL, Missed: in.Missed, Told: map[string]report.Severity{},
		Title: fmt.Sprintf("GPU audit %s", r.GeneratedAt.UTC().Format("2006-01-02 15:04 UTC"))}
	clusters := chosen(r, in.Route)
	for _, c := range clusters {
		d.cluster(c, in)
	}
	d.capacity(clusters)
	d.findings(clusters, in)
	d.Unseen, d.Resolved = bound(d.Unseen), bound(d.Resolved)
	for _, c := range told(clusters, in.Route) {
		if c.Status != report.Complete || slices.ContainsFunc(c.Findings, func(f report.Finding) bool { return f.Open() }) {
			d.Attach = append(d.Attach, c.Name)
		}
	}
	s := report.Summarise(told(clusters, in.Route))
	d.Summary = fmt.Sprintf("%s: %d complete, %d partial, %d unreachable. Open: %d critical, %d warning, %d info.",
		plain.Plural(int64(s.Clusters), "cluster"), s.Complete, s.Partial, s.Unreachable, s.Critical, s.Warning, s.Info)
	d.Problems = s.Critical+s.Warning > 0 || len(d.Unseen) > 0 || len(d.Missed) > 0
	if len(d.Told) == 0 && s.Clusters > 0 && s.Complete == s.Clusters && len(d.Unseen) == 0 {
		d.Quiet = "Nothing is open: every cluster was read whole and no check found anything."
		if in.Route.MinSeverity != "" || len(in.Route.Checks) > 0 {
			d.Quiet = "Nothing is open of what this channel is told of; every cluster was read whole."
		}
	}
	d.Footer = append(d.Footer, "run "+r.RunID)
	if !in.ReportUntil.IsZero() {
		d.Footer = append(d.Footer, "links end "+in.ReportUntil.UTC().Format("2006-01-02 15:04 UTC"))
	}
	for _, c := range clusters {
		if head := in.Heads[c.Name]; head != "" {
			d.Footer = append(d.Footer, c.Name+" "+head[:min(HeadDigits, len(head))])
		}
	}
	return d
}

// HeadDigits is how much of a chain's head a digest shows: enough that nobody
// makes another chain with the same beginning of a hash.
const HeadDigits = 24

// mostLines bounds a section of the first message, so that the findings, the
// link to the report and the footer are always in it.
const mostLines = 15

// mostUnseenText bounds one line about what was not seen, in columns: errors of
// networks can be long, and what is lost and found has to stay in the first message.
const mostUnseenText = 160

func bound(items []Item) []Item {
	if len(items) <= mostLines {
		return items
	}
	more := Item{Cluster: "…", Text: fmt.Sprintf("and %d more, in the report", len(items)-mostLines)}
	return append(items[:mostLines:mostLines], more)
}

// told are a route's clusters with the findings that it is told of.
func told(list []*report.Cluster, route Route) []report.Cluster {
	out := make([]report.Cluster, 0, len(list))
	for _, c := range list {
		one := *c
		one.Findings = nil
		for i := range c.Findings {
			if route.wants(&c.Findings[i]) {
				one.Findings = append(one.Findings, c.Findings[i])
			}
		}
		out = append(out, one)
	}
	return out
}

func chosen(r *report.Report, route Route) []*report.Cluster {
	var out []*report.Cluster
	for i := range r.Clusters {
		if matches(r.Clusters[i].Name, route.Clusters) {
			out = append(out, &r.Clusters[i])
		}
	}
	return out
}

func matches(name string, patterns []string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}

func (d *Digest) cluster(c *report.Cluster, in Input) {
	for _, text := range outline.Unseen(c, in.Report.GeneratedAt) {
		// A first run, or a dump that cannot tell, is no problem to act on. A
		// cluster that is not the one of yesterday is.
		if c.Status == report.Complete && !strings.HasPrefix(text, "not compared: ") {
			continue
		}
		d.Unseen = append(d.Unseen, Item{Cluster: c.Name, Severity: report.Warning, Text: plain.Cut(plain.Line(text), mostUnseenText)})
	}
	for _, g := range outline.Waiting(c) {
		d.Waiting = append(d.Waiting, Item{Cluster: c.Name, Text: fmt.Sprintf("%s of %s: %s", plain.Plural(int64(len(g.Pods)), "pod"), outline.OwnerText(&g), g.Cause)})
	}
}

// fewClusters may have two lines each about what they lose, and one when they lose nothing.
const fewClusters = 6

// capacity says what can really be used, the greatest loss first.
func (d *Digest) capacity(clusters []*report.Cluster) {
	lines, whole := 2, 0
	if len(clusters) > fewClusters {
		lines = 1
	}
	sorted := slices.Clone(clusters)
	slices.SortStableFunc(sorted, func(a, b *report.Cluster) int { return cmp.Compare(outline.MostLost(b), outline.MostLost(a)) })
	for _, c := range sorted {
		if lines == 1 && c.Status == report.Complete && outline.MostLost(c) == 0 {
			whole++
			continue
		}
		texts := outline.Losses(c, lines)
		if lines == 1 {
			texts = []string{strings.Join(texts, "; ")}
		}
		for _, text := range texts {
			d.Capacity = append(d.Capacity, Item{Cluster: c.Name, Text: text})
		}
	}
	d.Capacity = bound(d.Capacity)
	if whole > 0 {
		d.Capacity = append(d.Capacity, Item{Cluster: plain.Plural(int64(whole), "cluster"), Text: "nothing lost to any class"})
	}
}

// open is one open finding that a route is told of.
type open struct {
	c     *report.Cluster
	f     report.Finding
	fresh bool // the route's last digest did not tell of it
	risen bool // it is more severe than that digest said
}

// Key names a finding in Told.
func Key(cluster, id string) string { return cluster + "/" + id }

// toldOf compares a finding with what this route was told last.
func (in *Input) toldOf(cluster string, f *report.Finding) (fresh, risen bool) {
	if in.Told == nil {
		return f.FirstSeen == nil || f.FirstSeen.After(in.Last), false
	}
	before, ok := in.Told[Key(cluster, f.ID)]
	return !ok, ok && f.Severity.Rank() < before.Rank()
}

// findings sorts what is open into new and ongoing, by impact over all clusters.
func (d *Digest) findings(clusters []*report.Cluster, in Input) {
	var list []open
	actions := map[string]string{}
	mentioned := map[string]bool{} // open findings that this route is told of
	for _, c := range clusters {
		for _, rep := range c.Repairs {
			actions[c.Name+rep.Finding] = rep.Action
		}
		for i := range c.Findings {
			if f := &c.Findings[i]; f.Open() && in.Route.wants(f) {
				mentioned[c.Name+f.ID] = true
				d.Told[Key(c.Name, f.ID)] = f.Severity
			}
		}
		d.resolved(c, in)
		for _, f := range c.Findings {
			if !in.Route.wants(&f) || !f.Open() || mentioned[c.Name+f.CausedBy] {
				continue // not for here, or told with its cause
			}
			o := open{c: c, f: f}
			o.fresh, o.risen = in.toldOf(c.Name, &f)
			d.Changed = d.Changed || o.fresh || o.risen
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b open) int {
		if v := a.f.Severity.Rank() - b.f.Severity.Rank(); v != 0 {
			return v
		}
		if news := a.fresh || a.risen; news != (b.fresh || b.risen) {
			if news {
				return -1
			}
			return 1
		}
		return outline.ByImpact(a.f, b.f)
	})
	for i, o := range list {
		item := Item{Cluster: o.c.Name, Severity: o.f.Severity, Text: o.f.Title, Link: link(&o.f, in), Step: o.f.Step, Action: actions[o.c.Name+o.f.ID], Word: o.word(in)}
		if item.Action == "" && len(o.f.Commands) > 0 {
			item.Action, item.Command = o.f.Commands[0], true
		}
		if i < firstFindings {
			d.Findings = append(d.Findings, item)
		} else {
			d.More = append(d.More, item)
		}
	}
}

// word is "new" or how long a finding is known. One that earlier runs saw and
// that no digest told this route of is new here, with its age.
func (o *open) word(in Input) string {
	if o.f.FirstSeen == nil {
		return "new"
	}
	if o.f.State == report.StateUnverified {
		return outline.StateText(&o.f, in.Report.GeneratedAt)
	}
	age := plain.Age(in.Report.GeneratedAt.Sub(*o.f.FirstSeen))
	switch {
	case o.risen:
		return fmt.Sprintf("now %s, for %s", o.f.Severity, age)
	case !o.fresh:
		return "for " + age
	case o.f.State == report.StateNew:
		return "new"
	}
	return "new here, seen for " + age
}

// resolved tells what this run found resolved, and what earlier runs did since
// the last digest, unless it is open again.
func (d *Digest) resolved(c *report.Cluster, in Input) {
	seen := map[string]bool{}
	earlier := in.Resolved[c.Name]
	if in.Last.IsZero() {
		earlier = nil // nobody here was told that these were open
	}
	for _, f := range slices.Concat(c.Findings, earlier) {
		if seen[f.ID] || !in.Route.wants(&f) {
			continue
		}
		seen[f.ID] = true
		if f.State != report.StateResolved || (f.ResolvedAt != nil && !f.ResolvedAt.After(in.Last)) {
			continue
		}
		d.Changed = true
		d.Resolved = append(d.Resolved, Item{Cluster: c.Name, Severity: f.Severity, Word: "resolved", Text: f.Title + " (" + f.Resolution + ")"})
	}
}

func (r *Route) wants(f *report.Finding) bool {
	if r.MinSeverity != "" && f.Severity.Rank() > r.MinSeverity.Rank() {
		return false
	}
	return len(r.Checks) == 0 || slices.Contains(r.Checks, f.Check)
}

// link leads to the checklist's step: the finding's own, or the page beside the report.
func link(f *report.Finding, in Input) string {
	if Linkable(f.Link) {
		return f.Link
	}
	if !Linkable(in.ChecklistURL) {
		return ""
	}
	if _, anchor, ok := strings.Cut(f.Link, "#"); ok {
		return in.ChecklistURL + "#" + anchor
	}
	return in.ChecklistURL
}

// Linkable is true for what a reader elsewhere can follow: a file on this machine is no link.
func Linkable(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}
