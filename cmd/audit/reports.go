package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/report"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

func reportsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reports", Short: "list and show kept reports"}
	cmd.AddCommand(reportsList(), reportsShow())
	return cmd
}

func reportsList() *cobra.Command {
	var p place
	var since string
	cmd := &cobra.Command{Use: "list", Short: "list kept reports, oldest first", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		a, err := p.opened(cmd)
		if err != nil {
			return err
		}
		from := time.Time{}
		if since != "" {
			if from, err = before(since, time.Now()); err != nil {
				return usage(fmt.Errorf("--since: %w", err))
			}
		}
		listed := 0
		for ref, err := range a.Reports(cmd.Context(), from, time.Time{}) {
			if err != nil {
				return incomplete(err)
			}
			listed++
			// A report without its manifest was cut off while it was kept; what there is of it can be looked at.
			note := ""
			if _, err := a.LoadManifest(cmd.Context(), ref); errors.Is(err, store.ErrNotFound) {
				note = "  (cut off: the run did not finish)"
			} else if err != nil {
				note = "  (" + err.Error() + ")"
			} else if _, err := a.FindReport(cmd.Context(), ref.Run); err != nil {
				note = "  (" + err.Error() + ")"
			}
			fprint(cmd.OutOrStdout(), "%s  %s%s\n", ref.Run, a.FileURL(ref, ""), clean(note))
		}
		if listed == 0 {
			fprint(cmd.ErrOrStderr(), "%s\n", clean(noReports(a, from)))
		}
		return nil
	}}
	p.flags(cmd)
	cmd.Flags().StringVar(&since, "since", "", "only reports since this `TIME`: RFC 3339, a date, or a duration such as 7d (default: all)")
	return cmd
}

// noReports says that a list is empty because nothing was kept, not because it was not printed.
func noReports(a *archive.Archive, from time.Time) string {
	if from.IsZero() {
		return fmt.Sprintf("%s holds no report yet; audit run keeps one", a.Store())
	}
	return fmt.Sprintf("%s holds no report since %s", a.Store(), from.UTC().Format(time.RFC3339))
}

func reportsShow() *cobra.Command {
	var p place
	var form, cluster, out string
	cmd := &cobra.Command{Use: "show RUN", Short: "show a kept report; RUN may be latest", Args: func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(errors.New("give one run id, or latest"))
		}
		return nil
	}, RunE: func(cmd *cobra.Command, args []string) error {
		if err := oneOf("output", form, "table", "json", "markdown", "html"); err != nil {
			return err
		}
		a, err := p.opened(cmd)
		if err != nil {
			return err
		}
		r, err := loadReport(cmd, a, args[0])
		if err != nil {
			return err
		}
		if cluster != "" {
			if r, err = report.Only(r, cluster); err != nil {
				return usage(err)
			}
		}
		body, err := render(cmd, r, nil, form, out == "")
		if err != nil {
			return incomplete(err)
		}
		return write(cmd, out, body)
	}}
	p.flags(cmd)
	cmd.Flags().StringVarP(&form, "output", "o", "table", "table, json, markdown or html")
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this cluster's part, by `NAME`, which names no other cluster (default: all)")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE` instead of standard output")
	return cmd
}

// opened loads the configuration and opens the store.
func (p *place) opened(cmd *cobra.Command) (*archive.Archive, error) {
	file, err := p.load()
	if err != nil {
		return nil, err
	}
	return p.existing(cmd.Context(), file)
}

// loadReport reads a kept report; latest is the newest.
func loadReport(cmd *cobra.Command, a *archive.Archive, run string) (*report.Report, error) {
	if run != archive.LatestRun {
		if err := store.CheckRun(run); err != nil {
			return nil, usage(err)
		}
	}
	ref, err := a.FindReport(cmd.Context(), run)
	if errors.Is(err, store.ErrNotFound) {
		return nil, usage(err)
	}
	if err != nil {
		return nil, incomplete(err)
	}
	if run == archive.LatestRun {
		newer, err := a.Newer(cmd.Context(), ref)
		if err != nil {
			return nil, incomplete(err)
		}
		for _, n := range newer {
			fprint(cmd.ErrOrStderr(), "audit: run %s is newer and has no report: it was cut off while it was kept, or deleted from; this is run %s\n", clean(n.Run), clean(ref.Run))
		}
	}
	body, err := a.LoadFile(cmd.Context(), ref, "report.json")
	if err != nil {
		return nil, incomplete(err)
	}
	r, err := report.Decode(body)
	if err != nil {
		return nil, incomplete(fmt.Errorf("report of run %s: %w", ref.Run, err))
	}
	return r, nil
}

// before reads a moment in the past: a duration counts back from now.
func before(text string, now time.Time) (time.Time, error) {
	t, err := moment(text, now)
	if err != nil || !t.After(now) {
		return t, err
	}
	if d, err := config.ParseDuration(text); err == nil {
		return now.UTC().Add(-d).Truncate(time.Second), nil
	}
	return time.Time{}, fmt.Errorf("%s is not past yet", t.Format(time.RFC3339))
}
