package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRunKeepsNoLonger: a run removes what store.keep says is kept no longer,
// from the configuration's own store alone; what remains is whole.
func TestRunKeepsNoLonger(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := quiet(t, true, newCanaries(t).workloads()).URL
	write("k.yaml", fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n", server))
	write("audit.yaml", "apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: k.yaml}]\nstore: {url: store, keep: 10d}\n")
	audit := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "audit", append(args, "-c", filepath.Join(dir, "audit.yaml"))...).CombinedOutput()
		if err != nil {
			t.Fatalf("audit %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	age := func(by time.Duration) {
		err := filepath.WalkDir(filepath.Join(dir, "store"), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			return os.Chtimes(path, time.Time{}, time.Now().Add(-by))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func() int {
		s, _ := filepath.Glob(filepath.Join(dir, "store/clusters/C/snapshots/*"))
		return len(s)
	}
	audit("run", "-o", "json")
	age(30 * 24 * time.Hour)
	audit("run", "-o", "json", "--dry-run")
	audit("run", "-o", "json", "--store", filepath.Join(dir, "store")) // by hand, into a store that is named
	if n := kept(); n != 2 {
		t.Fatalf("%d snapshots are kept, want both", n)
	}
	audit("run", "-o", "json")
	if n := kept(); n != 2 {
		t.Errorf("%d snapshots are kept, want 2 of 3", n)
	}
	if out := audit("history", "--cluster", "C"); !strings.Contains(out, "2 snapshots") {
		t.Errorf("history: %s", out)
	}
	zip := filepath.Join(dir, "C.zip")
	audit("evidence", "--cluster", "C", "--out", zip)
	out, err := exec.CommandContext(t.Context(), "audit", "verify", zip).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "everything verifies") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}
