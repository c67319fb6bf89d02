package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/page"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store/archive"
)

// figures are the free and usable devices of the stored runs up to the report's own.
func figures(ctx context.Context, a *archive.Archive, c *report.Cluster) []page.TrendPoint {
	if c.CollectedAt == nil {
		return nil
	}
	return pipeline.Trend(ctx, a, c.Name, *c.CollectedAt)
}

// renameClasses gives the classes of a trend the pseudonyms that the report has for them.
func renameClasses(trend []page.TrendPoint, redact func(string) string) {
	for _, p := range trend {
		for i := range p.Figures {
			renamed := map[string]int64{}
			for name, n := range p.Figures[i].Classes {
				renamed[redact(name)] = n
			}
			p.Figures[i].Classes = renamed
		}
	}
}

// ticket is a short text for the vendor's form: contact and facts first, then
// what is open by impact, then what is over. A redacted report gives a redacted ticket;
// the vendor's own name and contact are no secret to the vendor.
func ticket(r *report.Report, c *report.Cluster, v config.Vendor) []byte {
	var b strings.Builder
	sorted := outline.Findings(c)
	// What we accepted is a fact all the same.
	for _, f := range sorted.Acknowledged {
		sorted.Open = append(sorted.Open, outline.Item{Finding: f})
	}
	open, over := sorted.Open, sorted.Resolved
	fmt.Fprintf(&b, "# GPU cluster %s: %s\n\n", clean(c.Name), findingCount(len(open), len(over)))
	if v.Name != "" || v.Contact != "" {
		fmt.Fprintf(&b, "To: %s\n", strings.TrimSpace(clean(v.Name+" "+v.Contact)))
	}
	if v.TicketURL != "" {
		fmt.Fprintf(&b, "Form: %s\n", clean(v.TicketURL))
	}
	fmt.Fprintf(&b, "Seen: %s by a read-only audit (run %s)\n", utc(r.GeneratedAt), clean(r.RunID))
	for _, line := range outline.Losses(c, 5) {
		fmt.Fprintf(&b, "Devices: %s\n", clean(line))
	}
	for i := range c.Gaps {
		fmt.Fprintf(&b, "Not seen: %s\n", clean(outline.GapText(&c.Gaps[i])))
	}
	fmt.Fprintln(&b)
	for i := range open {
		item(&b, &open[i].Finding)
		for _, f := range open[i].Effects {
			fmt.Fprintf(&b, "  - with it: %s\n", clean(f.Title))
		}
	}
	if len(over) > 0 {
		fmt.Fprint(&b, "\nNo longer so, for the record:\n\n")
	}
	for i := range over {
		item(&b, &over[i])
	}
	fmt.Fprint(&b, "\nThe attached bundle holds the objects as they were read, the history, and hashes of everything; `audit verify` checks it.\n")
	return []byte(b.String())
}

func findingCount(open, over int) string {
	s := fmt.Sprintf("%d open findings", open)
	if open == 1 {
		s = "1 open finding"
	}
	if over > 0 {
		s += fmt.Sprintf(", %d resolved", over)
	}
	return s
}

// item writes a finding with its evidence. The title of a resolved one speaks
// of the time when it was last seen.
func item(b *strings.Builder, f *report.Finding) {
	fmt.Fprintf(b, "- %s", clean(f.Title))
	if f.Since != nil {
		fmt.Fprintf(b, " (since %s)", utc(*f.Since))
	}
	if f.State == report.StateResolved {
		fmt.Fprint(b, ": resolved")
		if f.ResolvedAt != nil {
			fmt.Fprintf(b, ", seen so at %s", utc(*f.ResolvedAt))
		}
		if f.LastSeen != nil {
			fmt.Fprintf(b, ", last seen open at %s", utc(*f.LastSeen))
		}
	}
	fmt.Fprintln(b)
	for _, e := range f.Evidence {
		fmt.Fprintf(b, "  - %s %s: %s\n", clean(e.Object), clean(e.Path), clean(e.Value))
	}
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

const method = `# Method

Everything here was read with get and list from the cluster's own API server, at the times given; nothing was changed on it.
Each run's snapshot and report are hashed into a header that also holds the hash of the header before it (chain.json holds these headers). Changing an
older snapshot or report would change its hash, and with it every later header. manifest.json has the hash of every file of this bundle.
A head of the chain that was published at the time (in a chat message, say) shows that what it covers existed then.
What it does not show: that the API server told the truth, or what happened between two runs; each change is given with the two runs between which it happened.
gaps.json lists what could not be read; nothing is concluded from what was not seen.
`
