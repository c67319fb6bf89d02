package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/history"
	"gpuaudit/audit/snapshot"
)

var day0 = time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC)

func at(days int) time.Time { return day0.AddDate(0, 0, days) }

func node(name, uid string, labels map[string]string) snapshot.Node {
	return snapshot.Node{
		Name: name, UID: uid, Created: at(-100), Ready: "True", Labels: labels,
		Capacity: map[string]int64{"nvidia.com/gpu": 8, "cpu": 128}, Allocatable: map[string]int64{"nvidia.com/gpu": 8, "cpu": 120},
	}
}

func taken(day int, nodes ...snapshot.Node) *snapshot.Snapshot {
	t := at(day)
	return &snapshot.Snapshot{
		SchemaVersion: 1, Cluster: "C", UID: "u", Run: fmt.Sprintf("run-%d", day), CollectedAt: t, NodesAt: &t, Nodes: nodes,
	}
}

func sequence(list ...any) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		for _, v := range list {
			s, _ := v.(*snapshot.Snapshot)
			err, _ := v.(error)
			if !yield(s, err) {
				return
			}
		}
	}
}

func texts(h *history.History) []string {
	out := []string{}
	for _, c := range h.Changes {
		out = append(out, fmt.Sprintf("%s..%s %s: %s", c.After.Format("01-02"), c.Before.Format("01-02"), c.Node, c.Text()))
	}
	return out
}

func prod() map[string]string { return map[string]string{"node_env": "prod", "zone": "a"} }

