package digest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
	"gpuaudit/notify/digest"
)

// quiet is a day on which nothing is open.
func quiet(t *testing.T) *report.Report {
	t.Helper()
	r := sample.Incident()
	one, err := report.Only(r, "A")
	if err != nil {
		t.Fatal(err)
	}
	for i := range one.Clusters {
		one.Clusters[i].Findings = nil
	}
	one.Summary = report.Summarise(one.Clusters)
	return one
}

// TestGolden holds the digests of typical days to testdata; UPDATE_GOLDEN=1 writes them.
func TestGolden(t *testing.T) {
	day := sample.Incident().GeneratedAt
	for name, in := range map[string]digest.Input{
		"quiet":      {Report: quiet(t), Heads: map[string]string{"A": strings.Repeat("ab", 32)}},
		"incident":   {Report: sample.Incident(), ReportURL: "https://reports.example.com/r.html", ChecklistURL: "https://reports.example.com/checklist.html"},
		"afterwards": {Report: sample.Incident(), Last: day.Add(-time.Minute), Missed: []string{"daily-1 (failed)"}},
		"partial":    {Report: sample.Partial()},
		"many":       {Report: sample.Many(40, 500)},
		"chinese":    {Report: sample.Chinese()},
		"hostile":    {Report: sample.Hostile()},
	} {
		t.Run(name, func(t *testing.T) {
			got := digest.Text(digest.Build(in))
			file := filepath.Join("testdata", name+".txt")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; run make update-golden", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("run make update-golden and read the difference: %s", diff)
			}
		})
	}
}

// one is a report of two clusters with a critical and an info finding each.
func one(now time.Time) *report.Report {
	seen := now.Add(-14 * time.Hour)
	r := &report.Report{GeneratedAt: now, RunID: "r"}
	for _, name := range []string{"a", "b"} {
		r.Clusters = append(r.Clusters, report.Cluster{Name: name, Status: report.Complete, Findings: []report.Finding{
			{ID: name + "-1", Check: "node-not-ready", Severity: report.Critical, State: report.StateOngoing, Title: "node dead in " + name, FirstSeen: &seen, Step: 1},
			{ID: name + "-2", Check: "audit-trail", Severity: report.Info, State: report.StateNew, Title: "no trail in " + name, FirstSeen: &now, Step: 8},
		}})
	}
	r.Clusters[1].Status, r.Clusters[1].Error = report.Unreachable, "connection refused"
	r.Summary = report.Summarise(r.Clusters)
	return r
}

// TestRoutes: everything in a digest is of the route's clusters, checks and severity, its summary too.
func TestRoutes(t *testing.T) {
	now := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	d := digest.Build(digest.Input{Report: one(now), Route: digest.Route{Clusters: []string{"a"}, MinSeverity: report.Warning}})
	text := digest.Text(d)
	for _, never := range []string{"b:", "dead in b", "trail", "refused", "1 unreachable"} {
		if strings.Contains(text, never) {
			t.Errorf("a route for cluster a says %q:\n%s", never, text)
		}
	}
	if !strings.Contains(text, "1 critical, 0 warning, 0 info") {
		t.Errorf("the summary counts what the route is not told of:\n%s", text)
	}
	if len(d.Attach) != 1 || d.Attach[0] != "a" {
		t.Errorf("reports of %v are attached, want a", d.Attach)
	}
	onlyTrail := digest.Build(digest.Input{Report: one(now), Route: digest.Route{Clusters: []string{"a"}, Checks: []string{"audit-trail"}}})
	if onlyTrail.Problems {
		t.Error("an info finding is called a problem")
	}
}

// TestNewIsWhatTheRouteWasNotToldOf: by the time of the report that was
// delivered, and with its age where earlier runs saw it.
func TestNewIsWhatTheRouteWasNotToldOf(t *testing.T) {
	now := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	word := func(last time.Time) string {
		return digest.Build(digest.Input{Report: one(now), Last: last, Route: digest.Route{Clusters: []string{"a"}, MinSeverity: report.Critical}}).Findings[0].Word
	}
	if got := word(time.Time{}); got != "new here, seen for 14h" {
		t.Errorf("never told: %q", got)
	}
	if got := word(now.Add(-20 * time.Hour)); got != "new here, seen for 14h" {
		t.Errorf("told of an earlier report: %q", got)
	}
	if got := word(now.Add(-14 * time.Hour)); got != "for 14h" {
		t.Errorf("told of the report that saw it first: %q", got)
	}
}

// TestResolvedInRunsThatPostNothing: the next digest tells it once.
func TestResolvedInRunsThatPostNothing(t *testing.T) {
	now := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	at := now.Add(-3 * time.Hour)
	gone := report.Finding{ID: "x", Check: "node-not-ready", Severity: report.Critical, State: report.StateResolved, Title: "node y was dead", Resolution: "ready again", ResolvedAt: &at}
	back := gone
	back.ID = "a-1"
	build := func(last time.Time) *digest.Digest {
		return digest.Build(digest.Input{Report: one(now), Last: last, Resolved: map[string][]report.Finding{"a": {gone, back}}})
	}
	if d := build(now.Add(-24 * time.Hour)); len(d.Resolved) != 1 || !strings.Contains(d.Resolved[0].Text, "node y was dead (ready again)") || !d.Changed {
		t.Errorf("resolved: %+v, want the one that is not open again", d.Resolved)
	}
	if d := build(now.Add(-time.Hour)); len(d.Resolved) != 0 {
		t.Errorf("told twice: %+v", d.Resolved)
	}
}

// TestToldDecides: what the last delivered digest told of decides what is new,
// even where the store saw it before; more severe than told is news as well.
func TestToldDecides(t *testing.T) {
	now := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	build := func(told map[string]report.Severity) *digest.Digest {
		return digest.Build(digest.Input{Report: one(now), Last: now.Add(-time.Hour), Told: told, Route: digest.Route{Clusters: []string{"a"}, MinSeverity: report.Critical}})
	}
	for _, c := range []struct {
		told    map[string]report.Severity
		word    string
		changed bool
	}{
		{nil, "for 14h", false},
		{map[string]report.Severity{}, "new here, seen for 14h", true},
		{map[string]report.Severity{"a/a-1": report.Warning}, "now critical, for 14h", true},
		{map[string]report.Severity{"a/a-1": report.Critical}, "for 14h", false},
	} {
		if d := build(c.told); d.Findings[0].Word != c.word || d.Changed != c.changed {
			t.Errorf("told %v: %q, changed %t; want %q, %t", c.told, d.Findings[0].Word, d.Changed, c.word, c.changed)
		}
	}
	if d := build(nil); len(d.Told) != 1 || d.Told["a/a-1"] != report.Critical {
		t.Errorf("this digest tells of %v, want only what its route is told", d.Told)
	}
}
