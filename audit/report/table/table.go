// Package table renders a report for a terminal: first what could not be seen,
// what is lost and what to do, then the clusters side by side, then each
// cluster. Unknown values are "?", never 0. No line is wider than asked for.
package table

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// Options of a rendering.
type Options struct {
	// Width in columns; 0 is 80, anything below 40 is 40.
	Width int
	// Color paints severities. Whether the reader wants colour (a terminal, NO_COLOR) is the caller's to know.
	Color bool
	// Details leaves nothing out: every finding, node, class and waiting group,
	// details and evidence of findings, every check's outcome.
	Details bool
}

// How much of each list is shown without Details.
const (
	maxLossClusters = 12
	maxActions      = 5
	maxFindings     = 15
	maxNodes        = 12
	maxClasses      = 8
	maxGroups       = 10
	maxUnseen       = 4
	fewNodes        = 4
)

// Render writes the report to w.
func Render(w io.Writer, r *report.Report, o Options) error {
	if o.Width == 0 {
		o.Width = 80
	}
	out := bufio.NewWriter(w)
	p := &printer{w: out, width: max(o.Width, 40), colour: o.Color, details: o.Details, now: r.GeneratedAt}
	p.head(r)
	p.unseen(r)
	p.losses(r)
	p.actions(r)
	p.clusters(r)
	var quiet []string
	for i := range r.Clusters {
		if c := &r.Clusters[i]; o.Details || !isQuiet(c) {
			p.cluster(c)
		} else {
			quiet = append(quiet, plain.Line(c.Name))
		}
	}
	if len(quiet) > 0 {
		p.section("NO FINDING, NO POD WAITS")
		p.text("  ", strings.Join(quiet, ", "), green)
	}
	if p.err != nil {
		return fmt.Errorf("render report %q: %w", r.RunID, p.err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report %q: %w", r.RunID, err)
	}
	return nil
}

// SGR sequences. Nothing else is ever sent to the terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "1;31"
	yellow = "33"
	green  = "32"
	cyan   = "36"
)

type printer struct {
	w       *bufio.Writer
	width   int
	colour  bool
	details bool
	now     time.Time
	err     error
}

// raw writes a line that is clean and fits.
func (p *printer) raw(line string) {
	p.w.WriteString(line) //nolint:errcheck // the buffer keeps the error for Flush
	p.w.WriteByte('\n')   //nolint:errcheck // as above
}

func (p *printer) paint(colour, text string) string {
	if !p.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// painted matches what paint adds.
var painted = regexp.MustCompile("\x1b\\[[0-9;]+m")

// text writes a paragraph: first begins the first line, the others hang under it.
func (p *printer) text(first, text, colour string) {
	p.limited(first, text, colour, 0)
}

// limited is text cut to a number of lines; 0 is no limit.
func (p *printer) limited(first, text, colour string, limit int) {
	indent := plain.Width(painted.ReplaceAllString(first, ""))
	hanging := strings.Repeat(" ", indent)
	room := p.width - indent
	lines := plain.Wrap(plain.Line(text), room)
	if limit > 0 && len(lines) > limit {
		lines = append(lines[:limit-1], plain.Cut(strings.Join(lines[limit-1:], " "), room))
	}
	for i, line := range lines {
		if i > 0 {
			first = hanging
		}
		p.raw(first + p.paint(colour, line))
	}
}

func (p *printer) section(title string) {
	p.raw("")
	p.raw(p.paint(bold, plain.Cut(plain.Line(title), p.width)))
}

// more says how many entries of a list are not shown.
func (p *printer) more(indent string, hidden int, what string) {
	if hidden > 0 {
		p.text(indent, fmt.Sprintf("… and %d more %s (all of them: -o markdown or -o json)", hidden, what), dim)
	}
}

// shown limits a list's length unless details are wanted.
func (p *printer) shown(n, limit int) int {
	if p.details {
		return n
	}
	return min(n, limit)
}

func (p *printer) head(r *report.Report) {
	p.text("", fmt.Sprintf("GPU audit %s, run %s", r.GeneratedAt.UTC().Format("2006-01-02 15:04 UTC"), r.RunID), bold)
	s := r.Summary
	clusters := plain.Plural(int64(s.Clusters), "cluster")
	switch {
	case s.Clusters == 0:
		clusters = "No cluster was audited"
	case s.Complete == s.Clusters:
		clusters += ", all complete"
	default:
		clusters += fmt.Sprintf(": %d complete, %d PARTIAL, %d UNREACHABLE", s.Complete, s.Partial, s.Unreachable)
	}
	p.text("", fmt.Sprintf("%s. Open findings: %d critical, %d warning, %d info", clusters, s.Critical, s.Warning, s.Info), "")
	states := fmt.Sprintf("%d new, %d ongoing, %d resolved, %d acknowledged", s.New, s.Ongoing, s.Resolved, s.Acknowledged)
	if s.Unverified > 0 {
		states += fmt.Sprintf(", %d unverified", s.Unverified)
	}
	p.text("", states, "")
}

func (p *printer) unseen(r *report.Report) {
	type group struct {
		names string
		lines []string
	}
	var groups []group
	for i := range r.Clusters {
		c := &r.Clusters[i]
		lines := outline.Unseen(c, p.now)
		// Clusters of which the same was not seen share their lines.
		at := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.lines, lines) })
		switch {
		case len(lines) == 0:
		case at >= 0 && plain.Width(groups[at].names) < p.width/2:
			groups[at].names += ", " + p.label(c)
		default:
			groups = append(groups, group{p.label(c), lines})
		}
	}
	if len(groups) > 0 {
		p.section("NOT SEEN (what follows is silent about it, not clean)")
	}
	for _, g := range groups {
		for j, line := range g.lines[:p.shown(len(g.lines), maxUnseen)] {
			label := "  ! " + g.names + ": "
			if j > 0 {
				label = strings.Repeat(" ", plain.Width(label))
			}
			p.limited(label, line, red, 3)
		}
		p.more("    ", len(g.lines)-p.shown(len(g.lines), maxUnseen), "gaps")
	}
}

