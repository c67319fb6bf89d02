package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gpuaudit/audit/report"
	"gpuaudit/cmd/audit/demo"
	"gpuaudit/test/controlplane"
)

// apiFaults are the ways in which a list fails.
var apiFaults = map[string]func(w http.ResponseWriter, r *http.Request, whole *httptest.ResponseRecorder){
	"401": status(401, "Unauthorized"), "403": status(403, "Forbidden"), "409": status(409, "Conflict"), "410": status(410, "Expired"),
	"429": status(429, "TooManyRequests"), "500": status(500, "InternalError"), "503": status(503, "ServiceUnavailable"),
	"silent": func(_ http.ResponseWriter, r *http.Request, _ *httptest.ResponseRecorder) { <-r.Context().Done() },
	"reset": func(http.ResponseWriter, *http.Request, *httptest.ResponseRecorder) {
		panic(http.ErrAbortHandler)
	},
	"cut": func(w http.ResponseWriter, _ *http.Request, whole *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
		w.Header().Set("Content-Length", fmt.Sprint(whole.Body.Len()+1000))
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
	"garbage": func(w http.ResponseWriter, _ *http.Request, whole *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
		_, _ = w.Write([]byte("k8s\x00\xff\xfe\x80\x80\x80\x80 not an object"))
	},
	"other type": func(w http.ResponseWriter, _ *http.Request, _ *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>please log in</body></html>"))
	},
}

func status(code int, reason string) func(http.ResponseWriter, *http.Request, *httptest.ResponseRecorder) {
	return func(w http.ResponseWriter, _ *http.Request, _ *httptest.ResponseRecorder) {
		if code == 429 {
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"injected","reason":%q,"code":%d}`, reason, code)
	}
}

// lists gives the collections that the program read: path and resource.
func (p *tape) lists() map[string]string {
	out := map[string]string{}
	for k, a := range p.answers {
		path, _, _ := strings.Cut(strings.Fields(k)[1], "?")
		parts := strings.Split(strings.Trim(path, "/"), "/")
		if a.code == 200 && ((parts[0] == "api" && len(parts) == 3) || (parts[0] == "apis" && len(parts) == 4)) {
			out[path] = parts[len(parts)-1]
		}
	}
	return out
}

// TestFaults: of every kind that is read, every way to fail, each as a cluster
// of its own beside its whole self of the run before. What was not seen is a
// gap with a reason, no check that needs it says clean, no count is 0 for it,
// nothing is resolved by it; and when the fault is over, nothing is new.
func TestFaults(t *testing.T) {
	t.Parallel()
	real := controlplane.Start(t, controlplane.Options{Name: "recorded"})
	put(t, real, demo.ClusterC(2), func(string) bool { return true })
	real.KeepAlive(t, aliveNodes(demo.ClusterC(2))...)
	withDriver(t, real)
	ghost := claiming("ghost")
	ghost.Spec.NodeName = "dra-1"
	allocate(t, real, real.Pod(t, ghost))
	recorded := record(t, real)
	lists := recorded.lists()
	if len(lists) < 12 {
		t.Fatalf("only %d lists were recorded: %v", len(lists), lists)
	}
	var broken atomic.Bool
	var config strings.Builder
	config.WriteString("apiVersion: audit/v1\nparallelism: 24\nclusters:\n")
	type pair struct{ resource, fault string }
	pairs := map[string]pair{}
	for path, resource := range lists {
		for fault, fail := range apiFaults {
			name := strings.ReplaceAll(fmt.Sprintf("%s-%s", strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"), fault), " ", "-")
			pairs[name] = pair{resource, fault}
			url := plain(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !broken.Load() || r.URL.Path != path {
					recorded.ServeHTTP(w, r)
					return
				}
				whole := httptest.NewRecorder()
				recorded.ServeHTTP(whole, r)
				fail(w, r, whole)
			}))
			fmt.Fprintf(&config, "  - {name: %q, kubeconfig: %q, timeout: 12s}\n", name, kubeconfigFor(t, name, url, nil))
		}
	}
	file := write(t, filepath.Join(t.TempDir(), "audit.yaml"), config.String()+fmt.Sprintf("store: {url: %q}\n", t.TempDir()))
	run := func(code int) *report.Report {
		got := audit(t, nil, "run", "-c", file, "-o", "json")
		if got.code != code {
			t.Fatalf("exit %d, want %d\n%.2000s", got.code, code, got.stderr)
		}
		return got.report(t)
	}
	run(0)
	broken.Store(true)
	r := run(3)
	t.Logf("%d lists in %d ways: %d clusters", len(lists), len(apiFaults), len(pairs))
	for i := range r.Clusters {
		p := pairs[r.Clusters[i].Name]
		faulty(t, &r.Clusters[i], p.resource, p.fault)
	}
	broken.Store(false)
	for _, k := range run(0).Clusters {
		for _, f := range k.Findings {
			if f.State == report.StateNew {
				t.Errorf("%s: after the fault this is new: %s", k.Name, f.Title)
			}
		}
	}
}

// faulty judges what the report says of a cluster with one fault.
func faulty(t *testing.T, k *report.Cluster, resource, fault string) {
	t.Helper()
	i := slices.IndexFunc(k.Gaps, func(g report.Gap) bool { return g.Resource == resource || strings.HasPrefix(g.Resource, resource+".") })
	if i < 0 {
		if k.Status == report.Complete || k.Error == "" {
			t.Errorf("%s: no gap for %s: %s, error %q, gaps %+v", k.Name, resource, k.Status, k.Error, k.Gaps)
		}
		return
	}
	g := k.Gaps[i]
	if g.Reason == "" || g.Message == "" {
		t.Errorf("%s: a gap without a reason: %+v", k.Name, g)
	}
	if fault == "403" && g.Reason != "forbidden" {
		t.Errorf("%s: a refusal is called %s", k.Name, g.Reason)
	}
	if fault == "429" && !strings.Contains(g.Message, "HTTP 429") {
		t.Errorf("%s: that it was told to wait is not said: %s", k.Name, g.Message)
	}
	for _, o := range k.Checks {
		if o.Outcome == report.OutcomeClean && slices.Contains(g.Checks, o.ID) {
			t.Errorf("%s: %s says clean", k.Name, o.ID)
		}
	}
	for _, f := range k.Findings {
		if f.State == report.StateResolved {
			t.Errorf("%s: resolved by a fault: %s", k.Name, f.Title)
		}
	}
	if len(g.Checks) == 0 && resource != "namespaces" { // which say what there is to read elsewhere
		t.Errorf("%s: the gap for %s names no check", k.Name, resource)
	}
	if resource == "resourceclaims" || resource == "resourceslices" {
		for _, d := range k.Devices {
			if d.Source == "dra" && d.Free != nil {
				t.Errorf("%s: %s: free is %d", k.Name, d.Resource, *d.Free)
			}
		}
	}
	switch resource {
	case "nodes":
		if k.Baseline.Nodes != nil || k.Baseline.ReadyNodes != nil {
			t.Errorf("%s: nodes are counted", k.Name)
		}
	case "pods":
		if len(k.Classes) > 0 || slices.ContainsFunc(k.Devices, func(d report.Device) bool { return d.Free != nil }) {
			t.Errorf("%s: free devices are counted", k.Name)
		}
	}
}
