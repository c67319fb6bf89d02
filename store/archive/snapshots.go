package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"gpuaudit/store"
)

// Snapshot is a kept snapshot with its bytes, gzipped as they were saved.
type Snapshot struct {
	SnapshotRef
	Body   []byte
	SHA256 string
	// Chained: a header of the chain holds this hash. A snapshot whose run died before the header was written
	// has none until the next run adopts it.
	Chained bool
}

// list yields the snapshots or headers (by prefix) of a cluster whose key is greater than after. Names of another form
// are passed over.
func (a *Archive) list(ctx context.Context, cluster, prefix, after string) iter.Seq2[SnapshotRef, error] {
	return func(yield func(SnapshotRef, error) bool) {
		for info, err := range a.store.List(ctx, prefix, after) {
			if err != nil {
				yield(SnapshotRef{}, err)
				return
			}
			at, run, ok := store.ParseStamp(info.Key)
			if ok && !yield(SnapshotRef{Cluster: cluster, Key: info.Key, Time: at, Run: run}, nil) {
				return
			}
		}
	}
}

// Snapshots yields a cluster's snapshots from one time to another, both included, oldest first. A zero time is no bound.
func (a *Archive) Snapshots(ctx context.Context, cluster string, from, to time.Time) iter.Seq2[SnapshotRef, error] {
	return func(yield func(SnapshotRef, error) bool) {
		prefix := store.SnapshotsPrefix(cluster)
		after := ""
		if !from.IsZero() {
			from = from.UTC().Truncate(time.Millisecond)
			after = prefix + store.KeyTime(from) // sorts before every key of that time, as those go on with "-"
		}
		for ref, err := range a.list(ctx, cluster, prefix, after) {
			if err == nil && !to.IsZero() && ref.Time.After(to) {
				return
			}
			if !yield(ref, err) || err != nil {
				return
			}
		}
	}
}

// ErrNoSnapshot: the cluster has no snapshot (at the time asked for): it was never audited into this store.
var ErrNoSnapshot = fmt.Errorf("no earlier snapshot: %w", store.ErrNotFound)

// farFuture is later than every time that a key can hold.
var farFuture = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// LatestSnapshot reads the snapshot with the greatest time, or fails with ErrNoSnapshot, or with a BrokenError
// that names the object.
func (a *Archive) LatestSnapshot(ctx context.Context, cluster string) (Snapshot, error) {
	return a.Previous(ctx, cluster, farFuture)
}

// Previous reads the newest snapshot that is not later than now: the one that an audit at that time is compared
// with. Errors are those of LatestSnapshot. When it is broken, or gone although latest.json or a header names it, the
// one before is not taken in its place: what changed since then would be told as if it had changed since that one.
func (a *Archive) Previous(ctx context.Context, cluster string, now time.Time) (Snapshot, error) {
	fail := func(err error) (Snapshot, error) {
		return Snapshot{}, fmt.Errorf("snapshot of cluster %q before %s: %w", cluster, now.UTC().Format(time.RFC3339), err)
	}
	t, err := a.readLatest(ctx, cluster)
	if err != nil && !IsBroken(err) {
		return fail(err)
	}
	if t.latest != nil && !t.latest.Time.After(now) {
		ref, err := a.newestAfter(ctx, t.latest.ref(), now)
		if err != nil {
			return fail(err)
		}
		if missing := a.headerAfter(ctx, cluster, ref.Time, now); missing != nil {
			return fail(missing) // an old pointer was put back, and what it does not know is gone
		}
		s, err := a.LoadSnapshot(ctx, ref)
		if errors.Is(err, store.ErrNotFound) {
			return fail(&MissingError{Key: ref.Key, NamedBy: store.LatestKey(cluster)})
		}
		return s, err
	}
	ref, err := a.searchBack(ctx, cluster, now)
	if err != nil && !errors.Is(err, ErrNoSnapshot) {
		return fail(err)
	}
	if missing := a.headerAfter(ctx, cluster, ref.Time, now); missing != nil {
		return fail(missing)
	}
	if err != nil {
		return fail(err)
	}
	return a.LoadSnapshot(ctx, ref)
}

