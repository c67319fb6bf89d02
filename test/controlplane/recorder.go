package controlplane

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Request is one that reached the API server from a program under test.
type Request struct {
	// Method and Path as they were sent, and the query.
	Method, Path string
	Query        url.Values
	UserAgent    string
	// Verb is list, get, watch, create or another word of Kubernetes
	// authorization; of requests outside of resources it is "".
	Verb, Group, Resource, Subresource, Namespace, Name string
}

// Recorder stands between programs under test and the API server and keeps
// what they send.
type Recorder struct {
	mu       sync.Mutex
	requests []Request
	server   *httptest.Server
}

// record starts the recorder of a cluster. When the test ends, every request
// that went through it has to be one that the audit may send.
func record(t testing.TB, api string) *Recorder {
	t.Helper()
	target, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // a client that hangs up is part of many tests
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, requestOf(q))
		r.mu.Unlock()
		proxy.ServeHTTP(w, q)
	}))
	r.server.EnableHTTP2 = true
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.StartTLS()
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		for _, q := range r.Requests() {
			if why := Forbidden(q); why != "" {
				t.Errorf("the audit sent %s %s: %s", q.Method, q.Path, why)
			}
		}
	})
	return r
}

// Requests gives what was recorded up to now.
func (r *Recorder) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Forget begins anew, and gives what was recorded before.
func (r *Recorder) Forget() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.requests
	r.requests = nil
	return out
}

// agent is what the audit calls itself.
const agent = "gpu-audit"

// Forbidden says why the audit may not send a request; "" when it may.
func Forbidden(q Request) string {
	switch {
	case !strings.HasPrefix(q.UserAgent, agent):
		return fmt.Sprintf("it does not say who it is: %q", q.UserAgent)
	case q.Method == http.MethodPost:
		if q.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" || len(q.Query) > 0 {
			return "only reviews of its own rights may be created"
		}
	case q.Method != http.MethodGet:
		return "it is neither GET nor a review of its own rights"
	case q.Verb == "watch":
		return "a watch is no list"
	case q.Group == "" && slices.Contains([]string{"secrets", "configmaps", "serviceaccounts", "persistentvolumes"}, q.Resource):
		return "this kind is never read"
	case q.Subresource != "":
		return "no subresource is read: logs, exec and proxy are ways into workloads"
	case q.Resource == "" && !slices.Contains([]string{"", "api", "apis", "version"}, strings.SplitN(strings.TrimPrefix(q.Path, "/"), "/", 2)[0]):
		return "of the paths outside of resources only the version and the list of kinds are read"
	}
	return ""
}

// requestOf reads a request as the API server does.
// Source: k8s.io/apiserver/pkg/endpoints/request (RequestInfoFactory).
func requestOf(r *http.Request) Request {
	q := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), UserAgent: r.UserAgent()}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		q.Group, parts = parts[1], parts[3:]
	default:
		return q
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.Namespace, parts = parts[1], parts[2:]
	}
	q.Resource = parts[0]
	if len(parts) > 1 {
		q.Name = parts[1]
	}
	if len(parts) > 2 {
		q.Subresource = strings.Join(parts[2:], "/")
	}
	q.Verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		q.Verb = "list"
		if q.Name != "" {
			q.Verb = "get"
		}
		if w := q.Query.Get("watch"); w != "" && w != "false" && w != "0" {
			q.Verb = "watch"
		}
	}
	return q
}
