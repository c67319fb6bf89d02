package storetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gpuaudit/store"
	"gpuaudit/store/archive"
)

var archiveTests = map[string]test{
	"FirstRun": firstRun, "SnapshotGone": snapshotGone, "Chain": chain, "SaveTwice": saveTwice, "OlderNow": olderNow, "SameInstant": sameInstant, "ManyAudits": manyAudits,
	"TwoAtOnce": twoAtOnce, "CutOffAnywhere": cutOffAnywhere, "PointerLost": pointerLost, "PointerFromTheFuture": pointerFromTheFuture,
	"BrokenSnapshot": brokenSnapshot, "ClusterNames": clusterNames, "Reports": reports, "Acks": acks, "AcksAtOnce": acksAtOnce,
	"Slots": slots, "SlotsAtOnce": slotsAtOnce, "Prune": prune, "PruneCutOff": pruneCutOff, "PruneKeepsWhatIsNeeded": pruneKeepsWhatIsNeeded,
}

// Day is the time of the tests' first audit.
var Day = time.Date(2026, 6, 1, 9, 30, 0, 0, time.UTC)

// Gzip packs a snapshot for a test.
func Gzip(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a bytes.Buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// NewAudit makes an audit of a cluster, with its own bytes.
func NewAudit(cluster string, at time.Time, run string) archive.Audit {
	return archive.Audit{
		Cluster: cluster, Time: at, Run: run,
		Snapshot: Gzip("snapshot of " + cluster + " by " + run), Report: []byte(`{"cluster":"` + run + `"}`),
	}
}

func startArchive(t *testing.T, open Open) (context.Context, *archive.Archive) {
	ctx, s := start(t, open)
	return ctx, archive.New(s)
}

// whole fails unless the chain of a cluster has n headers, in one line from the very beginning, with all they name.
func whole(ctx context.Context, t *testing.T, a *archive.Archive, cluster string, n int) {
	t.Helper()
	v, orphans, err := a.Check(ctx, cluster)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Faults) > 0 || len(orphans) > 0 {
		t.Fatalf("faults %v, snapshots without header %v", v.Faults, orphans)
	}
	if v.Headers != n || v.Snapshots != n || v.BeginsAfter != "" {
		t.Fatalf("chain of %d headers, %d snapshots, beginning after %q; want %d whole ones", v.Headers, v.Snapshots, v.BeginsAfter, n)
	}
}

// snapshotGone: whoever deletes a snapshot, with the pointer to it or without, the one before it is not taken in its
// place, and the cluster does not look as if it had never been audited.
func snapshotGone(t *testing.T, open Open) {
	for name, gone := range map[string]struct {
		snapshots []int
		pointer   string // "", deleted, old
		want      int
	}{
		"the newest":                  {[]int{2}, "", 2},
		"the newest and its pointer":  {[]int{2}, "deleted", 2},
		"the newest, an old pointer":  {[]int{2}, "old", 2},
		"all of them":                 {[]int{0, 1, 2}, "", 2},
		"all, and the pointer":        {[]int{0, 1, 2}, "deleted", 2},
		"an older one changes little": {[]int{1}, "", -1},
	} {
		ctx, a := startArchive(t, open)
		var keys []string
		var first store.Object
		pointer := store.LatestKey("c")
		for i := range 3 {
			keys = append(keys, must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.AddDate(0, 0, i), fmt.Sprintf("r%d", i)))).Snapshot.Key)
			if i == 0 {
				first = must[store.Object](t)(a.Store().Get(ctx, pointer))
			}
		}
		for _, i := range gone.snapshots {
			if err := a.Store().Delete(ctx, keys[i]); err != nil {
				t.Fatal(err)
			}
		}
		switch gone.pointer {
		case "deleted":
			if err := a.Store().Delete(ctx, pointer); err != nil {
				t.Fatal(err)
			}
		case "old":
			must[store.Info](t)(a.Store().Put(ctx, pointer, first.Body, store.Attributes{}))
		}
		_, err := a.LatestSnapshot(ctx, "c")
		var missing *archive.MissingError
		if gone.want < 0 && err != nil || gone.want >= 0 && (!errors.As(err, &missing) || missing.Key != keys[gone.want]) {
			t.Errorf("%s: error is %v, want one that names %v", name, err, gone.want)
		}
		// Going on after it is possible, and the chain says what is missing.
		must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.AddDate(0, 0, 3), "r3")))
		if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != "r3" {
			t.Errorf("%s: latest is %q after saving again", name, got.Run)
		}
		v, _, err := a.Check(ctx, "c")
		if err != nil || len(v.Faults) != len(gone.snapshots) || v.Faults[0].Kind != archive.FaultSnapshotMissing {
			t.Errorf("%s: faults %v, %v; want the missing snapshots", name, v.Faults, err)
		}
	}
}

