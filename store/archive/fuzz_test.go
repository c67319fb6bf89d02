package archive

import (
	"encoding/json"
	"strings"
	"testing"

	"gpuaudit/store"
)

// FuzzVerify: whatever a bundle holds as headers, Verify ends, does not panic, and finds no fault only in what hangs together.
func FuzzVerify(f *testing.F) {
	f.Add(`{"version":1,"cluster":"c","time":"2026-06-01T09:30:00Z","run":"r","snapshotKey":"clusters/c/snapshots/20260601T093000.000Z-r.json.gz"}`, "clusters/c/chain/20260601T093000.000Z-r.json")
	f.Add(`{"version":99}`, "x")
	f.Add(`{}|{}|[]`, "")
	f.Add(`{"previousKey":"a"}|{"previousKey":"a"}`, "a")
	f.Fuzz(func(t *testing.T, bodies, key string) {
		var headers []RawHeader
		for i, body := range strings.Split(bodies, "|") {
			raw := RawHeader{Key: key + strings.Repeat("x", i%3), Body: []byte(body)}
			var h Header
			if json.Unmarshal(raw.Body, &h) == nil && i%2 == 0 {
				raw.Key = h.Key()
			}
			headers = append(headers, raw)
		}
		v := Verify(headers, func(string) ([]byte, error) { return nil, store.ErrNotFound })
		if len(v.Faults) == 0 && v.Headers == 0 {
			t.Fatalf("%q: no fault and no header that is right", bodies)
		}
	})
}

// FuzzLatest: no content of latest.json is taken that does not belong to its cluster and hold its head whole.
func FuzzLatest(f *testing.F) {
	f.Add([]byte(`{"version":1,"cluster":"c","snapshot":"","head":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := parseLatest("c", body)
		if err != nil {
			if !IsBroken(err) {
				t.Fatalf("%v is not said to be broken", err)
			}
			return
		}
		if head, err := l.head().Parse(); err != nil || head.Cluster != "c" || l.head().SHA256() != l.HeadSHA256 {
			t.Fatalf("%q is taken with the head %+v, %v", body, head, err)
		}
	})
}
