// Package e2e runs the built program against real control planes.
package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gpuaudit/audit/report"
)

var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "audit-e2e-*")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "audit")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/audit")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return bin, nil
})

// result is what one run of the program gave.
type result struct {
	code           int
	stdout, stderr string
	// memory is the process's peak in MB, cpu its time on processors, elapsed its time on the clock.
	memory       int64
	cpu, elapsed time.Duration
}

// audit runs the program with a clean environment.
func audit(t *testing.T, env []string, args ...string) result {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatalf("build the program: %v", err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	err = cmd.Run()
	elapsed := time.Since(begun)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	state := cmd.ProcessState
	r := result{code: state.ExitCode(), stdout: out.String(), stderr: errs.String(), cpu: state.UserTime() + state.SystemTime(), elapsed: elapsed}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.memory = usage.Maxrss / 1024
	}
	return r
}

// report reads a JSON report from standard output.
func (r result) report(t *testing.T) *report.Report {
	t.Helper()
	rep, err := report.Decode([]byte(r.stdout))
	if err != nil {
		t.Fatalf("exit %d, no report: %v\n%s\n%s", r.code, err, r.stdout, r.stderr)
	}
	return rep
}

// finding finds one by check and subject's name.
func finding(c *report.Cluster, check, name string) *report.Finding {
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Check == check && f.Subject.Name == name {
			return f
		}
	}
	return nil
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// comparable strips what two runs may differ in: the run's own name and times.
func comparable(t *testing.T, c report.Cluster) string {
	t.Helper()
	type short struct {
		ID, Title, Severity string
		Devices             int64
	}
	var list []short
	for _, f := range c.Findings {
		list = append(list, short{f.ID, ageless(f.Title), string(f.Severity), f.Devices})
	}
	body, err := json.MarshalIndent(map[string]any{"findings": list, "devices": c.Devices, "classes": c.Classes, "gaps": c.Gaps, "checks": c.Checks}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// ageless takes the ages out of a title: a live run is some seconds older.
func ageless(title string) string {
	words := strings.Fields(title)
	for i, w := range words {
		if strings.TrimRight(strings.TrimRight(w, ":,"), "smhd") != w && strings.ContainsAny(w[:1], "0123456789") {
			words[i] = "AGE"
		}
	}
	return strings.Join(words, " ")
}
