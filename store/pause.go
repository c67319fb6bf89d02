package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause waits before the attempt after the given one (0 for the first): a random part of 10 ms doubled with each
// attempt, at most half a second, so that writers which collided do not collide again. It ends early with the
// context's error.
func Pause(ctx context.Context, attempt int) error {
	most := 500 * time.Millisecond
	if attempt < 6 {
		most = 10 * time.Millisecond << attempt
	}
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(most))) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
