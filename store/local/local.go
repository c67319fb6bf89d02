// Package local keeps a store's objects as files of a folder, named by their keys.
//
// A write goes to a temporary file in the same folder, which is flushed to the disk and then gets its name in one step:
// by a hard link where the name must be new, by a rename where it may be old. The folder is flushed too, so what was
// written is there after a power cut, whole. Replacements and removals hold a lock on a file of the store, so
// conditions hold between processes, also over NFS. Symbolic links inside the folder may not lead out of it.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gpuaudit/store"
)

// Modes of what is made, before the process's umask: reports name hosts and workloads, which is not for everyone.
const (
	dirMode  = 0o750
	fileMode = 0o640
)

// lockName is the file in the store's folder that replacements and removals lock. Keys cannot begin with ".".
const lockName = ".lock"

// Store is a folder. It is made at the first write; until then it is an empty store.
type Store struct {
	dir string

	mu    sync.Mutex
	swept map[string]bool // folders whose leftovers this process has removed
	fold  foldCase
}

var _ store.Store = (*Store)(nil)

// Open gives the store in a folder. The folder need not exist, but what has its name must be a folder.
func Open(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("store folder %q: %w", dir, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A dangling link is no place to make a folder.
		if _, linkErr := os.Lstat(abs); linkErr == nil {
			return nil, fmt.Errorf("store folder %q: is a symbolic link to nothing; make its target or remove it", dir)
		}
	case err != nil:
		return nil, explain("open", abs, "", err)
	case !info.IsDir():
		return nil, fmt.Errorf("store folder %q: is a file, not a folder; give another path", dir)
	}
	return &Store{dir: abs, swept: map[string]bool{}}, nil
}

// Conditional is true: the file system and the lock decide who was first.
func (s *Store) Conditional() bool { return true }

// String is the folder as a file URL.
func (s *Store) String() string { return fileURL(s.dir) }

// URL is the file URL of an object.
func (s *Store) URL(key string) string { return fileURL(filepath.Join(s.dir, filepath.FromSlash(key))) }

func fileURL(file string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
}

// Dir is the folder's absolute path.
func (s *Store) Dir() string { return s.dir }

// open opens the folder for one operation. A store that is not there yet is errNoStore.
func (s *Store) open() (*os.Root, error) {
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoStore
	}
	return root, err
}

var errNoStore = fmt.Errorf("store folder is not there yet: %w", store.ErrNotFound)

// Get reads a file whole.
func (s *Store) Get(ctx context.Context, key string) (store.Object, error) {
	if err := s.begin(ctx, key); err != nil {
		return store.Object{}, err
	}
	root, err := s.open()
	if err != nil {
		return store.Object{}, explain("read", s.dir, key, err)
	}
	defer root.Close()
	object, err := read(root, key)
	if err != nil {
		return store.Object{}, explain("read", s.dir, key, err)
	}
	return object, nil
}

func read(root *os.Root, key string) (store.Object, error) {
	// Without O_NONBLOCK a pipe that somebody put in the folder would wait for a writer for ever.
	file, err := root.OpenFile(filepath.FromSlash(key), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return store.Object{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return store.Object{}, err
	case info.IsDir():
		return store.Object{}, store.ErrNotFound
	case !info.Mode().IsRegular():
		return store.Object{}, errors.New("is neither a file nor a folder")
	case info.Size() > store.MaxObject:
		return store.Object{}, store.ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(file, store.MaxObject+1))
	if err != nil {
		return store.Object{}, err
	}
	if len(body) > store.MaxObject {
		return store.Object{}, store.ErrTooLarge
	}
	return store.Object{Info: describe(key, int64(len(body)), info, body), Body: body}, nil
}

// Stat reads the file too, because a version is the hash of its bytes: times are too coarse to tell two writes apart.
func (s *Store) Stat(ctx context.Context, key string) (store.Info, error) {
	object, err := s.Get(ctx, key)
	return object.Info, err
}

// begin is what every operation on a key starts with.
func (s *Store) begin(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

// hidden says that a name is not part of a key: temporary files, the lock, what a file manager or a backup left.
func hidden(name string) bool { return strings.HasPrefix(path.Base(name), ".") }
