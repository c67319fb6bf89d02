package slot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/report/sample"
	"gpuaudit/notify/digest"
	"gpuaudit/notify/slack"
	"gpuaudit/notify/slack/slackfake"
	"gpuaudit/notify/slot"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
)

var ticks int

var reported = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

var errKilled = errors.New("killed")

func keep(t *testing.T) *archive.Archive {
	t.Helper()
	s, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return archive.New(s)
}

func deliveries() []slot.Delivery {
	d := digest.Build(digest.Input{Report: sample.Incident()})
	return []slot.Delivery{{Target: "main", Channel: "C1", Messages: slack.Messages(d, true), Told: d.Told, Files: []slack.File{{Name: "c.html", Title: "C", Body: []byte("<html>")}}}, {Target: "route-1", Channel: "C2", Messages: slack.Messages(d, true)[:1]}}
}

func deliver(t *testing.T, a *archive.Archive, f *slackfake.Server, fail func(string) error) error {
	t.Helper()
	p, err := slack.New(slack.Config{Token: slackfake.Token, APIURL: f.URL, Channel: "C1"})
	if err != nil {
		t.Fatal(err)
	}
	// Each try comes ten minutes after the one before: later than its lease.
	ticks++
	at := time.Now().Add(time.Duration(ticks) * 10 * time.Minute)
	s := &slot.Slots{Archive: a, Poster: p, Now: func() time.Time { return at }, Fail: fail}
	_, err = s.Deliver(context.Background(), "day-1", "run", reported, deliveries())
	return err
}

// steps lists the steps of an undisturbed delivery.
func steps(t *testing.T) []string {
	var out []string
	err := deliver(t, keep(t), slackfake.New(t, true), func(step string) error {
		out = append(out, step)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKilledAtEveryStep: stopped before any step, and again before any step of
// the rerun, a third try finishes the slot, and every part was posted exactly once.
func TestKilledAtEveryStep(t *testing.T) {
	all := steps(t)
	want := map[string]int{}
	for _, d := range deliveries() {
		for _, m := range d.Messages {
			want[d.Channel+"/"+m.Part] = 1
		}
	}
	for first := range all {
		for second := range all {
			a, f := keep(t), slackfake.New(t, true)
			for _, at := range []int{first, second} {
				n := 0
				err := deliver(t, a, f, func(string) error {
					n++
					if n == at+1 {
						return errKilled
					}
					return nil
				})
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatalf("killed before step %d (%s): %v", at, all[at], err)
				}
			}
			if err := deliver(t, a, f, nil); err != nil {
				t.Fatalf("killed before %q and %q, the third try fails: %v", all[first], all[second], err)
			}
			got := map[string]int{}
			for _, m := range f.Messages() {
				got[m.Channel+"/"+m.Part]++
			}
			if files := f.Files(); len(files) != 1 {
				t.Fatalf("killed before %q and %q: %d files are attached", all[first], all[second], len(files))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("killed before %q and %q: posted %v, want %v", all[first], all[second], got, want)
			}
		}
	}
}

// TestUnknownIsLeftAndSaid: where the channel cannot be read, a part whose fate
// is unknown is not posted again, and the next digest says that one is missing.
func TestUnknownIsLeftAndSaid(t *testing.T) {
	a, f := keep(t), slackfake.New(t, false)
	f.Fault("cut")
	var unknown *slack.UnknownError
	if err := deliver(t, a, f, nil); !errors.As(err, &unknown) {
		t.Fatalf("error is %v, want an unknown fate", err)
	}
	taken := len(f.Messages())
	if err := deliver(t, a, f, nil); err == nil {
		t.Error("a rerun says that all is well")
	}
	for _, m := range f.Messages()[taken:] {
		if m.Channel == "C1" && m.Part == "digest" {
			t.Error("a part of unknown fate was posted again")
		}
	}
	past, err := slot.Past(context.Background(), a, "main", "", time.Now())
	if err != nil || len(past.Missed) != 1 {
		t.Errorf("missed digests are %v (%v), want one", past.Missed, err)
	}
}

// TestDoneIsDone: a slot that is done is not posted again.
func TestDoneIsDone(t *testing.T) {
	a, f := keep(t), slackfake.New(t, true)
	for range 3 {
		if err := deliver(t, a, f, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := 0
	for _, d := range deliveries() {
		want += len(d.Messages)
	}
	if got := len(f.Messages()); got != want {
		t.Errorf("%d messages were posted, want %d", got, want)
	}
	past, err := slot.Past(context.Background(), a, "main", "", time.Now())
	if err != nil || !past.Last.Equal(reported) || len(past.Missed) > 0 || len(past.Told) == 0 {
		t.Errorf("the past is %+v, %v", past, err)
	}
	// A target that was not due one has missed none.
	if past, err = slot.Past(context.Background(), a, "quiet", "", time.Now()); err != nil || len(past.Missed) > 0 {
		t.Errorf("a target without a digest: %+v, %v", past, err)
	}
}

// TestYoungIntentIsLeftAlone: a part that another process has just begun is not
// posted beside it.
func TestYoungIntentIsLeftAlone(t *testing.T) {
	a, f := keep(t), slackfake.New(t, true)
	err := deliver(t, a, f, func(step string) error {
		if step == "post main/digest" {
			// The other replica comes between our intent and our post.
			ticks-- // at the same moment
			if err := deliver(t, a, f, nil); err == nil {
				t.Error("the other replica says that all is well")
			}
		}
		return nil
	})
	if err != nil && len(f.Messages()) == 0 {
		t.Fatal(err)
	}
	digests := 0
	for _, m := range f.Messages() {
		if m.Channel == "C1" && m.Part == "digest" {
			digests++
		}
	}
	if digests != 1 {
		t.Errorf("the digest was posted %d times", digests)
	}
}

// TestFilesThatMayNotBeAttached: the digest is delivered, and its thread says why the reports are missing, once.
func TestFilesThatMayNotBeAttached(t *testing.T) {
	a, f := keep(t), slackfake.New(t, true)
	f.RefuseFiles()
	for range 2 {
		if err := deliver(t, a, f, nil); err != nil {
			t.Fatal(err)
		}
	}
	said := 0
	for _, m := range f.Messages() {
		if m.Part == "not-attached" && m.Thread != "" && strings.Contains(m.Text, "files:write") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the thread says %d times why no report is attached, want once", said)
	}
}

// TestHistory: a slot that an audit begins and does not end is missed once that
// audit cannot be at it any more; the next delivery tells what its digest told.
func TestHistory(t *testing.T) {
	a, f := keep(t), slackfake.New(t, true)
	begun := time.Now()
	s := &slot.Slots{Archive: a, Now: func() time.Time { return begun }}
	if err := s.Begin(t.Context(), "day-1", "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	missed := func(after time.Duration) int {
		past, err := slot.Past(t.Context(), a, "main", "day-2", begun.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return len(past.Missed)
	}
	if missed(30*time.Minute) != 0 || missed(3*time.Hour) != 1 {
		t.Errorf("missed after half an hour %d, after three %d; want 0 and 1", missed(30*time.Minute), missed(3*time.Hour))
	}
	if err := deliver(t, a, f, nil); err != nil {
		t.Fatal(err)
	}
	past, err := slot.Past(t.Context(), a, "main", "day-2", begun.Add(3*time.Hour))
	if err != nil || len(past.Missed) != 0 || !past.Last.Equal(reported) || len(past.Told) == 0 {
		t.Errorf("after the delivery: last %s, told %d, missed %v, %v", past.Last, len(past.Told), past.Missed, err)
	}
}
