package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gpuaudit/store"
)

// explain names the file and says what to do. The kinds of package store are kept for errors.Is.
func explain(op, dir, key string, err error) error {
	file := filepath.Join(dir, filepath.FromSlash(key))
	kind := func(kind error) error { return fmt.Errorf("%s %q: %w", op, file, kind) }
	cause := innermost(err)
	var lock *lockError
	if errors.As(err, &lock) {
		op, file = "lock", filepath.Join(dir, lockName)
		cause = innermost(lock.err)
	}
	switch {
	case lock != nil && errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s %q: is a folder where the store's lock belongs; remove it", op, file)
	case errors.Is(err, store.ErrNotFound), op == "read" && errors.Is(err, fs.ErrNotExist), op == "read" && errors.Is(err, syscall.ENOTDIR):
		return kind(store.ErrNotFound)
	case errors.Is(err, store.ErrChanged):
		return kind(store.ErrChanged)
	case errors.Is(err, store.ErrTooLarge):
		return fmt.Errorf("%s %q: %w: more than %d bytes", op, file, store.ErrTooLarge, store.MaxObject)
	case op == "create" && errors.Is(err, fs.ErrExist):
		return kind(store.ErrExists)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%s %q: %w; nothing was written: free space, or set store.keep so that old audits are removed", op, file, cause)
	case errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%s %q: %w; nothing was written: raise the limit, or set store.keep so that old audits are removed", op, file, cause)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s %q: %w; mount the store's volume writable, or give another store with --store", op, file, cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %q: %w; give user %d the right to it, or give another store with --store", op, file, cause, os.Getuid())
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s %q: %w: a part of the path is a file; move it away", op, file, cause)
	case cause != nil && cause.Error() == "path escapes from parent":
		return fmt.Errorf("%s %q: a symbolic link leads out of the store's folder; replace it by what it leads to", op, file)
	}
	return fmt.Errorf("%s %q: %w", op, file, cause)
}

// innermost takes off the names of files that package os adds, once or more, relative to the store's folder.
func innermost(err error) error {
	for {
		var pathErr *fs.PathError
		var linkErr *os.LinkError
		switch {
		case errors.As(err, &pathErr):
			err = pathErr.Err
		case errors.As(err, &linkErr):
			err = linkErr.Err
		default:
			return err
		}
	}
}
