package digest

import (
	"fmt"
	"strings"

	"gpuaudit/audit/report/plain"
)

// Text gives the digest as plain lines for a terminal.
func Text(d *Digest) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", d.Title)
	line("%s", d.Summary)
	section := func(title string, items []Item) {
		if len(items) == 0 {
			return
		}
		line("\n%s", title)
		for _, i := range items {
			parts := plain.Line(i.Cluster) + ": " + plain.Line(i.Text)
			if i.Word != "" {
				parts = "[" + i.Word + "] " + parts
			}
			if i.Severity != "" && title != "Not seen" {
				parts = string(i.Severity) + " " + parts
			}
			line("  %s", parts)
			if i.Action != "" {
				line("      -> %s", plain.Line(i.Action))
			}
			if i.Link != "" {
				line("      step %d: %s", i.Step, i.Link)
			}
		}
	}
	section("Not seen", d.Unseen)
	for _, m := range d.Missed {
		line("\nAn earlier digest was not delivered: %s", plain.Line(m))
	}
	if d.Quiet != "" {
		line("\n%s", d.Quiet)
	}
	section("What is lost", d.Capacity)
	section("Findings", d.Findings)
	if n := len(d.More); n > 0 {
		line("  and %d more, in the report", n)
	}
	section("Resolved", d.Resolved)
	section("Waiting pods", d.Waiting)
	for _, note := range d.Notes {
		line("\nNote: %s", plain.Line(note))
	}
	if d.Report != "" {
		line("\nReport: %s", d.Report)
	}
	line("\n%s", strings.Join(d.Footer, " · "))
	return b.String()
}
