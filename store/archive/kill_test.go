package archive_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gpuaudit/store/archive"
	"gpuaudit/store/local"
	"gpuaudit/store/storetest"
)

// TestKilled kills processes that save audits as fast as they can, two at a time and at no particular moment. After each death
// the chain is whole but for snapshots that the next audit adopts, and nothing half written is to be seen.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("ARCHIVE_KILL_DIR"); dir != "" {
		saveForEver(t, dir, os.Getenv("ARCHIVE_KILL_NAME"))
		return
	}
	dir := t.TempDir()
	s, err := local.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := archive.New(s)
	for round := range 6 {
		var running []*exec.Cmd
		for i := range 2 {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilled$")
			command.Env = append(os.Environ(), "ARCHIVE_KILL_DIR="+dir, fmt.Sprintf("ARCHIVE_KILL_NAME=p%d-%d", round, i))
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, command)
		}
		grown(t, a, 3+round)
		for _, command := range running {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		v, _, err := a.Check(t.Context(), "c")
		if err != nil || len(v.Faults) > 0 {
			t.Fatalf("round %d: %v, %v", round, v.Faults, err)
		}
		in := storetest.NewAudit("c", storetest.Day.AddDate(round+1, 0, 0), fmt.Sprintf("after-%d", round))
		if _, err := a.SaveSnapshot(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		latest, err := a.LatestSnapshot(t.Context(), "c")
		if err != nil || latest.Run != in.Run {
			t.Fatalf("round %d: latest is %q, %v", round, latest.Run, err)
		}
		v, orphans, err := a.Check(t.Context(), "c")
		if err != nil || len(v.Faults) > 0 || v.Headers != v.Snapshots {
			t.Fatalf("round %d, after the next audit: %v, %v", round, v.Faults, err)
		}
		// The two dead may each leave one; of those, one of an instant before the other's last is not newer and stays.
		if len(orphans) > 2*(round+1) {
			t.Fatalf("round %d: %d snapshots without a header: %v", round, len(orphans), orphans)
		}
	}
}

// grown waits until the processes have saved some more audits.
func grown(t *testing.T, a *archive.Archive, more int) {
	t.Helper()
	count := func() (n int) {
		for _, err := range a.Snapshots(t.Context(), "c", time.Time{}, time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	begin := count()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for count() < begin+more {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the processes save nothing")
		}
	}
}

func saveForEver(t *testing.T, dir, name string) {
	s, err := local.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := archive.New(s)
	for i := 0; ; i++ {
		year := 0
		_, _ = fmt.Sscanf(strings.TrimPrefix(name, "p"), "%d-", &year)
		at := storetest.Day.AddDate(year, 0, 0).Add(time.Duration(i) * time.Second)
		if _, err := a.SaveSnapshot(t.Context(), storetest.NewAudit("c", at, fmt.Sprintf("%s-%d", name, i))); err != nil {
			t.Fatal(err)
		}
	}
}
