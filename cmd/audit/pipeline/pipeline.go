// Package pipeline runs an audit from end to end: read the clusters, judge
// each against what the store knew of it, render, keep.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpuaudit/audit"
	"gpuaudit/audit/history"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/settings"
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
	var results []audit.Result
	for _, c := range clusters {
		if c.CollectedAt.IsZero() {
			c.CollectedAt = o.Now.UTC()
		}
		known := recall(ctx, o.Archive, c.Name, c.CollectedAt)
		out.Failed = append(out.Failed, known.failed...)
		result := audit.Evaluate(audit.Input{
			Current: c, Previous: known.snapshot, PreviousRef: known.ref, Unusable: known.unusable, Acks: known.acks,
			Settings: o.Settings(c.Name), Run: run,
		})
		out.Incomplete = out.Incomplete || result.Incomplete
		results = append(results, result)
		r.Clusters = append(r.Clusters, result.Report)
	}
	r.Summary = report.Summarise(r.Clusters)
	var err error
	trends := map[string][]page.TrendPoint{}
	for _, c := range clusters {
		if points := trend(ctx, o.Archive, c.Name, c.CollectedAt); len(points) > 0 {
			trends[c.Name] = points
		}
	}
	past := map[string][]history.Change{}
	for i := range results {
		if list := changes(ctx, o.Archive, &results[i].Report, results[i].Snapshot); len(list) > 0 {
			past[results[i].Report.Name] = list
		}
	}
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
