package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"gpuaudit/audit"
	"gpuaudit/audit/checklist"
	"gpuaudit/audit/history"
	"gpuaudit/audit/lifecycle"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/markdown"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/snapshot"
	"gpuaudit/store/archive"
)

// earlier is what the store knew of a cluster before this run.
type earlier struct {
	snapshot *snapshot.Snapshot
	ref      *report.SnapshotRef
	// unusable says why there is a snapshot that cannot be compared with.
	unusable string
	acks     lifecycle.Acks
	// failed are store errors: the run is incomplete.
	failed []error
}

// recall reads a cluster's newest snapshot up to now, and what was acknowledged.
func recall(ctx context.Context, a *archive.Archive, cluster string, now time.Time) earlier {
	var out earlier
	if a == nil {
		return out
	}
	kept, err := a.Previous(ctx, cluster, now)
	switch {
	case errors.Is(err, archive.ErrNoSnapshot):
	case errors.As(err, new(*archive.MissingError)):
		out.failed = append(out.failed, err)
		out.unusable = "the previous snapshot is gone, so nothing is compared: " + err.Error()
	case err != nil:
		out.failed = append(out.failed, err)
		out.unusable = "the previous snapshot cannot be read: " + err.Error()
	default:
		s, err := snapshot.Decode(kept.Body)
		if err != nil {
			err = fmt.Errorf("snapshot %s: %w", kept.Key, err)
			out.failed = append(out.failed, err)
			out.unusable = "the previous snapshot cannot be read: " + err.Error()
			break
		}
		out.snapshot = s
		out.ref = &report.SnapshotRef{Key: kept.Key, CollectedAt: s.CollectedAt}
	}
	body, err := a.LoadAcks(ctx, cluster)
	if err != nil {
		out.failed = append(out.failed, err)
		return out
	}
	if out.acks, err = lifecycle.ParseAcks(body); err != nil {
		out.failed = append(out.failed, fmt.Errorf("cluster %q: %w", cluster, err))
	}
	return out
}

// keep saves the report, and each cluster's snapshot with its link of the
// chain. What fails is said; what is saved stays.
func keep(ctx context.Context, a *archive.Archive, r *report.Report, results []audit.Result, files Files) (archive.ReportRef, []error) {
	var failed []error
	kept := archive.Report{Run: r.RunID, Time: r.GeneratedAt, Files: files.All, Clusters: files.Clusters}
	ref, _, err := a.SaveReport(ctx, kept)
	if err != nil {
		failed = append(failed, err)
	}
	errs := make([]error, len(results))
	var group errgroup.Group
	group.SetLimit(judges)
	for i := range results {
		group.Go(func() error {
			errs[i] = keepSnapshot(ctx, a, r, &results[i], files)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, in the clusters' order
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return ref, failed
}

func keepSnapshot(ctx context.Context, a *archive.Archive, r *report.Report, result *audit.Result, files Files) error {
	if result.Snapshot == nil {
		return nil
	}
	body, err := snapshot.Encode(result.Snapshot)
	if err != nil {
		return err
	}
	_, err = a.SaveSnapshot(ctx, archive.Audit{
		Cluster: result.Report.Name, Time: result.Snapshot.CollectedAt, Run: r.RunID, Snapshot: body,
		Report: files.Clusters[result.Report.Name]["report.json"], ReportTime: r.GeneratedAt,
	})
	return err
}

// Files are a report's renderings, by file name.
type Files struct {
	All      map[string][]byte
	Clusters map[string]map[string][]byte
}

// Render makes all files of a report. A cluster's own files name no other cluster.
func Render(r *report.Report, trend map[string][]page.TrendPoint, history map[string][]history.Change) (Files, error) {
	files := Files{All: map[string][]byte{}, Clusters: map[string]map[string][]byte{}}
	var err error
	if files.All, err = renderings(r, page.Options{Trend: trend, History: history}); err != nil {
		return files, err
	}
	files.All["checklist.html"] = checklist.HTML()
	for i := range r.Clusters {
		name := r.Clusters[i].Name
		one, err := report.Only(r, name)
		if err != nil {
			return files, err
		}
		if files.Clusters[name], err = renderings(one, oneOptions(name, trend, history)); err != nil {
			return files, err
		}
	}
	return files, nil
}

// oneOptions are a page's options restricted to one cluster.
func oneOptions(name string, trend map[string][]page.TrendPoint, changes map[string][]history.Change) page.Options {
	return page.Options{Trend: map[string][]page.TrendPoint{name: trend[name]}, History: map[string][]history.Change{name: changes[name]}, ChecklistURL: "../checklist.html"}
}

func renderings(r *report.Report, o page.Options) (map[string][]byte, error) {
	json, err := report.Encode(r)
	if err != nil {
		return nil, err
	}
	html, err := page.Render(r, o)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"report.json": json, "report.html": html, "report.md": markdown.Render(r)}, nil
}
