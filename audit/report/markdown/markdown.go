// Package markdown renders a report as GitHub-flavoured Markdown, fit for a
// ticket or a vendor: first what could not be seen, what is lost and what to
// do, then the clusters, then each finding with its evidence and commands.
// Everything that comes from a cluster is escaped.
package markdown

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// How much of each list is written. The JSON report has all of it.
const (
	maxActions  = 10
	maxFindings = 200
	maxNodes    = 50
	maxGroups   = 50
	maxClasses  = 50
	// maxCell is the widest cell of a table, in columns.
	maxCell = 160
)

// Render gives the whole report.
func Render(r *report.Report) []byte {
	w := &writer{now: r.GeneratedAt}
	w.head(r)
	w.unseen(r)
	w.losses(r)
	w.actions(r)
	w.clusters(r)
	for i := range r.Clusters {
		w.cluster(&r.Clusters[i])
	}
	return w.b.Bytes()
}

// RenderCluster gives the report of one cluster, which names no other. An
// unknown cluster is an error.
func RenderCluster(r *report.Report, cluster string) ([]byte, error) {
	one, err := report.Only(r, cluster)
	if err != nil {
		return nil, err
	}
	return Render(one), nil
}

type writer struct {
	b   bytes.Buffer
	now time.Time
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// heading writes a heading with blank lines around it.
func (w *writer) heading(level int, title string) {
	if !bytes.HasSuffix(w.b.Bytes(), []byte("\n\n")) {
		w.line("")
	}
	w.line("%s %s\n", strings.Repeat("#", level), title)
}

// more says how many entries are left out.
func (w *writer) more(hidden int, what string) {
	if hidden > 0 {
		w.line("\n… and %d more %s, in the JSON report.", hidden, what)
	}
}

// table writes a small table; a false in right is a column of text.
func (w *writer) table(titles []string, right []bool, rows [][]string) {
	w.line("| %s |", strings.Join(titles, " | "))
	marks := make([]string, len(titles))
	for i := range titles {
		marks[i] = "---"
		if right[i] {
			marks[i] = "---:"
		}
	}
	w.line("| %s |", strings.Join(marks, " | "))
	for _, row := range rows {
		w.line("| %s |", strings.Join(row, " | "))
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// when writes a time with its age, "unknown" when there is none.
func (w *writer) when(t *time.Time, atLeast bool) string {
	if t == nil {
		return "unknown"
	}
	if atLeast {
		return fmt.Sprintf("%s or earlier (at least %s)", stamp(*t), plain.Age(w.now.Sub(*t)))
	}
	return fmt.Sprintf("%s (%s)", stamp(*t), plain.Age(w.now.Sub(*t)))
}

func (w *writer) head(r *report.Report) {
	w.line("# GPU audit %s\n", stamp(r.GeneratedAt))
	s := r.Summary
	clusters := plain.Plural(int64(s.Clusters), "cluster")
	switch {
	case s.Clusters == 0:
		clusters = "No cluster was audited"
	case s.Complete == s.Clusters:
		clusters += ", all complete"
	default:
		clusters += fmt.Sprintf(": %d complete, **%d partial, %d unreachable**", s.Complete, s.Partial, s.Unreachable)
	}
	w.line("%s. Open findings: %d critical, %d warning, %d info; %d new, %d ongoing, %d unverified. Resolved: %d. Acknowledged: %d.\n",
		clusters, s.Critical, s.Warning, s.Info, s.New, s.Ongoing, s.Unverified, s.Resolved, s.Acknowledged)
	w.line("Run %s, %s %s.", code(r.RunID), text(r.Tool.Name), text(r.Tool.Version))
}

func (w *writer) unseen(r *report.Report) {
	begun := false
	for i := range r.Clusters {
		c := &r.Clusters[i]
		for _, line := range outline.Unseen(c, w.now) {
			if !begun {
				w.heading(2, "Not seen")
				w.line("What follows is silent about this, not clean.\n")
				begun = true
			}
			w.line("- **%s**: %s", text(c.Name), text(line))
		}
	}
}

func (w *writer) losses(r *report.Report) {
	w.heading(2, "What is lost")
	for _, c := range outline.ByLoss(r) {
		for _, line := range outline.Losses(c, 3) {
			w.line("- **%s**: %s", text(c.Name), text(line))
		}
	}
}

func (w *writer) actions(r *report.Report) {
	w.heading(2, "What to do first")
	actions := outline.Actions(r)
	if len(actions) == 0 {
		if r.Summary.Complete < r.Summary.Clusters || len(r.Clusters) == 0 {
			w.line("Make what was not seen readable. In what was seen, no critical finding is open.")
			return
		}
		w.line("Nothing urgent: no critical finding is open.")
		return
	}
	shown := min(len(actions), maxActions)
	for i, a := range actions[:shown] {
		gain := ""
		if a.Gain != "" {
			gain = " " + text("("+a.Gain+")")
		}
		w.line("%d. **%s**, step %d: %s%s", i+1, text(a.Cluster), a.Step, text(a.Text), gain)
		if a.Command != "" {
			w.line("   %s", code(a.Command))
		}
	}
	w.more(len(actions)-shown, "actions")
}

func (w *writer) clusters(r *report.Report) {
	if len(r.Clusters) == 0 {
		return
	}
	w.heading(2, "Clusters")
	var capacity, measured [][]string
	for i := range r.Clusters {
		c := &r.Clusters[i]
		b := &c.Baseline
		status := string(c.Status)
		if c.Status != report.Complete {
			status = "**" + text(status) + "**"
		}
		for j := range c.Devices {
			if d := &c.Devices[j]; d.AliasOf == "" {
				capacity = append(capacity, w.capacityRow(c, d))
			}
		}
		if len(c.Devices) == 0 {
			capacity = append(capacity, []string{cut(c.Name, 40), "?", "?", "?", "?", "?", "?", "?"})
			if c.Status != report.Unreachable && b.Nodes != nil {
				capacity[len(capacity)-1] = []string{cut(c.Name, 40), "none", "0", "0", "0", "0", "0", "0"}
			}
		}
		ready := plain.Number(b.ReadyNodes) + " of " + plain.Number(b.Nodes)
		measured = append(measured, []string{
			cut(c.Name, 40), status, ready, plain.Number(b.CordonedNodes), outline.Use(b.CPUUtilization), outline.Use(b.MemoryUtilization),
			outline.TopWord(b.MetricsAPI), text(outline.Words(b.DeviceMetrics)), plain.Number(b.PendingPods), outline.Gaps(c),
		})
	}
	w.table([]string{"Cluster", "Devices", "Capacity", "Allocatable", "Requested", "Free", "Free by the usual sum", "Usable"},
		[]bool{false, false, true, true, true, true, true, true}, capacity)
	w.line("\nUsable: what the most urgent class of workload can get. Requested is not real use. ≤ is at most: a virtual cluster or a shared " +
		"card hides what others use. The usual sum adds the requests of containers of all pods, finished ones included.\n")
	w.line("Gaps (+n): n more that the configuration accepts.\n")
	w.table([]string{"Cluster", "Status", "Ready", "Cordoned", "CPU use", "Memory use", "kubectl top", "Device metrics", "Waiting pods", "Gaps"},
		[]bool{false, false, true, true, true, true, false, false, true, true}, measured)
}

func (w *writer) capacityRow(c *report.Cluster, d *report.Device) []string {
	usable := "?"
	for _, k := range outline.Classes(c) {
		if k.Resource == d.Resource {
			usable = fmt.Sprintf("%s%d for %s", outline.AtMost(k.UpperBound && k.Schedulable > 0), k.Schedulable, cut(k.Name, 30))
			break
		}
	}
	free := plain.Number(d.Free)
	if d.Free != nil {
		free = outline.AtMost(d.UpperBound) + free
	}
	unit := cmp.Or(d.Unit, "device")
	return []string{
		cut(c.Name, 40), fmt.Sprintf("%s (%s)", cut(d.Resource, 60), text(unit)), fmt.Sprint(d.Capacity), fmt.Sprint(d.Allocatable),
		plain.Number(d.Requested), free, plain.Number(d.Naive.Free), usable,
	}
}
