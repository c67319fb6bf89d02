package sample

import (
	"bytes"
	"encoding/json"
	"testing"

	"gpuaudit/audit/report"
)

func all() map[string]func() *report.Report {
	return map[string]func() *report.Report{
		"incident": Incident, "partial": Partial, "hostile": Hostile, "chinese": Chinese,
		"many": func() *report.Report { return Many(40, 12) },
	}
}

func TestSamplesKeepTheReportsOwnPromises(t *testing.T) {
	for name, build := range all() {
		r := build()
		if r.Summary.Clusters != len(r.Clusters) {
			t.Errorf("%s: summary says %d clusters, there are %d", name, r.Summary.Clusters, len(r.Clusters))
		}
		for _, c := range r.Clusters {
			ids := map[string]bool{}
			for _, f := range c.Findings {
				if ids[f.ID] {
					t.Errorf("%s: finding %s occurs twice in %q", name, f.ID, c.Name)
				}
				ids[f.ID] = true
			}
			for _, f := range c.Findings {
				if f.CausedBy != "" && (!ids[f.CausedBy] || f.Impact.Devices != 0) {
					t.Errorf("%s: finding %s is caused by %q and has impact %d", name, f.ID, f.CausedBy, f.Impact.Devices)
				}
			}
			for _, p := range c.Repairs {
				if !ids[p.Finding] {
					t.Errorf("%s: repair %q of unknown finding %q", name, p.Action, p.Finding)
				}
			}
			for _, k := range c.Classes {
				sum := k.Schedulable
				for _, l := range k.Lost {
					sum += l.Devices
				}
				if sum != k.ApparentFree {
					t.Errorf("%s: class %q: %d schedulable and lost, apparent free is %d", name, k.Name, sum, k.ApparentFree)
				}
			}
		}
	}
}

func TestSamplesAreTheSameEveryTime(t *testing.T) {
	for name, build := range all() {
		a, err := json.Marshal(build())
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(build())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two calls differ", name)
		}
	}
}

func TestIncidentHasTheFigures(t *testing.T) {
	c := Incident().Clusters[2]
	d := c.Devices[0]
	if len(c.Nodes) != 15 || d.Allocatable != 120 || *d.Requested != 107 || *d.Free != 13 || *d.MaxFreeOnOneNode != 7 {
		t.Errorf("nodes %d, devices %d/%d, free %d, at most %d on one node; want 15, 107/120, 13, 7",
			len(c.Nodes), *d.Requested, d.Allocatable, *d.Free, *d.MaxFreeOnOneNode)
	}
	if len(c.Pending) != 8 {
		t.Errorf("%d pods wait, want 8", len(c.Pending))
	}
}
