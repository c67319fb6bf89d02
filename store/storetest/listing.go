package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gpuaudit/store"
)

func listOrder(t *testing.T, open Open) {
	ctx, s := start(t, open)
	// "-" and "." sort before "/", digits after it: the order of keys is not the order of folders.
	written := []string{
		"a-b/x", "a.b", "a/b", "a0", "A/b", "b/a/c", "b/a-c", "b/a.d/e", "b/上/x", "b/é", "c/1", "c/10", "c/2", "z",
	}
	for _, key := range written {
		must[store.Info](t)(s.Create(ctx, key, []byte("x"), store.Attributes{}))
	}
	slices.Sort(written)
	if got := keys(collect(t, s.List(ctx, "", ""))); !slices.Equal(got, written) {
		t.Errorf("listed\n%q, want\n%q", got, written)
	}
	for _, prefix := range []string{"a", "a/", "b/a", "b/a/", "b/", "c/1", "zz", "b/上"} {
		var want []string
		for _, key := range written {
			if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
				want = append(want, key)
			}
		}
		if got := keys(collect(t, s.List(ctx, prefix, ""))); !slices.Equal(got, want) {
			t.Errorf("prefix %q listed %q, want %q", prefix, got, want)
		}
	}
	for _, after := range append(slices.Clone(written), "a/", "a/a", "b/a0", "c/1x", "0", "zzz", "b/zzz/y") {
		var want []string
		for _, key := range written {
			if key > after {
				want = append(want, key)
			}
		}
		if got := keys(collect(t, s.List(ctx, "", after))); !slices.Equal(got, want) {
			t.Errorf("after %q listed %q, want %q", after, got, want)
		}
	}
	if got := keys(collect(t, s.List(ctx, "c/", "c/1"))); !slices.Equal(got, []string{"c/10", "c/2"}) {
		t.Errorf("prefix and after together listed %q", got)
	}
	if got := keys(collect(t, s.List(ctx, "b/", "a0"))); len(got) != 5 {
		t.Errorf("after a key before the prefix listed %q", got)
	}
	if got := keys(collect(t, s.List(ctx, "b/", "c/1"))); len(got) != 0 {
		t.Errorf("after a key behind the prefix listed %q", got)
	}
}

func listPages(t *testing.T, open Open) {
	ctx, s := start(t, open)
	const n = 1203 // more than one page of any server
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("clusters/a/snapshots/%05d.json.gz", i))
	}
	if err := limited(n, func(i int) error {
		_, err := s.Create(ctx, want[i], []byte("x"), store.Attributes{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := keys(collect(t, s.List(ctx, "clusters/", ""))); !slices.Equal(got, want) {
		t.Errorf("listed %d of %d keys, or in another order", len(got), n)
	}
	if got := keys(collect(t, s.List(ctx, "clusters/a/", want[100]))); !slices.Equal(got, want[101:]) {
		t.Errorf("after the 101st listed %d keys, want %d", len(got), n-101)
	}
	seen := 0
	for _, err := range s.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1001 {
			break // leaving early is allowed anywhere
		}
	}
}

func folders(t *testing.T, open Open) {
	ctx, s := start(t, open)
	for _, key := range []string{"r/2026/05/31/x/report.json", "r/2026/06/01/y/report.json", "r/2026/06/01/y/manifest.json", "r/2026/06/10/z/上海/report.json", "r/file.json", "q/x"} {
		must[store.Info](t)(s.Create(ctx, key, []byte("x"), store.Attributes{}))
	}
	for prefix, want := range map[string][]string{
		"":                 {"q", "r"},
		"r/":               {"2026"},
		"r/2026/06/":       {"01", "10"},
		"r/2026/06/01/":    {"y"},
		"r/2026/06/01/y/":  nil,
		"r/2026/06/10/z/":  {"上海"},
		"r/2027/":          nil,
		"r/2026/05/31/x/y": nil,
	} {
		if got := collect(t, s.Folders(ctx, prefix)); !slices.Equal(got, want) {
			t.Errorf("folders of %q: %q, want %q", prefix, got, want)
		}
	}
	if err := limited(1100, func(i int) error {
		_, err := s.Create(ctx, fmt.Sprintf("many/%04d/x", i), nil, store.Attributes{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s.Folders(ctx, "many/")); len(got) != 1100 || !slices.IsSorted(got) {
		t.Errorf("%d folders of 1100, sorted: %v", len(got), slices.IsSorted(got))
	}
}

func manyCreators(t *testing.T, open Open) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, again := open(t)
	stores := []store.Store{s, again(), again()}
	for round := range 5 {
		key := fmt.Sprintf("slots/%d.json", round)
		results := each(16, func(i int) error {
			_, err := stores[i%len(stores)].Create(ctx, key, fmt.Appendf(nil, "writer %d", i), store.Attributes{})
			return err
		})
		won := -1
		for i, err := range results {
			if err == nil && won >= 0 {
				t.Fatalf("writers %d and %d both created %q", won, i, key)
			}
			if err == nil {
				won = i
			} else {
				wantErr(t, err, store.ErrExists)
			}
		}
		if won < 0 {
			t.Fatalf("nobody created %q", key)
		}
		if got := must[store.Object](t)(s.Get(ctx, key)); string(got.Body) != fmt.Sprintf("writer %d", won) {
			t.Errorf("writer %d was told it won, the object is %q", won, got.Body)
		}
	}
}

func manyUpdaters(t *testing.T, open Open) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, again := open(t)
	stores := []store.Store{s, again(), again()}
	const writers, times = 8, 4
	for _, err := range each(writers, func(i int) error {
		for j := range times {
			if _, err := store.Update(ctx, stores[i%len(stores)], "clusters/a/acks.json", store.Attributes{}, func(old []byte) ([]byte, error) {
				return fmt.Appendf(old, "%d.%d ", i, j), nil
			}); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := must[store.Object](t)(s.Get(ctx, "clusters/a/acks.json"))
	if want := writers * times * len("0.0 "); len(got.Body) != want {
		t.Errorf("%d bytes of updates left of %d: %q", len(got.Body), want, got.Body)
	}
}

// readersSeeWhole reads an object while it is replaced: each read is one of the writes, whole.
func readersSeeWhole(t *testing.T, open Open) {
	ctx, s := start(t, open)
	body := func(i int) []byte {
		out := make([]byte, 64<<10)
		for j := range out {
			out[j] = byte('a' + i%26)
		}
		return out
	}
	must[store.Info](t)(s.Put(ctx, "a/b", body(0), store.Attributes{}))
	results := each(4, func(i int) error {
		for j := range 20 {
			if i == 0 {
				if _, err := s.Put(ctx, "a/b", body(j), store.Attributes{}); err != nil {
					return err
				}
				continue
			}
			got, err := s.Get(ctx, "a/b")
			if err != nil {
				return err
			}
			for _, c := range got.Body {
				if c != got.Body[0] || len(got.Body) != 64<<10 {
					return fmt.Errorf("a read gave parts of two writes, %d bytes", len(got.Body))
				}
			}
		}
		return nil
	})
	for _, err := range results {
		if err != nil {
			t.Error(err)
		}
	}
}
