package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gpuaudit/store"
)

// appendAttempts bounds how often one writer may be beaten to the head of a chain.
const appendAttempts = 128

// tip is latest.json as read, or as found again from the chain when it is lost or broken.
type tip struct {
	latest  *Latest // nil: no header yet
	version string  // of the object; empty: there is none
}

// append puts the header at the end of its chain and returns it as kept, with latest.json after it.
func (a *Archive) append(ctx context.Context, h Header) (RawHeader, Latest, error) {
	for attempt := 0; attempt < appendAttempts; {
		t, err := a.readTip(ctx, h.Cluster)
		if err != nil {
			return RawHeader{}, Latest{}, err
		}
		if t.latest != nil {
			if err := a.keepHead(ctx, t.latest.head()); err != nil {
				return RawHeader{}, Latest{}, err
			}
		}
		// Whoever moved latest.json past our header created it first, so here it is seen if it was appended at all.
		if there, err := a.store.Get(ctx, h.Key()); err == nil {
			return a.appended(t, h, there)
		} else if !errors.Is(err, store.ErrNotFound) {
			return RawHeader{}, Latest{}, err
		}
		next, err := a.nextToAppend(ctx, t, h)
		if err != nil {
			return RawHeader{}, Latest{}, err
		}
		raw, latest, err := a.advance(ctx, t, next)
		switch {
		case err == nil && next.Key() == h.Key():
			return raw, latest, nil
		case err == nil:
			continue // an adopted one is in; ours comes after it
		case !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrChanged):
			return RawHeader{}, Latest{}, err
		}
		if err := store.Pause(ctx, attempt); err != nil {
			return RawHeader{}, Latest{}, err
		}
		attempt++
	}
	return RawHeader{}, Latest{}, fmt.Errorf("%q was moved %d times by other writers: %w; run fewer audits of one cluster at once", store.LatestKey(h.Cluster), appendAttempts, store.ErrChanged)
}

// keepHead creates the object of a header that is in latest.json, if that was not done yet.
func (a *Archive) keepHead(ctx context.Context, head RawHeader) error {
	_, err := a.store.Stat(ctx, head.Key)
	if errors.Is(err, store.ErrNotFound) {
		return a.createOnce(ctx, head.Key, head.Body)
	}
	return err
}

// appended handles a header that is in the chain already: by an earlier try of this run, or adopted by another.
func (a *Archive) appended(t tip, h Header, there store.Object) (RawHeader, Latest, error) {
	raw := RawHeader{Key: there.Key, Body: there.Body}
	kept, err := raw.Parse()
	if err != nil {
		return RawHeader{}, Latest{}, err
	}
	if kept.SnapshotSHA256 != h.SnapshotSHA256 {
		return RawHeader{}, Latest{}, fmt.Errorf("chain header %q is there for other bytes of the snapshot: %w", raw.Key, store.ErrExists)
	}
	if t.latest == nil {
		return raw, Latest{}, nil
	}
	return raw, *t.latest, nil
}

// advance puts the header in latest.json as the head, if that is still what t says, and then creates the header's own
// object. Once latest.json is written the header counts; when its object cannot be created now, the next writer
// does it.
func (a *Archive) advance(ctx context.Context, t tip, h Header) (RawHeader, Latest, error) {
	if t.latest != nil {
		h.PreviousKey, h.PreviousSHA256 = t.latest.HeadKey, t.latest.HeadSHA256
	}
	raw, err := h.raw()
	if err != nil {
		return RawHeader{}, Latest{}, err
	}
	next := Latest{Version: HeaderVersion, Cluster: h.Cluster, Snapshot: h.SnapshotKey, Time: h.Time, Run: h.Run}
	if t.latest != nil {
		next.PrunedKey, next.PrunedSHA256 = t.latest.PrunedKey, t.latest.PrunedSHA256
		if h.Time.Before(t.latest.Time) {
			next.Snapshot, next.Time, next.Run = t.latest.Snapshot, t.latest.Time, t.latest.Run
		}
	}
	next.HeadKey, next.HeadSHA256, next.Head = raw.Key, raw.SHA256(), raw.Body
	if err := a.writeLatest(ctx, t, next); err != nil {
		return RawHeader{}, Latest{}, err
	}
	return raw, next, a.createOnce(ctx, raw.Key, raw.Body)
}

func (a *Archive) writeLatest(ctx context.Context, t tip, next Latest) error {
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode %q: %w", store.LatestKey(next.Cluster), err)
	}
	key := store.LatestKey(next.Cluster)
	if t.version == "" {
		_, err = a.store.Create(ctx, key, body, moving)
	} else {
		_, err = a.store.Replace(ctx, key, t.version, body, moving)
	}
	return err
}

// nextToAppend is h, or a snapshot older than h that somebody kept and did not live to chain.
func (a *Archive) nextToAppend(ctx context.Context, t tip, h Header) (Header, error) {
	after, last := "", time.Time{}
	if t.latest != nil {
		after, last = t.latest.Snapshot, t.latest.Time
	}
	for ref, err := range a.list(ctx, h.Cluster, store.SnapshotsPrefix(h.Cluster), after) {
		if err != nil {
			return Header{}, err
		}
		if !ref.before(h.Ref()) {
			break
		}
		if !ref.Time.After(last) && t.latest != nil {
			continue // of the same instant as the latest: chained or not, it is not newer
		}
		orphan, ok, err := a.adopt(ctx, ref)
		if err != nil {
			return Header{}, err
		}
		if ok {
			return orphan, nil
		}
	}
	return h, nil
}

// adopt makes the header of a snapshot that has none. What is not whole gzip is left alone: whoever reads the
// snapshot is told that it is broken.
func (a *Archive) adopt(ctx context.Context, ref SnapshotRef) (Header, bool, error) {
	object, err := a.store.Get(ctx, ref.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && !wholeGzip(object.Body) {
		return Header{}, false, nil
	}
	if err != nil {
		return Header{}, false, err
	}
	h := Header{
		Version: HeaderVersion, Cluster: ref.Cluster, Time: ref.Time, Run: ref.Run, Adopted: true,
		SnapshotKey: ref.Key, SnapshotSHA256: Hash(object.Body),
	}
	days := []time.Time{ref.Time}
	if day, ok := store.RunTime(ref.Run); ok {
		days = append(days, day)
	}
	for _, day := range days {
		key := store.ClusterReportKey(day, ref.Run, ref.Cluster, ReportJSON)
		report, err := a.store.Get(ctx, key)
		if err == nil {
			h.ReportKey, h.ReportSHA256 = key, Hash(report.Body)
			break
		}
		if !errors.Is(err, store.ErrNotFound) {
			return Header{}, false, err
		}
	}
	return h, true, nil
}

func wholeGzip(body []byte) bool {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, io.LimitReader(z, store.MaxObject*4))
	return err == nil
}
