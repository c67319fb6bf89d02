package storetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// aged is a store whose objects were written at the times that their keys name (or at Day, for those that name none): as if
// the audits had been made on the days they say.
type aged struct{ store.Store }

// writtenAt reads the time out of a key, or out of the run in it.
func writtenAt(key string) time.Time {
	if at, _, ok := store.ParseStamp(key); ok {
		return at
	}
	for part := range strings.SplitSeq(key, "/") {
		if at, ok := store.RunTime(part); ok {
			return at
		}
	}
	return Day
}

func (a aged) Stat(ctx context.Context, key string) (store.Info, error) {
	if strings.HasSuffix(key, "/latest.json") {
		object, err := a.Get(ctx, key)
		return object.Info, err
	}
	info, err := a.Store.Stat(ctx, key)
	info.Modified = writtenAt(key)
	return info, err
}

// Get dates the pointer by what it points to.
func (a aged) Get(ctx context.Context, key string) (store.Object, error) {
	object, err := a.Store.Get(ctx, key)
	object.Modified = writtenAt(key)
	if err == nil && strings.HasSuffix(key, "/latest.json") {
		_, after, _ := strings.Cut(string(object.Body), `"snapshot":"`)
		snapshot, _, _ := strings.Cut(after, `"`)
		object.Modified = writtenAt(snapshot)
	}
	return object, err
}

func (a aged) List(ctx context.Context, prefix, after string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range a.Store.List(ctx, prefix, after) {
			info.Modified = writtenAt(info.Key)
			if !yield(info, err) {
				return
			}
		}
	}
}

const day = 24 * time.Hour

// fill saves an audit with a report on each of some days, counted from Day.
func fill(ctx context.Context, t *testing.T, a *archive.Archive, cluster string, days ...int) {
	t.Helper()
	for _, n := range days {
		at := Day.Add(time.Duration(n) * day)
		run := at.Format("20060102-150405") + "-" + store.Segment(cluster)
		in := NewAudit(cluster, at, run)
		must[archive.Saved](t)(a.SaveSnapshot(ctx, in))
		report := archive.Report{Run: run, Time: at, Files: map[string][]byte{"report.json": []byte("{}")}, Clusters: map[string]map[string][]byte{cluster: {"report.json": in.Report}}}
		if _, _, err := a.SaveReport(ctx, report); err != nil {
			t.Fatal(err)
		}
	}
}

func startAged(t *testing.T, open Open) (context.Context, *archive.Archive) {
	ctx, s := start(t, open)
	return ctx, archive.New(aged{s})
}

func prune(t *testing.T, open Open) {
	ctx, a := startAged(t, open)
	fill(ctx, t, a, "c", 0, 10, 20, 30, 40)
	fill(ctx, t, a, "still", 0, 1) // not audited any more
	must[archive.Slot](t)(a.ClaimSlot(ctx, "20260605-093000-old", []byte("x")))
	must[archive.Slot](t)(a.ClaimSlot(ctx, "20260705-093000-new", []byte("x")))
	if err := a.UpdateAcks(ctx, "c", func([]byte) ([]byte, error) { return []byte("acks"), nil }); err != nil {
		t.Fatal(err)
	}
	if done := must[archive.Pruned](t)(a.Prune(ctx, 0)); done != (archive.Pruned{}) {
		t.Errorf("keeping for ever removed %+v", done)
	}
	// A year from now by a clock that is wrong changes nothing: only the store's times count.
	done := must[archive.Pruned](t)(a.Prune(ctx, 15*day))
	want := archive.Pruned{Snapshots: 4, Headers: 4, Reports: 4, Slots: 1, Since: Day.Add(25 * day)}
	if done != want {
		t.Errorf("removed %+v, want %+v", done, want)
	}
	for cluster, runs := range map[string][]string{"c": {"20260701-093000-c", "20260711-093000-c"}, "still": {"20260602-093000-still"}} {
		var got []string
		for _, ref := range collect(t, a.Snapshots(ctx, cluster, time.Time{}, time.Time{})) {
			got = append(got, ref.Run)
		}
		if !slices.Equal(got, runs) {
			t.Errorf("%s: left %q, want %q", cluster, got, runs)
		}
		v, orphans, err := a.Check(ctx, cluster)
		if err != nil || len(v.Faults) > 0 || len(orphans) > 0 || v.Headers != len(runs) || v.Snapshots != len(runs) || v.Reports != len(runs) || v.BeginsAfter == "" {
			t.Errorf("%s: what remains does not verify: %+v, %v, %v", cluster, v, orphans, err)
		}
	}
	if got := must[[]byte](t)(a.LoadAcks(ctx, "c")); string(got) != "acks" {
		t.Error("the acknowledgements are gone")
	}
	if done := must[archive.Pruned](t)(a.Prune(ctx, 15*day)); done.Snapshots+done.Headers+done.Reports+done.Slots != 0 {
		t.Errorf("the second time removed %+v", done)
	}
	// The chain goes on, and an audit of an old date, saved now, is young.
	fill(ctx, t, a, "c", 50)
	if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != "20260721-093000-c" {
		t.Errorf("latest is %q", got.Run)
	}
}

