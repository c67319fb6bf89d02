package audit

import (
	"slices"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/lifecycle"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// trend gives the figures that later reports draw.
func (e *evaluation) trend() []snapshot.Figure {
	usable, each := map[string]int64{}, map[string]map[string]int64{}
	for _, c := range e.report.Classes {
		usable[c.Resource] = max(usable[c.Resource], c.Schedulable)
		if each[c.Resource] == nil {
			each[c.Resource] = map[string]int64{}
		}
		each[c.Resource][c.Name] = c.Schedulable
	}
	var out []snapshot.Figure
	for _, d := range e.report.Devices {
		if d.AliasOf != "" {
			continue
		}
		f := snapshot.Figure{Resource: d.Resource, Capacity: d.Capacity, Allocatable: d.Allocatable, Requested: d.Requested, Free: d.Free}
		if v, ok := usable[d.Resource]; ok {
			f.Schedulable, f.Classes = &v, each[d.Resource]
		}
		out = append(out, f)
	}
	return out
}

// snapshot makes what the next run needs. A section that was not read whole is
// carried forward from the earlier one.
func (e *evaluation) snapshot(findings []report.Finding) *snapshot.Snapshot {
	c, prev := e.Current, e.comparable()
	s := &snapshot.Snapshot{SchemaVersion: snapshot.SchemaVersion, Cluster: c.Name, UID: c.UID, ServerVersion: c.ServerVersion, Run: e.Run, CollectedAt: c.CollectedAt,
		Figures: e.trend()}
	if s.UID == "" && prev != nil {
		s.UID = prev.UID
	}
	if c.Seen(inventory.Nodes) {
		at := c.CollectedAt
		s.NodesAt = &at
		s.Whole = append(s.Whole, "nodes")
		for _, n := range e.in.Health.Nodes {
			kept := snapshot.NodeOf(n)
			for name, u := range e.in.Survey.Node(n.Name) {
				if u.Known {
					if kept.Requested == nil {
						kept.Requested = map[string]int64{}
					}
					kept.Requested[name] = u.Requested
				}
			}
			s.Nodes = append(s.Nodes, kept)
		}
		s.Losses, s.Gone = e.drift.Losses, e.drift.Gone
	} else if prev != nil {
		s.Nodes, s.NodesAt, s.Losses, s.Gone = prev.Nodes, prev.NodesAt, prev.Losses, prev.Gone
	}
	for _, o := range e.report.Checks {
		if o.Outcome == report.OutcomeFindings || o.Outcome == report.OutcomeClean {
			s.Whole = append(s.Whole, "findings/"+o.ID)
		}
	}
	slices.Sort(s.Whole)
	s.Findings, s.FoundLimited, s.Resolved = lifecycle.Carry(findings, prev, e.report.Checks, c.CollectedAt)
	return s
}
