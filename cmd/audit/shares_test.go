package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/notify/slack/slackfake"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
)

// fleet is a dump of clusters and a configuration that posts to a fake Slack.
type fleet struct {
	dir  string
	fake *slackfake.Server
}

func newFleet(t *testing.T, clusters int) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir(), fake: slackfake.New(t, true)}
	f.write(t, "k.yaml", "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n")
	body := "apiVersion: audit/v1\nclusters:\n"
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		body += fmt.Sprintf("  - {name: %s, kubeconfig: k.yaml}\n", name)
		node := `{"kind":"List","apiVersion":"v1","items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"n-` + name + `","uid":"u","creationTimestamp":"2026-05-01T00:00:00Z"},
			"status":{"capacity":{"nvidia.com/gpu":"8","cpu":"8"},"allocatable":{"nvidia.com/gpu":"8","cpu":"8"},
			"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2026-06-01T08:00:00Z","lastTransitionTime":"2026-05-01T00:00:00Z"}]}}]}`
		f.write(t, filepath.Join("dump", name, "nodes.json"), node)
		for _, kind := range []string{"pods", "leases", "daemonsets", "events", "resourcequotas", "services", "endpointslices", "namespaces"} {
			f.write(t, filepath.Join("dump", name, kind+".json"), `{"kind":"List","apiVersion":"v1","items":[]}`)
		}
	}
	body += fmt.Sprintf("slack: {tokenEnv: TEST_SLACK_TOKEN, channel: C1, apiURL: %q}\n", f.fake.URL)
	f.write(t, "audit.yaml", body)
	return f
}

func (f *fleet) write(t *testing.T, name, body string) {
	t.Helper()
	file := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(body), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) audit(ctx context.Context, index string, args ...string) (string, error) {
	args = append([]string{"run", "-c", filepath.Join(f.dir, "audit.yaml"), "--from", filepath.Join(f.dir, "dump"), "--store", filepath.Join(f.dir, "store"), "-o", "json"}, args...)
	cmd := exec.CommandContext(ctx, "audit", args...)
	cmd.Env = append(os.Environ(), "TEST_SLACK_TOKEN="+slackfake.Token, "JOB_COMPLETION_INDEX="+index)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (f *fleet) digests() []slackfake.Message {
	return slices.DeleteFunc(f.fake.Messages(), func(m slackfake.Message) bool { return m.Part != "digest" })
}

// TestSharesOfASlot: the processes of an Indexed Job audit a share each, at the
// same time; one digest speaks of all clusters, and tries that come again change nothing.
func TestSharesOfASlot(t *testing.T) {
	f := newFleet(t, 7)
	var group sync.WaitGroup
	for index := range 3 {
		group.Go(func() {
			// Two that finish together may both try to post; one of them then says so with exit 3 and is tried again.
			if out, err := f.audit(t.Context(), fmt.Sprint(index), "--slot", "monday", "--shares", "3"); err != nil && !strings.Contains(out, "another process may be posting") {
				t.Errorf("index %d: %v\n%s", index, err, out)
			}
		})
	}
	group.Wait()
	for index := range 3 {
		if out, err := f.audit(t.Context(), fmt.Sprint(index), "--slot", "monday", "--shares", "3"); err != nil && !strings.Contains(out, "another process may be posting") {
			t.Errorf("again, index %d: %v\n%s", index, err, out)
		}
	}
	digests := f.digests()
	if len(digests) != 1 {
		t.Fatalf("%d digests were posted, want 1", len(digests))
	}
	s, err := local.Open(filepath.Join(f.dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	a := archive.New(s)
	whole := 0
	for ref, err := range a.Reports(t.Context(), time.Time{}, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := a.LoadFile(t.Context(), ref, "report.json")
		if err != nil {
			t.Fatal(err)
		}
		r, err := report.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Clusters) == 7 {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("%d reports are of all clusters, want 1", whole)
	}
}

// TestShareThatNeverCame: nothing is posted while a share is missing, and the
// next digest says which slot was never completed.
func TestShareThatNeverCame(t *testing.T) {
	f := newFleet(t, 4)
	if out, err := f.audit(t.Context(), "0", "--slot", "monday", "--shares", "2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := len(f.digests()); n != 0 {
		t.Fatalf("%d digests were posted of half a slot", n)
	}
	if out, err := f.audit(t.Context(), "0", "--slot", "tuesday"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	digests := f.digests()
	if len(digests) != 1 {
		t.Fatalf("%d digests were posted, want 1", len(digests))
	}
	text, _ := json.Marshal(digests[0].Blocks)
	if want := "monday (1 of 2 shares of the clusters were audited)"; !strings.Contains(string(text), want) {
		t.Errorf("the digest does not say %q: %s", want, text)
	}
}

func TestSharesAreRefused(t *testing.T) {
	f := newFleet(t, 2)
	for _, c := range []struct {
		index, want string
		args        []string
	}{
		{"2", `JOB_COMPLETION_INDEX is "2", want a number from 0 to 1`, []string{"--slot", "s", "--shares", "2"}},
		{"", `JOB_COMPLETION_INDEX is ""`, []string{"--slot", "s", "--shares", "2"}},
		{"0", "--shares needs --slot ID", []string{"--shares", "2"}},
		{"0", "does not go with --cluster", []string{"--slot", "s", "--shares", "2", "--cluster", "c0"}},
		{"0", "--shares is -1", []string{"--slot", "s", "--shares", "-1"}},
	} {
		out, err := f.audit(t.Context(), c.index, c.args...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%v with index %q: %v, want exit 2 and %q:\n%s", c.args, c.index, err, c.want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "store", "shares")); err == nil {
		t.Error("a refused run left a share")
	}
}
