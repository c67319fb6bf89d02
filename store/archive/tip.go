package archive

import (
	"context"
	"errors"
	"fmt"

	"gpuaudit/store"
)

// readTip reads latest.json. It is a hint in this sense too: when it is lost, broken or older than what the chain's
// listing shows (an old copy put back), the head is found from the headers themselves.
func (a *Archive) readTip(ctx context.Context, cluster string) (tip, error) {
	for range 3 {
		t, err := a.readLatest(ctx, cluster)
		if err != nil && !isBrokenObject(err) {
			return tip{}, err
		}
		after := ""
		if t.latest != nil {
			after = store.HeaderKey(cluster, t.latest.Time, t.latest.Run)
		}
		stale := false
		for ref, err := range a.list(ctx, cluster, store.ChainPrefix(cluster), after) {
			if err != nil {
				return tip{}, err
			}
			if t.latest == nil || ref.Time.After(t.latest.Time) {
				stale = true
				break
			}
		}
		if !stale {
			return t, nil
		}
		// Another writer may just have been between our two reads: only what is still so is stale.
		again, err := a.readLatest(ctx, cluster)
		if err != nil && !isBrokenObject(err) {
			return tip{}, err
		}
		if again.version == t.version {
			return a.recoverTip(ctx, cluster, t)
		}
	}
	return a.readLatest(ctx, cluster)
}

// readLatest reads latest.json as it is. With a BrokenError it still gives the version, so that it can be replaced.
func (a *Archive) readLatest(ctx context.Context, cluster string) (tip, error) {
	object, err := a.store.Get(ctx, store.LatestKey(cluster))
	if errors.Is(err, store.ErrNotFound) {
		return tip{}, nil
	}
	if err != nil {
		return tip{}, err
	}
	latest, err := parseLatest(cluster, object.Body)
	if err != nil {
		return tip{version: object.Version}, err
	}
	return tip{latest: &latest, version: object.Version}, nil
}

func isBrokenObject(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken) && !isNewer(err)
}

func isNewer(err error) bool {
	var newer *NewerError
	return errors.As(err, &newer)
}

// recoverTip finds the head among the headers: the one that no other names as the one before. Of several, which
// only writers without conditions can make, it takes the one with the greatest time. Broken headers are passed over:
// Verify reports them.
func (a *Archive) recoverTip(ctx context.Context, cluster string, t tip) (tip, error) {
	raws, err := a.readHeaders(ctx, cluster, "")
	if err != nil {
		return tip{}, err
	}
	named := map[string]bool{}
	var headers []Header
	bodies := map[string]RawHeader{}
	for _, raw := range raws {
		h, err := raw.Parse()
		if isNewer(err) {
			return tip{}, err
		}
		if err != nil {
			continue
		}
		headers = append(headers, h)
		bodies[raw.Key] = raw
		named[h.PreviousKey] = true
	}
	if len(headers) == 0 {
		return tip{version: t.version}, nil
	}
	newest := headers[0]
	var head *Header
	for i, h := range headers {
		if !h.Ref().before(newest.Ref()) {
			newest = h
		}
		if !named[h.Key()] && (head == nil || head.Ref().before(h.Ref())) {
			head = &headers[i]
		}
	}
	if head == nil {
		return tip{}, &BrokenError{Key: store.ChainPrefix(cluster), Err: fmt.Errorf("its headers name each other in a circle")}
	}
	raw := bodies[head.Key()]
	latest := Latest{
		Version: HeaderVersion, Cluster: cluster, Snapshot: newest.SnapshotKey, Time: newest.Time, Run: newest.Run,
		HeadKey: raw.Key, HeadSHA256: raw.SHA256(), Head: raw.Body,
	}
	if t.latest != nil {
		latest.PrunedKey, latest.PrunedSHA256 = t.latest.PrunedKey, t.latest.PrunedSHA256
	}
	return tip{latest: &latest, version: t.version}, nil
}
