package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/lifecycle"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/store/archive"
)

func ackCommand() *cobra.Command {
	var p place
	var reason, until string
	cmd := &cobra.Command{
		Use:   "ack FINDING --reason TEXT [--until T]",
		Short: "accept a finding: it is kept and not counted as new or ongoing",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("give one finding's id, as reports show it"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := p.load()
			if err != nil {
				return err
			}
			a, err := p.existing(cmd.Context(), file)
			if err != nil {
				return err
			}
			ack := report.Ack{Reason: reason, By: whoami(), At: time.Now().UTC().Truncate(time.Second)}
			if until != "" {
				t, err := moment(until, time.Now())
				if err != nil {
					return usage(fmt.Errorf("--until: %w", err))
				}
				if !t.After(ack.At) {
					return usage(fmt.Errorf("--until %s is past: it would accept nothing", t.Format(time.RFC3339)))
				}
				ack.Until = &t
			}
			return acknowledge(cmd, a, args[0], ack)
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why it is accepted, in your words (required)")
	cmd.Flags().StringVar(&until, "until", "", "accepted until this `TIME`: RFC 3339, a date, or a duration such as 30d (default: for ever)")
	return cmd
}

// moment reads RFC 3339, a date, or a duration from now on.
func moment(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.UTC(), nil
	}
	if d, err := config.ParseDuration(text); err == nil && d > 0 {
		return now.UTC().Add(d).Truncate(time.Second), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; want 2026-06-01T08:00:00Z, 2026-06-01 or 30d", text)
}

func whoami() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}

// acknowledge finds the cluster whose newest snapshot holds the finding.
func acknowledge(cmd *cobra.Command, a *archive.Archive, id string, ack report.Ack) error {
	ctx := cmd.Context()
	cluster, finding, err := findFinding(ctx, a, id)
	if err != nil {
		return err
	}
	err = a.UpdateAcks(ctx, cluster, func(old []byte) ([]byte, error) {
		acks, err := lifecycle.ParseAcks(old)
		if err != nil {
			return nil, err
		}
		if acks, err = acks.Add(id, ack); err != nil {
			return nil, usage(err)
		}
		return acks.Encode()
	})
	var coded *codeError
	if errors.As(err, &coded) {
		return coded
	}
	if err != nil {
		return incomplete(err)
	}
	fprint(cmd.OutOrStdout(), "acknowledged on cluster %s: %s\n", clean(cluster), clean(finding.Title))
	return nil
}

func findFinding(ctx context.Context, a *archive.Archive, id string) (string, report.Finding, error) {
	var names []string
	for cluster, err := range a.Clusters(ctx) {
		if err != nil {
			return "", report.Finding{}, incomplete(err)
		}
		names = append(names, cluster)
		kept, err := a.LatestSnapshot(ctx, cluster)
		if errors.Is(err, archive.ErrNoSnapshot) {
			continue
		}
		if err != nil {
			return "", report.Finding{}, incomplete(err)
		}
		s, err := snapshot.Decode(kept.Body)
		if err != nil {
			return "", report.Finding{}, incomplete(fmt.Errorf("snapshot %s: %w", kept.Key, err))
		}
		for _, f := range s.Findings {
			if f.ID == id {
				return cluster, f, nil
			}
		}
	}
	return "", report.Finding{}, usage(fmt.Errorf("no open finding %q in the newest snapshots of the store (clusters: %s); reports show the ids", id, known(names)))
}
