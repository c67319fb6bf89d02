package pipeline

import (
	"testing"
	"time"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/settings"
)

// TestOrderInOneSecond: an API server's Date names a second. Audits within one
// are compared and kept in the order in which they were made.
func TestOrderInOneSecond(t *testing.T) {
	a := opened(t)
	second := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	var runs []string
	for i := range 12 {
		c := &inventory.Cluster{Name: "C", UID: "u", Source: inventory.Live, CollectedAt: second}
		c.SetExtent(inventory.Nodes, inventory.SeenWhole)
		out, err := Run(t.Context(), []*inventory.Cluster{c}, Options{Now: second, Archive: a, Save: true, Settings: func(string) settings.Settings { return settings.Default() }})
		if err != nil || out.Err() != nil {
			t.Fatal(err, out.Err())
		}
		runs = append(runs, out.Report.RunID)
		got := out.Report.Clusters[0]
		if at := got.CollectedAt.Sub(second); at < 0 || at >= time.Second {
			t.Errorf("audit %d is placed %s after the second that the server named", i, at)
		}
		if i > 0 && (got.PreviousSnapshot == nil || !got.CollectedAt.After(got.PreviousSnapshot.CollectedAt)) {
			t.Errorf("audit %d at %s is compared with %+v", i, got.CollectedAt, got.PreviousSnapshot)
		}
	}
	i := 0
	for v, err := range Versions(t.Context(), a, "C", time.Time{}, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if v.Snapshot.Run != runs[i] {
			t.Errorf("snapshot %d is that of %s, want %s", i, v.Snapshot.Run, runs[i])
		}
		i++
	}
	if i != len(runs) {
		t.Errorf("%d snapshots, want %d", i, len(runs))
	}
}
