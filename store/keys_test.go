package store

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestKeysOfTheContract(t *testing.T) {
	at := time.Date(2026, 6, 1, 17, 30, 5, 123_456_789, time.FixedZone("CST", 8*3600))
	for got, want := range map[string]string{
		SnapshotKey("C", at, "r-1"):                     "clusters/C/snapshots/20260601T093005.123Z-r-1.json.gz",
		HeaderKey("C", at, "r-1"):                       "clusters/C/chain/20260601T093005.123Z-r-1.json",
		LatestKey("C"):                                  "clusters/C/latest.json",
		AcksKey("C"):                                    "clusters/C/acks.json",
		ReportKey(at, "r-1", "report.html"):             "reports/2026/06/01/r-1/report.html",
		ClusterReportKey(at, "r-1", "C", "report.json"): "reports/2026/06/01/r-1/C/report.json",
		SlotKey("audit-29012345"):                       "slots/audit-29012345.json",
		SlotKey("2026-06-01T09:30:00+08:00"):            "slots/2026-06-01T09!3A30!3A00!2B08!3A00.json",
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
		if err := CheckKey(got); err != nil {
			t.Error(err)
		}
	}
	// A day is one of UTC, like the times.
	if got := ReportPrefix(time.Date(2026, 6, 1, 3, 0, 0, 0, time.FixedZone("CST", 8*3600)), "r"); got != "reports/2026/05/31/r/" {
		t.Errorf("prefix %q", got)
	}
}