func TestChanges(t *testing.T) {
	moved := at(3).Add(-5 * time.Hour)
	with := func(n snapshot.Node, change func(*snapshot.Node)) snapshot.Node {
		n.Labels = maps.Clone(n.Labels)
		change(&n)
		return n
	}
	plainNode := node("n", "1", prod())
	condition := func(status string, moved time.Time) []snapshot.Condition {
		return []snapshot.Condition{{Type: "Ready", Status: status, Reason: "KubeletNotReady", Transition: &moved}}
	}
	notWhole := taken(2)
	notWhole.NodesAt = nil
	carried := taken(2, plainNode)
	earlier := at(1)
	carried.NodesAt = &earlier
	other := taken(2, node("x", "9", nil))
	other.UID = "another"
	foreign := taken(2)
	foreign.Cluster = "D"
	cases := []struct {
		name   string
		in     []any
		filter history.Filter
		want   []string
		unread int
	}{
		{name: "nothing", want: []string{}},
		{name: "one snapshot", in: []any{taken(1, plainNode)}, want: []string{}},
		{name: "the same", in: []any{taken(1, plainNode), taken(2, plainNode)}, want: []string{}},
		{name: "label lost and back", in: []any{
			taken(1, plainNode), taken(2, with(plainNode, func(n *snapshot.Node) { delete(n.Labels, "node_env") })), taken(3, plainNode),
		}, want: []string{"05-02..05-03 n: label node_env: prod -> absent", "05-03..05-04 n: label node_env: absent -> prod"}},
		{name: "empty is not absent", in: []any{
			taken(1, plainNode), taken(2, with(plainNode, func(n *snapshot.Node) { n.Labels["node_env"] = "" })),
		}, want: []string{`05-02..05-03 n: label node_env: prod -> ""`}},
		{name: "recreated", in: []any{
			taken(1, plainNode), taken(2, node("n", "2", map[string]string{"zone": "a"})),
		}, want: []string{"05-02..05-03 n: node recreated: uid 1 -> 2", "05-02..05-03 n: label node_env: prod -> absent, with the recreation"}},
		{name: "gone", in: []any{taken(1, plainNode), taken(2)}, want: []string{"05-02..05-03 n: node removed, uid 1"}},
		{name: "nodes not read say nothing of absences", in: []any{taken(1, plainNode), notWhole, taken(3, plainNode)}, want: []string{}},
		{name: "carried forward nodes are no sighting", in: []any{taken(1, plainNode), carried, taken(3)}, want: []string{"05-02..05-04 n: node removed, uid 1"}},
		{name: "unread widens the window", in: []any{taken(1, plainNode), errors.New("broken"), taken(3)},
			want: []string{"05-02..05-04 n: node removed, uid 1"}, unread: 1},
		{name: "another cluster's and older ones are refused", in: []any{taken(1, plainNode), foreign, taken(0), taken(3, plainNode)}, want: []string{}, unread: 2},
		{name: "another cluster under the name", in: []any{taken(1, plainNode), other, taken(3, plainNode)}, want: []string{
			"05-02..05-03 : cluster: u -> another (another cluster answers under this name: its nodes are not compared)",
			"05-03..05-04 : cluster: another -> u (another cluster answers under this name: its nodes are not compared)",
		}},
		{name: "cordon, readiness, devices, taint, version", in: []any{
			taken(1, plainNode), taken(3, with(plainNode, func(n *snapshot.Node) {
				n.Cordoned, n.Ready, n.Kubelet = true, "False", "v2"
				n.Conditions = condition("False", moved)
				n.Allocatable = map[string]int64{"nvidia.com/gpu": 7, "cpu": 1}
				n.Capacity = map[string]int64{"cpu": 128}
				n.Taints = []snapshot.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}}
			})),
		}, want: []string{
			"05-02..05-04 n: ready: True -> False (KubeletNotReady)", "05-02..05-04 n: cordoned", "05-02..05-04 n: taint k:NoSchedule: absent -> v",
			"05-02..05-04 n: capacity nvidia.com/gpu: 8 -> absent", "05-02..05-04 n: allocatable nvidia.com/gpu: 8 -> 7",
			"05-02..05-04 n: version kubelet: absent -> v2",
		}},
		{name: "a flap between two snapshots", in: []any{
			taken(1, with(plainNode, func(n *snapshot.Node) { n.Conditions = condition("True", at(0)) })),
			taken(3, with(plainNode, func(n *snapshot.Node) { n.Conditions = condition("True", moved) })),
		}, want: []string{"05-02..05-04 n: ready: True -> True (was something else in between)"}},
		{name: "node filter", in: []any{taken(1, plainNode, node("m", "5", nil)), taken(2)}, filter: history.Filter{Node: "m"}, want: []string{"05-02..05-03 m: node removed, uid 5"}},
		{name: "label filter keeps identity", in: []any{taken(1, plainNode), taken(2, node("n", "2", nil))}, filter: history.Filter{Label: "zone"},
			want: []string{"05-02..05-03 n: node recreated: uid 1 -> 2", "05-02..05-03 n: label zone: a -> absent, with the recreation"}},
		{name: "since", in: []any{taken(1, plainNode), taken(2), taken(3, plainNode)}, filter: history.Filter{Since: at(3)},
			want: []string{"05-03..05-04 n: node added, uid 1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := history.Build("C", sequence(c.in...), c.filter)
			if diff := cmp.Diff(c.want, texts(h)); diff != "" {
				t.Error(diff)
			}
			if len(h.Unread) != c.unread {
				t.Errorf("unread %q, want %d", h.Unread, c.unread)
			}
		})
	}
}

func TestReturnedNodeIsComparedWithTheOneThatWent(t *testing.T) {
	second := taken(2)
	second.Gone = []snapshot.Gone{{Node: node("n", "1", prod()), LastSeen: at(1), FirstMissed: at(2)}}
	h := history.Build("C", sequence(taken(1, node("n", "1", prod())), second, taken(3, node("n", "2", map[string]string{"zone": "a"}))), history.Filter{})
	want := []string{
		"05-02..05-03 n: node removed, uid 1",
		"05-03..05-04 n: node added, uid 2 (had been there until 2026-05-02 01:00Z)",
		"05-02..05-04 n: label node_env: prod -> absent, with the recreation",
	}
	if diff := cmp.Diff(want, texts(h)); diff != "" {
		t.Error(diff)
	}
}

