package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"gpuaudit/store"
)

// Share says that one of several processes has audited its share of a slot's clusters.
type Share struct {
	SchemaVersion int    `json:"schemaVersion"`
	Slot          string `json:"slot"`
	// Index is the process, from 0; Count how many processes share the slot.
	Index int `json:"index"`
	Count int `json:"count"`
	// Run is the report of this share, made at GeneratedAt.
	Run         string    `json:"run"`
	GeneratedAt time.Time `json:"generatedAt"`
	Clusters    []string  `json:"clusters"`
	// Total is how many clusters all shares have together.
	Total int `json:"total"`
}

// SaveShare records a share. The first record of a share stays: a later try of
// the same share gets store.ErrExists.
func (a *Archive) SaveShare(ctx context.Context, s Share) error {
	body, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("share %d of slot %q: %w", s.Index, s.Slot, err)
	}
	if _, err := a.store.Create(ctx, store.ShareKey(s.Slot, s.Index, s.Count), append(body, '\n'), immutable); err != nil {
		return fmt.Errorf("record share %d of %d of slot %q: %w", s.Index, s.Count, s.Slot, err)
	}
	return nil
}

// Shares reads the recorded shares of a slot that count processes share, by index.
func (a *Archive) Shares(ctx context.Context, slot string, count int) ([]Share, error) {
	var out []Share
	for index := range count {
		s, err := a.share(ctx, store.ShareKey(slot, index, count))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (a *Archive) share(ctx context.Context, key string) (Share, error) {
	var s Share
	object, err := a.store.Get(ctx, key)
	if err != nil {
		return s, fmt.Errorf("read share %q: %w", key, err)
	}
	return s, decode(key, object.Body, &s)
}

// SharedSlots yields the recorded shares of all slots that were written at or
// after a time by the store's clock.
func (a *Archive) SharedSlots(ctx context.Context, since time.Time) iter.Seq2[Share, error] {
	return func(yield func(Share, error) bool) {
		for info, err := range a.store.List(ctx, store.SharesPrefix, "") {
			if err != nil {
				yield(Share{}, err)
				return
			}
			if info.Modified.Before(since) || !strings.HasSuffix(info.Key, ".json") {
				continue
			}
			s, err := a.share(ctx, info.Key)
			if errors.Is(err, store.ErrNotFound) {
				continue // removed meanwhile
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}
