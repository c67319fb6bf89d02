package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gpuaudit/store"
)

func openIn(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustSay fails unless the error has all parts.
func mustSay(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not have %q", err, part)
		}
	}
}

// files lists every file under a folder, hidden ones too.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	if err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != lockName {
			rel, _ := filepath.Rel(dir, name)
			out = append(out, rel)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(file)
	mustSay(t, err, file, "is a file")
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dangling)
	mustSay(t, err, "dangling", "symbolic link to nothing")
	// A store that is not there is empty and is not made by looking at it.
	missing := filepath.Join(dir, "not", "yet")
	s := openIn(t, missing)
	if _, err := s.Get(t.Context(), "a/b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get from a missing store: %v", err)
	}
	for info, err := range s.List(t.Context(), "", "") {
		t.Errorf("a missing store lists %v, %v", info, err)
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("looking at a store made it")
	}
	if _, err := s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	// A link to the folder itself is the user's choice.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(missing, link); err != nil {
		t.Fatal(err)
	}
	if got, err := openIn(t, link).Get(t.Context(), "a/b"); err != nil || string(got.Body) != "x" {
		t.Errorf("through a link: %q, %v", got.Body, err)
	}
}

// TestLinksOutside: a link in the store may lead elsewhere in it, and never out of it.
func TestLinksOutside(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := openIn(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "clusters")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"clusters/secret", "file"} {
		_, err := s.Get(t.Context(), key)
		mustSay(t, err, "symbolic link", key)
		if errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: taken for missing", key)
		}
	}
	_, err := s.Create(t.Context(), "clusters/new", []byte("x"), store.Attributes{})
	mustSay(t, err, "symbolic link")
	_, err = s.Put(t.Context(), "clusters/secret", []byte("x"), store.Attributes{})
	mustSay(t, err, "symbolic link")
	listed := false
	for _, err := range s.List(t.Context(), "", "") {
		mustSay(t, err, "symbolic link")
		listed = true
	}
	if !listed {
		t.Error("a listing that cannot see everything says nothing")
	}
	if got := files(t, outside); len(got) != 1 {
		t.Errorf("outside the store there is now %q", got)
	}
	if err := s.Delete(t.Context(), "file"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Errorf("a removal in the store reached outside: %v", err)
	}
}

// TestStrangeFiles: what others leave in the folder is passed over, and reading a pipe does not wait for ever.
func TestStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	if _, err := s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".DS_Store", "a/.nfs0001", "a/.tmp-XYZ", "a/back\\slash", "a/bad\xffutf8", "a/" + strings.Repeat("n", 250)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "a", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if fmt.Sprint(got) != "[a/b]" {
		t.Errorf("listed %q", got)
	}
	_, err := s.Get(t.Context(), "a/pipe")
	mustSay(t, err, "a/pipe", "neither a file nor a folder")
	_, err = s.Create(t.Context(), "a/b/c", []byte("x"), store.Attributes{})
	mustSay(t, err, "a/b/c", "a part of the path is a file")
	_, err = s.Put(t.Context(), "a", []byte("x"), store.Attributes{})
	mustSay(t, err, "/a\"")
}

// TestLeftovers: what a killed process left is removed when it is old, and what one writes now is not.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o750); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(dir, "a", tempPrefix+"OLD"), filepath.Join(dir, "a", tempPrefix+"YOUNG")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * leftoverAge)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, dir).Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(files(t, dir)); got != "[a/.tmp-YOUNG a/b]" {
		t.Errorf("left %s", got)
	}
}

// TestLeftoversOfDeadReports: nobody writes to a dead run's folder again, so the next report sweeps it.
func TestLeftoversOfDeadReports(t *testing.T) {
	dir := t.TempDir()
	past := time.Now().Add(-2 * leftoverAge)
	for _, at := range []string{"reports/2026/05/31/dead/C", "reports/2026/06/01/dead", "reports/2026/05/01/long-ago"} {
		if err := os.MkdirAll(filepath.Join(dir, at), 0o750); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, at, tempPrefix+"OLD")
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, past, past); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openIn(t, dir).Create(t.Context(), "reports/2026/06/01/alive/report.json", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(files(t, dir)); got != "[reports/2026/05/01/long-ago/.tmp-OLD reports/2026/06/01/alive/report.json]" {
		t.Errorf("left %s", got)
	}
}