func TestMomentsAndWriters(t *testing.T) {
	cordoned, written := at(2).Add(-time.Hour), at(2).Add(-2*time.Hour)
	n := node("n", "1", map[string]string{"zone": "b"})
	n.Cordoned, n.CordonedSince = true, &cordoned
	n.SetBy = map[string]snapshot.SetBy{"zone": {Manager: "kubectl-label", Operation: "Update", Time: written}}
	h := history.Build("C", sequence(taken(1, node("n", "1", map[string]string{"zone": "a"})), taken(2, n)), history.Filter{})
	if len(h.Changes) != 2 || h.Changes[0].At == nil || !h.Changes[0].At.Equal(cordoned) {
		t.Fatalf("changes %+v, want a cordon with its moment", h.Changes)
	}
	if by := h.Changes[1].SetBy; by == nil || by.Manager != "kubectl-label" || h.Changes[1].At != nil {
		t.Errorf("label change %+v, want its writer and no moment", h.Changes[1])
	}
	if table := string(history.Table(h)); !strings.Contains(table, "kubectl-label (Update)") || !strings.Contains(table, "2026-05-03 00:00Z") {
		t.Errorf("table lacks the writer or the moment:\n%s", table)
	}
}

func TestValuesOfALabel(t *testing.T) {
	a, b := node("a", "1", prod()), node("b", "2", nil)
	changed := node("a", "1", map[string]string{"node_env": "test"})
	h := history.Build("C", sequence(taken(1, a, b), taken(2, changed, b), taken(3, changed, b)), history.Filter{Label: "node_env"})
	test := "test"
	want := []history.Value{{Node: "a", Value: &test, SeenSince: at(2)}, {Node: "b", SeenSince: at(1)}}
	if diff := cmp.Diff(want, h.Values); diff != "" {
		t.Error(diff)
	}
}

func TestRenderings(t *testing.T) {
	empty := history.Build("C", sequence(), history.Filter{})
	if got := string(history.Table(empty)); !strings.Contains(got, "nothing is known") || strings.Contains(got, "No change") {
		t.Errorf("an empty history reads as one without changes:\n%s", got)
	}
	hostile := node("n\x1b[31m\u202e", "1", map[string]string{"k": "<b>\u202evalue"})
	h := history.Build("C", sequence(taken(1, hostile), taken(2), errors.New("x\x1b[2J")), history.Filter{})
	data, err := history.JSON(h)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"table": string(history.Table(h)), "json": string(data)} {
		if strings.ContainsAny(body, "\x1b\u202e") {
			t.Errorf("%s holds raw control characters: %q", name, body)
		}
	}
	var back history.History
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Changes[0].Node != hostile.Name {
		t.Errorf("JSON changed the name: %q", back.Changes[0].Node)
	}
	if data, _ := history.JSON(empty); strings.Contains(string(data), `"changes": null`) {
		t.Error("a list is null")
	}
}

func TestSameInputSameBytes(t *testing.T) {
	build := func() string {
		h := history.Build("C", year(40, 50), history.Filter{Label: "l3"})
		data, err := history.JSON(h)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := build()
	for range 3 {
		if build() != first {
			t.Fatal("two builds differ")
		}
	}
}

// year yields daily snapshots of many nodes, each made when asked for; every
// day some nodes lose a label and some are made anew.
func year(days, nodes int) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		for d := range days {
			list := make([]snapshot.Node, nodes)
			for i := range list {
				labels := map[string]string{}
				for l := range 20 {
					labels[fmt.Sprintf("l%d", l)] = "value"
				}
				if (i+d)%97 == 0 {
					delete(labels, "l3")
				}
				list[i] = node(fmt.Sprintf("node-%04d", i), fmt.Sprint((i+d)/400), labels)
			}
			if !yield(taken(d, list...), nil) {
				return
			}
		}
	}
}

// BenchmarkYear builds the history of 365 daily snapshots of 2,000 nodes. The
// time without that of making the snapshots is reported as build-ms, the
// largest live heap as heap-MB.
func BenchmarkYear(b *testing.B) {
	for b.Loop() {
		var building time.Duration
		var most uint64
		count := 0
		h := history.Build("C", func(yield func(*snapshot.Snapshot, error) bool) {
			for s, err := range year(365, 2000) {
				begun := time.Now()
				ok := yield(s, err)
				building += time.Since(begun)
				if count++; count%60 == 0 {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapAlloc)
				}
				if !ok {
					return
				}
			}
		}, history.Filter{})
		b.ReportMetric(float64(building.Milliseconds()), "build-ms")
		b.ReportMetric(float64(most)/1e6, "heap-MB")
		b.ReportMetric(float64(len(h.Changes)), "changes")
	}
}
