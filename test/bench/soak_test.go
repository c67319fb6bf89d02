//go:build bench

package bench

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/test/controlplane"
)

var minutes = flag.Float64("minutes", 10, "how long the soak lasts")

// flaky passes requests to a real API server; now and then it answers 503,
// breaks off, or says nothing until the client gives up.
func flaky(t *testing.T, target string) (server string, faults *atomic.Int64) {
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	faults = &atomic.Int64{}
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Faults come in spells of ten seconds, with as long between them.
		if spell := time.Now().Unix() / 10; spell%2 == 1 && n.Add(1)%7 == 0 {
			faults.Add(1)
			switch spell / 2 % 3 {
			case 0:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				<-r.Context().Done()
			}
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, faults
}

// sample is what the process holds at one moment.
type sample struct{ goroutines, files, memory float64 }

func scrape(address string) (map[string]float64, error) {
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(r.Body, 16<<20))
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); found && err == nil {
			out[name] = v
		}
	}
	return out, lines.Err()
}

// TestSoak runs the loop every second against an API server whose faults come
// and go, and holds goroutines, open files and memory to be flat, and every
// second to be accounted for.
func TestSoak(t *testing.T) {
	c := controlplane.Start(t, controlplane.Options{Name: "soak"})
	size := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("n%d", i))
		c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[i], Labels: map[string]string{"env": "prod"}}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}}})
	}
	c.KeepAlive(t, names...)
	dir := t.TempDir()
	program := filepath.Join(dir, "audit")
	build := exec.Command("go", "build", "-o", program, "./cmd/audit")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	server, faults := flaky(t, c.URL)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	body := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: token-of-admin}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", server)
	config := fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: c, kubeconfig: %q, timeout: 3s}]\nstore: {url: %q, keep: 2m}\nschedule: [{name: soak, cron: '@every 1s', post: false}]\nlisten: 127.0.0.1:18080\n", kubeconfig, filepath.Join(dir, "store"))
	for file, text := range map[string]string{kubeconfig: body, filepath.Join(dir, "audit.yaml"): config} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loop := exec.Command(program, "schedule", "-c", filepath.Join(dir, "audit.yaml"))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	loop.Stderr, loop.SysProcAttr = log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- loop.Wait() }()
	begun := time.Now()
	length := time.Duration(*minutes * float64(time.Minute))
	var samples []sample
	var last map[string]float64
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for time.Since(begun) < length {
		select {
		case err := <-ended:
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("the loop ended by itself after %s: %v\n%.4000s", time.Since(begun), err, said)
		case <-tick.C:
		}
		if m, err := scrape("127.0.0.1:18080"); err == nil {
			last = m
			samples = append(samples, sample{m["go_goroutines"], m["process_open_fds"], m["process_resident_memory_bytes"]})
		}
	}
	seconds := time.Since(begun).Seconds()
	_ = loop.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("the loop did not end well: %v", err)
	}
	if len(samples) < 20 {
		t.Fatalf("only %d samples in %.0f s", len(samples), seconds)
	}
	third := len(samples) / 3
	for name, of := range map[string]func(sample) float64{"goroutines": func(s sample) float64 { return s.goroutines }, "open files": func(s sample) float64 { return s.files }, "resident memory": func(s sample) float64 { return s.memory }} {
		early, late := most(samples[:third], of), most(samples[2*third:], of)
		fmt.Printf("%-16s at most %.0f in the first third, %.0f in the last\n", name, early, late)
		if late > 1.3*early+8 {
			t.Errorf("%s grow: %.0f, then %.0f", name, early, late)
		}
	}
	var runs, skipped float64
	for name, v := range last {
		switch {
		case strings.HasPrefix(name, "audit_runs_total"):
			runs += v
		case strings.HasPrefix(name, "audit_skipped_total"), strings.HasPrefix(name, "audit_runs_skipped_total"):
			skipped += v
		}
	}
	fmt.Printf("%.0f s: %.0f runs, %.0f skipped while one was under way, %d faults\n", seconds, runs, skipped, faults.Load())
	if accounted := runs + skipped; accounted < 0.95*seconds-5 {
		t.Errorf("%.0f of %.0f seconds are accounted for", accounted, seconds)
	}
}

func most(list []sample, of func(sample) float64) float64 {
	out := 0.0
	for _, s := range list {
		out = max(out, of(s))
	}
	return out
}
