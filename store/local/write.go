package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gpuaudit/store"
)

// tempPrefix begins the names of files that are being written. One that is left over belongs to a process that died.
const tempPrefix = ".tmp-"

// folderAttempts bounds how often a folder is made again because a removal, finding it empty, was faster.
const folderAttempts = 10

// leftoverAge is how much older than a fresh temporary file another must be to belong to nobody: no write takes so long.
const leftoverAge = time.Hour

// Create writes a file that must not exist.
func (s *Store) Create(ctx context.Context, key string, body []byte, _ store.Attributes) (store.Info, error) {
	return s.write(ctx, "create", key, body, func(root *os.Root, temp, name string) error {
		err := root.Link(temp, name)
		if linkRefused(err) {
			return s.createLocked(ctx, root, temp, name)
		}
		return err
	})
}

// createLocked is for file systems without hard links. All writers of one that has none come here, so the lock decides.
func (s *Store) createLocked(ctx context.Context, root *os.Root, temp, name string) error {
	return s.locked(ctx, root, func() error {
		if _, err := root.Lstat(name); err == nil {
			return fs.ErrExist
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Rename(temp, name)
	})
}

// linkRefused tells a file system that has no hard links from one that had a reason.
func linkRefused(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK)
}

// Put writes a file, new or old.
func (s *Store) Put(ctx context.Context, key string, body []byte, _ store.Attributes) (store.Info, error) {
	return s.write(ctx, "write", key, body, func(root *os.Root, temp, name string) error {
		return s.locked(ctx, root, func() error { return root.Rename(temp, name) })
	})
}

// Replace writes a file that is still of the given version.
func (s *Store) Replace(ctx context.Context, key, version string, body []byte, _ store.Attributes) (store.Info, error) {
	return s.write(ctx, "replace", key, body, func(root *os.Root, temp, name string) error {
		return s.locked(ctx, root, func() error {
			there, err := read(root, key)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNotFound) || err == nil && there.Version != version {
				return store.ErrChanged
			}
			if err != nil {
				return err
			}
			return root.Rename(temp, name)
		})
	})
}

// write makes the temporary file and lets place give it its name.
func (s *Store) write(ctx context.Context, op, key string, body []byte, place func(root *os.Root, temp, name string) error) (store.Info, error) {
	if err := s.begin(ctx, key); err != nil {
		return store.Info{}, err
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return store.Info{}, explain(op, s.dir, key, err)
	}
	root, err := s.open()
	if err != nil {
		return store.Info{}, explain(op, s.dir, key, err)
	}
	defer root.Close()
	name := filepath.FromSlash(key)
	folder := filepath.Dir(name)
	temp := filepath.Join(folder, tempPrefix+rand.Text())
	var info fs.FileInfo
	for range folderAttempts {
		if err = s.makeFolder(root, folder); err == nil {
			info, err = writeTemp(root, temp, body)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err == nil {
		err = s.checkCase(root, key)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = place(root, temp, name)
	}
	// After a rename there is no such file any more; in every other case it is not needed.
	_ = root.Remove(temp)
	if err == nil {
		err = syncFolder(root, folder)
	}
	if err != nil {
		return store.Info{}, explain(op, s.dir, key, err)
	}
	s.sweep(root, folder, info.ModTime())
	return describe(key, int64(len(body)), info, body), nil
}

// writeTemp writes a file through to the disk.
func writeTemp(root *os.Root, name string, body []byte) (info fs.FileInfo, err error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	if _, err = file.Write(body); err != nil {
		return nil, err
	}
	if err = file.Sync(); err != nil {
		return nil, err
	}
	return file.Stat()
}

// makeFolder makes a folder and its parents and flushes the folders that hold a new one.
func (s *Store) makeFolder(root *os.Root, folder string) error {
	if info, err := root.Stat(folder); err == nil {
		if !info.IsDir() {
			return syscall.ENOTDIR
		}
		return nil
	}
	if err := root.MkdirAll(folder, dirMode); err != nil {
		return err
	}
	for at := folder; at != "."; {
		at = filepath.Dir(at)
		if err := syncFolder(root, at); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder flushes a folder's list of names. Some network file systems do not know that and need it not.
func syncFolder(root *os.Root, folder string) error {
	dir, err := root.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// sweep removes, once a folder and process, the temporary files of processes that died. Nothing is written again to the
// folder of a report whose run died, so the first report that a process keeps sweeps those of its day and the day
// before. Failure to do so harms nobody.
func (s *Store) sweep(root *os.Root, folder string, now time.Time) {
	folders := []string{folder}
	if day, ok := reportDay(folder); ok && s.first("day "+day.Format(time.DateOnly)) {
		for _, d := range []time.Time{day.AddDate(0, 0, -1), day} {
			folders = append(folders, foldersBelow(root, filepath.FromSlash(store.ReportsPrefix+d.Format("2006/01/02")))...)
		}
	}
	for _, f := range folders {
		if s.first(f) {
			sweepFolder(root, f, now)
		}
	}
}

// first is true once for each name.
func (s *Store) first(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.swept[name]
	s.swept[name] = true
	return !done
}

// reportDay gives the day of a report's folder, or of one in it.
func reportDay(folder string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(filepath.ToSlash(folder)+"/", store.ReportsPrefix)
	if !ok || len(rest) < len("2006/01/02") {
		return time.Time{}, false
	}
	day, err := time.Parse("2006/01/02", rest[:len("2006/01/02")])
	return day, err == nil
}

func foldersBelow(root *os.Root, folder string) []string {
	var out []string
	_ = fs.WalkDir(root.FS(), filepath.ToSlash(folder), func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			out = append(out, filepath.FromSlash(at))
		}
		return nil //nolint:nilerr // what cannot be read is not swept
	})
	return out
}

func sweepFolder(root *os.Root, folder string, now time.Time) {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(folder))
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > leftoverAge {
			_ = root.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}

// Delete removes a file, and the folders that are empty without it.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.begin(ctx, key); err != nil {
		return err
	}
	root, err := s.open()
	if errors.Is(err, errNoStore) {
		return nil
	}
	if err != nil {
		return explain("delete", s.dir, key, err)
	}
	defer root.Close()
	err = s.locked(ctx, root, func() error { return remove(root, key) })
	if err != nil {
		return explain("delete", s.dir, key, err)
	}
	return nil
}

func remove(root *os.Root, key string) error {
	name := filepath.FromSlash(key)
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := path.Dir(key)
	if err := syncFolder(root, filepath.FromSlash(folder)); err != nil {
		return err
	}
	for ; folder != "."; folder = path.Dir(folder) {
		if root.Remove(filepath.FromSlash(folder)) != nil {
			return nil //nolint:nilerr // a folder that is not empty stays
		}
	}
	return nil
}

// describe gives the version by the bytes: times are too coarse, and inode numbers are used again.
func describe(key string, size int64, info fs.FileInfo, body []byte) store.Info {
	sum := sha256.Sum256(body)
	return store.Info{Key: key, Size: size, Modified: info.ModTime().UTC(), Version: hex.EncodeToString(sum[:])}
}
