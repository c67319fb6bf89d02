package collect

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/inventory"
)

// spoil answers reads of one path with something else; it gives false to leave them alone.
type spoil func(w http.ResponseWriter, r *http.Request) bool

func spoiled(t *testing.T, s spoil, timeout time.Duration) *inventory.Cluster {
	t.Helper()
	a := &api{pods: 1, calls: map[string]int{}, stop: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s(w, r) {
			a.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { close(a.stop); server.Close() })
	at := target(t, server.URL)
	at.Timeout = timeout
	return Cluster(context.Background(), at, nil)
}

// TestNoList: an answer with status 200 that is no list is no empty list.
func TestNoList(t *testing.T) {
	for name, body := range map[string]string{
		"empty object":   `{}`,
		"status success": `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`,
		"another kind":   `{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}`,
		"no items":       `{"kind":"NodeList","apiVersion":"v1","metadata":{}}`,
	} {
		for path, resource := range map[string]inventory.Resource{
			"/api/v1/nodes": inventory.Nodes, "/api/v1/events": inventory.Events, "/api/v1/resourcequotas": inventory.ResourceQuotas, "/apis/apps/v1/daemonsets": inventory.DaemonSets,
		} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				c := spoiled(t, func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != path {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					_, err := w.Write([]byte(body))
					return err == nil
				}, 20*time.Second)
				if gaps := c.GapsOf(resource); len(gaps) != 1 || gaps[0].Reason != inventory.GapError || c.Seen(resource) {
					t.Errorf("seen %v, gaps %+v, want one", c.Seen(resource), gaps)
				}
			})
		}
	}
}

// TestHiddenDiscovery: a server whose list of kinds is refused is not one without any kind of quota.
func TestHiddenDiscovery(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound} {
		c := spoiled(t, func(w http.ResponseWriter, r *http.Request) bool {
			hidden := r.URL.Path == "/api" || r.URL.Path == "/apis"
			if hidden {
				status(w, code, http.StatusText(code))
			}
			return hidden
		}, 20*time.Second)
		if gaps := c.GapsOf(inventory.Discovery); len(gaps) != 1 || c.MetricsServed != inventory.Unknown {
			t.Errorf("%d: gaps %+v, metrics served %v, want a gap and unknown", code, gaps, c.MetricsServed)
		}
	}
}

// TestVersionFails: a server that fails to tell its version is asked for its lists all the same.
func TestVersionFails(t *testing.T) {
	c := spoiled(t, func(w http.ResponseWriter, r *http.Request) bool {
		hidden := r.URL.Path == "/version"
		if hidden {
			status(w, http.StatusInternalServerError, "InternalError")
		}
		return hidden
	}, 20*time.Second)
	if c.Err != nil || len(c.Nodes) != 1 || c.PodCount != 1 {
		t.Errorf("err %+v, %d nodes, %d pods, want all", c.Err, len(c.Nodes), c.PodCount)
	}
}

// TestNoRights: a server that refuses every read was reached, and each gap says which right is missing.
func TestNoRights(t *testing.T) {
	c := spoiled(t, func(w http.ResponseWriter, r *http.Request) bool {
		list := r.URL.Query().Has("limit")
		if list {
			status(w, http.StatusForbidden, "Forbidden")
		}
		return list
	}, 20*time.Second)
	if c.Err != nil || len(c.Gaps) == 0 {
		t.Errorf("err %+v with %d gaps, want gaps alone", c.Err, len(c.Gaps))
	}
	for _, g := range c.Gaps {
		if g.Reason != inventory.GapForbidden || strings.Contains(g.Message, "forbidden") || !strings.Contains(g.Message, "list "+string(g.Resource)) {
			t.Errorf("%s: %s, %q", g.Resource, g.Reason, g.Message)
		}
	}
}

// TestHangingLeases: leases that never come cost a part of the deadline, not the pods, and the words name the setting.
func TestHangingLeases(t *testing.T) {
	c := spoiled(t, func(_ http.ResponseWriter, r *http.Request) bool {
		hangs := strings.HasSuffix(r.URL.Path, "/leases")
		if hangs {
			<-r.Context().Done()
		}
		return hangs
	}, 4*time.Second)
	gaps := c.GapsOf(inventory.Leases)
	if len(gaps) != 1 || gaps[0].Reason != inventory.GapTimeout || !strings.Contains(gaps[0].Message, "timeout") || strings.Contains(gaps[0].Message, "context") {
		t.Errorf("gaps of leases: %+v", gaps)
	}
	if len(c.Gaps) != 1 || c.PodCount != 1 {
		t.Errorf("%d pods, gaps %+v, want all pods and no other gap", c.PodCount, c.Gaps)
	}
}
