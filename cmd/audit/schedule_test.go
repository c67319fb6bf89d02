package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuaudit/cmd/audit/config"
	"gpuaudit/notify/slack/slackfake"
	"gpuaudit/notify/slot"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
)

// scheduled makes a loop over one cluster that refuses connections, with a
// Slack that takes everything.
func scheduled(t *testing.T) (*loop, *slackfake.Server) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "k.yaml")
	body := "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(kubeconfig, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	fake := slackfake.New(t, true)
	t.Setenv("TEST_SLACK_TOKEN", slackfake.Token)
	text := fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: dead, kubeconfig: %q, timeout: 5s}]\nslack: {tokenEnv: TEST_SLACK_TOKEN, channel: C1, apiURL: %q}\nschedule: [{name: daily, cron: '0 8 * * *', timeZone: Asia/Shanghai}, {name: hourly, cron: '30 * * * *', post: false}]\n", kubeconfig, fake.URL)
	file, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := local.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	return newLoop(file, archive.New(s)), fake
}

func TestNextKeepsTimeZones(t *testing.T) {
	l, _ := scheduled(t)
	at, due := l.next(time.Date(2026, 6, 1, 23, 45, 0, 0, time.UTC))
	if want := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC); !at.Equal(want) || len(due) != 1 || due[0].Name != "daily" {
		t.Errorf("next is %s %v, want daily at %s (8:00 in Shanghai)", at, due, want)
	}
	if at, due = l.next(at); at.Minute() != 30 || due[0].Name != "hourly" {
		t.Errorf("after it comes %s %v, want hourly", at, due)
	}
}

// TestScheduledRun: one slot is posted once however often it is tried, an entry
// without post posts nothing, and the metrics say what happened.
func TestScheduledRun(t *testing.T) {
	l, fake := scheduled(t)
	at := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
	ctx := context.Background()
	for range 2 {
		l.once(ctx, l.file.Schedule[0], at)
	}
	l.once(ctx, l.file.Schedule[1], at)
	digests := 0
	for _, m := range fake.Messages() {
		if m.Part == "digest" {
			digests++
			if !strings.Contains(string(m.Blocks[2])+string(m.Blocks[1]), "unreachable") {
				t.Errorf("the digest does not say that the cluster is unreachable: %s", m.Blocks)
			}
		}
	}
	if digests != 1 {
		t.Errorf("%d digests were posted, want 1", digests)
	}
	r := httptest.NewRecorder()
	l.gauges.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`audit_runs_total{result="incomplete"} 3`, `audit_deliveries_total{result="posted"}`, `audit_gaps{cluster="dead",reason="unreachable",resource="nodes"} 1`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the metrics do not say %s:\n%s", want, body)
		}
	}
	r = httptest.NewRecorder()
	l.gauges.handler().ServeHTTP(r, httptest.NewRequest("GET", "/readyz", nil))
	if r.Code != 503 {
		t.Errorf("ready before it runs: %d", r.Code)
	}
}

// TestMissedIsCaughtUpOnce: a posting slot whose time fell into a downtime is
// run once.
func TestMissedIsCaughtUpOnce(t *testing.T) {
	l, fake := scheduled(t)
	now := time.Date(2026, 6, 2, 2, 0, 0, 0, time.UTC)
	for range 2 {
		l.missed(context.Background(), now)
		l.runs.Wait()
	}
	digests := 0
	for _, m := range fake.Messages() {
		if m.Part == "digest" {
			digests++
		}
	}
	if digests != 1 {
		t.Errorf("%d digests were posted for a missed slot, want 1", digests)
	}
}

// TestTwoLoopsOneSlot: two replicas that are due at the same moment post one
// digest between them, with the cluster's report in its thread.
func TestTwoLoopsOneSlot(t *testing.T) {
	first, fake := scheduled(t)
	second := newLoop(first.file, first.archive)
	at := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
	var group sync.WaitGroup
	for _, l := range []*loop{first, second} {
		group.Go(func() { l.once(context.Background(), l.file.Schedule[0], at) })
	}
	group.Wait()
	digests := 0
	for _, m := range fake.Messages() {
		if m.Part == "digest" {
			digests++
		}
	}
	if digests != 1 {
		t.Errorf("%d digests were posted, want 1", digests)
	}
	files := fake.Files()
	if len(files) > 1 {
		t.Errorf("%d reports are attached, want at most 1", len(files))
	}
	for _, f := range files {
		if f.Channel != "C1" || f.Thread == "" || !strings.Contains(string(f.Body), "dead") {
			t.Errorf("attached: %s to %s in thread %q", f.Name, f.Channel, f.Thread)
		}
	}
}

