package main

import (
	"archive/zip"
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// command runs the program in this process.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestRedactedBundle searches every file of a redacted bundle of the incident
// for every name of ours, and the vendor's own names for staying.
func TestRedactedBundle(t *testing.T) {
	dir := t.TempDir()
	story, file := filepath.Join(dir, "story"), filepath.Join(dir, "C.zip")
	if _, err := command(t, "demo", "--keep", story); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "evidence", "--store", filepath.Join(story, "store"), "--cluster", "C", "--redact", "--out", file); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, "verify", file); err != nil || !strings.Contains(out, "everything verifies") {
		t.Fatalf("the redacted bundle does not verify: %v\n%s", err, out)
	}
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := ""
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil {
			t.Fatal(err)
		}
		all += string(body)
		for _, name := range []string{"task-monitor", "edit-client", "inference", "loongcollector", "promtail", "observability", "a-gpu-01", "b-gpu-01"} {
			if strings.Contains(string(body), name) {
				t.Errorf("%s holds %q", f.Name, name)
			}
		}
	}
	for _, name := range []string{"52ew76fke2", "ujx4guefbh", "node_env", "x-scheduler"} {
		if !strings.Contains(all, name) {
			t.Errorf("the bundle lost %q", name)
		}
	}
}
