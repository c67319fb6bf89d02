package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gpuaudit/audit/dump"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
)

var errDead = errors.New("the process is dead")

// mortal is a store whose process dies at its n-th write: before it, or after
// it and before anybody learns of it. From then on nothing gets through.
type mortal struct {
	store.Store
	mu     sync.Mutex
	writes int
	dieAt  int // 0: never
	after  bool
	dead   bool
}

// write tells whether a write is done, and whether its caller still lives then.
func (m *mortal) write() (done, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false
	}
	m.writes++
	if m.writes == m.dieAt {
		m.dead = true
		return m.after, false
	}
	return true, true
}

func (m *mortal) do(f func() (store.Info, error)) (store.Info, error) {
	done, alive := m.write()
	var info store.Info
	var err error
	if done {
		info, err = f()
	}
	if !alive {
		return store.Info{}, errDead
	}
	return info, err
}

func (m *mortal) Create(ctx context.Context, key string, body []byte, a store.Attributes) (store.Info, error) {
	return m.do(func() (store.Info, error) { return m.Store.Create(ctx, key, body, a) })
}

func (m *mortal) Put(ctx context.Context, key string, body []byte, a store.Attributes) (store.Info, error) {
	return m.do(func() (store.Info, error) { return m.Store.Put(ctx, key, body, a) })
}

func (m *mortal) Replace(ctx context.Context, key, version string, body []byte, a store.Attributes) (store.Info, error) {
	return m.do(func() (store.Info, error) { return m.Store.Replace(ctx, key, version, body, a) })
}

func (m *mortal) Get(ctx context.Context, key string) (store.Object, error) {
	if m.gone() {
		return store.Object{}, errDead
	}
	return m.Store.Get(ctx, key)
}

func (m *mortal) Stat(ctx context.Context, key string) (store.Info, error) {
	if m.gone() {
		return store.Info{}, errDead
	}
	return m.Store.Stat(ctx, key)
}

func (m *mortal) gone() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.dead }

// clusters are two clusters whose node has, or has lost, the label that a Deployment selects.
func clusters(t *testing.T, at time.Time, label bool) []*inventory.Cluster {
	t.Helper()
	dir := t.TempDir()
	labels := "{}"
	if label {
		labels = `{"env":"prod"}`
	}
	stamp := at.Format(time.RFC3339)
	for _, name := range []string{"a", "b"} {
		files := map[string]string{
			"nodes": `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u1","creationTimestamp":"2026-01-01T00:00:00Z","labels":` + labels + `},
				"status":{"capacity":{"nvidia.com/gpu":"8","cpu":"8","pods":"110"},"allocatable":{"nvidia.com/gpu":"8","cpu":"8","pods":"110"},
				"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"` + stamp + `","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
			"deployments": `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d","namespace":"prod","uid":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"nodeSelector":{"env":"prod"},"containers":[{"name":"c","image":"x"}]}}}}`,
		}
		for _, kind := range []string{"pods", "leases", "daemonsets", "events", "resourcequotas", "services", "endpointslices", "namespaces"} {
			files[kind] = ""
		}
		for kind, item := range files {
			file := filepath.Join(dir, name, kind+".json")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(`{"kind":"List","apiVersion":"v1","items":[`+item+`]}`), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, _, err := dump.Read(dir, dump.Options{Now: at})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func runAt(t *testing.T, s store.Store, at time.Time, label bool) (*pipeline.Outcome, error) {
	t.Helper()
	return pipeline.Run(t.Context(), clusters(t, at, label), pipeline.Options{Now: at, Version: "test", Archive: archive.New(s), Save: true,
		Settings: func(string) settings.Settings { return settings.Default() }})
}

// TestKilledAtEveryWrite: a run dies before or after any of its writes, and the
// rerun as well. The third one finds the earlier state, nothing is half
// written, no chain is broken, and what was found is neither lost nor resolved.
func TestKilledAtEveryWrite(t *testing.T) {
	day := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	writes := func() int {
		m := &mortal{Store: opened(t)}
		if _, err := runAt(t, m, day, true); err != nil {
			t.Fatal(err)
		}
		return m.writes
	}()
	if writes < 10 {
		t.Fatalf("a run writes %d objects, want reports, snapshots and headers", writes)
	}
	for at := 1; at <= writes; at++ {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("write %d of %d, after it %v", at, writes, after)
			s := opened(t)
			if o, err := runAt(t, s, day, true); err != nil || o.Err() != nil {
				t.Fatal(err, o.Err())
			}
			for try := range 2 {
				dying := &mortal{Store: s, dieAt: at, after: after}
				o, err := runAt(t, dying, day.Add(time.Duration(24+try)*time.Hour), false)
				if err == nil && o.Err() == nil && dying.dead {
					t.Fatalf("%s: a run that died says that all is well", name)
				}
			}
			o, err := runAt(t, s, day.Add(26*time.Hour), false)
			if err != nil || o.Err() != nil || o.Kept == nil {
				t.Fatalf("%s: the third run: %v %v", name, err, o.Err())
			}
			whole(t, name, s, o)
		}
	}
}

func opened(t *testing.T) store.Store {
	t.Helper()
	s, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func whole(t *testing.T, name string, s store.Store, o *pipeline.Outcome) {
	t.Helper()
	a := archive.New(s)
	for i := range o.Report.Clusters {
		c := &o.Report.Clusters[i]
		found := false
		for _, f := range c.Findings {
			found = found || f.Check == "label-drift" && f.Label == "env" && f.Open()
			if f.State == report.StateResolved {
				t.Errorf("%s: cluster %s: %s is said to be resolved", name, c.Name, f.Title)
			}
		}
		if !found {
			t.Errorf("%s: cluster %s: the lost label is not found any more", name, c.Name)
		}
		v, _, err := a.Check(t.Context(), c.Name)
		if err != nil || len(v.Faults) > 0 {
			t.Errorf("%s: chain of %s: %v %v", name, c.Name, v.Faults, err)
		}
		latest, err := a.LatestSnapshot(t.Context(), c.Name)
		if err != nil || latest.Run != o.Report.RunID {
			t.Errorf("%s: the latest snapshot of %s is of run %q, want %q (%v)", name, c.Name, latest.Run, o.Report.RunID, err)
		}
	}
	for ref, err := range a.Reports(t.Context(), time.Time{}, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := a.LoadManifest(t.Context(), ref)
		if errors.Is(err, store.ErrNotFound) {
			continue // cut off, and known by that
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, f := range m.Files {
			if _, err := a.LoadFile(t.Context(), ref, f.Name); err != nil {
				t.Errorf("%s: report %s with a manifest lacks %s: %v", name, ref.Run, f.Name, err)
			}
		}
	}
}
