package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/dump"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/markdown"
	"gpuaudit/audit/report/table"
	"gpuaudit/audit/settings"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store/archive"
)

// runFlags are the flags of audit run.
type runFlags struct {
	place
	clusters []string
	from     string
	now      string
	noStore  bool
	output   string
	out      string
	notify   bool
	slot     string
	dryRun   bool
	failOn   string
	shares   int
}

func runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "audit clusters now",
		Long: "Audits the clusters of the configuration, or the current kubeconfig context without one, keeps the report and what the next run\n" +
			"compares with, and prints the report. Exit codes: 0 audited; 1 a finding at or above --fail-on; 2 usage or configuration;\n" +
			"3 incomplete: a cluster, a check, the store, a delivery or the output failed. 1 wins over 3.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.flags(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.clusters, "cluster", nil, "audit this cluster only (`NAME` in the configuration, or a kubeconfig context); may be repeated")
	fl.StringVar(&f.from, "from", "", "read a dump `DIR` instead of live clusters; it is compared and kept only where --store says")
	fl.StringVar(&f.now, "now", "", "the moment to judge a dump at, `RFC3339` (default: the dump's newest time)")
	fl.BoolVar(&f.noStore, "no-store", false, "compare with nothing and keep nothing")
	fl.StringVarP(&f.output, "output", "o", "table", "table, json, markdown or html")
	fl.StringVar(&f.out, "out", "", "write the result to `FILE` instead of standard output")
	fl.BoolVar(&f.notify, "notify", false, "post the digest")
	fl.StringVar(&f.slot, "slot", "", "post at most once for this slot `ID` (implies --notify)")
	fl.IntVar(&f.shares, "shares", 0, "this process is one of `N` of an Indexed Job and audits its share of the clusters; who finishes last posts the digest (default 0: not shared)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "keep and post nothing; with --notify, print what would be posted")
	fl.StringVar(&f.failOn, "fail-on", "never", "exit 1 with a finding of this severity or above: critical, warning, info or never")
	return cmd
}

func (f *runFlags) check() error {
	if err := oneOf("output", f.output, "table", "json", "markdown", "html"); err != nil {
		return err
	}
	if err := oneOf("fail-on", f.failOn, "critical", "warning", "info", "never"); err != nil {
		return err
	}
	if err := checkOut(f.out); err != nil {
		return err
	}
	if f.now != "" && f.from == "" {
		return usage(errors.New("--now goes with --from: a live cluster is judged at its own time"))
	}
	if f.noStore && f.store != "" {
		return usage(errors.New("--no-store and --store exclude each other"))
	}
	return nil
}

func (f *runFlags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	file, err := f.load()
	if err != nil {
		return err
	}
	if err := f.canPost(file); err != nil {
		return err
	}
	part, err := f.sharing(file)
	if err != nil {
		return err
	}
	var a *archive.Archive
	// A run from a dump keeps nothing unless it is told where.
	if !f.noStore && (f.from == "" || f.store != "") {
		if a, err = f.archive(ctx, file); err != nil {
			return err
		}
	}
	if part != nil {
		if done, err := part.recorded(ctx, a); done || err != nil {
			return errors.Join(err, part.complete(cmd, f, file, a))
		}
	}
	f.begin(ctx, a, part)
	clusters, now, err := f.read(ctx, cmd, file, part)
	if err != nil {
		return err
	}
	outcome, err := pipeline.Run(ctx, clusters, pipeline.Options{
		Now: now, Version: version, Archive: a, Save: !f.dryRun, Settings: settingsOf(file),
	})
	if err != nil {
		return incomplete(err)
	}
	// A screen that takes no more is no reason to keep the digest back.
	printed := f.print(cmd, outcome)
	if err := f.finish(cmd, file, a, part, outcome); err != nil {
		return err
	}
	return printed
}

// finish posts what is to be posted and gives the exit code.
func (f *runFlags) finish(cmd *cobra.Command, file *config.File, a *archive.Archive, part *share, outcome *pipeline.Outcome) error {
	var posted error
	switch {
	case part == nil:
		posted = f.post(cmd, file, a, outcome.Report, outcome.Kept)
	case outcome.Err() == nil:
		// A share that could not be kept is not recorded: its next try audits again.
		if posted = part.record(cmd.Context(), a, outcome.Report); posted == nil {
			posted = part.complete(cmd, f, file, a)
		}
	}
	if err := f.prune(cmd.Context(), file, a, part); err != nil {
		outcome.Failed = append(outcome.Failed, err)
	}
	verdict := f.verdict(outcome)
	var coded *codeError
	if posted != nil && (verdict == nil || (errors.As(verdict, &coded) && coded.code == exitIncomplete)) {
		return posted
	}
	return verdict
}