func firstRun(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	_, err := a.LatestSnapshot(ctx, "c")
	wantErr(t, err, archive.ErrNoSnapshot)
	wantErr(t, err, store.ErrNotFound, "c")
	_, err = a.Head(ctx, "c")
	wantErr(t, err, store.ErrNotFound)
	if headers := must[[]archive.RawHeader](t)(a.Headers(ctx, "c", time.Time{})); len(headers) != 0 {
		t.Errorf("headers of an empty store: %v", headers)
	}
	whole(ctx, t, a, "c", 0)
	if got := must[[]byte](t)(a.LoadAcks(ctx, "c")); got != nil {
		t.Errorf("acknowledgements of an empty store: %q", got)
	}
	_, err = a.FindReport(ctx, archive.LatestRun)
	wantErr(t, err, store.ErrNotFound)
}

func chain(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	var heads []string
	for day := range 4 {
		in := NewAudit("C", Day.AddDate(0, 0, day), fmt.Sprintf("run%d", day))
		saved := must[archive.Saved](t)(a.SaveSnapshot(ctx, in))
		if !saved.Latest {
			t.Errorf("day %d: not the latest", day)
		}
		got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "C"))
		if !bytes.Equal(got.Body, in.Snapshot) || got.Key != saved.Snapshot.Key || !got.Time.Equal(in.Time) || got.Run != in.Run || !got.Chained {
			t.Errorf("day %d: latest is %+v", day, got.SnapshotRef)
		}
		heads = append(heads, saved.Header.SHA256())
	}
	wantKey := "clusters/C/snapshots/20260604T093000.000Z-run3.json.gz"
	if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "C")); got.Key != wantKey {
		t.Errorf("key %q, want %q", got.Key, wantKey)
	}
	whole(ctx, t, a, "C", 4)
	headers := must[[]archive.RawHeader](t)(a.Headers(ctx, "C", time.Time{}))
	for i, raw := range headers {
		h, err := raw.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if raw.SHA256() != heads[i] || i > 0 && h.PreviousSHA256 != heads[i-1] || i == 0 && h.PreviousKey != "" || h.ReportSHA256 == "" {
			t.Errorf("header %d: %+v", i, h)
		}
	}
	if head := must[archive.RawHeader](t)(a.Head(ctx, "C")); head.SHA256() != heads[3] {
		t.Error("the head is not the last header")
	}
	since := must[[]archive.RawHeader](t)(a.Headers(ctx, "C", Day.AddDate(0, 0, 2)))
	if len(since) != 3 || since[0].SHA256() != heads[1] {
		t.Errorf("since day 2: %d headers, want those of days 1 to 3", len(since))
	}
	refs := collect(t, a.Snapshots(ctx, "C", Day.AddDate(0, 0, 1), Day.AddDate(0, 0, 2)))
	if len(refs) != 2 || refs[0].Run != "run1" || refs[1].Run != "run2" {
		t.Errorf("from day 1 to 2: %+v", refs)
	}
}

func saveTwice(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	in := NewAudit("c", Day, "r")
	first := must[archive.Saved](t)(a.SaveSnapshot(ctx, in))
	must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.Add(time.Hour), "later")))
	second := must[archive.Saved](t)(a.SaveSnapshot(ctx, in))
	if first.Header.SHA256() != second.Header.SHA256() || second.Latest {
		t.Errorf("saved again as %+v, first as %+v", second, first)
	}
	whole(ctx, t, a, "c", 2)
	in.Snapshot = Gzip("other bytes")
	_, err := a.SaveSnapshot(ctx, in)
	wantErr(t, err, store.ErrExists, first.Snapshot.Key)
	whole(ctx, t, a, "c", 2)
}

