package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuaudit/audit/inventory"
)

// api is an API server of a few kinds that pages its lists and can fail.
type api struct {
	mu sync.Mutex
	// pods is how many there are; fault is what happens to reads of pods.
	pods  int
	fault string
	calls map[string]int
	wrote []string
	stop  chan struct{}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.calls[r.URL.Path]++
	n := a.calls[r.URL.Path]
	if r.Method != http.MethodGet {
		a.wrote = append(a.wrote, r.Method+" "+r.URL.Path)
	}
	fault := a.fault
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.30.0"}`)
	case strings.HasPrefix(path, "/api") && strings.Count(path, "/") < 3 || path == "/apis/apps/v1":
		kinds(w, path)
	case path == "/api/v1/nodes":
		fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"n1"}}]}`)
	case path == "/api/v1/pods":
		a.list(w, r, fault, n)
	default:
		empty(w, path)
	}
}

// empty gives an empty list of a built-in kind.
func empty(w http.ResponseWriter, path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := strings.Join(parts[1:len(parts)-1], "/")
	if i := strings.Index(version, "/namespaces"); i >= 0 {
		version = version[:i]
	}
	kind := map[string]string{"leases": "Lease", "namespaces": "Namespace", "events": "Event", "resourcequotas": "ResourceQuota", "services": "Service", "endpointslices": "EndpointSlice",
		"daemonsets": "DaemonSet", "deployments": "Deployment", "statefulsets": "StatefulSet", "jobs": "Job", "cronjobs": "CronJob", "priorityclasses": "PriorityClass", "runtimeclasses": "RuntimeClass"}[parts[len(parts)-1]]
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind, version)
}

// kinds names the kinds that every API server has.
func kinds(w http.ResponseWriter, path string) {
	switch path {
	case "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`)
	case "/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node","verbs":["get","list"]}]}`)
	default:
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"daemonsets","kind":"DaemonSet","namespaced":true,"verbs":["get","list"]}]}`)
	}
}

func status(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no","code":%d}`, reason, code)
}

// list pages pods by two, and fails as told.
func (a *api) list(w http.ResponseWriter, r *http.Request, fault string, call int) {
	from := 0
	if c := r.URL.Query().Get("continue"); c != "" {
		_, _ = fmt.Sscan(c, &from) // our own token
	}
	switch {
	case fault == "hang":
		<-a.stop
		return
	case fault == "cut" && from > 0:
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"kind":"PodList"`)
		return
	case fault == "garbage":
		fmt.Fprint(w, "<html>")
		return
	case fault == "410 once" && from > 0 && call == 2, fault == "410" && from > 0:
		status(w, http.StatusGone, "Expired")
		return
	case fault == "500 once" && call == 1, fault == "500":
		status(w, http.StatusInternalServerError, "InternalError")
		return
	case fault == "401":
		status(w, http.StatusUnauthorized, "Unauthorized")
		return
	case fault == "403":
		status(w, http.StatusForbidden, "Forbidden")
		return
	case fault == "404":
		status(w, http.StatusNotFound, "NotFound")
		return
	case fault == "429 once" && call == 1:
		w.Header().Set("Retry-After", "1")
		status(w, http.StatusTooManyRequests, "TooManyRequests")
		return
	}
	var items []string
	next := ""
	for i := from; i < min(from+2, a.pods); i++ {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"x"},"spec":{"nodeName":"n1","containers":[]},"status":{"phase":"Running"}}`, i))
	}
	if from+2 < a.pods {
		next = fmt.Sprint(from + 2)
	}
	fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

func target(t *testing.T, url string) Target {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	body := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: canary-token}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", url)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return Target{Name: "c", Kubeconfig: file, Timeout: 20 * time.Second}
}

// TestFaults: whatever happens to one list, it is whole or not there at all,
// the others are kept, and nothing but reads is sent.
func TestFaults(t *testing.T) {
	for fault, want := range map[string]inventory.GapReason{
		"": "", "410 once": "", "500 once": "", "429 once": "",
		"410": inventory.GapExpired, "500": inventory.GapError, "401": inventory.GapCredentials, "403": inventory.GapForbidden, "404": inventory.GapError,
		"cut": inventory.GapError, "garbage": inventory.GapError, "hang": inventory.GapTimeout,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			a := &api{pods: 5, fault: fault, calls: map[string]int{}, stop: make(chan struct{})}
			server := httptest.NewServer(a)
			t.Cleanup(func() { close(a.stop); server.Close() })
			at := target(t, server.URL)
			if fault == "hang" {
				at.Timeout = 2 * time.Second
			}
			c := Cluster(context.Background(), at, nil)
			if c.Err != nil || len(c.Nodes) != 1 {
				t.Fatalf("err %v, %d nodes", c.Err, len(c.Nodes))
			}
			found := c.GapsOf(inventory.Pods)
			if want == "" {
				if len(found) > 0 || c.PodCount != 5 || c.Nodes[0].Load.Pods != 5 {
					t.Errorf("gaps %v, %d pods, want all 5", found, c.PodCount)
				}
				return
			}
			if len(found) != 1 || found[0].Reason != want || c.PodCount != 0 || c.Nodes[0].Load.Pods != 0 || c.Extent(inventory.Pods) != inventory.NotSeen {
				t.Errorf("gaps %v, %d pods, want one gap %q and no part of the list", found, c.PodCount, want)
			}
			if len(a.wrote) > 0 {
				t.Errorf("sent %v", a.wrote)
			}
		})
	}
}

