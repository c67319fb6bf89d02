package pipeline

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"time"

	"gpuaudit/audit/snapshot"
	"gpuaudit/store/archive"
)

// Version is one kept snapshot of a row. Snapshot is nil when it could not be
// decoded; Err says why.
type Version struct {
	Key      string
	Snapshot *snapshot.Snapshot
	Err      error
}

// mostUnpacked bounds a snapshot that is unpacked before its turn, in bytes:
// with a few of them waiting, memory stays bounded. Larger ones are unpacked
// when they are asked for. 10,000 nodes with 50 labels are about as large.
const mostUnpacked = 64 << 20

// Versions reads a cluster's snapshots from one time to another, both included,
// oldest first; a zero time is no bound. The next few are read and unpacked
// while one is looked at. Snapshots share what did not change between them and
// are not to be modified. Errors are those of archive.LoadRange.
func Versions(ctx context.Context, a *archive.Archive, cluster string, from, to time.Time) iter.Seq2[Version, error] {
	type result struct {
		kept archive.Snapshot
		raw  []byte
		err  error
	}
	return func(yield func(Version, error) bool) {
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ahead := min(runtime.GOMAXPROCS(0), 4)
		queue := make(chan chan result, ahead)
		spare := make(chan []byte, ahead+3) // memory to unpack into: the queue's, one at each end, one being compared with
		running.Go(func() {
			defer close(queue)
			for kept, err := range a.LoadRange(ctx, cluster, from, to) {
				answer := make(chan result, 1)
				select {
				case queue <- answer:
				case <-ctx.Done():
					return
				}
				if err != nil {
					answer <- result{kept: kept, err: err}
					continue
				}
				running.Go(func() {
					var into []byte
					select {
					case into = <-spare:
					default:
					}
					raw, err := snapshot.Unpack(kept.Body, into, mostUnpacked)
					if err != nil {
						raw = nil // judged when it is decoded
					}
					answer <- result{kept: kept, raw: raw}
				})
			}
		})
		var sequence snapshot.Sequence
		var before []byte
		for answer := range queue {
			r := <-answer
			v := Version{Key: r.kept.Key}
			if r.err == nil {
				v.Snapshot, v.Err = sequence.Decode(r.kept.Body, r.raw)
				select {
				case spare <- before:
				default:
				}
				before = r.raw
			}
			if !yield(v, r.err) || r.err != nil && !archive.IsBroken(r.err) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Version{}, err)
		}
	}
}
