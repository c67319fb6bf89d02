// Package pipeline runs an audit from end to end: read the clusters, judge
// each against what the store knew of it, render, keep.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"gpuaudit/audit"
	"gpuaudit/audit/history"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/settings"
	"gpuaudit/audit/snapshot"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// Options of a run.
type Options struct {
	// Now is the moment of the run: the dump's, or the clock's.
	Now     time.Time
	Version string
	// Archive keeps the run and knows earlier ones; nil keeps nothing.
	Archive *archive.Archive
	// Settings gives a cluster's settings by name.
	Settings func(cluster string) settings.Settings
	// Save is false to compare with the store and keep nothing.
	Save bool
}

// Outcome of a run.
type Outcome struct {
	Report *report.Report
	// Kept names the report in the store, nil when it was not kept.
	Kept *archive.ReportRef
	// Failed is what made the run incomplete beside gaps: store errors.
	Failed []error
	// Incomplete is true when a cluster or a check could not be judged for a
	// gap that nobody accepted.
	Incomplete bool
	Files      Files
}

// Run judges and keeps clusters that were read.
func Run(ctx context.Context, clusters []*inventory.Cluster, o Options) (*Outcome, error) {
	run := store.NewRun(o.Now)
	r := &report.Report{SchemaVersion: report.SchemaVersion, RunID: run, GeneratedAt: o.Now.UTC(), Tool: report.Tool{Name: "audit", Version: o.Version}}
	out := &Outcome{Report: r}
	judged := judgeAll(ctx, clusters, o, run)
	results := make([]audit.Result, 0, len(judged))
	trends, past := map[string][]page.TrendPoint{}, map[string][]history.Change{}
	for _, j := range judged {
		out.Failed = append(out.Failed, j.failed...)
		out.Incomplete = out.Incomplete || j.result.Incomplete
		results = append(results, j.result)
		r.Clusters = append(r.Clusters, j.result.Report)
		if name := j.result.Report.Name; len(j.trend) > 0 {
			trends[name] = j.trend
		}
		if name := j.result.Report.Name; len(j.past) > 0 {
			past[name] = j.past
		}
	}
	r.Summary = report.Summarise(r.Clusters)
	var err error
	if out.Files, err = Render(r, trends, past); err != nil {
		return nil, fmt.Errorf("render the report: %w", err)
	}
	if o.Archive != nil && o.Save {
		ref, failed := keep(ctx, o.Archive, r, results, out.Files)
		out.Failed = append(out.Failed, failed...)
		if len(failed) == 0 {
			out.Kept = &ref
		}
	}
	return out, nil
}

// judgedCluster is what a run makes of one cluster.
type judgedCluster struct {
	result audit.Result
	trend  []page.TrendPoint
	past   []history.Change
	failed []error
}

// judges is how many clusters are compared with the store at once: reading a
// cluster's earlier snapshots is mostly waiting for the store.
const judges = 8

// judgeAll judges the clusters side by side, in the order given.
func judgeAll(ctx context.Context, clusters []*inventory.Cluster, o Options, run string) []judgedCluster {
	out := make([]judgedCluster, len(clusters))
	var group errgroup.Group
	group.SetLimit(judges)
	for i, c := range clusters {
		group.Go(func() error {
			if c.CollectedAt.IsZero() {
				c.CollectedAt = o.Now.UTC()
			}
			known := recall(ctx, o.Archive, c.Name, latest(c))
			follow(c, known.snapshot)
			result := audit.Evaluate(audit.Input{
				Current: c, Previous: known.snapshot, PreviousRef: known.ref, Unusable: known.unusable, Acks: known.acks,
				Settings: o.Settings(c.Name), Run: run,
			})
			out[i] = judgedCluster{result: result, failed: known.failed, trend: Trend(ctx, o.Archive, c.Name, c.CollectedAt),
				past: changes(ctx, o.Archive, &result.Report, result.Snapshot)}
			return nil
		})
	}
	_ = group.Wait() // nothing in it fails
	return out
}

// latest is the last moment that a cluster may have been read at: the Date of
// an API server's answer names a second.
func latest(c *inventory.Cluster) time.Time {
	if c.Source != inventory.Live {
		return c.CollectedAt
	}
	return c.CollectedAt.Truncate(time.Second).Add(time.Second - time.Millisecond)
}

// follow puts a read after the earlier one of the same second: by their times
// alone their order would be left to chance.
func follow(c *inventory.Cluster, earlier *snapshot.Snapshot) {
	if c.Source == inventory.Live && earlier != nil && !c.CollectedAt.After(earlier.CollectedAt) {
		c.CollectedAt = earlier.CollectedAt.Add(time.Millisecond)
	}
}

// Err joins everything that failed beside gaps.
func (o *Outcome) Err() error { return errors.Join(o.Failed...) }

// Worst is the most severe open finding, "" for none.
func (o *Outcome) Worst() report.Severity {
	worst := report.Severity("")
	for _, c := range o.Report.Clusters {
		for i := range c.Findings {
			f := &c.Findings[i]
			if f.Open() && (worst == "" || f.Severity.Rank() < worst.Rank()) {
				worst = f.Severity
			}
		}
	}
	return worst
}
