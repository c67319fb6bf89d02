package slack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
	"gpuaudit/notify/digest"
	"gpuaudit/notify/slack"
)

// TestPreview: texts of clusters stay texts, links lead where they say. With
// PREVIEW_DIR set the pages are kept there to be looked at.
func TestPreview(t *testing.T) {
	for name, r := range map[string]*report.Report{"incident": sample.Incident(), "partial": sample.Partial(), "many": sample.Many(40, 12), "chinese": sample.Chinese(), "hostile": sample.Hostile()} {
		d := digest.Build(digest.Input{Report: r, ReportURL: "https://reports.example.com/r.html?a=1&b=2", Missed: []string{"daily-1 (failed)"}})
		page, err := slack.Preview(slack.Messages(d, true))
		if err != nil {
			t.Fatal(err)
		}
		if dir := os.Getenv("PREVIEW_DIR"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name+".html"), page, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text := string(page)
		if !strings.Contains(text, `<a href="https://reports.example.com/r.html?a=1&amp;b=2" rel="noreferrer">The whole report</a>`) {
			t.Errorf("%s: the link to the report is broken", name)
		}
		for _, never := range []string{"<script", "<img", `href="javascript`} {
			if strings.Contains(strings.ToLower(text), never) {
				t.Errorf("%s: the page holds %q", name, never)
			}
		}
	}
}