// pruneCutOff kills the removal at every step; what remains is whole, and the next one ends it.
func pruneCutOff(t *testing.T, open Open) {
	for n := range 14 {
		for _, landed := range []bool{false, true} {
			ctx, a := startAged(t, open)
			fill(ctx, t, a, "c", 0, 1, 2, 30, 31)
			cut := archive.New(NewCutOff(a.Store(), n, landed))
			_, err := cut.Prune(ctx, 10*day)
			v, orphans, checkErr := a.Check(ctx, "c")
			if checkErr != nil || len(v.Faults) > 0 || len(orphans) > 0 || v.Snapshots < 2 {
				t.Fatalf("after %d steps (%v): %+v, %v, %v", n, err, v, orphans, checkErr)
			}
			must[archive.Pruned](t)(a.Prune(ctx, 10*day))
			v, orphans, checkErr = a.Check(ctx, "c")
			if checkErr != nil || len(v.Faults) > 0 || len(orphans) > 0 || v.Headers != 2 || v.Snapshots != 2 || v.Reports != 2 {
				t.Fatalf("after %d steps and a second time: %+v, %v, %v", n, v, orphans, checkErr)
			}
			if left := collect(t, a.Reports(ctx, time.Time{}, time.Time{})); len(left) != 2 {
				t.Fatalf("after %d steps and a second time: %d reports", n, len(left))
			}
		}
	}
}

// pruneKeepsWhatIsNeeded: a snapshot to compare with stays though it is old, with the chain from it on and its report.
func pruneKeepsWhatIsNeeded(t *testing.T, open Open) {
	ctx, a := startAged(t, open)
	fill(ctx, t, a, "c", 0, 40, 1, 2, 3) // the latest is the second in the chain; old ones were saved after it
	fill(ctx, t, a, "other", 100)
	done := must[archive.Pruned](t)(a.Prune(ctx, 10*day))
	if done.Snapshots != 1 || done.Headers != 1 || done.Reports != 1 {
		t.Errorf("removed %+v, want the one before the latest", done)
	}
	if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); !strings.HasPrefix(got.Run, "20260711") {
		t.Errorf("latest is %q", got.Run)
	}
	v, orphans, err := a.Check(ctx, "c")
	if err != nil || len(v.Faults) > 0 || len(orphans) > 0 || v.Headers != 4 || v.Reports != 4 {
		t.Errorf("what remains does not verify: %+v, %v, %v", v, orphans, err)
	}
	// With one cluster unreadable no report is removed: it might be the one that needs it.
	must[store.Info](t)(a.Store().Put(ctx, store.LatestKey("c"), fmt.Appendf(nil, `{"version":99,"cluster":"c"}`), store.Attributes{}))
	fill(ctx, t, a, "other", 200)
	before := len(collect(t, a.Reports(ctx, time.Time{}, time.Time{})))
	done, err = a.Prune(ctx, 10*day)
	if err == nil || done.Reports != 0 || len(collect(t, a.Reports(ctx, time.Time{}, time.Time{}))) != before {
		t.Errorf("with an unreadable cluster: removed %+v, error %v", done, err)
	}
}
