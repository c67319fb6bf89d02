package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// folder is one cluster's folder and its files, relative and sorted.
type folder struct {
	name, dir string
	files     []string
}

// clusters finds the folders of a dump that are a cluster each.
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
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("dump %q: %w", dir, err)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("dump %q: %w", dir, err)
	}
	files, err := walk(root)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("dump %q holds no .json or .yaml file; expected nodes.json, pods.json and so on, or a subfolder with these for each cluster", dir)
	}
	parts := map[string][]string{}
	one := false
	for _, file := range files {
		sub, rest, found := strings.Cut(file, string(filepath.Separator))
		if !found {
			one = true
			break
		}
		parts[sub] = append(parts[sub], rest)
	}
	if one || partsOfOne(parts) {
		return oneEach([]folder{{filepath.Base(abs), root, files}})
	}
	var out []folder
	for sub, files := range parts {
		out = append(out, folder{sub, filepath.Join(root, sub), files})
	}
	slices.SortFunc(out, func(a, b folder) int { return strings.Compare(a.name, b.name) })
	return oneEach(out)
}

// partsOfOne tells subfolders that are parts of one cluster from clusters: one
// is named like a namespace that every cluster has, or like a resource, and
// holds no list of nodes itself.
func partsOfOne(parts map[string][]string) bool {
	for sub, files := range parts {
		if slices.ContainsFunc(files, func(f string) bool { return base(f) == "nodes" && filepath.Dir(f) == "." }) {
			continue
		}
		switch sub {
		case "kube-system", "kube-public", "kube-node-lease", "default", "cluster-resources":
			return true
		}
		if _, ok := byPlural(strings.ToLower(sub)); ok {
			return true
		}
	}
	return false
}

// oneEach refuses a folder in which lists of nodes stand in several places: it
// holds several clusters, and their pods would be added up.
func oneEach(all []folder) ([]folder, error) {
	var broken []error
	for _, f := range all {
		first := ""
		for _, file := range f.files {
			if base(file) != "nodes" {
				continue
			}
			if first == "" {
				first = file
			}
			if filepath.Dir(file) != filepath.Dir(first) {
				broken = append(broken, fmt.Errorf("dump %q has nodes in %q and in %q, as if it were several clusters; give a folder whose subfolders are the clusters, with no file beside them", f.dir, first, file))
				break
			}
		}
	}
	return all, errors.Join(broken...)
}

// walk lists the readable files below dir. Hidden ones are passed over, and so
// are links to folders. A link to a file is read when it stays inside the dump
// (a mounted ConfigMap is made of such links).
func walk(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != dir && strings.HasPrefix(e.Name(), ".") {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !readable(e.Name()) {
			return nil
		}
		regular := e.Type().IsRegular()
		if e.Type()&fs.ModeSymlink != 0 {
			if regular, err = inside(dir, path); err != nil {
				return err
			}
		}
		if regular {
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

// inside is true for a link to a regular file below dir.
func inside(dir, link string) (bool, error) {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false, fmt.Errorf("link %q: %w; put the file itself there", link, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return false, fmt.Errorf("link %q: %w; put the file itself there", link, err)
	}
	rel, err := filepath.Rel(dir, target)
	if err != nil || !filepath.IsLocal(rel) {
		return false, fmt.Errorf("link %q leads out of the dump; put the file itself there", link)
	}
	return info.Mode().IsRegular(), nil
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