// label is a cluster's name, short enough to stand before a text.
func (p *printer) label(c *report.Cluster) string {
	return plain.CutMiddle(plain.Line(c.Name), max(10, p.width/5))
}

// losses says what is lost in each cluster, most devices first. Clusters that
// lose nothing share a line when there are many.
func (p *printer) losses(r *report.Report) {
	p.section("WHAT IS LOST")
	var order []*report.Cluster
	var whole []string
	for _, c := range outline.ByLoss(r) {
		if len(r.Clusters) > 3 && c.Status != report.Unreachable && len(c.Classes) > 0 && outline.MostLost(c) == 0 {
			whole = append(whole, plain.Line(c.Name))
			continue
		}
		order = append(order, c)
	}
	shown := p.shown(len(order), maxLossClusters)
	for _, c := range order[:shown] {
		label := "  " + p.label(c) + ": "
		colour := ""
		if c.Status == report.Unreachable || outline.MostLost(c) > 0 {
			colour = red
		}
		for _, line := range outline.Losses(c, 2) {
			p.text(label, line, colour)
			label, colour = strings.Repeat(" ", plain.Width(label)), ""
		}
	}
	p.more("  ", len(order)-shown, "clusters")
	if len(whole) > 0 {
		p.limited("  ", "nothing lost: "+strings.Join(whole, ", "), green, 2)
	}
}

func (p *printer) actions(r *report.Report) {
	actions := outline.Actions(r)
	p.section("WHAT TO DO FIRST")
	if len(actions) == 0 {
		if r.Summary.Complete < r.Summary.Clusters || len(r.Clusters) == 0 {
			p.text("  ", "Make what was not seen readable. In what was seen, no critical finding is open.", "")
			return
		}
		p.text("  ", "Nothing urgent: no critical finding is open.", green)
		return
	}
	shown := p.shown(len(actions), maxActions)
	for i, a := range actions[:shown] {
		text := fmt.Sprintf("%s, step %d: %s", plain.CutMiddle(plain.Line(a.Cluster), 24), a.Step, a.Text)
		if a.Gain != "" {
			text += " (" + a.Gain + ")"
		}
		p.text(fmt.Sprintf("  %d. ", i+1), text, "")
		p.command("     ", a.Command)
	}
	p.more("  ", len(actions)-shown, "actions")
}

// command writes a shell line that stays whole when pasted: a long one goes on
// after a backslash, one that cannot be broken well is left out and said.
func (p *printer) command(indent, command string) {
	if command == "" {
		return
	}
	lines, ok := breakCommand(plain.Line(command), p.width-len(indent))
	if !ok {
		p.text(indent, "(a command too long for this width: see -o markdown)", dim)
		return
	}
	for _, line := range lines {
		p.raw(indent + p.paint(cyan, line))
	}
}