// TestSecretThatIsGone: a slot that fails before anything is posted is in the
// next digest as one that was missed.
func TestSecretThatIsGone(t *testing.T) {
	l, fake := scheduled(t)
	monday, tuesday := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
	t.Setenv("TEST_SLACK_TOKEN", "")
	l.once(context.Background(), l.file.Schedule[0], monday)
	if n := len(fake.Messages()); n != 0 {
		t.Fatalf("%d messages were posted without a token", n)
	}
	// The slot was begun a while ago.
	name := slotName(l.file.Schedule[0], monday)
	kept, err := l.archive.ReadSlot(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`"begun": "[^"]*"`).ReplaceAll(kept.Body, fmt.Appendf(nil, `"begun": %q`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)))
	if _, err := l.archive.UpdateSlot(context.Background(), kept, old); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_SLACK_TOKEN", slackfake.Token)
	l.once(context.Background(), l.file.Schedule[0], tuesday)
	if len(fake.Messages()) == 0 || !strings.Contains(fmt.Sprintf("%s", fake.Messages()[0].Blocks), name+" (begun, and nothing was posted)") {
		t.Errorf("the next digest does not say that %s is missing: %s", name, fake.Messages())
	}
}

// TestCutOffIsFinished: a slot that was begun, and whose process died before it
// posted anything, is finished by the loop that starts next.
func TestCutOffIsFinished(t *testing.T) {
	l, fake := scheduled(t)
	now := time.Date(2026, 6, 2, 2, 0, 0, 0, time.UTC)
	at := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
	s := &slot.Slots{Archive: l.archive, Now: time.Now}
	if err := s.Begin(t.Context(), slotName(l.file.Schedule[0], at), "run", at); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.missed(t.Context(), now)
		l.runs.Wait()
	}
	digests := 0
	for _, m := range fake.Messages() {
		if m.Part == "digest" {
			digests++
		}
	}
	if digests != 1 {
		t.Errorf("%d digests were posted for a slot that was cut off, want 1", digests)
	}
}

// TestSlotOfAnotherReplica: a slot that another one is posting is no failure here.
func TestSlotOfAnotherReplica(t *testing.T) {
	l, fake := scheduled(t)
	at := time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)
	name := slotName(l.file.Schedule[0], at)
	record := slot.Record{SchemaVersion: 1, Slot: name, Run: "other", Begun: time.Now(), Parts: []slot.Part{{Name: "main/digest", Channel: "C1", State: slot.Intent, At: time.Now()}}}
	body, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.archive.ClaimSlot(t.Context(), name, body); err != nil {
		t.Fatal(err)
	}
	l.once(t.Context(), l.file.Schedule[0], at)
	if n := len(fake.Messages()); n > 0 {
		t.Errorf("%d messages were posted beside the other replica's", n)
	}
	r := httptest.NewRecorder()
	l.gauges.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	if strings.Contains(r.Body.String(), `audit_deliveries_total{result="failed"} 1`) {
		t.Errorf("another replica's delivery counts as failed here:\n%s", r.Body)
	}
}

// TestLinked: the checklist's links of an attached page lead to where it is published.
func TestLinked(t *testing.T) {
	page := []byte(`<a href="../checklist.html#step-3">step 3</a>`)
	if got := string(linked(page, "https://r.example.com/c.html?a=1&b=2")); got != `<a href="https://r.example.com/c.html?a=1&amp;b=2#step-3">step 3</a>` {
		t.Error(got)
	}
	if got := linked(page, "file:///data/checklist.html"); string(got) != string(page) {
		t.Errorf("a link that no browser of a reader can follow: %s", got)
	}
}
