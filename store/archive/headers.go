package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"gpuaudit/store"
)

// readers is how many headers are read at once: they are small, and the wait is for the store's answer.
const readers = 16

// Head gives the newest header of a cluster's chain, whose hash stands for everything before it. It fails with
// store.ErrNotFound for a cluster that has none.
func (a *Archive) Head(ctx context.Context, cluster string) (RawHeader, error) {
	t, err := a.readTip(ctx, cluster)
	if err != nil {
		return RawHeader{}, fmt.Errorf("head of the chain of cluster %q: %w", cluster, err)
	}
	if t.latest == nil {
		return RawHeader{}, fmt.Errorf("head of the chain of cluster %q: %w", cluster, store.ErrNotFound)
	}
	return t.latest.head(), nil
}

// Headers gives a cluster's chain from the oldest header to the head, in the order of the chain. With a time it
// begins at the first header from which on all have that time or a later one; their one predecessor stands before
// them, if it is kept, as the state that everything after it is compared with. Headers that do not hang together are
// all given, those outside the chain last: Verify says what is wrong.
func (a *Archive) Headers(ctx context.Context, cluster string, since time.Time) ([]RawHeader, error) {
	t, err := a.readTip(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("chain of cluster %q: %w", cluster, err)
	}
	if t.latest == nil {
		return nil, nil
	}
	after := ""
	if !since.IsZero() {
		since = since.UTC().Truncate(time.Millisecond)
		after = store.ChainPrefix(cluster) + store.KeyTime(since)
	}
	known, err := a.readHeaders(ctx, cluster, after)
	if err != nil {
		return nil, fmt.Errorf("chain of cluster %q: %w", cluster, err)
	}
	byKey := map[string]RawHeader{t.latest.HeadKey: t.latest.head()}
	for _, raw := range known {
		byKey[raw.Key] = raw
	}
	chain, err := a.walkBack(ctx, t.latest.head(), byKey, since)
	if err != nil {
		return nil, fmt.Errorf("chain of cluster %q: %w", cluster, err)
	}
	in := map[string]bool{}
	for _, raw := range chain {
		in[raw.Key] = true
	}
	for _, raw := range known {
		if !in[raw.Key] {
			chain = append(chain, raw)
		}
	}
	return chain, nil
}

// walkBack follows the links from the head until nothing of byKey is left and one header before since is reached, or to
// the end of the links. It gives them oldest first.
func (a *Archive) walkBack(ctx context.Context, head RawHeader, byKey map[string]RawHeader, since time.Time) ([]RawHeader, error) {
	left := len(byKey)
	seen := map[string]bool{}
	var chain []RawHeader
	for raw := head; ; {
		chain = append(chain, raw)
		seen[raw.Key] = true
		if _, ok := byKey[raw.Key]; ok {
			left--
		}
		h, err := raw.Parse()
		if err != nil || h.PreviousKey == "" || seen[h.PreviousKey] {
			break
		}
		if left <= 0 && !since.IsZero() && h.Time.Before(since) {
			break
		}
		next, ok := byKey[h.PreviousKey]
		if !ok {
			object, err := a.store.Get(ctx, h.PreviousKey)
			if errors.Is(err, store.ErrNotFound) {
				break
			}
			if err != nil {
				return nil, err
			}
			next = RawHeader{Key: object.Key, Body: object.Body}
		}
		raw = next
	}
	for i, j := 0, len(chain)-1; i < j; i, j = i+1, j-1 {
		chain[i], chain[j] = chain[j], chain[i]
	}
	return chain, nil
}

// readHeaders reads all headers of a cluster whose key is greater than after, in the order of their keys.
func (a *Archive) readHeaders(ctx context.Context, cluster, after string) ([]RawHeader, error) {
	var keys []string
	for ref, err := range a.list(ctx, cluster, store.ChainPrefix(cluster), after) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, ref.Key)
	}
	raws := make([]RawHeader, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, key := range keys {
		group.Go(func() error {
			object, err := a.store.Get(ctx, key)
			raws[i] = RawHeader{Key: key, Body: object.Body}
			return err
		})
	}
	return raws, group.Wait()
}

// Clusters yields the names of the clusters that the store knows, in the order of their folders.
func (a *Archive) Clusters(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for segment, err := range a.store.Folders(ctx, store.ClustersPrefix) {
			if err != nil {
				yield("", err)
				return
			}
			name, exact := store.Name(segment)
			if !exact {
				name, err = a.nameInside(ctx, segment)
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

// nameInside reads the name of a cluster whose folder holds only the beginning of it.
func (a *Archive) nameInside(ctx context.Context, segment string) (string, error) {
	folder := store.ClustersPrefix + segment + "/"
	keys := []string{folder + "latest.json"}
	for info, err := range a.store.List(ctx, folder+"chain/", "") {
		if err != nil {
			return "", err
		}
		keys = append(keys, info.Key)
		break
	}
	for _, key := range keys {
		object, err := a.store.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		var named struct {
			Cluster string `json:"cluster"`
		}
		if decode(key, object.Body, &named) == nil && store.Segment(named.Cluster) == segment {
			return named.Cluster, nil
		}
	}
	return "", &BrokenError{Key: folder, Err: errors.New("nothing in it tells the cluster's full name")}
}