// prune removes what the configuration says is kept no longer: from its own
// store alone, and by one process where several share the clusters.
func (f *runFlags) prune(ctx context.Context, file *config.File, a *archive.Archive, part *share) error {
	if a == nil || file == nil || file.Store.Keep <= 0 || f.dryRun || f.store != "" || (part != nil && part.index != 0) {
		return nil
	}
	if _, err := a.Prune(ctx, time.Duration(file.Store.Keep)); err != nil {
		return fmt.Errorf("remove what is older than store.keep: %w", err)
	}
	return nil
}

// read gives the clusters, live or from a dump, and the moment of the run.
func (f *runFlags) read(ctx context.Context, cmd *cobra.Command, file *config.File, part *share) ([]*inventory.Cluster, time.Time, error) {
	if f.from == "" {
		return f.live(ctx, cmd, file, part)
	}
	var o dump.Options
	if f.now != "" {
		t, err := time.Parse(time.RFC3339, f.now)
		if err != nil {
			return nil, time.Time{}, usage(fmt.Errorf("--now is %q, want a time such as 2026-06-01T08:00:00Z", f.now))
		}
		o.Now = t.UTC()
	}
	clusters, now, err := dump.Read(f.from, o)
	if err != nil {
		return nil, time.Time{}, usage(err)
	}
	if len(f.clusters) == 0 {
		clusters = mine(part, clusters)
		if part == nil {
			sayAbsent(cmd, file, clusters)
		}
		return clusters, now, nil
	}
	var names []string
	var chosen []*inventory.Cluster
	for _, c := range clusters {
		names = append(names, c.Name)
		if slices.Contains(f.clusters, c.Name) {
			chosen = append(chosen, c)
		}
	}
	for _, want := range f.clusters {
		if !slices.Contains(names, want) {
			return nil, time.Time{}, usage(fmt.Errorf("--cluster %q is not in the dump; it holds %s", want, known(names)))
		}
	}
	return chosen, now, nil
}

// sayAbsent says which clusters of the configuration a dump does not hold, to
// whoever runs it and to every reader of the report.
func sayAbsent(cmd *cobra.Command, file *config.File, clusters []*inventory.Cluster) {
	if file == nil {
		return
	}
	var absent []string
	for _, c := range file.Clusters {
		if !slices.ContainsFunc(clusters, func(held *inventory.Cluster) bool { return held.Name == c.Name }) {
			absent = append(absent, fmt.Sprintf("%q", c.Name))
		}
	}
	if len(absent) == 0 {
		return
	}
	note := fmt.Sprintf("the configuration names clusters that the dump does not hold, and nothing is known of them: %s", strings.Join(absent, ", "))
	fprint(cmd.ErrOrStderr(), "audit: %s\n", clean(note))
	for _, c := range clusters {
		c.Notes = append(c.Notes, note)
	}
}

// settingsOf gives each cluster's settings: the configuration's, or the defaults.
func settingsOf(file *config.File) func(string) settings.Settings {
	return func(name string) settings.Settings {
		if file == nil {
			return settings.Default()
		}
		return file.Settings(file.Cluster(name))
	}
}

func (f *runFlags) print(cmd *cobra.Command, o *pipeline.Outcome) error {
	body, err := render(cmd, o.Report, o.Files.All, f.output, f.out == "")
	if err != nil {
		return incomplete(err)
	}
	return write(cmd, f.out, body)
}

// render gives a report in a form for people or programs.
func render(cmd *cobra.Command, r *report.Report, files map[string][]byte, form string, toScreen bool) ([]byte, error) {
	switch form {
	case "json":
		if body := files["report.json"]; body != nil {
			return body, nil
		}
		return report.Encode(r)
	case "markdown":
		return markdown.Render(r), nil
	case "html":
		if body := files["report.html"]; body != nil {
			return body, nil
		}
		return pipeline.HTML(r)
	}
	var b bytes.Buffer
	width, colour := screen(cmd.OutOrStdout())
	if err := table.Render(&b, r, table.Options{Width: width, Color: colour && toScreen, Details: true}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// verdict turns an outcome into the exit code: 1 wins over 3.
func (f *runFlags) verdict(o *pipeline.Outcome) error {
	worst := o.Worst()
	if f.failOn != "never" && worst != "" && worst.Rank() <= report.Severity(f.failOn).Rank() {
		return &codeError{code: exitFinding, err: o.Err(), quiet: o.Err() == nil}
	}
	if err := o.Err(); err != nil {
		return incomplete(err)
	}
	if o.Incomplete {
		return &codeError{code: exitIncomplete, quiet: true}
	}
	return nil
}
