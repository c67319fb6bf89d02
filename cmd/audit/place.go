package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gpuaudit/cmd/audit/config"
	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/open"
)

// defaultStore is used when nothing else is named.
const defaultStore = "./audit-data"

// place holds the flags that every command with a configuration and a store has.
type place struct {
	config string
	store  string
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.config, "config", "c", "", "configuration `FILE`; without one the current kubeconfig context is meant")
	cmd.Flags().StringVar(&p.store, "store", "", "store `URL`: s3://bucket/prefix, file:///dir or a path (default: the configuration's, else "+defaultStore+")")
}

// load reads the configuration; nil when none is named.
func (p *place) load() (*config.File, error) {
	if p.config == "" {
		return nil, nil
	}
	f, err := config.Load(p.config, slackProblems)
	if err != nil {
		return nil, usage(err)
	}
	return f, nil
}

// archive opens the store that is named by flag, configuration or default.
func (p *place) archive(ctx context.Context, f *config.File) (*archive.Archive, error) {
	options := store.Options{URL: defaultStore}
	if f != nil && f.Store.URL != "" {
		options = f.Store
	}
	if p.store != "" {
		options.URL = p.store
	}
	s, err := open.Store(ctx, options)
	if err != nil {
		return nil, usage(err)
	}
	return archive.New(s), nil
}

// write puts a result to a file, whole or not at all, or to standard output.
func write(cmd *cobra.Command, file string, body []byte) error {
	if file == "" || file == "-" {
		_, err := cmd.OutOrStdout().Write(body)
		return err
	}
	dir := filepath.Dir(file)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(file)+"-*")
	if err != nil {
		return usage(fmt.Errorf("write %q: %w; name a file in a folder that exists and may be written", file, plainError(err)))
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(body)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return incomplete(fmt.Errorf("write %q: %w", file, plainError(err)))
	}
	return nil
}

func plainError(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// known words the names that a flag may take.
func known(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// fprint writes to a stream whose errors nobody could be told of.
func fprint(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
