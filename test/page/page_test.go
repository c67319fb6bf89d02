// Package page opens the HTML report in a real browser: nothing sticks out at
// 400 and 1280 pixels or on paper, nothing is hidden in print, nothing is
// fetched or run, hostile text stays text, and axe-core finds nothing to say
// about it in light and dark.
//
// It needs node, npm for the first run, and a Chromium. Set BROWSER to its
// path if it is not found by itself.
package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/report/sample"
	"gpuaudit/audit/snapshot"
)

// seen is what the browser saw of one page in one way.
type seen struct {
	File, ColorScheme         string
	Width                     int
	Paper                     bool
	Console, Requests         []string
	Sideways, Foreign, Hidden []string
	Axe                       []string
	Rules, Pages              int
	PDF                       string `json:"pdf"`
}

func (s seen) name() string {
	if s.Paper {
		return s.File + " on paper"
	}
	return fmt.Sprintf("%s, %s, %d pixels", s.File, s.ColorScheme, s.Width)
}

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("BROWSER"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Fatal("no browser: install chromium, or set BROWSER to the path of a Chromium")
	return ""
}

// browse opens all pages of a folder.
func browse(t *testing.T, folder string) []seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	chromium := browser(t)
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("no %s: install Node.js 20 or newer to drive the browser", tool)
		}
	}
	if _, err := os.Stat("node_modules/axe-core/axe.min.js"); err != nil {
		if out, err := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
			t.Fatalf("npm ci: %v: %s", err, out)
		}
	}
	args := []string{"browse.mjs", chromium, folder}
	if shots := os.Getenv("SCREENSHOTS"); shots != "" {
		args = append(args, shots)
	}
	var errs strings.Builder
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the browser failed: %v: %s", err, errs.String())
	}
	var all []seen
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return all
}

func write(t *testing.T, folder, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// options have a trend and a history for one cluster.
func options(cluster string) page.Options {
	var points []page.TrendPoint
	for i := range 14 {
		free, usable := int64(6+i%6), int64(6-i/3)
		f := snapshot.Figure{Resource: sample.GPU, Capacity: 120, Allocatable: 120, Free: &free, Schedulable: &usable}
		if i == 6 {
			f.Free, f.Schedulable = nil, nil
		}
		points = append(points, page.TrendPoint{At: sample.Now.AddDate(0, 0, i-14), Figures: []snapshot.Figure{f}})
	}
	prod := "prod"
	changes := []history.Change{{
		Node: "ujx4guefbh", What: history.Label, Key: "node_env", Old: &prod, After: sample.Now.AddDate(0, 0, -1), Before: sample.Now,
		SetBy: &snapshot.SetBy{Manager: "node-controller", Operation: "Update"},
	}}
	return page.Options{Trend: map[string][]page.TrendPoint{cluster: points}, History: map[string][]history.Change{cluster: changes}}
}

func TestInABrowser(t *testing.T) {
	folder := t.TempDir()
	hostile := sample.Hostile()
	for name, r := range map[string]*report.Report{
		"incident": sample.Incident(), "partial": sample.Partial(), "hostile": hostile, "chinese": sample.Chinese(),
		"large": sample.Large(2000, 300), "empty": {SchemaVersion: report.SchemaVersion, GeneratedAt: sample.Now},
	} {
		o := options("C")
		if name == "hostile" {
			o = options(hostile.Clusters[0].Name)
		}
		data, err := page.Render(r, o)
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name+".html", data)
	}
	all := browse(t, folder)
	if len(all) != 6*5 {
		t.Fatalf("%d looks at pages, want 6 pages in 5 ways", len(all))
	}
	for _, s := range all {
		for what, list := range map[string][]string{
			"the console says": s.Console, "it asked the network for": s.Requests, "sticks out": s.Sideways, "markup from text": s.Foreign,
			"not on paper": s.Hidden, "axe-core": s.Axe,
		} {
			for _, line := range list {
				t.Errorf("%s: %s: %s", s.name(), what, line)
			}
		}
		switch {
		case s.Paper && (s.PDF != "%PDF-" || s.Pages == 0):
			t.Errorf("%s: printing gave no PDF", s.name())
		case !s.Paper && s.Rules < 15:
			t.Errorf("%s: axe-core passed %d rules only: did it run?", s.name(), s.Rules)
		}
	}
}

// TestTheChecksCanFail opens a page with every fault that the other test looks for.
func TestTheChecksCanFail(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "bad.html", []byte(`<!doctype html><html><body><main><p style="width:2000px;color:#eee">wide and pale</p>
<img src="http://127.0.0.1:9/x.png"><a href="javascript:alert(1)">x</a><script>console.error("ran")</script>
<details><summary>more</summary><p>hidden on paper</p></details><svg width="100%" height="20"><text x="99%" y="10">text beyond the edge</text></svg>
</main></body></html>`))
	for _, s := range browse(t, folder) {
		lists := map[string][]string{"console": s.Console, "requests": s.Requests, "foreign": s.Foreign, "axe": s.Axe}
		if s.Paper {
			lists = map[string][]string{"hidden": s.Hidden}
		}
		lists["sideways"] = s.Sideways
		for what, list := range lists {
			if len(list) == 0 {
				t.Errorf("%s: the fault %q was not seen", s.name(), what)
			}
		}
	}
}
