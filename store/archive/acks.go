package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"gpuaudit/store"
)

// LoadAcks reads what was acknowledged on a cluster; nil when nothing was.
func (a *Archive) LoadAcks(ctx context.Context, cluster string) ([]byte, error) {
	object, err := a.store.Get(ctx, store.AcksKey(cluster))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("acknowledgements of cluster %q: %w", cluster, err)
	}
	return object.Body, nil
}

// UpdateAcks changes what is acknowledged on a cluster, however many do so at once. change gets nil where there is
// nothing yet and may be called several times; returning nil leaves everything as it is.
func (a *Archive) UpdateAcks(ctx context.Context, cluster string, change func(old []byte) ([]byte, error)) error {
	_, err := store.Update(ctx, a.store, store.AcksKey(cluster), moving, change)
	if err != nil {
		return fmt.Errorf("acknowledge on cluster %q: %w", cluster, err)
	}
	return nil
}

// Slot is the record of one scheduled digest as kept.
type Slot struct {
	// Name as it was claimed; of a name too long for a key, only what the key holds.
	Name string
	Key  string
	Body []byte
	// Version is for UpdateSlot.
	Version  string
	Modified time.Time
}

// ClaimSlot creates a slot's record. Of all who try, one succeeds and the others get store.ErrExists (where the store
// honours conditions). The body should name the claimer, so that a claim whose answer was lost is recognised
// as one's own.
func (a *Archive) ClaimSlot(ctx context.Context, slot string, body []byte) (Slot, error) {
	info, err := a.store.Create(ctx, store.SlotKey(slot), body, moving)
	if err != nil {
		return Slot{}, fmt.Errorf("claim slot %q: %w", slot, err)
	}
	return Slot{Name: slot, Key: info.Key, Body: body, Version: info.Version, Modified: info.Modified}, nil
}

// ReadSlot reads a slot's record, or fails with store.ErrNotFound.
func (a *Archive) ReadSlot(ctx context.Context, slot string) (Slot, error) {
	object, err := a.store.Get(ctx, store.SlotKey(slot))
	if err != nil {
		return Slot{}, fmt.Errorf("read slot %q: %w", slot, err)
	}
	return Slot{Name: slot, Key: object.Key, Body: object.Body, Version: object.Version, Modified: object.Modified}, nil
}

// UpdateSlot replaces a slot's record if it is still what was read, or fails with store.ErrChanged. It returns the slot
// with its new version.
func (a *Archive) UpdateSlot(ctx context.Context, slot Slot, body []byte) (Slot, error) {
	info, err := a.store.Replace(ctx, slot.Key, slot.Version, body, moving)
	if err != nil {
		return Slot{}, fmt.Errorf("update slot %q: %w", slot.Name, err)
	}
	return Slot{Name: slot.Name, Key: slot.Key, Body: body, Version: info.Version, Modified: info.Modified}, nil
}

// Slots yields the slots that were written at or after a time by the store's clock, in the order of their names. A
// zero time is no bound.
func (a *Archive) Slots(ctx context.Context, since time.Time) iter.Seq2[Slot, error] {
	return func(yield func(Slot, error) bool) {
		for info, err := range a.store.List(ctx, store.SlotsPrefix, "") {
			if err != nil {
				yield(Slot{}, err)
				return
			}
			if info.Modified.Before(since) {
				continue
			}
			object, err := a.store.Get(ctx, info.Key)
			if errors.Is(err, store.ErrNotFound) {
				continue // removed meanwhile
			}
			name := store.SlotName(info.Key)
			if !yield(Slot{Name: name, Key: info.Key, Body: object.Body, Version: object.Version, Modified: object.Modified}, err) || err != nil {
				return
			}
		}
	}
}