func TestKeyTimesSort(t *testing.T) {
	base := time.Date(999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	var texts []string
	for _, d := range []time.Duration{0, time.Millisecond, time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour, 100_000 * time.Hour} {
		texts = append(texts, KeyTime(base.Add(d)))
	}
	if !slices.IsSorted(texts) || texts[0] == texts[1] {
		t.Errorf("not in order: %q", texts)
	}
	if got := KeyTime(base.Add(999 * time.Microsecond)); got != texts[0] {
		t.Errorf("%q is rounded up", got)
	}
}

func TestParseStamp(t *testing.T) {
	at := time.Date(2026, 6, 1, 9, 30, 5, 123_000_000, time.UTC)
	for _, key := range []string{SnapshotKey("a", at, "run-1"), HeaderKey("a", at, "run-1")} {
		got, run, ok := ParseStamp(key)
		if !ok || !got.Equal(at) || run != "run-1" {
			t.Errorf("%q: %v, %q, %v", key, got, run, ok)
		}
	}
	for _, key := range []string{
		"", "latest.json", "20260601T093005.123Z.json", "20260601T093005.123Z-.json", "20260601T093005Z-r.json", "20261301T093005.123Z-r.json",
		"20260601T093005.123Z-r.txt", "20260601T093005.123Zxr.json", "20260601T093005.123Z-R.json", "x20260601T093005.123Z-r.json",
	} {
		if at, run, ok := ParseStamp(key); ok {
			t.Errorf("%q is read as %v of run %q", key, at, run)
		}
	}
}

func TestRuns(t *testing.T) {
	at := time.Date(2026, 6, 1, 9, 30, 5, 0, time.FixedZone("x", 3600))
	seen := map[string]bool{}
	for range 200 {
		run := NewRun(at)
		if err := CheckRun(run); err != nil {
			t.Fatal(err)
		}
		if got, ok := RunTime(run); !ok || !got.Equal(at) {
			t.Fatalf("run %q: time %v, %v", run, got, ok)
		}
		seen[run] = true
	}
	if len(seen) != 200 {
		t.Errorf("200 runs of one millisecond have %d ids", len(seen))
	}
	last := ""
	for ms := range 1000 {
		run := NewRun(at.Truncate(time.Second).Add(time.Duration(ms) * time.Millisecond))
		if run <= last {
			t.Fatalf("%s of millisecond %d sorts before %s", run, ms, last)
		}
		last = run
	}
	if a, b := NewRun(at), NewRun(at.Add(time.Second)); a >= b {
		t.Errorf("run ids %q and %q do not sort by time", a, b)
	}
	for _, run := range []string{"", "A", "-a", "_a", "a/b", "a.b", "..", "a b", "é", strings.Repeat("a", 65)} {
		if CheckRun(run) == nil {
			t.Errorf("run id %q is taken", run)
		}
	}
	if _, ok := RunTime("by-hand"); ok {
		t.Error("a run named by hand has a time")
	}
}

func TestContentTypes(t *testing.T) {
	for key, want := range map[string]string{
		"a/report.html": "text/html; charset=utf-8", "a/report.md": "text/markdown; charset=utf-8", "a/report.json": "application/json",
		"a/x.json.gz": "application/gzip", "a/x.zip": "application/zip", "a/x.txt": "text/plain; charset=utf-8", "a/x": "application/octet-stream",
	} {
		if got := ContentType(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestSegment(t *testing.T) {
	for name, want := range map[string]string{
		"prod-a": "prod-a", "C": "C", "gke_p_z_c": "gke_p_z_c", "a.b": "a.b", "上海-1": "上海-1", "é": "é",
		"": "!", "!": "!21", ".": "!2E", "..": "!2E!2E", ".a": "!2Ea", "a.": "a!2E", "a/b": "a!2Fb", "../x": "!2E.!2Fx", "a b": "a!20b",
		"arn:aws:eks:eu-west-1:1:cluster/x": "arn!3Aaws!3Aeks!3Aeu-west-1!3A1!3Acluster!2Fx",
		"kubernetes-admin@kubernetes":       "kubernetes-admin!40kubernetes",
		"e\u0301":                           "e!CC!81", "a\xff": "a!FF", "\u202ea": "!E2!80!AEa", "🙂": "!F0!9F!99!82",
		"report.json": "!72eport.json", "Report.HTML": "!52eport.HTML", "manifest.json": "!6Danifest.json", "report.json2": "report.json2",
	} {
		if got := Segment(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if got, ok := Name(want); !ok || got != name {
			t.Errorf("%q names %q, %v; want %q", want, got, ok, name)
		}
	}
	for _, segment := range []string{"!2", "!2f", "!2F!", "!zz", "!41", "a b", "a:b", ".a", "report.json", "e\u0301"} {
		if name, ok := Name(segment); ok {
			t.Errorf("%q, which no name gives, names %q", segment, name)
		}
	}
	long := strings.Repeat("long/", 100)
	a, b := Segment(long+"a"), Segment(long+"b")
	if a == b || len(a) > maxName || !strings.HasPrefix(a, "long!2Flong") {
		t.Errorf("long names give %q and %q", a, b)
	}
	if _, ok := Name(a); ok {
		t.Error("a cut name is taken for exact")
	}
	if got := Segment(strings.Repeat("x", maxName)); got != strings.Repeat("x", maxName) {
		t.Errorf("a name that just fits is cut: %q", got)
	}
}

// FuzzSegment: every part is one that every store takes, and no two names share one.
func FuzzSegment(f *testing.F) {
	for _, seed := range [][2]string{{"a", "b"}, {"a/b", "a!2Fb"}, {"..", "."}, {strings.Repeat("长", 90), strings.Repeat("长", 91)}, {"e\u0301", "é"}, {"report.json", "!72eport.json"}, {"a\xff", "a\ufffd"}, {"!-", "!2D"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		a, b := Segment(x), Segment(y)
		if (x == y) != (a == b) {
			t.Fatalf("%q gives %q, %q gives %q", x, a, y, b)
		}
		key := ClusterReportKey(time.Unix(0, 0), "r", x, "report.json")
		if err := CheckKey(key); err != nil {
			t.Fatal(err)
		}
		if path.Clean(key) != key || strings.Count(key, "/") != 6 || len(a) > maxName {
			t.Fatalf("%q gives the key %q", x, key)
		}
		if name, ok := Name(a); ok && name != x {
			t.Fatalf("%q gives %q, which names %q", x, a, name)
		}
	})
}
