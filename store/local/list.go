package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gpuaudit/store"
)

// List walks the folder in the byte order of keys. Folders that lie wholly before after, or outside prefix, are not read.
// Versions are left empty: they would need every file to be read.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		root, err := s.open()
		if errors.Is(err, errNoStore) {
			return
		}
		if err != nil {
			yield(store.Info{}, explain("list", s.dir, prefix, err))
			return
		}
		defer root.Close()
		w := &walker{ctx: ctx, root: root, prefix: prefix, after: after, yield: yield}
		start := "."
		if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
			start = prefix[:slash]
			if store.CheckKey(start) != nil {
				return // no key has such a prefix
			}
		}
		if err := w.walk(start); err != nil && !errors.Is(err, errStop) {
			yield(store.Info{}, explain("list", s.dir, prefix, err))
		}
	}
}

var errStop = errors.New("the caller has seen enough")

type walker struct {
	ctx           context.Context
	root          *os.Root
	prefix, after string
	yield         func(store.Info, error) bool
}

func (w *walker) walk(folder string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := entries(w.root, folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		key := entry.Name()
		if folder != "." {
			key = folder + "/" + key
		}
		if entry.IsDir() {
			inner := key + "/"
			outside := !strings.HasPrefix(inner, w.prefix) && !strings.HasPrefix(w.prefix, inner)
			before := inner < w.after && !strings.HasPrefix(w.after, inner)
			if outside || before {
				continue
			}
			if err := w.walk(key); err != nil {
				return err
			}
			continue
		}
		if !strings.HasPrefix(key, w.prefix) || key <= w.after || store.CheckKey(key) != nil {
			continue
		}
		info, err := w.root.Stat(filepath.FromSlash(key))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the folder was read
		}
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() && !w.yield(store.Info{Key: key, Size: info.Size(), Modified: info.ModTime().UTC()}, nil) {
			return errStop
		}
	}
	return nil
}

// entries reads a folder in the byte order of the keys under it: a folder's name counts with its "/".
func entries(root *os.Root, folder string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, entry := range all {
		if hidden(entry.Name()) {
			continue
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := root.Stat(filepath.FromSlash(path.Join(folder, entry.Name())))
			if err != nil {
				return nil, err
			}
			entry = fs.FileInfoToDirEntry(named{info, entry.Name()})
		}
		kept = append(kept, entry)
	}
	slices.SortFunc(kept, func(x, y fs.DirEntry) int { return strings.Compare(ordered(x), ordered(y)) })
	return kept, nil
}

// named gives what a link leads to the link's name.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

func ordered(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}

// Folders yields the folders in a folder that hold something.
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		root, err := s.open()
		if errors.Is(err, errNoStore) {
			return
		}
		if err != nil {
			yield("", explain("list", s.dir, prefix, err))
			return
		}
		defer root.Close()
		folder := strings.TrimSuffix(prefix, "/")
		if folder == "" {
			folder = "."
		} else if store.CheckKey(folder) != nil {
			return
		}
		list, err := entries(root, folder)
		if err != nil {
			yield("", explain("list", s.dir, prefix, err))
			return
		}
		for _, entry := range list {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if entry.IsDir() && s.holds(ctx, path.Join(folder, entry.Name())) && !yield(entry.Name(), nil) {
				return
			}
		}
	}
}

// holds says whether a folder has an object in it, at any depth. An error counts as something: reading it will tell.
func (s *Store) holds(ctx context.Context, folder string) bool {
	for range s.List(ctx, folder+"/", "") {
		return true
	}
	return false
}