func olderNow(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day, "new")))
	old := must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.AddDate(0, 0, -3), "old")))
	if old.Latest {
		t.Error("an older audit became the one to compare with")
	}
	if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != "new" {
		t.Errorf("latest is %q", got.Run)
	}
	whole(ctx, t, a, "c", 2)
	if head := must[archive.RawHeader](t)(a.Head(ctx, "c")); head.Key != old.Header.Key {
		t.Errorf("head is %q, want the last saved, %q", head.Key, old.Header.Key)
	}
	for at, want := range map[time.Time]string{Day.Add(time.Hour): "new", Day: "new", Day.Add(-time.Hour): "old", Day.AddDate(0, 0, -3): "old"} {
		if got := must[archive.Snapshot](t)(a.Previous(ctx, "c", at)); got.Run != want {
			t.Errorf("before %s: %q, want %q", at, got.Run, want)
		}
	}
	_, err := a.Previous(ctx, "c", Day.AddDate(0, 0, -4))
	wantErr(t, err, archive.ErrNoSnapshot)
	must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.AddDate(-5, 0, 0), "ancient")))
	if got := must[archive.Snapshot](t)(a.Previous(ctx, "c", Day.AddDate(-1, 0, 0))); got.Run != "ancient" {
		t.Errorf("a year before: %q, want the ancient one", got.Run)
	}
}

// sameInstant: of two audits at one time the one that was saved later is the latest, whatever its run is called.
func sameInstant(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	for _, run := range []string{"m", "z", "a", "k"} {
		saved := must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day, run)))
		if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != run || !saved.Latest {
			t.Errorf("after saving %q the latest is %q", run, got.Run)
		}
	}
	whole(ctx, t, a, "c", 4)
}

func manyAudits(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	for i := range 30 {
		at := Day.Add(time.Duration(i*7919%30) * time.Hour) // in no order
		must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", at, fmt.Sprintf("r%d", i))))
	}
	whole(ctx, t, a, "c", 30)
	refs := collect(t, a.Snapshots(ctx, "c", time.Time{}, time.Time{}))
	loaded := collect(t, a.LoadRange(ctx, "c", Day.Add(2*time.Hour), Day.Add(20*time.Hour)))
	if len(loaded) != 19 {
		t.Errorf("%d of 19 hours loaded", len(loaded))
	}
	for i, s := range loaded {
		if s.Key != refs[i+2].Key || !s.Chained || len(s.Body) == 0 {
			t.Errorf("loaded %+v as number %d, want %q", s.SnapshotRef, i, refs[i+2].Key)
		}
	}
	for range a.LoadRange(ctx, "c", time.Time{}, time.Time{}) {
		break // leaving early leaves nothing running, as -race and the store's end show
	}
	if !slices.IsSortedFunc(refs, func(x, y archive.SnapshotRef) int { return x.Time.Compare(y.Time) }) || len(refs) != 30 {
		t.Errorf("%d snapshots, not in order", len(refs))
	}
}

func twoAtOnce(t *testing.T, open Open) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, again := open(t)
	archives := []*archive.Archive{archive.New(s), archive.New(again())}
	const writers, times = 6, 4
	for _, err := range each(writers, func(i int) error {
		for j := range times {
			in := NewAudit("c", Day.Add(time.Duration(j)*time.Minute+time.Duration(i)*time.Second), fmt.Sprintf("w%d-%d", i, j))
			if _, err := archives[i%2].SaveSnapshot(ctx, in); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	whole(ctx, t, archives[0], "c", writers*times)
	if got := must[archive.Snapshot](t)(archives[1].LatestSnapshot(ctx, "c")); got.Run != "w5-3" {
		t.Errorf("latest is %q, want the one of the greatest time", got.Run)
	}
}

func pointerLost(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	save := func(day int) {
		t.Helper()
		must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.AddDate(0, 0, day), fmt.Sprintf("r%d", day))))
	}
	latest := func(run string) {
		t.Helper()
		if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != run {
			t.Errorf("latest is %q, want %q", got.Run, run)
		}
	}
	key := store.LatestKey("c")
	save(0)
	old := must[store.Object](t)(a.Store().Get(ctx, key))
	save(1)
	if err := a.Store().Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	latest("r1")
	save(2)
	for i, broken := range [][]byte{nil, []byte("{"), []byte("{}"), []byte(`{"version":1,"cluster":"c"}`), bytes.Replace(old.Body, []byte("r0"), []byte("r9"), 1)} {
		must[store.Info](t)(a.Store().Put(ctx, key, broken, store.Attributes{}))
		latest(fmt.Sprintf("r%d", 2+i))
		save(3 + i)
		latest(fmt.Sprintf("r%d", 3+i))
	}
	// A copy from a backup: valid, but not of today.
	must[store.Info](t)(a.Store().Put(ctx, key, old.Body, store.Attributes{}))
	latest("r7")
	save(8)
	whole(ctx, t, a, "c", 9)
}

