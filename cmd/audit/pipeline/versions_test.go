package pipeline

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/history"
	"gpuaudit/audit/snapshot"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
	"gpuaudit/store/storetest"
)

var day0 = time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC)

// fleet makes nodes of about 4 KB: 40 labels, six conditions, a dozen written
// by managers that are known.
func fleet(count int) []snapshot.Node {
	nodes := make([]snapshot.Node, count)
	for i := range nodes {
		t := day0.Add(-time.Duration(i) * time.Hour)
		n := snapshot.Node{
			Name: fmt.Sprintf("node-%04d", i), UID: fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", i), Created: t, Kind: "physical", Ready: "True",
			Labels: map[string]string{}, SetBy: map[string]snapshot.SetBy{}, Taints: []snapshot.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: "NoSchedule"}},
			Capacity:    map[string]int64{"nvidia.com/gpu": 8, "cpu": 128000, "memory": 1 << 40, "pods": 110, "ephemeral-storage": 1 << 41, "hugepages-2Mi": 0},
			Allocatable: map[string]int64{"nvidia.com/gpu": 8, "cpu": 127000, "memory": 1<<40 - 1<<30, "pods": 110, "ephemeral-storage": 1 << 40, "hugepages-2Mi": 0},
			Requested:   map[string]int64{"nvidia.com/gpu": 4}, ProviderID: fmt.Sprintf("vendor:///zone-a/i-%016x", i),
			OSImage: "Ubuntu 22.04.5 LTS", Kernel: "5.15.0-130-generic", Kubelet: "v1.33.2",
		}
		for l := range 40 {
			key := fmt.Sprintf("example.com/label-of-some-length-%d", l)
			n.Labels[key] = fmt.Sprintf("value-%d-%d", l, i%7)
			if l < 12 {
				n.SetBy[key] = snapshot.SetBy{Manager: "node-labeller", Operation: "Update", Time: t}
			}
		}
		for _, kind := range []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "GPUHealthy"} {
			n.Conditions = append(n.Conditions, snapshot.Condition{Type: kind, Status: "False", Reason: "KubeletHas" + kind, Message: "kubelet reports " + kind, Transition: &t})
		}
		nodes[i] = n
	}
	return nodes
}

// days keeps a row of daily snapshots of nodes of which every day half hold
// other amounts of devices, one in a hundred lost or got back a label, one in a
// thousand was made anew, and one is away.
func days(t testing.TB, a *archive.Archive, count, nodes int) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	row := fleet(nodes)
	for d := range count {
		at := day0.AddDate(0, 0, d)
		for i := range row {
			if r.IntN(2) == 0 {
				row[i].Requested = map[string]int64{"nvidia.com/gpu": r.Int64N(9)}
			}
			if r.IntN(100) == 0 {
				row[i].Labels = maps.Clone(row[i].Labels)
				row[i].Labels["example.com/label-of-some-length-3"] = fmt.Sprint(r.IntN(2))
			}
			if r.IntN(1000) == 0 {
				row[i].UID = fmt.Sprintf("%s-%d", row[i].UID[:23], d)
			}
		}
		away := r.IntN(nodes)
		s := &snapshot.Snapshot{SchemaVersion: 1, Cluster: "C", UID: "u", Run: fmt.Sprintf("r%d", d), CollectedAt: at, NodesAt: &at,
			Nodes: append(append([]snapshot.Node{}, row[:away]...), row[away+1:]...)}
		body, err := snapshot.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		in := storetest.NewAudit("C", at, s.Run)
		in.Snapshot = body
		if _, err := a.SaveSnapshot(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
}

func opened(t testing.TB) *archive.Archive {
	t.Helper()
	s, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return archive.New(s)
}

func last(t testing.TB, a *archive.Archive) archive.Snapshot {
	t.Helper()
	kept, err := a.LatestSnapshot(t.Context(), "C")
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// whole decodes every snapshot in full, one after the other.
func whole(ctx context.Context, a *archive.Archive, to time.Time) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		for kept, err := range a.LoadRange(ctx, "C", time.Time{}, to) {
			if err == nil {
				s, err := snapshot.Decode(kept.Body)
				if !yield(s, err) {
					return
				}
			} else if !yield(nil, err) {
				return
			}
		}
	}
}

func fast(ctx context.Context, a *archive.Archive, to time.Time) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		for v, err := range Versions(ctx, a, "C", time.Time{}, to) {
			if err == nil {
				err = v.Err
			}
			if !yield(v.Snapshot, err) {
				return
			}
		}
	}
}

// TestVersionsGiveTheSameHistory: to the byte, with a snapshot among them that
// cannot be decoded.
func TestVersionsGiveTheSameHistory(t *testing.T) {
	a := opened(t)
	days(t, a, 30, 40)
	in := storetest.NewAudit("C", day0.Add(12*time.Hour), "broken")
	in.Snapshot = storetest.Gzip(`{"schemaVersion":9}`)
	if _, err := a.SaveSnapshot(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for _, f := range []history.Filter{{}, {Node: "node-0007"}, {Label: "example.com/label-of-some-length-3"}, {Since: day0.AddDate(0, 0, 15)}} {
		want, err := history.JSON(history.Build("C", whole(t.Context(), a, time.Time{}), f))
		if err != nil {
			t.Fatal(err)
		}
		got, err := history.JSON(history.Build("C", fast(t.Context(), a, time.Time{}), f))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%+v:\n%s", f, diff)
		}
	}
}

// TestVersionsStop: who has seen enough, or is called off, ends the reading.
func TestVersionsStop(t *testing.T) {
	a := opened(t)
	days(t, a, 20, 5)
	for range Versions(t.Context(), a, "C", time.Time{}, time.Time{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, failed := 0, false
	for _, err := range Versions(ctx, a, "C", time.Time{}, time.Time{}) {
		cancel()
		seen++
		failed = failed || err != nil
	}
	if !failed || seen > 20 {
		t.Errorf("called off after the first of 20: %d more, failed %t", seen, failed)
	}
}

// BenchmarkHistory tells the history of a year of daily snapshots of 2,000
// nodes as the program does, with the most live and total memory met on the
// way, and as a ratio to decoding the first 30 of them in full, one by one.
func BenchmarkHistory(b *testing.B) {
	a := opened(b)
	const count, sample = 365, 30
	days(b, a, count, 2000)
	for b.Loop() {
		begun := time.Now()
		history.Build("C", whole(b.Context(), a, day0.AddDate(0, 0, sample-1)), history.Filter{})
		full := time.Since(begun) / sample
		stop := make(chan struct{})
		var most, system atomic.Uint64
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most.Store(max(most.Load(), m.HeapInuse))
					system.Store(max(system.Load(), m.Sys-m.HeapReleased))
				}
			}
		}()
		runtime.GC()
		begun = time.Now()
		h := history.Build("C", fast(b.Context(), a, time.Time{}), history.Filter{})
		took := time.Since(begun)
		close(stop)
		<-watched
		if h.Snapshots != count {
			b.Fatal(h.Snapshots, h.Unread)
		}
		b.ReportMetric(took.Seconds(), "s/year")
		size, err := snapshot.Unpack(last(b, a).Body, nil, snapshot.MaxBytes)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(size))/1e6, "MB/snapshot")
		b.ReportMetric(float64(full.Milliseconds()), "full-ms/snapshot")
		b.ReportMetric(float64(full*count)/float64(took), "full/fast")
		b.ReportMetric(float64(most.Load())/1e6, "heap-MB")
		b.ReportMetric(float64(system.Load())/1e6, "system-MB")
		b.ReportMetric(float64(len(h.Changes)), "changes")
	}
}
