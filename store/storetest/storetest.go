// Package storetest is the contract of store.Store and of the archive in it, as tests that every backend passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuaudit/store"
)

// Open gives an empty store; it is called once for each test. Calling the returned again function opens the
// same store a second time, as another process would.
type Open func(t *testing.T) (s store.Store, again func() store.Store)

// Run tests one backend.
func Run(t *testing.T, open Open) { run(t, open, tests, archiveTests) }

// RunSingleWriter tests a backend whose Conditional is false: everything but writers at the same instant, which need one.
func RunSingleWriter(t *testing.T, open Open) {
	alone := func(all map[string]test) map[string]test {
		out := maps.Clone(all)
		for name := range concurrent {
			delete(out, name)
		}
		return out
	}
	run(t, open, alone(tests), alone(archiveTests))
}

type test func(*testing.T, Open)

var tests = map[string]test{
	"NotFound": notFound, "CreateAndRead": createAndRead, "CreateExisting": createExisting, "Put": put, "Replace": replace, "Delete": remove,
	"KeysOfAllKinds": keysOfAllKinds, "RefusedKeys": refusedKeys, "ListOrder": listOrder, "ListPages": listPages, "Folders": folders,
	"LargeAndEmpty": largeAndEmpty, "ManyCreators": manyCreators, "ManyUpdaters": manyUpdaters, "ReadersSeeWhole": readersSeeWhole,
	"CanceledContext": canceledContext, "SecondProcess": secondProcess, "Probe": probe, "AddressesAreLinks": addressesAreLinks,
}

// concurrent are the tests that need conditions decided by the store.
var concurrent = map[string]bool{"ManyCreators": true, "ManyUpdaters": true, "Probe": true, "TwoAtOnce": true, "AcksAtOnce": true, "SlotsAtOnce": true}

func run(t *testing.T, open Open, tests, archiveTests map[string]test) {
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) { tests[name](t, open) })
	}
	for _, name := range slices.Sorted(maps.Keys(archiveTests)) {
		t.Run("Archive/"+name, func(t *testing.T) { archiveTests[name](t, open) })
	}
}

// limit is the longest that one test may wait for a store.
const limit = 2 * time.Minute

func start(t *testing.T, open Open) (context.Context, store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	s, _ := open(t)
	return ctx, s
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want one that is %v", err, want)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not name %q", err, part)
		}
	}
}

