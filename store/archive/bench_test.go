package archive_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"gpuaudit/store/archive"
	"gpuaudit/store/local"
	"gpuaudit/store/storetest"
)

// BenchmarkYear reads a year of daily snapshots of 200 kB from a folder, and what a single run reads of it.
func BenchmarkYear(b *testing.B) {
	s, err := local.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	a := archive.New(s)
	random := make([]byte, 200<<10)
	for i := range 365 {
		_, _ = rand.Read(random) // does not fail
		in := storetest.NewAudit("c", storetest.Day.AddDate(0, 0, i), fmt.Sprintf("r%d", i))
		in.Snapshot = storetest.Gzip(string(random))
		if _, err := a.SaveSnapshot(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("LoadRange", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, err := range a.LoadRange(b.Context(), "c", time.Time{}, time.Time{}) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 365 {
				b.Fatal(n)
			}
		}
	})
	b.Run("Headers", func(b *testing.B) {
		for b.Loop() {
			if headers, err := a.Headers(b.Context(), "c", time.Time{}); err != nil || len(headers) != 365 {
				b.Fatal(len(headers), err)
			}
		}
	})
	b.Run("Latest", func(b *testing.B) {
		for b.Loop() {
			if _, err := a.LatestSnapshot(b.Context(), "c"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Save", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			in := storetest.NewAudit("c", storetest.Day.AddDate(1, 0, 0).Add(time.Duration(i)*time.Second), fmt.Sprintf("s%d", i))
			if _, err := a.SaveSnapshot(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
	})
}