// TestDeadClusters: each kind of dead cluster is unreachable with its reason
// and costs no more than its deadline; no secret is in any message.
func TestDeadClusters(t *testing.T) {
	hang := make(chan struct{})
	black := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(func() { close(hang); black.Close(); tls.Close() })
	targets := []Target{target(t, "https://127.0.0.1:1"), target(t, black.URL), target(t, tls.URL), {Name: "none", Kubeconfig: "/no/such/file"}}
	for i := range targets {
		targets[i].Timeout = 2 * time.Second
	}
	begun := time.Now()
	clusters := All(context.Background(), targets, 4, nil)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
	for i, want := range []inventory.GapReason{inventory.GapUnreachable, inventory.GapTimeout, inventory.GapUnreachable, inventory.GapCredentials} {
		c := clusters[i]
		if c.Err == nil || c.Err.Reason != want || c.Err.Message == "" {
			t.Errorf("target %d: %+v, want %s", i, c.Err, want)
		}
		body, err := json.Marshal(c.Gaps)
		if err != nil || strings.Contains(string(body), "canary") {
			t.Errorf("target %d: a token is in %s (%v)", i, body, err)
		}
	}
}

// TestPlugins: a credentials plugin that is absent, fails, prints nonsense or
// waits is a matter of credentials, is never asked twice and ends at the deadline.
func TestPlugins(t *testing.T) {
	a := &api{calls: map[string]int{}, stop: make(chan struct{})}
	server := httptest.NewTLSServer(a) // credentials are sent over TLS alone
	t.Cleanup(func() { close(a.stop); server.Close() })
	script := func(body string) string {
		file := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, c := range map[string]struct{ command, want string }{
		"absent":   {"/no/such/plugin", "not installed"},
		"fails":    {script("echo canary-secret >&2; exit 3"), "exit code 3"},
		"nonsense": {script("echo canary-secret"), "no ExecCredential"},
		"empty":    {script(`echo '{"status":{}}'`), "neither a token nor a certificate"},
		"waits":    {script("sleep 100 & wait"), "deadline"},
		"good":     {script(`echo '{"status":{"token":"t"}}'`), ""},
	} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		body := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: %q}}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", server.URL, c.command)
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		got := Cluster(context.Background(), Target{Name: "c", Kubeconfig: file, Timeout: 2 * time.Second}, nil)
		switch {
		case c.want == "" && got.Err != nil:
			t.Errorf("%s: %v", name, got.Err)
		case c.want != "" && (got.Err == nil || got.Err.Reason != inventory.GapCredentials || !strings.Contains(got.Err.Message, c.want) || strings.Contains(got.Err.Message, "canary")):
			t.Errorf("%s: %+v, want credentials and %q", name, got.Err, c.want)
		}
	}
}

// TestGuardOnlyReads: nothing but reading leaves the program.
func TestGuardOnlyReads(t *testing.T) {
	sent := 0
	g := &guard{next: roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	})}
	for method, path := range map[string]string{"POST": "/api/v1/pods", "PUT": "/api/v1/nodes/n", "PATCH": "/api/v1/nodes/n", "DELETE": "/api/v1/nodes/n"} {
		r := httptest.NewRequest(method, "https://x"+path, nil)
		if _, err := g.RoundTrip(r); err == nil {
			t.Errorf("%s %s was sent", method, path)
		}
	}
	for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/x/secrets/s", "/api/v1/configmaps", "/api/v1/pods?watch=true", "/api/v1/namespaces/x/pods/selfsubjectaccessreviews?watch=1"} {
		if _, err := g.RoundTrip(httptest.NewRequest("GET", "https://x"+path, nil)); err == nil {
			t.Errorf("%s was sent", path)
		}
	}
	if _, err := g.RoundTrip(httptest.NewRequest("POST", "https://x/api/v1/namespaces/x/pods/p/proxy/selfsubjectaccessreviews", nil)); err == nil {
		t.Error("a post that is no review was sent")
	}
	if sent != 0 {
		t.Errorf("%d requests got through", sent)
	}
	if _, err := g.RoundTrip(httptest.NewRequest("GET", "https://x/api/v1/pods", nil)); err != nil || sent != 1 {
		t.Errorf("a read was refused: %v", err)
	}
}

// TestRedirects: a server that sends on to another host is not followed.
func TestRedirects(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(server.Close)
	c := Cluster(context.Background(), target(t, server.URL), nil)
	if c.Err == nil || c.Err.Reason != inventory.GapUnreachable || !strings.Contains(c.Err.Message, "another host") || asked > 0 {
		t.Errorf("%+v, and the other host was asked %d times", c.Err, asked)
	}
}

// TestLongAnswers: a body without an end is refused.
func TestLongAnswers(t *testing.T) {
	b := &bounded{ReadCloser: io.NopCloser(strings.NewReader("1234567890")), left: 7}
	if body, err := io.ReadAll(b); err == nil || string(body) != "1234567" {
		t.Errorf("%q, %v", body, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEmptyServerIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no server":  "clusters: [{name: c, cluster: {}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n",
		"no context": "clusters: [{name: c, cluster: {server: 'https://x'}}]\n",
	} {
		file := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := Cluster(context.Background(), Target{Name: "c", Kubeconfig: file, Timeout: time.Second}, nil)
		if c.Err == nil || c.Err.Reason != inventory.GapCredentials {
			t.Errorf("%s: %+v", name, c.Err)
		}
	}
}
