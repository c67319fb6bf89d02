package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gpuaudit/audit/collect"
	"gpuaudit/audit/inventory"
	"gpuaudit/cmd/audit/config"
)

// targets are the clusters to read: those of the configuration, or kubeconfig
// contexts without one.
func targets(file *config.File, names []string) ([]collect.Target, error) {
	if file == nil {
		return contextTargets(names)
	}
	var out []collect.Target
	var known []string
	for i := range file.Clusters {
		c := &file.Clusters[i]
		known = append(known, c.Name)
		if len(names) == 0 || slices.Contains(names, c.Name) {
			out = append(out, collect.Target{Name: c.Name, Kubeconfig: c.Kubeconfig, Context: c.Context, InCluster: c.InCluster,
				Timeout: c.Timeout.Or(config.DefaultTimeout), Namespaces: c.Namespaces})
		}
	}
	return out, unknown(names, known, "the configuration")
}

func unknown(names, have []string, where string) error {
	for _, want := range names {
		if !slices.Contains(have, want) {
			return usage(fmt.Errorf("--cluster %q is not in %s; it has %s", want, where, known(have)))
		}
	}
	return nil
}

func contextTargets(names []string) ([]collect.Target, error) {
	contexts, current, err := collect.Contexts("")
	if err != nil {
		return nil, usage(fmt.Errorf("no configuration was given with -c, and %w", err))
	}
	if err := unknown(names, contexts, "the kubeconfig"); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if current == "" {
			return nil, usage(fmt.Errorf("no configuration was given with -c, and the kubeconfig has no current context; contexts: %s. Name one with --cluster", known(contexts)))
		}
		names = []string{current}
	}
	var out []collect.Target
	for _, n := range names {
		out = append(out, collect.Target{Name: n, Context: n, Timeout: config.DefaultTimeout})
	}
	return out, nil
}

// live reads the clusters now.
func (f *runFlags) live(ctx context.Context, cmd *cobra.Command, file *config.File, part *share) ([]*inventory.Cluster, time.Time, error) {
	list, err := targets(file, f.clusters)
	if err != nil {
		return nil, time.Time{}, err
	}
	clusters := collect.All(ctx, mine(part, list), parallelism(file), progress(cmd.ErrOrStderr()))
	if ctx.Err() != nil {
		return nil, time.Time{}, incomplete(fmt.Errorf("stopped before the clusters were read; nothing was kept"))
	}
	return clusters, time.Now().UTC().Truncate(time.Millisecond), nil
}

func parallelism(file *config.File) int {
	if file == nil || file.Parallelism == nil {
		return config.DefaultParallelism
	}
	return *file.Parallelism
}

// progress tells a person at a terminal what is being read; nobody else.
func progress(w io.Writer) collect.Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	var mu sync.Mutex
	return func(cluster, doing string) {
		mu.Lock()
		defer mu.Unlock()
		fprint(w, "%s: %s\n", clean(cluster), doing)
	}
}

// readAll reads clusters now, telling nobody.
func readAll(ctx context.Context, list []collect.Target, file *config.File) ([]*inventory.Cluster, time.Time) {
	return collect.All(ctx, list, parallelism(file), nil), time.Now().UTC().Truncate(time.Millisecond)
}
