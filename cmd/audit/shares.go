package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/report"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// A slot's clusters may be shared by the processes of an Indexed Job: each
// audits those that fall to its completion index and records that it has.
// Whoever finds all shares recorded merges them and posts the one digest.

// indexVariable is set by the Job controller in every pod of an Indexed Job.
const indexVariable = "JOB_COMPLETION_INDEX"

// share is this process's part of a slot.
type share struct {
	slot         string
	index, count int
	total        int // clusters of all shares
}

// sharing gives this process's share, nil when it audits everything.
func (f *runFlags) sharing(file *config.File) (*share, error) {
	if f.shares == 0 {
		return nil, nil
	}
	slotName, posts := f.notifies("")
	text := os.Getenv(indexVariable)
	index, err := strconv.Atoi(text)
	var problems []string
	if f.shares < 0 {
		problems = append(problems, fmt.Sprintf("--shares is %d, want the number of processes (completions of the Job)", f.shares))
	}
	if !posts || f.slot == "" {
		problems = append(problems, "--shares needs --slot ID (or --notify and AUDIT_SLOT), the same in all processes")
	}
	if err != nil || index < 0 || index >= max(f.shares, 1) {
		problems = append(problems, fmt.Sprintf("%s is %q, want a number from 0 to %d: an Indexed Job with %d completions sets it", indexVariable, text, max(f.shares, 1)-1, f.shares))
	}
	if len(f.clusters) > 0 || f.noStore || f.dryRun {
		problems = append(problems, "--shares does not go with --cluster, --no-store or --dry-run")
	}
	if f.from != "" && f.store == "" {
		problems = append(problems, "--shares with --from needs --store: the processes meet there")
	}
	if f.from == "" && file == nil {
		problems = append(problems, "--shares needs a configuration with clusters, named with -c")
	}
	if file != nil && file.Store.Conditions == "off" {
		problems = append(problems, "--shares needs a store that honours conditions (store.conditions is off): else two processes may post one digest")
	}
	if len(problems) > 0 {
		return nil, usage(errors.New(strings.Join(problems, "\n  ")))
	}
	return &share{slot: slotName, index: index, count: f.shares}, nil
}

// mine keeps what falls to this share, by position.
func mine[T any](s *share, list []T) []T {
	if s == nil {
		return list
	}
	var out []T
	s.total = len(list)
	for i := range list {
		if i%s.count == s.index {
			out = append(out, list[i])
		}
	}
	return out
}

// recorded tells whether an earlier try of this share has audited it.
func (s *share) recorded(ctx context.Context, a *archive.Archive) (bool, error) {
	shares, err := a.Shares(ctx, s.slot, s.count)
	if err != nil {
		return false, incomplete(err)
	}
	return slices.ContainsFunc(shares, func(r archive.Share) bool { return r.Index == s.index }), nil
}

// record notes that this share was audited.
func (s *share) record(ctx context.Context, a *archive.Archive, r *report.Report) error {
	done := archive.Share{SchemaVersion: 1, Slot: s.slot, Index: s.index, Count: s.count, Run: r.RunID, GeneratedAt: r.GeneratedAt, Clusters: []string{}, Total: s.total}
	for i := range r.Clusters {
		done.Clusters = append(done.Clusters, r.Clusters[i].Name)
	}
	err := a.SaveShare(ctx, done)
	if errors.Is(err, store.ErrExists) {
		return nil // another try of this share was faster; its report is the one that counts
	}
	return err
}

// complete merges all shares and posts the digest, if all are there.
func (s *share) complete(cmd *cobra.Command, f *runFlags, file *config.File, a *archive.Archive) error {
	ctx := cmd.Context()
	shares, err := a.Shares(ctx, s.slot, s.count)
	if err != nil {
		return incomplete(err)
	}
	if len(shares) < s.count {
		slog.Info("this share is done; the process that finishes last posts the digest", "slot", s.slot, "index", s.index, "done", len(shares), "of", s.count)
		return nil
	}
	var parts []*report.Report
	audited := 0
	for _, one := range shares {
		audited += len(one.Clusters)
		r, err := loadReport(cmd, a, one.Run)
		if err != nil {
			return incomplete(fmt.Errorf("share %d of slot %q: %w", one.Index, s.slot, err))
		}
		parts = append(parts, r)
	}
	for _, one := range shares {
		if one.Total != audited {
			return incomplete(fmt.Errorf("slot %q: its shares hold %d clusters, share %d was to be one of %d; all processes need the same configuration", s.slot, audited, one.Index, one.Total))
		}
	}
	merged, err := pipeline.Merge(ctx, parts, pipeline.Options{Archive: a, Version: version})
	if err != nil {
		return incomplete(err)
	}
	if err := merged.Err(); err != nil {
		return incomplete(err)
	}
	slog.Info("all shares are done", "slot", s.slot, "run", merged.Report.RunID)
	return f.post(cmd, file, a, merged.Report, merged.Kept)
}

// unfinishedShares words the slots since a target's last digest that some
// processes audited their share of and that were never completed.
func unfinishedShares(ctx context.Context, a *archive.Archive, last time.Time, except string, now time.Time) ([]string, error) {
	type count struct{ have, of int }
	open := map[string]count{}
	for s, err := range a.SharedSlots(ctx, now.AddDate(0, 0, -30)) {
		if err != nil {
			return nil, err
		}
		if s.Slot == except || !s.GeneratedAt.After(last) {
			continue
		}
		open[s.Slot] = count{open[s.Slot].have + 1, s.Count}
	}
	var out []string
	for name, n := range open {
		if n.have >= n.of {
			if _, err := a.ReadSlot(ctx, name); err == nil {
				continue // what became of it, its record says
			} else if !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
		}
		out = append(out, fmt.Sprintf("%s (%d of %d shares of the clusters were audited)", name, n.have, n.of))
	}
	slices.Sort(out)
	return out, nil
}