func collect[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func keys(infos []store.Info) []string {
	out := make([]string, len(infos))
	for i, info := range infos {
		out[i] = info.Key
	}
	return out
}

func notFound(t *testing.T, open Open) {
	ctx, s := start(t, open)
	_, err := s.Get(ctx, "clusters/a/latest.json")
	wantErr(t, err, store.ErrNotFound, "clusters/a/latest.json")
	_, err = s.Stat(ctx, "clusters/a/latest.json")
	wantErr(t, err, store.ErrNotFound, "clusters/a/latest.json")
	_, err = s.Replace(ctx, "clusters/a/latest.json", "some-version", []byte("x"), store.Attributes{})
	wantErr(t, err, store.ErrChanged, "clusters/a/latest.json")
	if got := collect(t, s.List(ctx, "", "")); len(got) != 0 {
		t.Errorf("an empty store lists %v", got)
	}
	if got := collect(t, s.Folders(ctx, "clusters/")); len(got) != 0 {
		t.Errorf("an empty store has folders %v", got)
	}
	must[store.Info](t)(s.Create(ctx, "clusters/a/latest.json", []byte("x"), store.Attributes{}))
	for _, key := range []string{"clusters/a", "clusters", "clusters/a/latest.json.gz", "clusters/A/latest.json"} {
		_, err = s.Get(ctx, key)
		wantErr(t, err, store.ErrNotFound, key)
	}
}

func createAndRead(t *testing.T, open Open) {
	ctx, s := start(t, open)
	body := []byte("{\"a\":1}\n")
	created := must[store.Info](t)(s.Create(ctx, "clusters/a/x.json", body, store.Attributes{Retain: true}))
	got := must[store.Object](t)(s.Get(ctx, "clusters/a/x.json"))
	if !bytes.Equal(got.Body, body) {
		t.Errorf("read %q, wrote %q", got.Body, body)
	}
	stat := must[store.Info](t)(s.Stat(ctx, "clusters/a/x.json"))
	for _, info := range []store.Info{created, got.Info, stat} {
		if info.Key != "clusters/a/x.json" || info.Version == "" || info.Version != created.Version || info.Size != int64(len(body)) {
			t.Errorf("info %+v, want key, size %d and version %q", info, len(body), created.Version)
		}
	}
	if got.Modified.IsZero() || time.Since(got.Modified).Abs() > time.Hour {
		t.Errorf("modified %v, want about now", got.Modified)
	}
	listed := collect(t, s.List(ctx, "clusters/a/", ""))
	if len(listed) != 1 || listed[0].Size != int64(len(body)) || listed[0].Modified.IsZero() {
		t.Errorf("listed %+v, want one with its size and time", listed)
	}
}

func createExisting(t *testing.T, open Open) {
	ctx, s := start(t, open)
	must[store.Info](t)(s.Create(ctx, "slots/x.json", []byte("first"), store.Attributes{}))
	for _, body := range []string{"second", "first"} {
		_, err := s.Create(ctx, "slots/x.json", []byte(body), store.Attributes{})
		wantErr(t, err, store.ErrExists, "slots/x.json")
	}
	if got := must[store.Object](t)(s.Get(ctx, "slots/x.json")); string(got.Body) != "first" {
		t.Errorf("after a refused create the object is %q", got.Body)
	}
}

func put(t *testing.T, open Open) {
	ctx, s := start(t, open)
	first := must[store.Info](t)(s.Put(ctx, "a/b.json", []byte("one"), store.Attributes{}))
	second := must[store.Info](t)(s.Put(ctx, "a/b.json", []byte("two, longer"), store.Attributes{}))
	if first.Version == second.Version {
		t.Errorf("two contents have one version %q", first.Version)
	}
	got := must[store.Object](t)(s.Get(ctx, "a/b.json"))
	if string(got.Body) != "two, longer" || got.Version != second.Version {
		t.Errorf("read %q of version %q, want the second put, %q", got.Body, got.Version, second.Version)
	}
}

func replace(t *testing.T, open Open) {
	ctx, s := start(t, open)
	one := must[store.Info](t)(s.Create(ctx, "a/b.json", []byte("one"), store.Attributes{}))
	two := must[store.Info](t)(s.Replace(ctx, "a/b.json", one.Version, []byte("two"), store.Attributes{}))
	_, err := s.Replace(ctx, "a/b.json", one.Version, []byte("three"), store.Attributes{})
	wantErr(t, err, store.ErrChanged, "a/b.json")
	if got := must[store.Object](t)(s.Get(ctx, "a/b.json")); string(got.Body) != "two" || got.Version != two.Version {
		t.Errorf("read %q of version %q after a refused replace, want two of %q", got.Body, got.Version, two.Version)
	}
	if err := s.Delete(ctx, "a/b.json"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Replace(ctx, "a/b.json", two.Version, []byte("three"), store.Attributes{})
	wantErr(t, err, store.ErrChanged, "a/b.json")
	_, err = s.Get(ctx, "a/b.json")
	wantErr(t, err, store.ErrNotFound)
}

func remove(t *testing.T, open Open) {
	ctx, s := start(t, open)
	for _, key := range []string{"a/b/c.json", "a/b/d.json"} {
		must[store.Info](t)(s.Create(ctx, key, []byte("x"), store.Attributes{}))
	}
	for range 2 { // the second time there is nothing to delete
		if err := s.Delete(ctx, "a/b/c.json"); err != nil {
			t.Fatal(err)
		}
	}
	if got := keys(collect(t, s.List(ctx, "", ""))); !slices.Equal(got, []string{"a/b/d.json"}) {
		t.Errorf("left after delete: %q", got)
	}
	if err := s.Delete(ctx, "a/b/d.json"); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s.Folders(ctx, "")); len(got) != 0 {
		t.Errorf("folders of nothing: %q", got)
	}
	must[store.Info](t)(s.Create(ctx, "a/b/c.json", []byte("again"), store.Attributes{}))
}

// names are what people call clusters.
var names = []string{
	"plain", "Plain", "a.b", "a_b", "A", "a-b c", "上海-1", "gke_project_zone_x", "arn:aws:eks:eu-west-1:123456789012:cluster/prod",
	"..", ".", "../../etc", "a/b", "a//b", `a\b`, "!", "!2F", "!41", "%2F", "a+b", "a&b=c?d#e", "\"<x>'`", "emoji 🙂", "e\u0301", "é",
	"\u202eabc", "tab\tnewline\n", "report.json", "REPORT.html", strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("长", 100),
	strings.Repeat("y/", 150), "a\xff", "",
}

func keysOfAllKinds(t *testing.T, open Open) {
	ctx, s := start(t, open)
	want := map[string]string{}
	for _, name := range names {
		key := store.ClusterPrefix(name) + "acks.json"
		must[store.Info](t)(s.Create(ctx, key, []byte(name), store.Attributes{}))
		want[key] = name
	}
	if len(want) != len(names) {
		t.Fatalf("%d names gave %d keys", len(names), len(want))
	}
	infos := collect(t, s.List(ctx, store.ClustersPrefix, ""))
	if len(infos) != len(names) {
		t.Errorf("listed %d of %d", len(infos), len(names))
	}
	for _, info := range infos {
		name, ok := want[info.Key]
		if !ok {
			t.Errorf("listed %q, which was not written", info.Key)
		}
		if got := must[store.Object](t)(s.Get(ctx, info.Key)); string(got.Body) != name {
			t.Errorf("%q holds %q, want %q", info.Key, got.Body, name)
		}
	}
}

func refusedKeys(t *testing.T, open Open) {
	ctx, s := start(t, open)
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".hidden", "a/.tmp-x", "a\x00b", "a\nb", `a\b`, "a\xffb",
		strings.Repeat("k", store.MaxSegment+1), strings.Repeat("k/", store.MaxKey/2) + "k",
	} {
		if _, err := s.Create(ctx, key, []byte("x"), store.Attributes{}); err == nil {
			t.Errorf("create took key %q", key)
		}
		if _, err := s.Put(ctx, key, []byte("x"), store.Attributes{}); err == nil {
			t.Errorf("put took key %q", key)
		}
		if _, err := s.Replace(ctx, key, "v", []byte("x"), store.Attributes{}); err == nil || errors.Is(err, store.ErrChanged) {
			t.Errorf("replace of key %q: %v", key, err)
		}
		if _, err := s.Get(ctx, key); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("get of key %q: %v", key, err)
		}
		if err := s.Delete(ctx, key); err == nil {
			t.Errorf("delete took key %q", key)
		}
	}
	if got := collect(t, s.List(ctx, "", "")); len(got) != 0 {
		t.Errorf("refused keys left %v", got)
	}
}

