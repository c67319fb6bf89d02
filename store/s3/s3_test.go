package s3

import (
	"context"
	"iter"
	"strings"
	"testing"

	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/storetest"
	"gpuaudit/store/storetest/s3faults"
)

func TestSuite(t *testing.T) {
	for name, options := range map[string]store.Options{
		"plain":          {},
		"checksums":      {Checksums: store.ChecksumsOn},
		"virtual hosted": {Addressing: store.AddressingVirtual, Endpoint: "http://s3.example.internal"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (store.Store, func() store.Store) {
				f := newFake(t, options.Addressing == store.AddressingVirtual)
				return f.open(t, options), func() store.Store { return f.open(t, options) }
			})
		})
	}
}

// TestSuiteWithoutConditions: on a server that refuses them, with one writer.
func TestSuiteWithoutConditions(t *testing.T) {
	options := store.Options{Conditions: store.ConditionsOff}
	storetest.RunSingleWriter(t, func(t *testing.T) (store.Store, func() store.Store) {
		f := newFake(t, false)
		f.faults.Set(s3faults.RefuseConditions())
		return f.open(t, options), func() store.Store { return f.open(t, options) }
	})
}

// TestForkWithoutConditions: two writers, against the rule, lose no snapshot; the newest is found, the fork is reported, and
// the next audit goes on.
func TestForkWithoutConditions(t *testing.T) {
	f := newFake(t, false)
	s := f.open(t, store.Options{Conditions: store.ConditionsOff})
	if s.Conditional() {
		t.Error("the store says that it is conditional")
	}
	a := archive.New(s)
	save := func(day int, run string) {
		t.Helper()
		if _, err := a.SaveSnapshot(t.Context(), storetest.NewAudit("c", storetest.Day.AddDate(0, 0, day), run)); err != nil {
			t.Fatal(err)
		}
	}
	save(0, "r0")
	before, err := s.Get(t.Context(), store.LatestKey("c"))
	if err != nil {
		t.Fatal(err)
	}
	save(2, "r2")
	// The second writer had read the pointer before the first moved it, and moves it back to its own.
	second := archive.New(&stalePointer{Store: s, stale: before})
	if _, err := second.SaveSnapshot(t.Context(), storetest.NewAudit("c", storetest.Day.AddDate(0, 0, 1), "r1")); err != nil {
		t.Fatal(err)
	}
	latest, err := a.LatestSnapshot(t.Context(), "c")
	if err != nil || latest.Run != "r2" {
		t.Errorf("latest %q, %v; want the newest by listing, though the pointer names another", latest.Run, err)
	}
	save(3, "r3")
	v, orphans, err := a.Check(t.Context(), "c")
	if err != nil || len(orphans) > 0 || len(v.Faults) != 1 || v.Faults[0].Kind != archive.FaultFork || v.Snapshots != 4 {
		t.Errorf("faults %v, without header %v, snapshots %d, %v; want one fork and all four", v.Faults, orphans, v.Snapshots, err)
	}
}

// stalePointer is what a writer sees that was asleep between its reads and its writes: the store as it was.
type stalePointer struct {
	store.Store
	stale store.Object
}

func (p *stalePointer) Get(ctx context.Context, key string) (store.Object, error) {
	if key == p.stale.Key {
		return p.stale, nil
	}
	return p.Store.Get(ctx, key)
}

func (p *stalePointer) List(ctx context.Context, prefix, after string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range p.Store.List(ctx, prefix, after) {
			if strings.Contains(info.Key, "r2") {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func (p *stalePointer) Replace(ctx context.Context, key, _ string, body []byte, attr store.Attributes) (store.Info, error) {
	return p.Put(ctx, key, body, attr)
}

// TestRequestsOfAnAudit counts what one audit of one cluster costs, which is what a bill and a slow line count.
func TestRequestsOfAnAudit(t *testing.T) {
	f := newFake(t, false)
	a := archive.New(f.open(t, store.Options{}))
	for i, run := range []string{"r0", "r1", "r2"} {
		if _, err := a.SaveSnapshot(t.Context(), storetest.NewAudit("c", storetest.Day.AddDate(0, 0, i), run)); err != nil {
			t.Fatal(err)
		}
	}
	f.faults.Set()
	if _, err := a.LatestSnapshot(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if n := len(f.faults.Requests()); n > 5 { // pointer, what lies behind it among snapshots and headers, snapshot, header
		t.Errorf("reading the latest snapshot costs %d requests, want at most 5", n)
	}
	f.faults.Set()
	if _, err := a.SaveSnapshot(t.Context(), storetest.NewAudit("c", storetest.Day.AddDate(0, 0, 3), "r3")); err != nil {
		t.Fatal(err)
	}
	if n := len(f.faults.Requests()); n > 9 {
		t.Errorf("saving an audit costs %d requests, want at most 9", n)
	}
}
