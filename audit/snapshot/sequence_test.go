package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/report"
)

var day0 = time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC)

// TestFieldsOfANode: a field that is added to Node is to be taken over too, and
// in the order of encoding.
func TestFieldsOfANode(t *testing.T) {
	kind := reflect.TypeFor[Node]()
	if kind.NumField() != len(nodeFields) {
		t.Fatalf("Node has %d fields, nodeFields %d", kind.NumField(), len(nodeFields))
	}
	from := randomNode(rand.New(rand.NewPCG(1, 2)), "n")
	for i, f := range nodeFields {
		if want := kind.Field(i).Tag.Get("json"); f.key != want {
			t.Errorf("field %d is %q, want %q", i, f.key, want)
		}
		var into Node
		f.take(&into, &from)
		got, want := reflect.ValueOf(into).Field(i), reflect.ValueOf(from).Field(i)
		if want.IsZero() || !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%s: took %v of %v", f.key, got, want)
		}
	}
}

func randomNode(r *rand.Rand, name string) Node {
	t := day0.Add(time.Duration(r.IntN(1000)) * time.Hour)
	n := Node{
		Name: name, UID: fmt.Sprint("uid-", r.IntN(1000)), Created: t, Kind: "physical", Labels: map[string]string{"a": "b", "host": name},
		Taints: []Taint{{Key: "k", Effect: "NoSchedule", Added: &t}}, Cordoned: true, CordonedSince: &t,
		Conditions: []Condition{{Type: "Ready", Status: "False", Message: "a \"quoted\\\" <message>, {[", Transition: &t}},
		Ready:      "False", Silent: true, Capacity: map[string]int64{"nvidia.com/gpu": 8}, Allocatable: map[string]int64{"nvidia.com/gpu": 7},
		Requested: map[string]int64{"nvidia.com/gpu": 1}, ProviderID: "p", OSImage: "o", Kernel: "k", Kubelet: "v1",
		SetBy: map[string]SetBy{"a": {Manager: "m", Operation: "Update", Time: t}},
	}
	for l := range r.IntN(20) {
		n.Labels[fmt.Sprintf("label-%d", l)] = fmt.Sprint(r.IntN(3))
	}
	return n
}

// change makes one thing of a node different.
func change(r *rand.Rand, n Node) Node {
	switch r.IntN(9) {
	case 0:
		labels := map[string]string{"new": n.Labels["a"] + "x"}
		maps.Copy(labels, n.Labels)
		n.Labels = labels
	case 1:
		n.Labels = nil
	case 2:
		n.Requested = map[string]int64{"nvidia.com/gpu": r.Int64N(9)}
	case 3:
		n.Cordoned, n.CordonedSince = !n.Cordoned, nil
	case 4:
		n.Taints = []Taint{}
	case 5:
		n.Kubelet = "v\"\\\u2028" + fmt.Sprint(r.IntN(9))
	case 6:
		n.SetBy, n.Capacity = nil, nil
	case 7:
		return randomNode(r, n.Name) // made anew
	default:
		n.Created = n.Created.Add(time.Second)
	}
	return n
}

// randomRow is a row of snapshots in which nodes change, come, go, come back
// and stand in another order, some snapshots say nothing of nodes, and some
// cannot be read or look as another program would write them.
func randomRow(t *testing.T, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 7))
	var nodes []Node
	for i := range 30 {
		nodes = append(nodes, randomNode(r, fmt.Sprintf("node-%d", i)))
	}
	var gone []Gone
	var out [][]byte
	for day := range 40 {
		at := day0.AddDate(0, 0, day)
		for range r.IntN(4) {
			i := r.IntN(len(nodes))
			nodes[i] = change(r, nodes[i])
		}
		switch r.IntN(6) {
		case 0:
			i := r.IntN(len(nodes))
			gone = append(gone, Gone{Node: nodes[i], LastSeen: at, FirstMissed: at})
			nodes = slices.Delete(nodes, i, i+1)
		case 1:
			nodes = slices.Insert(nodes, r.IntN(len(nodes)), randomNode(r, fmt.Sprintf("node-%d", 30+day)))
		case 2:
			if len(gone) > 0 {
				nodes = append(nodes, change(r, gone[0].Node))
				gone = gone[1:]
			}
		case 3:
			r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		}
		s := &Snapshot{SchemaVersion: 1, Cluster: "c", Run: fmt.Sprint("run-", day), CollectedAt: at, NodesAt: &at, Nodes: slices.Clone(nodes),
			Gone: slices.Clone(gone), Findings: []report.Finding{{ID: fmt.Sprint(day), LastSeen: &at}}, Whole: []string{"nodes"}}
		switch r.IntN(12) {
		case 0:
			s.Nodes, s.NodesAt = nil, nil
		case 1:
			s.Nodes, s.Gone = []Node{}, []Gone{}
		}
		body, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, odd(t, r, body))
	}
	return out
}

