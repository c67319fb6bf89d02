package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// errCut is what a writer gets from the write at which it "dies".
var errCut = errors.New("the process ends here")

// CutOff is a store whose writes stop working after a number of them, as if the process had been killed there.
type CutOff struct {
	store.Store
	// left counts writes that still work. The one at which it runs out fails, having been done or not.
	left   atomic.Int64
	landed bool
}

// NewCutOff lets n writes through. The next is done, without its answer, if landed; none after it is.
func NewCutOff(s store.Store, n int, landed bool) *CutOff {
	c := &CutOff{Store: s, landed: landed}
	c.left.Store(int64(n))
	return c
}

func (c *CutOff) cut(write func() (store.Info, error)) (store.Info, error) {
	left := c.left.Add(-1)
	if left >= 0 {
		return write()
	}
	if left == -1 && c.landed {
		if _, err := write(); err != nil {
			return store.Info{}, err
		}
	}
	return store.Info{}, errCut
}

// Create counts as a write.
func (c *CutOff) Create(ctx context.Context, key string, body []byte, attr store.Attributes) (store.Info, error) {
	return c.cut(func() (store.Info, error) { return c.Store.Create(ctx, key, body, attr) })
}

// Put counts as a write.
func (c *CutOff) Put(ctx context.Context, key string, body []byte, attr store.Attributes) (store.Info, error) {
	return c.cut(func() (store.Info, error) { return c.Store.Put(ctx, key, body, attr) })
}

// Replace counts as a write.
func (c *CutOff) Replace(ctx context.Context, key, version string, body []byte, attr store.Attributes) (store.Info, error) {
	return c.cut(func() (store.Info, error) { return c.Store.Replace(ctx, key, version, body, attr) })
}

// Delete counts as a write.
func (c *CutOff) Delete(ctx context.Context, key string) error {
	_, err := c.cut(func() (store.Info, error) { return store.Info{}, c.Store.Delete(ctx, key) })
	return err
}

// cutOffAnywhere kills a writer at every write, before and after it landed, and lets the next run go on: nothing is
// lost, the chain is whole, and what was kept is in it.
func cutOffAnywhere(t *testing.T, open Open) {
	died := 0
	for n := range 12 {
		for _, landed := range []bool{false, true} {
			ctx, a := startArchive(t, open)
			must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day, "r0")))
			_, err := archive.New(NewCutOff(a.Store(), n, landed)).SaveSnapshot(ctx, NewAudit("c", Day.Add(time.Hour), "r1"))
			where := fmt.Sprintf("after %d writes, the next landed: %v", n, landed)
			if err == nil {
				continue
			}
			died++
			wantErr(t, err, errCut)
			kept := len(collect(t, a.Snapshots(ctx, "c", time.Time{}, time.Time{})))
			if got := must[archive.Snapshot](t)(a.LatestSnapshot(ctx, "c")); got.Run != fmt.Sprintf("r%d", kept-1) {
				t.Errorf("%s: latest is %q with %d kept", where, got.Run, kept)
			}
			must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.Add(2*time.Hour), "r2")))
			whole(ctx, t, a, "c", kept+1)
			must[archive.Saved](t)(a.SaveSnapshot(ctx, NewAudit("c", Day.Add(time.Hour), "r1"))) // the same run, again
			whole(ctx, t, a, "c", 3)
		}
	}
	if died < 8 {
		t.Errorf("only %d deaths in all: the writes are fewer than thought", died)
	}
}
