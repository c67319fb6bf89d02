package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
	"gpuaudit/store/storetest"
)

// bundle is a chain outside of any store: what a vendor is given.
type bundle struct {
	headers []archive.RawHeader
	objects map[string][]byte
}

func (b *bundle) get(key string) ([]byte, error) {
	if body, ok := b.objects[key]; ok {
		return body, nil
	}
	return nil, store.ErrNotFound
}

func (b *bundle) clone() *bundle {
	return &bundle{headers: slices.Clone(b.headers), objects: maps.Clone(b.objects)}
}

func (b *bundle) header(t *testing.T, i int) archive.Header {
	t.Helper()
	h, err := b.headers[i].Parse()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// rewrite changes a header's content and keeps its name.
func (b *bundle) rewrite(t *testing.T, i int, change func(*archive.Header)) {
	t.Helper()
	h := b.header(t, i)
	change(&h)
	body, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	b.headers[i].Body = body
}

func newArchive(t *testing.T) *archive.Archive {
	t.Helper()
	s, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return archive.New(s)
}

func newBundle(t *testing.T, n int) *bundle {
	t.Helper()
	a := newArchive(t)
	for i := range n {
		if _, err := a.SaveSnapshot(t.Context(), storetest.NewAudit("c", storetest.Day.AddDate(0, 0, i), fmt.Sprintf("r%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	headers, err := a.Headers(t.Context(), "c", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{headers: headers, objects: map[string][]byte{}}
	for i := range headers {
		h := b.header(t, i)
		for _, key := range []string{h.SnapshotKey, h.ReportKey} {
			object, err := a.Store().Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			b.objects[key] = object.Body
		}
	}
	return b
}

func TestVerifyWhole(t *testing.T) {
	b := newBundle(t, 5)
	slices.Reverse(b.headers) // the order does not matter
	v := archive.Verify(b.headers, b.get)
	if len(v.Faults) > 0 || v.Headers != 5 || v.Snapshots != 5 || v.Reports != 5 || v.BeginsAfter != "" {
		t.Errorf("%+v", v)
	}
	if v.Head != b.headers[0].Key || v.HeadSHA256 != b.headers[0].SHA256() || v.First != b.headers[4].Key {
		t.Errorf("from %q to %q", v.First, v.Head)
	}
	if v := archive.Verify(b.headers, nil); len(v.Faults) > 0 || v.Headers != 5 || v.Snapshots != 0 {
		t.Errorf("headers alone: %+v", v)
	}
	if v := archive.Verify(nil, b.get); len(v.Faults) > 0 || v.Head != "" {
		t.Errorf("no headers: %+v", v)
	}
	// A part that begins later, with some of the objects: what an evidence bundle holds.
	slices.Reverse(b.headers)
	old := b.header(t, 1)
	v = archive.Verify(b.headers[2:], func(key string) ([]byte, error) {
		if key == b.header(t, 3).SnapshotKey {
			return nil, archive.ErrNotIncluded
		}
		return b.get(key)
	})
	if len(v.Faults) > 0 || v.Snapshots != 2 || len(v.NotIncluded) != 1 || v.BeginsAfter != old.Key() || v.BeginsAfterSHA256 != b.headers[1].SHA256() {
		t.Errorf("a part: %+v", v)
	}
}

func TestVerifyTampering(t *testing.T) {
	whole := newBundle(t, 5)
	k := func(i int) archive.Header { return whole.header(t, i) }
	for _, tc := range []struct {
		name   string
		tamper func(*testing.T, *bundle)
		want   []string // kind and key
	}{
		{"snapshot changed", func(_ *testing.T, b *bundle) { b.objects[k(1).SnapshotKey] = []byte("x") }, []string{"snapshotChanged " + k(1).SnapshotKey}},
		{"snapshot missing", func(_ *testing.T, b *bundle) { delete(b.objects, k(1).SnapshotKey) }, []string{"snapshotMissing " + k(1).SnapshotKey}},
		{"report changed", func(_ *testing.T, b *bundle) {
			b.objects[k(4).ReportKey] = bytes.ToUpper(b.objects[k(4).ReportKey])
		}, []string{"reportChanged " + k(4).ReportKey}},
		{"report missing", func(_ *testing.T, b *bundle) { delete(b.objects, k(0).ReportKey) }, []string{"reportMissing " + k(0).ReportKey}},
		{"header missing", func(_ *testing.T, b *bundle) { b.headers = slices.Delete(b.headers, 2, 3) }, []string{"headerMissing " + k(2).Key()}},
		{"two headers missing", func(_ *testing.T, b *bundle) { b.headers = slices.Delete(b.headers, 1, 3) }, []string{"headerMissing " + k(2).Key()}},
		{"header changed with its snapshot", func(t *testing.T, b *bundle) {
			b.objects[k(2).SnapshotKey] = []byte("other")
			b.rewrite(t, 2, func(h *archive.Header) { h.SnapshotSHA256 = archive.Hash([]byte("other")) })
		}, []string{"headerChanged " + k(2).Key()}},
		{"header with another space", func(_ *testing.T, b *bundle) { b.headers[0].Body = append([]byte(" "), b.headers[0].Body...) }, []string{"headerChanged " + k(0).Key()}},
		{"header not JSON", func(_ *testing.T, b *bundle) { b.headers[2].Body = []byte("{") }, []string{"badHeader " + k(2).Key(), "headerChanged " + k(2).Key()}},
		{"header of a newer version", func(t *testing.T, b *bundle) {
			b.rewrite(t, 4, func(h *archive.Header) { h.Version = 99 })
		}, []string{"badHeader " + k(4).Key()}},
		{"header under another name", func(_ *testing.T, b *bundle) {
			b.headers[4].Key = b.headers[4].Key[:len(b.headers[4].Key)-6] + "9.json"
		}, []string{"badHeader"}},
		{"header of another cluster", func(t *testing.T, b *bundle) {
			other := archive.Header{Version: 1, Cluster: "d", Time: storetest.Day, Run: "r"}
			other.SnapshotKey = store.SnapshotKey("d", storetest.Day, "r")
			body, _ := json.Marshal(other)
			b.headers = append(b.headers, archive.RawHeader{Key: other.Key(), Body: body})
		}, []string{"badHeader clusters/d/"}},
		{"fork", func(t *testing.T, b *bundle) {
			h := k(3)
			h.Run = "forged"
			h.SnapshotKey = store.SnapshotKey("c", h.Time, h.Run)
			b.objects[h.SnapshotKey] = b.objects[k(3).SnapshotKey]
			body, _ := json.Marshal(h)
			b.headers = append(b.headers, archive.RawHeader{Key: h.Key(), Body: body})
		}, []string{"fork " + k(2).Key()}},
		{"second beginning", func(t *testing.T, b *bundle) {
			h := k(0)
			h.Run = "forged"
			h.SnapshotKey = store.SnapshotKey("c", h.Time, h.Run)
			b.objects[h.SnapshotKey] = b.objects[k(0).SnapshotKey]
			body, _ := json.Marshal(h)
			b.headers = append(b.headers, archive.RawHeader{Key: h.Key(), Body: body})
		}, []string{"fork clusters/c/chain/20260601T093000.000Z-forged.json"}},
		{"one header twice, different", func(_ *testing.T, b *bundle) {
			b.headers = append(b.headers, archive.RawHeader{Key: b.headers[1].Key, Body: []byte("{}")})
		}, []string{"badHeader " + k(1).Key()}},
		{"circle", func(t *testing.T, b *bundle) {
			b.rewrite(t, 0, func(h *archive.Header) { h.PreviousKey = k(4).Key() })
		}, []string{"circle", "headerChanged " + k(0).Key(), "headerChanged " + k(4).Key()}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := whole.clone()
			tc.tamper(t, b)
			v := archive.Verify(b.headers, b.get)
			var got []string
			for _, fault := range v.Faults {
				got = append(got, string(fault.Kind)+" "+fault.Key)
				if !strings.Contains(fault.Message, fault.Key) {
					t.Errorf("message %q does not name %q", fault.Message, fault.Key)
				}
			}
			for _, want := range tc.want {
				if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
					t.Errorf("faults %q do not have %q", got, want)
				}
			}
			if len(got) > len(tc.want) {
				t.Errorf("faults %q, want only %q", got, tc.want)
			}
		})
	}
}

func TestVerifyUnreadable(t *testing.T) {
	b := newBundle(t, 2)
	v := archive.Verify(b.headers, func(string) ([]byte, error) { return nil, errors.New("the disk is on fire") })
	if len(v.Faults) != 4 || v.Faults[0].Kind != archive.FaultUnreadable || !strings.Contains(v.Faults[0].Message, "on fire") || v.Snapshots != 0 {
		t.Errorf("%+v", v)
	}
}

// TestVerifyLong: a chain of thirty years of daily audits takes no time that grows with its square, whole or in pieces.
func TestVerifyLong(t *testing.T) {
	var headers []archive.RawHeader
	previous := archive.RawHeader{}
	for i := range 11_000 {
		h := archive.Header{Version: 1, Cluster: "c", Time: storetest.Day.AddDate(0, 0, i), Run: "r"}
		h.SnapshotKey = store.SnapshotKey("c", h.Time, h.Run)
		if previous.Key != "" {
			h.PreviousKey, h.PreviousSHA256 = previous.Key, previous.SHA256()
		}
		body, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		previous = archive.RawHeader{Key: h.Key(), Body: body}
		headers = append(headers, previous)
	}
	began := time.Now()
	if v := archive.Verify(headers, nil); len(v.Faults) > 0 || v.Headers != 11_000 {
		t.Errorf("%d faults", len(v.Faults))
	}
	var pieces []archive.RawHeader
	for i, raw := range headers {
		if i%2 == 0 {
			pieces = append(pieces, raw)
		}
	}
	if v := archive.Verify(pieces, nil); len(v.Faults) != 5499 {
		t.Errorf("every second header missing: %d faults", len(v.Faults))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
