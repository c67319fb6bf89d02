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

// existing opens a store that is there to be read: a folder that does not exist
// is a slip of the name, and no empty store.
func (p *place) existing(ctx context.Context, f *config.File) (*archive.Archive, error) {
	options := store.Options{URL: defaultStore}
	if f != nil && f.Store.URL != "" {
		options = f.Store
	}
	if p.store != "" {
		options.URL = p.store
	}
	if resolved, err := options.Resolve(); err == nil && resolved.Dir != "" {
		if info, err := os.Stat(resolved.Dir); err != nil || !info.IsDir() {
			return nil, usage(fmt.Errorf("there is no store in %q yet: audit run makes one, or name another with --store", resolved.Dir))
		}
	}
	return p.archive(ctx, f)
}

// checkOut refuses a target that cannot be written, before anything is read.
func checkOut(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return usage(fmt.Errorf("--out %q is a folder; name a file in it", file))
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return usage(fmt.Errorf("--out %q: there is no folder %q; make it first", file, filepath.Dir(file)))
	}
	return nil
}

// write puts a result to a file, whole or not at all, or to standard output. A
// link is followed; what is no regular file (a device, a pipe) is written to as it is.
func write(cmd *cobra.Command, file string, body []byte) error {
	if file == "" || file == "-" {
		_, err := cmd.OutOrStdout().Write(body)
		return err
	}
	if err := checkOut(file); err != nil {
		return err
	}
	file = followed(file)
	fail := func(err error) error { return incomplete(fmt.Errorf("write %q: %w", file, plainError(err))) }
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return fail(err)
		}
		_, err = f.Write(body)
		if err = errors.Join(err, f.Close()); err != nil {
			return fail(err)
		}
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
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
		return fail(err)
	}
	return nil
}

// followed gives where a link leads, also one to a file that is not there yet.
func followed(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		return target
	}
	target, err := os.Readlink(file)
	switch {
	case err != nil:
		return file
	case filepath.IsAbs(target):
		return target
	}
	return filepath.Join(filepath.Dir(file), target)
}

func plainError(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// mostKnown bounds how many names an error lists.
const mostKnown = 20

// known words the names that a flag may take.
func known(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if more := len(names) - mostKnown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostKnown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// fprint writes to a stream whose errors nobody could be told of.
func fprint(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
