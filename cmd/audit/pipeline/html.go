package pipeline

import (
	"context"
	"iter"
	"time"

	"gpuaudit/audit/history"
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

// Trend reads the figures of earlier runs, evenly spread over the last month.
// A snapshot that cannot be read is a point less; the comparison with the
// previous one says so where it matters.
func Trend(ctx context.Context, a *archive.Archive, cluster string, now time.Time) []page.TrendPoint {
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

// changes gives what happened to a cluster's nodes since shortly before the
// oldest of its drift findings; nil when it has none. The run's own snapshot is
// the last of the sequence, whether it is kept or not.
func changes(ctx context.Context, a *archive.Archive, c *report.Cluster, own *snapshot.Snapshot) []history.Change {
	if a == nil || own == nil {
		return nil
	}
	since := time.Time{}
	for _, f := range c.Findings {
		drift := f.Check == "label-drift" || f.Check == "node-recreated" || f.Check == "node-disappeared"
		if drift && f.FirstSeen != nil && (since.IsZero() || f.FirstSeen.Before(since)) {
			since = *f.FirstSeen
		}
	}
	if since.IsZero() {
		return nil
	}
	from := since.AddDate(0, 0, -2)
	if oldest := own.CollectedAt.AddDate(0, 0, -trendDays); from.Before(oldest) {
		from = oldest
	}
	return history.Build(c.Name, versions(ctx, a, c.Name, from, own), history.Filter{}).Changes
}

func versions(ctx context.Context, a *archive.Archive, cluster string, from time.Time, own *snapshot.Snapshot) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		for v, err := range Versions(ctx, a, cluster, from, own.CollectedAt.Add(-time.Millisecond)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(v.Snapshot, v.Err) {
				return
			}
		}
		yield(own, nil)
	}
}
