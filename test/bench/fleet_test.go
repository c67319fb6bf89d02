//go:build bench

// Package bench measures whole processes against a real API server that holds
// a fleet. It is run by hand, by make bench.
package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gpuaudit/test/controlplane"
)

var (
	nodes = flag.Int("nodes", 2000, "nodes of the fleet")
	pods  = flag.Int("pods", 50000, "pods of the fleet, about 7 KB each")
	usual = flag.Bool("usual", true, "measure the usual pipeline of kubectl and jq too: minutes, and ten gigabytes")
	times = flag.Int("times", 3, "how often each process is run; the best counts")
)

// measure is what a process cost.
type measure struct {
	cpu, wall time.Duration
	peak      int64 // MB
}

func run(t *testing.T, env []string, name string, args ...string) measure {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	m := measure{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall: time.Since(begun)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.peak = usage.Maxrss / 1024
	}
	return m
}

// TestFleet fills a cluster and runs, in turn and side by side, only paging
// through it, the whole audit, and the usual pipeline of kubectl and jq.
func TestFleet(t *testing.T) {
	c := controlplane.Start(t, controlplane.Options{Name: "fleet"})
	dir := t.TempDir()
	for target, pkg := range map[string]string{"load": "./load", "page": "./page"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, target), pkg).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", pkg, err, out)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "audit"), "./cmd/audit")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build audit: %v\n%s", err, out)
	}
	kubeconfig := c.Direct(t) // a recorder between would cost more than what is measured
	filled := run(t, nil, filepath.Join(dir, "load"), kubeconfig, strconv.Itoa(*nodes), strconv.Itoa(*pods))
	fmt.Printf("%d nodes and %d pods made in %s, on %d processors\n", *nodes, *pods, filled.wall.Round(time.Second), runtime.NumCPU())

	env := []string{"KUBECONFIG=" + kubeconfig}
	jobs := map[string][]string{
		"only paging": {filepath.Join(dir, "page"), kubeconfig},
		"audit run":   {filepath.Join(dir, "audit"), "run", "--no-store", "-o", "json", "--out", filepath.Join(dir, "report.json")},
	}
	best := map[string]measure{}
	for range *times {
		for name, job := range jobs {
			m := run(t, env, job[0], job[1:]...)
			if old, ok := best[name]; !ok || m.cpu < old.cpu {
				best[name] = m
			}
		}
	}
	_, noKubectl := exec.LookPath("kubectl")
	_, noJQ := exec.LookPath("jq")
	if *usual && noKubectl == nil && noJQ == nil {
		best["kubectl | jq"] = run(t, env, "sh", "-c", `kubectl get pods -A -o json | jq '[.items[].spec.containers[].resources.requests["nvidia.com/gpu"]//"0"|tonumber]|add' >/dev/null`)
	} else if *usual {
		fmt.Println("kubectl or jq is not here: the usual pipeline is not measured")
	}
	bare := best["only paging"]
	for _, name := range []string{"only paging", "audit run", "kubectl | jq"} {
		if m, ok := best[name]; ok {
			fmt.Printf("%-14s %8s CPU (%.2f x paging)  %8s wall  %5d MB at most\n", name, m.cpu.Round(10*time.Millisecond), m.cpu.Seconds()/bare.cpu.Seconds(), m.wall.Round(10*time.Millisecond), m.peak)
		}
	}
}
