package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// canaries are secrets that are planted, by what they are. Not one of them may
// get into anything that the program writes.
type canaries struct {
	t    *testing.T
	dir  string
	env  []string
	list map[string]string
}

func newCanaries(t *testing.T) *canaries {
	t.Helper()
	dir := t.TempDir()
	return &canaries{t: t, dir: dir, list: map[string]string{}, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "AWS_EC2_METADATA_DISABLED=true"}}
}

// plant makes a secret. All end in the same letters, so that they are found in
// base64 too, on whichever of three bytes they begin.
func (c *canaries) plant(what string) string {
	if c.list[what] == "" {
		c.list[what] = fmt.Sprintf("cnry%02d%s", len(c.list), strings.Repeat("z", 12))
	}
	return c.list[what]
}

// file writes a file of the test, which is no output.
func (c *canaries) file(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, "in", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// out is a path for what the program writes; all below it is searched at the end.
func (c *canaries) out(name string) string {
	path := filepath.Join(c.dir, "out", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// command makes a command of the program in the test's environment.
func (c *canaries) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command("audit", args...)
	cmd.Dir = filepath.Dir(c.out("x"))
	cmd.Env = append(append([]string{}, c.env...), env...)
	return cmd
}

// run runs the program, searches what it prints and gives it. code -1 is any.
func (c *canaries) run(code int, env []string, args ...string) string {
	c.t.Helper()
	cmd := c.command(env, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	got := cmd.ProcessState.ExitCode()
	if code >= 0 && got != code || got > 3 {
		c.t.Errorf("audit %s: exit %d, want %d: %s", strings.Join(args, " "), got, code, out)
	}
	c.search("the output of audit "+args[0], out)
	return string(out)
}

// search looks for every canary in a text and in what is packed in it.
func (c *canaries) search(where string, text []byte) {
	c.t.Helper()
	find := func(what, secret string) {
		if i := bytes.Index(text, []byte(secret)); i >= 0 {
			c.t.Errorf("%s holds the %s: …%s…", where, what, text[max(0, i-120):min(len(text), i+60)])
		}
	}
	for what, secret := range c.list {
		find(what, secret)
	}
	find("end of a secret in base64", base64.StdEncoding.EncodeToString([]byte(strings.Repeat("z", 6))))
	if zip, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		if body, err := io.ReadAll(zip); err == nil {
			c.search(where+" unpacked", body)
		}
	}
	if r, err := zip.NewReader(bytes.NewReader(text), int64(len(text))); err == nil {
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				c.t.Fatal(err)
			}
			body, err := io.ReadAll(in)
			if err != nil {
				c.t.Fatal(err)
			}
			c.search(where+"/"+f.Name, body)
		}
	}
}

// files searches everything that was written.
func (c *canaries) files() {
	c.t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(c.dir, "out"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c.search("file "+strings.TrimPrefix(path, c.dir), body)
		return nil
	})
	if err != nil || n == 0 {
		c.t.Fatalf("%d files were searched: %v", n, err)
	}
}

// loop runs `audit schedule` until ready says so, and searches its log and what
// it serves.
func (c *canaries) loop(config, listen string, env []string, ready func() bool) {
	c.t.Helper()
	cmd := c.command(env, "schedule", "-c", config)
	var log lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(60 * time.Second); !ready(); <-tick.C {
		if time.Now().After(deadline) {
			c.t.Errorf("the loop did not run: %s", log.Bytes())
			break
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		answer, err := http.Get("http://" + listen + path)
		if err != nil {
			c.t.Error(err)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || len(body) == 0 {
			c.t.Errorf("%s: %v", path, err)
		}
		c.search(path, body)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		c.t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is another test's matter
	c.search("the log of audit schedule", log.Bytes())
}

// lockedBuffer may be read while a process still writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// echo answers with whatever a request said of who sent it, as careless
// servers and proxies do, in a form of the caller's.
func echo(code int, contentType, form string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a body that is no form says nothing
		said := []string{r.URL.String()}
		for _, values := range r.Header {
			said = append(said, values...)
		}
		for _, values := range r.Form {
			said = append(said, values...)
		}
		if user, password, ok := r.BasicAuth(); ok {
			said = append(said, user, password)
		}
		if _, coded, ok := strings.Cut(r.Header.Get("Proxy-Authorization"), " "); ok {
			if plain, err := base64.StdEncoding.DecodeString(coded); err == nil {
				said = append(said, string(plain))
			}
		}
		text := strings.NewReplacer(`"`, "'", "<", "(", "&", "+").Replace(strings.Join(said, " "))
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		fmt.Fprintf(w, form, text)
	}
}

// userinfo is user and password for a URL.
func userinfo(password string) string { return url.UserPassword("u", password).String() }