func pointerFromTheFuture(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day, "r")))
	key := store.LatestKey("c")
	now := must[store.Object](t)(a.Store().Get(ctx, key))
	newer := bytes.Replace(now.Body, []byte(`"version":1`), []byte(`"version":99`), 1)
	must[store.Info](t)(a.Store().Put(ctx, key, newer, store.Attributes{}))
	_, err := a.SaveSnapshot(ctx, NewAudit("c", Day.Add(time.Hour), "r2"))
	var refused *archive.NewerError
	if !errors.As(err, &refused) || refused.Key != key {
		t.Errorf("saving beside a newer program's pointer: %v", err)
	}
	if got := must[store.Object](t)(a.Store().Get(ctx, key)); !bytes.Equal(got.Body, newer) {
		t.Error("the newer program's pointer was overwritten")
	}
}

func brokenSnapshot(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	saved := must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day, "r1")))
	good := must[store.Object](t)(a.Store().Get(ctx, saved.Snapshot.Key)).Body
	for name, bad := range map[string][]byte{"cut": good[:len(good)-3], "empty": {}, "other": Gzip("something else"), "text": []byte("hello")} {
		must[store.Info](t)(a.Store().Put(ctx, saved.Snapshot.Key, bad, store.Attributes{}))
		_, err := a.LatestSnapshot(ctx, "c")
		var broken *archive.BrokenError
		if !errors.As(err, &broken) || broken.Key != saved.Snapshot.Key || !strings.Contains(err.Error(), saved.Snapshot.Key) || !archive.IsBroken(err) {
			t.Errorf("%s: %v, want a BrokenError that names %q", name, err, saved.Snapshot.Key)
		}
		if got := must[store.Object](t)(a.Store().Get(ctx, saved.Snapshot.Key)); !bytes.Equal(got.Body, bad) {
			t.Errorf("%s: the broken snapshot was overwritten", name)
		}
	}
	// Going on after it is possible, and the chain says what is wrong.
	must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.Add(time.Hour), "r2")))
	if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != "r2" {
		t.Errorf("latest is %q", got.Run)
	}
	v, _, err := a.Check(ctx, "c")
	var read []string
	for s, err := range a.LoadRange(ctx, "c", time.Time{}, time.Time{}) {
		if err != nil && !archive.IsBroken(err) {
			t.Fatal(err)
		}
		read = append(read, fmt.Sprint(s.Run, " ", err == nil))
	}
	if !slices.Equal(read, []string{"r1 false", "r2 true"}) {
		t.Errorf("read %q, want the broken one with its error and the other", read)
	}
	if err != nil || len(v.Faults) != 1 || v.Faults[0].Kind != archive.FaultSnapshotChanged || v.Faults[0].Key != saved.Snapshot.Key {
		t.Errorf("faults %v, error %v; want the one changed snapshot", v.Faults, err)
	}
}

func clusterNames(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	var want []string
	for i, name := range names {
		if name == "" || !utf8.ValidString(name) {
			if _, err := a.SaveSnapshot(ctx, NewAudit(name, Day, "r")); err == nil {
				t.Errorf("saved for a cluster named %q, which its header cannot hold", name)
			}
			continue
		}
		want = append(want, name)
		for j := range 2 {
			must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit(name, Day.AddDate(0, 0, j), fmt.Sprintf("r%d-%d", i, j))))
		}
		whole(ctx, t, a, name, 2)
	}
	got := collect(t, a.Clusters(ctx))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("clusters\n%q, want\n%q", got, want)
	}
}
