package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/archive"
)

func newReport(run string, at time.Time) archive.Report {
	return archive.Report{
		Run: run, Time: at,
		Files: map[string][]byte{"report.json": []byte(`{"runID":"` + run + `"}`), "report.html": []byte("<p>"), "report.md": []byte("#"), "checklist.html": []byte("<h1>")},
		Clusters: map[string]map[string][]byte{
			"A":           {"report.json": []byte(`{"cluster":"` + run + `"}`), "report.html": []byte("<p>A")},
			"上海/1":        {"report.json": []byte(`{}`)},
			"report.json": {"report.json": []byte(`{}`)},
		},
	}
}

func reports(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	run := store.NewRun(Day)
	ref, manifest, err := a.SaveReport(ctx, newReport(run, Day))
	if err != nil {
		t.Fatal(err)
	}
	if got := ref.Key("report.html"); got != "reports/2026/06/01/"+run+"/report.html" {
		t.Errorf("key %q", got)
	}
	if len(manifest.Files) != 8 || !slices.IsSortedFunc(manifest.Files, func(x, y archive.File) int { return strings.Compare(x.Name, y.Name) }) {
		t.Errorf("manifest %+v", manifest)
	}
	// The cluster's own report is the one that its snapshot's header names, whichever is saved first.
	in := NewAudit("A", Day, run)
	must[archive.Saved](t)(a.SaveSnapshot(ctx, in))
	whole(ctx, t, a, "A", 1)

	for _, want := range []string{run, archive.LatestRun} {
		found := must[archive.ReportRef](t)(a.FindReport(ctx, want))
		if found.Run != run || found.Key("x") != ref.Key("x") {
			t.Errorf("%s: found %+v", want, found)
		}
	}
	loaded := must[archive.ManifestFile](t)(a.LoadManifest(ctx, ref))
	for _, file := range loaded.Files {
		body := must[[]byte](t)(a.LoadFile(ctx, ref, file.Name))
		if int64(len(body)) != file.Size {
			t.Errorf("%s has %d bytes, manifest says %d", file.Name, len(body), file.Size)
		}
	}
	_, _, err = a.SaveReport(ctx, newReport(run, Day))
	if err != nil {
		t.Errorf("saving a report again: %v", err)
	}
	other := newReport(run, Day)
	other.Files["report.md"] = []byte("other")
	_, _, err = a.SaveReport(ctx, other)
	wantErr(t, err, store.ErrExists, "report.md")

	later, _, err := a.SaveReport(ctx, newReport("named-by-hand", Day.AddDate(0, 1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if found := must[archive.ReportRef](t)(a.FindReport(ctx, archive.LatestRun)); found != later {
		t.Errorf("latest is %+v", found)
	}
	if found := must[archive.ReportRef](t)(a.FindReport(ctx, "named-by-hand")); found != later {
		t.Errorf("found %+v", found)
	}
	_, err = a.FindReport(ctx, "unknown")
	wantErr(t, err, store.ErrNotFound, "unknown")
	_, err = a.FindReport(ctx, "../x")
	if err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that cannot be one: %v", err)
	}
	if newer := must[[]archive.ReportRef](t)(a.Newer(ctx, ref)); len(newer) != 1 || newer[0] != later {
		t.Errorf("newer than the first: %+v", newer)
	}
	all := collect(t, a.Reports(ctx, time.Time{}, time.Time{}))
	if len(all) != 2 || all[0] != ref || all[1] != later {
		t.Errorf("reports %+v", all)
	}
	if got := collect(t, a.Reports(ctx, Day.AddDate(0, 0, 1), Day.AddDate(0, 2, 0))); len(got) != 1 || got[0] != later {
		t.Errorf("reports from the day after: %+v", got)
	}

	must[store.Info](t)(a.Store().Put(ctx, ref.Key("report.html"), []byte("<p>tampered"), store.Attributes{}))
	_, err = a.LoadFile(ctx, ref, "report.html")
	if !archive.IsBroken(err) {
		t.Errorf("a changed file: %v", err)
	}
	for _, bad := range []string{"../x", "a/b", "manifest.json", ""} {
		r := newReport("bad", Day)
		r.Files[bad] = []byte("x")
		if _, _, err := a.SaveReport(ctx, r); err == nil {
			t.Errorf("a report took file %q", bad)
		}
	}
}

func acks(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	for i := range 3 {
		if err := a.UpdateAcks(ctx, "c", func(old []byte) ([]byte, error) { return fmt.Appendf(old, "%d,", i), nil }); err != nil {
			t.Fatal(err)
		}
	}
	refuse := errors.New("not so")
	wantErr(t, a.UpdateAcks(ctx, "c", func([]byte) ([]byte, error) { return nil, refuse }), refuse, `"c"`)
	if err := a.UpdateAcks(ctx, "c", func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if got := must[[]byte](t)(a.LoadAcks(ctx, "c")); string(got) != "0,1,2," {
		t.Errorf("acknowledgements are %q", got)
	}
	if got := must[[]byte](t)(a.LoadAcks(ctx, "d")); got != nil {
		t.Errorf("those of another cluster are %q", got)
	}
}

func acksAtOnce(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	for _, err := range each(6, func(i int) error {
		return a.UpdateAcks(ctx, "c", func(old []byte) ([]byte, error) { return fmt.Appendf(old, "%d,", i), nil })
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := must[[]byte](t)(a.LoadAcks(ctx, "c")); len(got) != len("0,1,2,3,4,5,") {
		t.Errorf("acknowledgements were lost: %q", got)
	}
}

func slotsAtOnce(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	won := 0
	for _, err := range each(6, func(i int) error {
		_, err := a.ClaimSlot(ctx, "daily", fmt.Appendf(nil, "claimed by %d", i))
		return err
	}) {
		if err == nil {
			won++
		} else {
			wantErr(t, err, store.ErrExists)
		}
	}
	if won != 1 {
		t.Errorf("%d claimed one slot", won)
	}
}

func slots(t *testing.T, open Open) {
	ctx, a := startArchive(t, open)
	long := strings.Repeat("slot of a very long name/", 20)
	name := "2026-06-01T09:30:00+08:00/daily"
	slot := must[archive.Slot](t)(a.ClaimSlot(ctx, name, []byte("claimed")))
	_, err := a.ClaimSlot(ctx, name, []byte("claimed by a second"))
	wantErr(t, err, store.ErrExists, name)
	if read := must[archive.Slot](t)(a.ReadSlot(ctx, name)); string(read.Body) != "claimed" || read.Version != slot.Version || read.Key != slot.Key {
		t.Errorf("read %+v, claimed %+v", read, slot)
	}
	posted := must[archive.Slot](t)(a.UpdateSlot(ctx, slot, []byte("posted")))
	_, err = a.UpdateSlot(ctx, slot, []byte("posted by a second"))
	wantErr(t, err, store.ErrChanged, name)
	must[archive.Slot](t)(a.UpdateSlot(ctx, posted, []byte("posted, twice")))
	must[archive.Slot](t)(a.ClaimSlot(ctx, "audit-29012345", []byte("x")))
	must[archive.Slot](t)(a.ClaimSlot(ctx, long, []byte("y")))
	all := collect(t, a.Slots(ctx, time.Time{}))
	if len(all) != 3 || all[0].Name != name || string(all[0].Body) != "posted, twice" || all[1].Name != "audit-29012345" {
		t.Errorf("slots %+v", all)
	}
	must[archive.Slot](t)(a.UpdateSlot(ctx, all[2], []byte("by what was listed")))
	if got := must[archive.Slot](t)(a.ReadSlot(ctx, long)); string(got.Body) != "by what was listed" {
		t.Errorf("the long one is %q", got.Body)
	}
	if got := collect(t, a.Slots(ctx, time.Now().Add(time.Hour))); len(got) != 0 {
		t.Errorf("slots of the future: %+v", got)
	}
	_, err = a.ReadSlot(ctx, "unknown")
	wantErr(t, err, store.ErrNotFound, "unknown")
}
