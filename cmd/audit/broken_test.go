package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuaudit/cmd/audit/demo"
)

// TestBrokenSnapshot: a broken snapshot in the store is named and never
// overwritten, nothing is compared, and the run is incomplete.
func TestBrokenSnapshot(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	for day := 1; day <= 2; day++ {
		if err := demo.Write(filepath.Join(dir, "day", string(rune('0'+day))), day); err != nil {
			t.Fatal(err)
		}
	}
	run := func(day string) (string, error) {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"run", "--from", filepath.Join(dir, "day", day), "--cluster", "C", "--store", store, "-o", "json"})
		err := root.Execute()
		return out.String(), err
	}
	if _, err := run("1"); err != nil {
		t.Fatal(err)
	}
	var file string
	err := filepath.WalkDir(store, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "/snapshots/") && !e.IsDir() {
			file = path
		}
		return err
	})
	if err != nil || file == "" {
		t.Fatalf("no snapshot was kept: %v", err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("garbage"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := run("2")
	var coded *codeError
	if !errors.As(err, &coded) || coded.code != exitIncomplete {
		t.Errorf("error is %v, want exit code 3", err)
	}
	if err == nil || !strings.Contains(err.Error(), filepath.Base(file)) {
		t.Errorf("error %v does not name the broken snapshot", err)
	}
	if !strings.Contains(out, "cannot be read") || strings.Contains(out, `"check": "node-recreated"`) {
		t.Error("the report compares with a broken snapshot, or does not say that it could not")
	}
	if body, err := os.ReadFile(file); err != nil || string(body) != "garbage" {
		t.Errorf("the broken snapshot is now %q (%v)", body, err)
	}
}
