package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"gpuaudit/store"
)

// locked runs do while this process holds the store's lock. Another's hold lasts for one rename, so waiting is short;
// the wait ends with the context. The kernel drops the lock of a process that dies.
func (s *Store) locked(ctx context.Context, root *os.Root, do func() error) error {
	file, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return &lockError{err}
	}
	defer file.Close() // releases the lock
	for attempt := 0; ; attempt++ {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return &lockError{err}
		}
		if err := store.Pause(ctx, min(attempt, 3)); err != nil {
			return fmt.Errorf("wait for the lock %q, which another audit holds: %w", lockName, err)
		}
	}
}

// lockError is about the lock's file, not about the object that was to be written.
type lockError struct{ err error }

func (e *lockError) Error() string { return "the lock: " + e.err.Error() }

func (e *lockError) Unwrap() error { return e.err }
