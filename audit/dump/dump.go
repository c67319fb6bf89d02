// Package dump reads a folder of Kubernetes JSON or YAML into the inventory
// that a live read gives: same type, same gaps.
//
// A folder that holds readable files directly is one cluster, named by the
// folder; otherwise each of its subfolders is a cluster. Readable files end in
// .json, .yaml, .yml, and any of these with .gz; others are passed over. A file
// holds objects, Lists or typed lists in any nesting, several documents too.
//
// A file whose base name is a resource's plural (pods.json,
// workloads.kueue.x-k8s.io.json) declares that the resource was collected, so
// that an empty list there means none. Within a cluster's folder, such a file
// in a subfolder named like a namespace covers that namespace alone, and so
// does a file named by a namespace in a folder named by a plural
// (pods/default.json). An object outside such files shows that its resource was
// collected. What was not collected is a gap, as far as it is built in.
//
// A broken file fails the whole read with its name and position: nothing is
// skipped. Symbolic links are not followed.
package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"gpuaudit/audit/inventory"
)

// Options of a read.
type Options struct {
	// Now is the moment that the dump is judged at; zero is its newest time.
	Now time.Time
	// MaxBytes bounds what one file unpacks to; zero is DefaultMaxBytes.
	MaxBytes int64
}

// DefaultMaxBytes of one unpacked file: 150,000 pods of 20 KB.
const DefaultMaxBytes = 4 << 30

// Read reads all clusters of a folder. The time is Options.Now, or the newest
// time in all of them.
func Read(dir string, o Options) ([]*inventory.Cluster, time.Time, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	folders, err := clusters(dir)
	if err != nil {
		return nil, time.Time{}, err
	}
	readers := make([]*reader, 0, len(folders))
	var broken []error
	now := o.Now
	for _, f := range folders {
		r := newReader(f, o)
		if err := r.first(); err != nil {
			broken = append(broken, err)
			continue
		}
		if !r.takenAt.IsZero() {
			r.newest = r.takenAt
		}
		if o.Now.IsZero() && r.newest.After(now) {
			now = r.newest
		}
		readers = append(readers, r)
	}
	if len(broken) > 0 {
		return nil, time.Time{}, errors.Join(broken...)
	}
	if now.IsZero() {
		return nil, time.Time{}, fmt.Errorf("dump %q holds no time at all; give the moment it was taken with --now", dir)
	}
	var out []*inventory.Cluster
	for _, r := range readers {
		c, err := r.second(now.UTC())
		if err != nil {
			broken = append(broken, err)
			continue
		}
		out = append(out, c)
	}
	if len(broken) > 0 {
		return nil, time.Time{}, errors.Join(broken...)
	}
	return out, now.UTC(), nil
}

// folder is one cluster's folder and its files, relative and sorted.
type folder struct {
	name, dir string
	files     []string
}

func clusters(dir string) ([]folder, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dump %q does not exist; give a folder with --from", dir)
	case err != nil:
		return nil, fmt.Errorf("dump %q: %w", dir, err)
	case !info.IsDir():
		return nil, fmt.Errorf("dump %q is a file; give the folder that holds it", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("dump %q: %w", dir, err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("dump %q: %w", dir, err)
	}
	var subs []string
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.Type().IsRegular() && readable(e.Name()):
			files, err := walk(dir)
			return []folder{{filepath.Base(abs), dir, files}}, err
		case e.IsDir():
			subs = append(subs, e.Name())
		}
	}
	var out []folder
	for _, name := range subs {
		files, err := walk(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			out = append(out, folder{name, filepath.Join(dir, name), files})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("dump %q holds no .json or .yaml file; expected nodes.json, pods.json and so on, or a subfolder with these for each cluster", dir)
	}
	return out, nil
}

func walk(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.Type().IsRegular() && readable(e.Name()):
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("dump %q: %w", dir, err)
	}
	sort.Strings(out)
	return out, nil
}

func readable(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// base is a file's name without its extensions, in lower case.
func base(file string) string {
	name := strings.ToLower(filepath.Base(file))
	name = strings.TrimSuffix(name, ".gz")
	for _, ext := range []string{".json", ".yaml", ".yml"} {
		if s, ok := strings.CutSuffix(name, ext); ok {
			return s
		}
	}
	return name
}
