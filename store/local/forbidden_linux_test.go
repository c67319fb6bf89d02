package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"gpuaudit/store"
)

// asNobody runs do without root's rights, which do not know forbidden folders. Only this thread loses them.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Getuid() == 0 {
			if err := unix.Setfsgid(65534); err != nil {
				t.Error(err)
				return
			}
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		do()
	}()
	<-done
}

// openDir is a temporary folder that everybody may reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestForbidden(t *testing.T) {
	dir := openDir(t)
	asNobody(t, func() {
		s := openIn(t, dir)
		if _, err := s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
			t.Error(err)
		}
		if err := os.Chmod(filepath.Join(dir, "a"), 0o555); err != nil {
			t.Error(err)
		}
		_, err := s.Create(t.Context(), "a/c", []byte("x"), store.Attributes{})
		mustSay(t, err, "a/c", "permission denied", "give user", "--store")
		_, err = s.Put(t.Context(), "a/b", []byte("y"), store.Attributes{})
		mustSay(t, err, "a/b", "permission denied")
		mustSay(t, s.Delete(t.Context(), "a/b"), "a/b", "permission denied")
		if got, err := s.Get(t.Context(), "a/b"); err != nil || string(got.Body) != "x" {
			t.Errorf("reading a read-only store: %q, %v", got.Body, err)
		}
		if err := os.Chmod(filepath.Join(dir, "a"), 0o000); err != nil {
			t.Error(err)
		}
		_, err = s.Get(t.Context(), "a/b")
		mustSay(t, err, "a/b", "permission denied")
		if errors.Is(err, store.ErrNotFound) {
			t.Error("a forbidden object is taken for a missing one")
		}
		seen := false
		for _, err := range s.List(t.Context(), "", "") {
			mustSay(t, err, "permission denied")
			seen = true
		}
		if !seen {
			t.Error("a forbidden folder lists as empty")
		}
		if err := os.Chmod(filepath.Join(dir, "a"), 0o755); err != nil {
			t.Error(err)
		}
	})
	if got := fmt.Sprint(files(t, dir)); got != "[a/b]" {
		t.Errorf("left %s", got)
	}
}
