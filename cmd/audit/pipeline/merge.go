package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/snapshot"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// Merge makes one report of those of several processes, each of its own
// clusters, and keeps it. The same parts give the same run id and bytes, so it
// does not matter how many processes merge them.
func Merge(ctx context.Context, parts []*report.Report, o Options) (*Outcome, error) {
	r := &report.Report{SchemaVersion: report.SchemaVersion, Tool: report.Tool{Name: "audit", Version: o.Version}}
	var runs []string
	for _, p := range parts {
		runs = append(runs, p.RunID)
		if p.GeneratedAt.After(r.GeneratedAt) {
			r.GeneratedAt = p.GeneratedAt
		}
		for _, c := range p.Clusters {
			if slices.ContainsFunc(r.Clusters, func(k report.Cluster) bool { return k.Name == c.Name }) {
				return nil, fmt.Errorf("merge: cluster %q is in two shares; all processes of a slot need the same configuration", c.Name)
			}
			r.Clusters = append(r.Clusters, c)
		}
	}
	slices.Sort(runs)
	r.RunID = mergedRun(r.GeneratedAt, runs)
	slices.SortFunc(r.Clusters, func(a, b report.Cluster) int { return strings.Compare(a.Name, b.Name) })
	r.Summary = report.Summarise(r.Clusters)
	out := &Outcome{Report: r}
	var err error
	trends, past := pastOf(ctx, o.Archive, r)
	if out.Files, err = Render(r, trends, past); err != nil {
		return nil, fmt.Errorf("render the merged report: %w", err)
	}
	if o.Archive != nil {
		ref, _, err := o.Archive.SaveReport(ctx, archive.Report{Run: r.RunID, Time: r.GeneratedAt, Files: out.Files.All, Clusters: out.Files.Clusters})
		switch {
		case err == nil, errors.Is(err, store.ErrExists): // another process of another version may have been first
			out.Kept = &ref
			if err != nil {
				out.Kept = &archive.ReportRef{Run: r.RunID, Day: r.GeneratedAt.UTC().Truncate(24 * time.Hour)}
			}
		default:
			out.Failed = append(out.Failed, err)
		}
	}
	return out, nil
}

// pastOf reads the trend and the nodes' changes of a report's clusters from the store.
func pastOf(ctx context.Context, a *archive.Archive, r *report.Report) (map[string][]page.TrendPoint, map[string][]history.Change) {
	trends, past := map[string][]page.TrendPoint{}, map[string][]history.Change{}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if a == nil || c.CollectedAt == nil {
			continue
		}
		kept, err := a.Previous(ctx, c.Name, *c.CollectedAt)
		if err != nil {
			continue // no snapshot of an unreachable cluster; the report says so
		}
		own, err := snapshot.Decode(kept.Body)
		if err != nil {
			continue
		}
		trends[c.Name], past[c.Name] = Trend(ctx, a, c.Name, *c.CollectedAt), changes(ctx, a, c, own)
	}
	return trends, past
}

// mergedRun makes the run id from the parts', in the form that store.NewRun gives.
func mergedRun(at time.Time, runs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(runs, "\n")))
	tail := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:8])
	return store.NewRun(at)[:len("20060102-150405-")] + tail
}