// odd writes a snapshot in another way, or breaks it, now and then.
func odd(t *testing.T, r *rand.Rand, body []byte) []byte {
	raw, err := Unpack(body, nil, MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	switch r.IntN(16) {
	case 0:
		var s Snapshot
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		indented, err := json.MarshalIndent(&s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = string(indented)
	case 1: // an older shape: fields that were not there yet
		text = strings.NewReplacer(`,"kind":"physical"`, "", `,"gone":`, `,"other":`).Replace(text)
	case 2:
		text = strings.Replace(text, `"nodes":`, `"Nodes":`, 1)
	case 3:
		text = strings.Replace(text, `"schemaVersion":1`, `"schemaVersion":2`, 1)
	case 4:
		text = strings.Replace(text, `"cordoned":true`, `"cordoned":7`, 1)
	case 5:
		text = strings.Replace(text, `"gone":`, `"nodes":`, 1)
	case 6:
		text = text[:r.IntN(len(text))]
	case 7:
		text = strings.Replace(text, `"uid":"uid-`, `"UID":"y","uid":"x`, 1)
	case 8:
		text += "{}"
	default:
		return body
	}
	return zipped(t, text)
}

// TestSequenceIsDecode holds every snapshot of random rows against the one that
// is decoded whole. The memory that is unpacked into is used again.
func TestSequenceIsDecode(t *testing.T) {
	taken, refused := 0, 0
	for seed := range uint64(40) {
		var q Sequence
		var memory [2][]byte
		for i, body := range randomRow(t, seed) {
			want, wantErr := Decode(body)
			raw, err := Unpack(body, memory[i%2], MaxBytes)
			if err != nil {
				t.Fatal(err)
			}
			if raw != nil {
				memory[i%2] = raw
			}
			got, gotErr := q.Decode(body, raw)
			if len(q.nodes.raw) > 0 {
				taken++ // not left to Decode
			}
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("row %d, snapshot %d: %v, want %v", seed, i, gotErr, wantErr)
			}
			if wantErr != nil {
				refused++
				continue
			}
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("row %d, snapshot %d:\n%s", seed, i, cmp.Diff(want, got))
			}
		}
	}
	if taken < 800 || refused < 100 {
		t.Errorf("%d snapshots taken and %d refused: the rows say little", taken, refused)
	}
}

// TestSequenceSharesWhatDidNotChange: that is what makes it fast.
func TestSequenceSharesWhatDidNotChange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b, c := randomNode(r, "a"), randomNode(r, "b"), randomNode(r, "c")
	busy := b
	busy.Requested = map[string]int64{"nvidia.com/gpu": 8}
	var q Sequence
	var got []*Snapshot
	for _, nodes := range [][]Node{{a, b, c}, {busy, c}} {
		body, err := Encode(&Snapshot{SchemaVersion: 1, Cluster: "c", CollectedAt: day0, Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := Unpack(body, nil, MaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		s, err := q.Decode(body, raw)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	same := func(x, y map[string]string) bool { return reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer() }
	if !same(got[0].Nodes[1].Labels, got[1].Nodes[0].Labels) || !same(got[0].Nodes[2].Labels, got[1].Nodes[1].Labels) {
		t.Error("labels that did not change were decoded again")
	}
	if got[1].Nodes[0].Requested["nvidia.com/gpu"] != 8 || got[0].Nodes[1].Requested["nvidia.com/gpu"] != 1 {
		t.Error("what changed was not decoded, or changed the snapshot before")
	}
}

// FuzzSequence holds the second of two snapshots against the one decoded whole.
func FuzzSequence(f *testing.F) {
	for _, pair := range [][2]string{
		{`{"schemaVersion":1,"cluster":"c","collectedAt":"2026-06-01T00:00:00Z","nodes":[{"name":"a"},{"name":"b","labels":{"x":"y"}}]}`,
			`{"schemaVersion":1,"cluster":"c","collectedAt":"2026-06-02T00:00:00Z","nodes":[{"name":"b","labels":{"x":"y"}},{"name":"a"}]}`},
		{`{"schemaVersion":1,"cluster":"c","collectedAt":"2026-06-01T00:00:00Z","gone":[{"node":{"name":"a"}},null]}`, `{"nodes":[1,2],"Nodes":null}`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var q Sequence
		for _, raw := range [][]byte{first, second} {
			body := zipped(t, string(raw))
			want, wantErr := Decode(body)
			got, gotErr := q.Decode(body, raw)
			if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) || !reflect.DeepEqual(want, got) {
				t.Fatalf("%v %+v\nwant %v %+v", gotErr, got, wantErr, want)
			}
		}
	})
}
