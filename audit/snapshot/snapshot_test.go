package snapshot

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
	"time"
)

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCodec(t *testing.T) {
	at := time.Unix(1780000000, 0).UTC()
	s := &Snapshot{SchemaVersion: SchemaVersion, Cluster: "c", CollectedAt: at, Nodes: []Node{{Name: "n<&>", Labels: map[string]string{"a": "b"}}}}
	body, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(s)
	if err != nil || !bytes.Equal(body, again) {
		t.Errorf("the same snapshot gives other bytes (%v)", err)
	}
	got, err := Decode(body)
	if err != nil || got.Nodes[0].Name != "n<&>" || !got.CollectedAt.Equal(at) {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

// TestRefused: newer ones, broken ones and bombs are refused and say what they are.
func TestRefused(t *testing.T) {
	var newer *NewerError
	if _, err := Decode(zipped(t, `{"schemaVersion":2,"cluster":"c"}`)); !errors.As(err, &newer) || newer.Version != 2 {
		t.Errorf("a newer snapshot: %v", err)
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"no gzip": {[]byte("x"), "not gzip"}, "cut": {zipped(t, "{}")[:12], "unpack"}, "no JSON": {zipped(t, "{"), "not JSON"},
		"no version": {zipped(t, "{}"), "no schemaVersion"}, "wrong shape": {zipped(t, `{"schemaVersion":1,"nodes":7}`), "another shape"},
		"no cluster": {zipped(t, `{"schemaVersion":1}`), "no cluster"},
	} {
		if _, err := Decode(c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := decode(zipped(t, strings.Repeat(" ", 1000)), 100); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a bomb: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("x"))
	f.Add(zipped(f, `{"schemaVersion":1,"cluster":"c","collectedAt":"2026-06-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, err := decode(body, 1<<20); (s == nil) == (err == nil) {
			t.Fatalf("%v and %v", s, err)
		}
	})
}
