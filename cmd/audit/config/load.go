package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxBytes bounds a configuration file.
const maxBytes = 16 << 20

// Error is everything that is wrong with a configuration file.
type Error struct {
	File     string
	Problems []string
}

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("config %s: %s", e.File, e.Problems[0])
	}
	return fmt.Sprintf("config %s has %d problems:\n  %s", e.File, len(e.Problems), strings.Join(e.Problems, "\n  "))
}

// Load reads and checks a configuration file. Relative paths in it are taken
// from the file's own folder. more lists problems that others know of, such as
// of the block that says where to post.
func Load(path string, more ...func(*File) []string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{path, []string{"no such file; give the configuration with -c FILE"}}
	case err != nil:
		return nil, &Error{path, []string{err.Error()}}
	case info.IsDir():
		return nil, &Error{path, []string{"is a folder, not a file"}}
	case info.Size() > maxBytes:
		return nil, &Error{path, []string{fmt.Sprintf("is larger than %d bytes", maxBytes)}}
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{path, []string{err.Error()}}
	}
	return Parse(path, body, more...)
}

// Parse checks a configuration that was read from path.
func Parse(path string, body []byte, more ...func(*File) []string) (*File, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, &Error{path, []string{"is empty; config.example.yaml shows every field"}}
	}
	if n := documents(body); n > 1 {
		return nil, &Error{path, []string{fmt.Sprintf("holds %d YAML documents; only one is read, so put all into one", n)}}
	}
	raw, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		if odd := noNumbers(body); len(odd) > 0 {
			return nil, &Error{path, odd}
		}
		return nil, &Error{path, []string{strings.TrimPrefix(strings.ReplaceAll(err.Error(), "error converting YAML to JSON: ", ""), "yaml: ")}}
	}
	var f File
	strict, err := kjson.UnmarshalStrict(raw, &f)
	e := &Error{File: path}
	mismatched := Mismatches(raw, &f, "")
	e.Problems = append(e.Problems, mismatched...)
	if err != nil && len(mismatched) == 0 {
		e.Problems = append(e.Problems, strings.TrimPrefix(err.Error(), "json: "))
	}
	for _, problem := range strict {
		e.Problems = append(e.Problems, problem.Error())
	}
	if err == nil {
		e.Problems = append(e.Problems, f.problems(filepath.Dir(path))...)
	}
	for _, check := range more {
		if err == nil {
			e.Problems = append(e.Problems, check(&f)...)
		}
	}
	slices.Sort(e.Problems)
	if len(e.Problems) > 0 {
		return nil, e
	}
	f.resolvePaths(filepath.Dir(path))
	return &f, nil
}

var noNumber = regexp.MustCompile(`(?i)(?:^|[\s:\[{,-])([-+]?\.(?:nan|inf))\s*(?:$|[,\]}#])`)

// noNumbers finds what YAML takes for a number and nothing can be counted with.
func noNumbers(body []byte) []string {
	var out []string
	for i, line := range strings.Split(string(body), "\n") {
		if m := noNumber.FindStringSubmatch(line); m != nil {
			field, _, _ := strings.Cut(strings.TrimSpace(line), m[1])
			out = append(out, fmt.Sprintf("line %d: %s%s is not a number that can be counted with", i+1, field, m[1]))
		}
	}
	return out
}

// documents counts the YAML documents that hold anything.
func documents(body []byte) int {
	n := 0
	for doc := range bytes.SplitSeq(append([]byte("\n"), body...), []byte("\n---")) {
		for line := range bytes.SplitSeq(doc, []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("...")) {
				n++
				break
			}
		}
	}
	return n
}

func (f *File) resolvePaths(dir string) {
	for i := range f.Clusters {
		f.Clusters[i].Kubeconfig = resolve(dir, f.Clusters[i].Kubeconfig)
	}
	f.Signing.KeyFile = resolve(dir, f.Signing.KeyFile)
	f.Store.CAFile = resolve(dir, f.Store.CAFile)
	if !strings.Contains(f.Store.URL, ":") {
		f.Store.URL = resolve(dir, f.Store.URL)
	}
	f.dir = dir
}

// Path takes a path that stands in the file from the file's own folder.
func (f *File) Path(path string) string { return resolve(f.dir, path) }

// resolve takes a relative path from dir; ~ is the home folder.
func resolve(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return filepath.Join(dir, path)
}
