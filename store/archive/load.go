package archive

import (
	"context"
	"iter"
	"sync"
	"time"
)

// ahead is how many snapshots LoadRange reads before they are asked for. It bounds its memory.
const ahead = 8

// LoadRange reads a cluster's snapshots from one time to another, both included, oldest first, several at once: a year of
// them costs the store's answer time a few dozen times, not hundreds. A zero time is no bound. A snapshot that cannot be
// used comes as its name with an error for which IsBroken is true, and the others follow; any other error ends it.
func (a *Archive) LoadRange(ctx context.Context, cluster string, from, to time.Time) iter.Seq2[Snapshot, error] {
	type result struct {
		snapshot Snapshot
		err      error
	}
	return func(yield func(Snapshot, error) bool) {
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		queue := make(chan chan result, ahead)
		running.Go(func() {
			defer close(queue)
			for ref, err := range a.Snapshots(ctx, cluster, from, to) {
				answer := make(chan result, 1)
				select {
				case queue <- answer:
				case <-ctx.Done():
					return
				}
				if err != nil {
					answer <- result{err: err}
					return
				}
				running.Go(func() {
					snapshot, err := a.LoadSnapshot(ctx, ref)
					if err != nil {
						snapshot = Snapshot{SnapshotRef: ref}
					}
					answer <- result{snapshot, err}
				})
			}
		})
		for answer := range queue {
			r := <-answer
			if !yield(r.snapshot, r.err) || r.err != nil && !IsBroken(r.err) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Snapshot{}, err)
		}
	}
}