// headerAfter fails with a MissingError where a header tells of a snapshot that is later than the newest one found.
func (a *Archive) headerAfter(ctx context.Context, cluster string, found, now time.Time) error {
	prefix := store.ChainPrefix(cluster)
	after := ""
	if !found.IsZero() {
		after = prefix + store.KeyTime(found)
	}
	var newest SnapshotRef
	for ref, err := range a.list(ctx, cluster, prefix, after) {
		switch {
		case err != nil:
			return err
		case !ref.Time.After(now) && ref.Time.After(found):
			newest = ref
		}
	}
	if newest.Key == "" {
		return nil
	}
	return &MissingError{Key: store.SnapshotKey(cluster, newest.Time, newest.Run), NamedBy: newest.Key}
}

// newestAfter looks behind the pointer: a writer may have died before it moved it, or a store without conditions
// may have lost a move. One of the very time of the pointer's is not newer.
func (a *Archive) newestAfter(ctx context.Context, pointer SnapshotRef, now time.Time) (SnapshotRef, error) {
	newest := pointer
	for ref, err := range a.list(ctx, pointer.Cluster, store.SnapshotsPrefix(pointer.Cluster), pointer.Key) {
		if err != nil {
			return SnapshotRef{}, err
		}
		if ref.Time.After(now) {
			break
		}
		if ref.Time.After(pointer.Time) {
			newest = ref
		}
	}
	return newest, nil
}

// searchBack finds the newest snapshot up to now by listing ever longer windows before it, as stores list forwards
// only and the one looked for is usually a day old.
func (a *Archive) searchBack(ctx context.Context, cluster string, now time.Time) (SnapshotRef, error) {
	const day = 24 * time.Hour
	windows := []time.Duration{2 * day, 40 * day, 400 * day, 0}
	if now.Equal(farFuture) {
		windows = windows[3:]
	}
	for _, window := range windows {
		from := time.Time{}
		if window != 0 {
			from = now.Add(-window)
			if from.Year() < 0 {
				continue
			}
		}
		var newest SnapshotRef
		for ref, err := range a.Snapshots(ctx, cluster, from, now) {
			if err != nil {
				return SnapshotRef{}, err
			}
			newest = ref
		}
		if newest.Key != "" {
			return newest, nil
		}
	}
	return SnapshotRef{}, ErrNoSnapshot
}

// LoadSnapshot reads a snapshot and checks it against its header, if it has one.
func (a *Archive) LoadSnapshot(ctx context.Context, ref SnapshotRef) (Snapshot, error) {
	object, err := a.store.Get(ctx, ref.Key)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot of cluster %q: %w", ref.Cluster, err)
	}
	s := Snapshot{SnapshotRef: ref, Body: object.Body, SHA256: Hash(object.Body)}
	raw, err := a.header(ctx, ref)
	if errors.Is(err, store.ErrNotFound) {
		return s, a.unchained(s)
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("read chain header of snapshot %q: %w", ref.Key, err)
	}
	h, err := raw.Parse()
	if err != nil {
		return s, a.unchained(s)
	}
	if h.SnapshotSHA256 != s.SHA256 {
		return Snapshot{}, &BrokenError{Key: ref.Key, Err: fmt.Errorf("its sha256 is %s, but chain header %q holds %s", s.SHA256, raw.Key, h.SnapshotSHA256)}
	}
	s.Chained = true
	return s, nil
}

// unchained has no header to be checked against, so at least its own checksum must be right.
func (a *Archive) unchained(s Snapshot) error {
	if !wholeGzip(s.Body) {
		return &BrokenError{Key: s.Key, Err: errors.New("it is cut off or not gzip")}
	}
	return nil
}

// header reads one header, from latest.json where its own object is not made yet.
func (a *Archive) header(ctx context.Context, ref SnapshotRef) (RawHeader, error) {
	key := store.HeaderKey(ref.Cluster, ref.Time, ref.Run)
	object, err := a.store.Get(ctx, key)
	if err == nil {
		return RawHeader{Key: key, Body: object.Body}, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return RawHeader{}, err
	}
	t, latestErr := a.readLatest(ctx, ref.Cluster)
	if latestErr == nil && t.latest != nil && t.latest.HeadKey == key {
		return t.latest.head(), nil
	}
	return RawHeader{}, err
}
