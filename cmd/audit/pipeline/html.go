package pipeline

import (
	"context"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/snapshot"
	"gpuaudit/store/archive"
)

// HTML renders a report for a browser, without the trend of earlier runs.
func HTML(r *report.Report) ([]byte, error) { return page.Render(r, page.Options{}) }

// A trend covers a month with at most so many points, each a snapshot to read.
const (
	trendDays   = 31
	trendPoints = 24
)

// trend reads the figures of earlier runs, evenly spread over the last month.
// A snapshot that cannot be read is a point less; the comparison with the
// previous one says so where it matters.
func trend(ctx context.Context, a *archive.Archive, cluster string, now time.Time) []page.TrendPoint {
	if a == nil {
		return nil
	}
	var refs []archive.SnapshotRef
	for ref, err := range a.Snapshots(ctx, cluster, now.AddDate(0, 0, -trendDays), now) {
		if err != nil {
			return nil
		}
		refs = append(refs, ref)
	}
	var out []page.TrendPoint
	for i, ref := range refs {
		if len(refs) > trendPoints && i*trendPoints/len(refs) == (i-1)*trendPoints/len(refs) && i > 0 && i < len(refs)-1 {
			continue
		}
		kept, err := a.LoadSnapshot(ctx, ref)
		if err != nil {
			continue
		}
		if s, err := snapshot.Decode(kept.Body); err == nil {
			out = append(out, page.TrendPoint{At: s.CollectedAt, Figures: s.Figures})
		}
	}
	return out
}
