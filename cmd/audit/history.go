package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/history"
	"gpuaudit/audit/snapshot"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store/archive"
)

func historyCommand() *cobra.Command {
	var p place
	var cluster, node, label, since, form, out string
	cmd := &cobra.Command{
		Use: "history --cluster NAME", Short: "what happened to nodes over time, from the stored snapshots", Args: cobra.NoArgs,
		Long: "Labels, taints, cordon, readiness, identity and devices of nodes over time, each change with the two runs between which it happened.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", form, "table", "json"); err != nil {
				return err
			}
			if cluster == "" {
				return usage(errors.New("--cluster is missing"))
			}
			if err := checkOut(out); err != nil {
				return err
			}
			from := time.Time{}
			if since != "" {
				var err error
				if from, err = before(since, time.Now()); err != nil {
					return usage(fmt.Errorf("--since: %w", err))
				}
			}
			a, err := p.opened(cmd)
			if err != nil {
				return err
			}
			if err := knownCluster(cmd.Context(), a, cluster); err != nil {
				return err
			}
			var failed error
			h := history.Build(cluster, versions(cmd, a, cluster, from, &failed), history.Filter{Node: node, Label: label, Since: from})
			if failed != nil {
				return failed
			}
			if form == "json" {
				body, err := history.JSON(h)
				if err != nil {
					return incomplete(err)
				}
				if err := write(cmd, out, body); err != nil {
					return err
				}
			} else if err := write(cmd, out, history.Table(h)); err != nil {
				return err
			}
			if n := len(h.Unread); n > 0 {
				return incomplete(fmt.Errorf("%d snapshots could not be read; changes around them have a wider window", n))
			}
			return nil
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&cluster, "cluster", "", "the cluster's `NAME` (required)")
	cmd.Flags().StringVar(&node, "node", "", "only this node, by `NAME` (default: all)")
	cmd.Flags().StringVar(&label, "label", "", "only this label `KEY` (default: all)")
	cmd.Flags().StringVar(&since, "since", "", "only since this `TIME`: RFC 3339, a date, or a duration such as 30d (default: all)")
	cmd.Flags().StringVarP(&form, "output", "o", "table", "table or json")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE` instead of standard output")
	return cmd
}

// versions yields a cluster's snapshots in order.
func versions(cmd *cobra.Command, a *archive.Archive, cluster string, from time.Time, failed *error) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		any := false
		if !from.IsZero() {
			// The state before the time asked for is what its first change is compared with.
			from = from.AddDate(0, 0, -8)
		}
		for v, err := range pipeline.Versions(cmd.Context(), a, cluster, from, time.Time{}) {
			if err != nil {
				*failed = incomplete(err)
				yield(nil, err)
				return
			}
			any = true
			if v.Err != nil {
				v.Err = fmt.Errorf("snapshot %s: %w", v.Key, v.Err)
			}
			if !yield(v.Snapshot, v.Err) {
				return
			}
		}
		if !any {
			*failed = usage(fmt.Errorf("the store has no snapshot of cluster %q since %s; name an earlier --since", cluster, from.UTC().Format(time.RFC3339)))
		}
	}
}

// knownCluster refuses a cluster that the store has nothing of, and lists those it has.
func knownCluster(ctx context.Context, a *archive.Archive, cluster string) error {
	var names []string
	for name, err := range a.Clusters(ctx) {
		if err != nil {
			return incomplete(err)
		}
		if name == cluster {
			return nil
		}
		names = append(names, name)
	}
	return usage(fmt.Errorf("--cluster %q is not in %s; it has %s", cluster, a.Store(), known(names)))
}
