package snapshot

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestOlder: a snapshot of the first programs, without the fields that came
// later, is read: what it says stands, and what it does not say is not made up.
func TestOlder(t *testing.T) {
	raw, err := os.ReadFile("testdata/first.json")
	if err != nil {
		t.Fatal(err)
	}
	body := zipped(t, string(raw))
	s, err := Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	if s.Cluster != "C" || len(s.Nodes) != 2 || len(s.Losses) != 1 || len(s.Findings) != 2 || s.NodesAt == nil || s.Figures != nil || s.FoundLimited != nil {
		t.Errorf("read %d nodes, %d losses, %d findings, figures %v, found limited %v", len(s.Nodes), len(s.Losses), len(s.Findings), s.Figures, s.FoundLimited)
	}
	for _, n := range s.Nodes {
		if n.UID == "" || n.Capacity["nvidia.com/gpu"] != 8 || n.Requested != nil {
			t.Errorf("node %s: %+v", n.Name, n)
		}
	}
	unpacked, err := Unpack(body, nil, MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	again, err := new(Sequence).Decode(body, unpacked)
	if diff := cmp.Diff(s, again); err != nil || diff != "" {
		t.Errorf("read one after another: %v\n%s", err, diff)
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