// TestLockInTheWay: what stands where the lock belongs is named, and not the object that was to be written.
func TestLockInTheWay(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, lockName), 0o750); err != nil {
		t.Fatal(err)
	}
	_, err := openIn(t, dir).Put(t.Context(), "clusters/c/latest.json", []byte("x"), store.Attributes{})
	if err == nil || !strings.Contains(err.Error(), lockName) || strings.Contains(err.Error(), "latest.json") || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("error is %v", err)
	}
}

// TestDiskFull writes under a limit of the file size, which the kernel enforces in the middle of a write as it does a full
// disk. The limit is the process's, so it is another process.
func TestDiskFull(t *testing.T) {
	if dir := os.Getenv("STORE_DISK_FULL"); dir != "" {
		diskFull(t, dir)
		return
	}
	dir := t.TempDir()
	s := openIn(t, dir)
	old := []byte(strings.Repeat("old", 1000))
	info, err := s.Create(t.Context(), "a/there", old, store.Attributes{})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDiskFull$", "-test.v")
	command.Env = append(os.Environ(), "STORE_DISK_FULL="+dir, "STORE_VERSION="+info.Version)
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "writes were refused") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := fmt.Sprint(files(t, dir)); got != "[a/there]" {
		t.Errorf("left %s", got)
	}
	if got, err := s.Get(t.Context(), "a/there"); err != nil || string(got.Body) != string(old) {
		t.Errorf("the object that was to be replaced: %d bytes, %v", len(got.Body), err)
	}
}

func diskFull(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8 << 10, Max: 8 << 10}); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir)
	large := make([]byte, 64<<10)
	_, err := s.Create(t.Context(), "a/new", large, store.Attributes{})
	mustSay(t, err, "a/new", "nothing was written", "store.keep")
	_, err = s.Put(t.Context(), "a/there", large, store.Attributes{})
	mustSay(t, err, "a/there", "nothing was written")
	_, err = s.Replace(t.Context(), "a/there", os.Getenv("STORE_VERSION"), large, store.Attributes{})
	mustSay(t, err, "a/there", "nothing was written")
	t.Log("writes were refused")
}

func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		err  error
		says string
	}{
		{syscall.ENOSPC, "free space"}, {syscall.EDQUOT, "raise the limit"}, {syscall.EROFS, "mount the store's volume writable"}, {syscall.EIO, "input/output error"},
	} {
		mustSay(t, explain("create", "/d", "a/b", &fs.PathError{Op: "write", Path: "x", Err: tc.err}), "/d/a/b", tc.says)
		mustSay(t, explain("create", "/d", "a/b", &os.LinkError{Op: "link", Old: "x", New: "y", Err: tc.err}), "/d/a/b", tc.says)
	}
}

// TestOtherCase: on a file system that does not tell case apart, the second of two names is refused.
func TestOtherCase(t *testing.T) {
	s := openIn(t, t.TempDir())
	if _, err := s.Create(t.Context(), "clusters/Prod/acks.json", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "clusters/prod/acks.json", []byte("x"), store.Attributes{}); err != nil {
		t.Fatalf("this file system tells case apart: %v", err)
	}
	s.fold.folds = true
	_, err := s.Create(t.Context(), "clusters/PROD/acks.json", []byte("x"), store.Attributes{})
	mustSay(t, err, `"PROD"`, "rename the cluster")
}

// TestWithoutLinks: on a file system without hard links a creation still has one winner.
func TestWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	root, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	results := make(chan error)
	for i := range 8 {
		go func() {
			temp := fmt.Sprintf("%s%d", tempPrefix, i)
			_, err := writeTemp(root, temp, fmt.Append(nil, i))
			if err == nil {
				err = s.createLocked(t.Context(), root, temp, "object")
			}
			results <- err
		}()
	}
	won := 0
	for range 8 {
		if err := <-results; err == nil {
			won++
		} else if !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d created one object", won)
	}
}
