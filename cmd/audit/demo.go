package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gpuaudit/audit/dump"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/plain"
	"gpuaudit/audit/report/table"
	"gpuaudit/audit/settings"
	"gpuaudit/cmd/audit/demo"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
)

func demoCommand() *cobra.Command {
	var keep string
	var day int
	cmd := &cobra.Command{
		Use: "demo", Short: "the recorded incident, end to end, offline", Args: cobra.NoArgs,
		Long: "Plays four days of a recorded incident through the whole pipeline: three clusters at three vendors, 13 free cards, and none for a pod.\n" +
			"Prints what became new, ongoing and resolved each day, and the report of day 2.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if day < 1 || day > demo.Days {
				return usage(fmt.Errorf("--day is %d, want 1 to %d", day, demo.Days))
			}
			return playDemo(cmd, keep, day)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "keep the four dumps and the store in `DIR`, to try commands on")
	cmd.Flags().IntVar(&day, "day", 2, "print the report of this day")
	return cmd
}

func playDemo(cmd *cobra.Command, keep string, show int) error {
	dir := keep
	if dir == "" {
		tmp, err := os.MkdirTemp("", "audit-demo-*")
		if err != nil {
			return incomplete(fmt.Errorf("demo: %w", err))
		}
		defer os.RemoveAll(tmp)
		dir = tmp
	} else if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return usage(fmt.Errorf("--keep %q is not empty; name a new folder", dir))
	}
	s, err := local.Open(filepath.Join(dir, "store"))
	if err != nil {
		return incomplete(err)
	}
	a := archive.New(s)
	var shown *report.Report
	var days strings.Builder
	for day := 1; day <= demo.Days; day++ {
		outcome, err := demoDay(cmd, a, dir, day)
		if err != nil {
			return incomplete(err)
		}
		if day == show {
			shown = outcome.Report
		}
		tellDay(&days, day, outcome.Report)
	}
	var b bytes.Buffer
	width, colour := screen(cmd.OutOrStdout())
	if err := table.Render(&b, shown, table.Options{Width: width, Color: colour, Details: true}); err != nil {
		return incomplete(err)
	}
	fprint(cmd.OutOrStdout(), "The report of day %d:\n\n%s\nWhat changed, day by day:\n%s", show, b.String(), days.String())
	if keep != "" {
		fprint(cmd.OutOrStdout(), "\nKept in %s: day1 to day4 are dumps, store is the store. Try:\n  audit run --from %s --store %s\n", clean(dir), clean(filepath.Join(dir, "day2")), clean(filepath.Join(dir, "store")))
	}
	return nil
}

func demoDay(cmd *cobra.Command, a *archive.Archive, dir string, day int) (*pipeline.Outcome, error) {
	from := filepath.Join(dir, fmt.Sprintf("day%d", day))
	if err := demo.Write(from, day); err != nil {
		return nil, err
	}
	clusters, now, err := dump.Read(from, dump.Options{Now: demo.At(day)})
	if err != nil {
		return nil, err
	}
	outcome, err := pipeline.Run(cmd.Context(), clusters, pipeline.Options{Now: now, Version: version, Archive: a, Save: true,
		Settings: func(string) settings.Settings { return settings.Default() }})
	if err != nil {
		return nil, err
	}
	return outcome, outcome.Err()
}

// tellDay lists what became new, stayed and was resolved on one day.
func tellDay(b *strings.Builder, day int, r *report.Report) {
	fmt.Fprintf(b, "\nDay %d (%s): %d new, %d ongoing, %d resolved\n", day, r.GeneratedAt.Format("2006-01-02"), r.Summary.New, r.Summary.Ongoing, r.Summary.Resolved)
	for _, state := range []report.State{report.StateNew, report.StateOngoing, report.StateResolved} {
		for _, c := range r.Clusters {
			for _, f := range c.Findings {
				if f.State == state && (f.Severity == report.Critical || state == report.StateResolved) {
					fmt.Fprintf(b, "  %-8s %s  %s\n", state, c.Name, plain.Line(f.Title))
				}
			}
		}
	}
}
