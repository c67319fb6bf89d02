package local

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// foldCase is whether the file system takes "A" and "a" for one name, found out once.
type foldCase struct {
	once  sync.Once
	folds bool
}

// checkCase refuses a key on a file system that does not tell case apart, if a part of it is there in other case: two
// clusters would share one folder and each other's history.
func (s *Store) checkCase(root *os.Root, key string) error {
	s.fold.once.Do(func() {
		if file, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode); err == nil {
			_ = file.Close()
			_, err = root.Lstat(strings.ToUpper(lockName))
			s.fold.folds = err == nil
		}
	})
	if !s.fold.folds {
		return nil
	}
	folder := "."
	for part := range strings.SplitSeq(key, "/") {
		if other := otherCase(root, folder, part); other != "" {
			return fmt.Errorf("the file system does not tell %q from %q, which is there already; rename the cluster, or give a store on another file system", part, other)
		}
		folder = path.Join(folder, part)
	}
	return nil
}

// otherCase finds a name in a folder that differs from part by case alone.
func otherCase(root *os.Root, folder, part string) string {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(folder))
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		if entry.Name() != part && strings.EqualFold(entry.Name(), part) {
			return entry.Name()
		}
	}
	return ""
}