func largeAndEmpty(t *testing.T, open Open) {
	ctx, s := start(t, open)
	large := make([]byte, 9<<20+17)
	for i := range large {
		large[i] = byte(i>>9 ^ i)
	}
	for key, body := range map[string][]byte{"a/large.bin": large, "a/empty.txt": nil} {
		must[store.Info](t)(s.Create(ctx, key, body, store.Attributes{}))
		got := must[store.Object](t)(s.Get(ctx, key))
		if !bytes.Equal(got.Body, body) || got.Size != int64(len(body)) {
			t.Errorf("%s: read %d bytes that differ from the %d written", key, len(got.Body), len(body))
		}
	}
}

func canceledContext(t *testing.T, open Open) {
	_, s := start(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, "a/b", []byte("x"), store.Attributes{})
	wantErr(t, err, context.Canceled)
	_, err = s.Get(ctx, "a/b")
	wantErr(t, err, context.Canceled)
	err = s.Delete(ctx, "a/b")
	wantErr(t, err, context.Canceled)
	if got := collect(t, s.List(t.Context(), "", "")); len(got) != 0 {
		t.Errorf("a canceled create left %v", got)
	}
	must[store.Info](t)(s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}))
	for _, err := range s.List(ctx, "", "") {
		wantErr(t, err, context.Canceled)
	}
}

func secondProcess(t *testing.T, open Open) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, again := open(t)
	info := must[store.Info](t)(s.Create(ctx, "a/b.json", []byte("x"), store.Attributes{}))
	other := again()
	got := must[store.Object](t)(other.Get(ctx, "a/b.json"))
	if string(got.Body) != "x" || got.Version != info.Version {
		t.Errorf("the second process reads %q of version %q, want x of %q", got.Body, got.Version, info.Version)
	}
	must[store.Info](t)(other.Replace(ctx, "a/b.json", info.Version, []byte("y"), store.Attributes{}))
	_, err := s.Replace(ctx, "a/b.json", info.Version, []byte("z"), store.Attributes{})
	wantErr(t, err, store.ErrChanged)
}

func probe(t *testing.T, open Open) {
	ctx, s := start(t, open)
	result := must[store.ProbeResult](t)(store.Probe(ctx, s, "suite"))
	if !result.CreateHonoured || !result.ReplaceHonoured {
		t.Errorf("probe says %+v of a store whose conditions this suite relies on", result)
	}
	if got := collect(t, s.List(ctx, "", "")); len(got) != 0 {
		t.Errorf("the probe left %v", got)
	}
}

func addressesAreLinks(t *testing.T, open Open) {
	_, s := start(t, open)
	link := s.URL("reports/2026/06/01/r/上海 1/report.html")
	if !strings.Contains(link, "/reports/2026/06/01/r/%E4%B8%8A%E6%B5%B7%201/report.html") || !strings.Contains(link, "://") {
		t.Errorf("link %q: want a URL that ends in the key", link)
	}
	if s.String() == "" {
		t.Error("the store has no name for messages")
	}
}

// each runs do n times at once and returns what it returned.
func each[T any](n int, do func(i int) T) []T {
	out := make([]T, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { out[i] = do(i) })
	}
	group.Wait()
	return out
}

// limited is each with at most 16 at once.
func limited(n int, do func(i int) error) error {
	slots := make(chan struct{}, 16)
	return errors.Join(each(n, func(i int) error {
		slots <- struct{}{}
		defer func() { <-slots }()
		if err := do(i); err != nil {
			return fmt.Errorf("number %d: %w", i, err)
		}
		return nil
	})...)
}
