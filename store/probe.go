package store

import (
	"context"
	"errors"
	"fmt"
)

// ProbeResult is what a store was seen to do.
type ProbeResult struct {
	// CreateHonoured: a second creation of one name was refused. ReplaceHonoured: so was replacing an old version.
	CreateHonoured, ReplaceHonoured bool
}

// Probe writes an object of its own under ProbesPrefix, tries on it what the archive relies on, and removes it. id
// keeps probes at the same time apart. An error says that creating, reading or deleting failed; a condition
// that is not honoured is no error. It asks the server even where Conditional is false only as far as the store lets it:
// open a store with ConditionsOn to find out.
func Probe(ctx context.Context, s Store, id string) (result ProbeResult, err error) {
	key := ProbesPrefix + Segment(id) + ".txt"
	first, err := s.Create(ctx, key, []byte("probe 1, may be removed\n"), Attributes{})
	if err != nil {
		return result, fmt.Errorf("create a probe object: %w", err)
	}
	defer func() {
		if deleteErr := s.Delete(ctx, key); deleteErr != nil {
			err = errors.Join(err, fmt.Errorf("remove the probe object: %w", deleteErr))
		}
	}()
	_, err = s.Create(ctx, key, []byte("probe 2, may be removed\n"), Attributes{})
	if err != nil && !errors.Is(err, ErrExists) {
		return result, fmt.Errorf("create the probe object again: %w", err)
	}
	result.CreateHonoured = err != nil
	second, err := s.Put(ctx, key, []byte("probe 3, may be removed\n"), Attributes{})
	if err != nil {
		return result, fmt.Errorf("replace the probe object: %w", err)
	}
	_, err = s.Replace(ctx, key, first.Version, []byte("probe 4, may be removed\n"), Attributes{})
	if err != nil && !errors.Is(err, ErrChanged) {
		return result, fmt.Errorf("replace the probe object on a condition: %w", err)
	}
	result.ReplaceHonoured = err != nil
	got, err := s.Get(ctx, key)
	if err != nil {
		return result, fmt.Errorf("read the probe object: %w", err)
	}
	if result.ReplaceHonoured && got.Version != second.Version {
		return result, fmt.Errorf("read the probe object: version %q, but %q was written last; the store answers with old objects", got.Version, second.Version)
	}
	return result, nil
}
