package archive

import (
	"context"
	"errors"
	"time"

	"gpuaudit/store"
)

// Check verifies a cluster's whole chain in the store with every snapshot and report in it, and lists the snapshots that
// no header holds (a run died before it wrote one; the next run adopts the newer ones).
func (a *Archive) Check(ctx context.Context, cluster string) (Verification, []SnapshotRef, error) {
	headers, err := a.Headers(ctx, cluster, time.Time{})
	if err != nil {
		return Verification{}, nil, err
	}
	t, err := a.readTip(ctx, cluster)
	if err != nil {
		return Verification{}, nil, err
	}
	if t.latest != nil && t.latest.PrunedKey != "" {
		// A cut that was interrupted leaves headers before the recorded beginning, without what they hold.
		for i, raw := range headers {
			if raw.Key == t.latest.PrunedKey {
				headers = headers[i+1:]
				break
			}
		}
	}
	v := Verify(headers, func(key string) ([]byte, error) {
		object, err := a.store.Get(ctx, key)
		return object.Body, err
	})
	chained := map[string]bool{}
	for _, raw := range headers {
		chained[raw.Key] = true
	}
	var orphans []SnapshotRef
	for ref, err := range a.Snapshots(ctx, cluster, time.Time{}, time.Time{}) {
		if err != nil {
			return v, nil, err
		}
		if chained[store.HeaderKey(cluster, ref.Time, ref.Run)] {
			continue
		}
		_, err := a.store.Stat(ctx, store.HeaderKey(cluster, ref.Time, ref.Run))
		if errors.Is(err, store.ErrNotFound) {
			orphans = append(orphans, ref)
		} else if err != nil {
			return v, nil, err
		}
	}
	return v, orphans, nil
}
