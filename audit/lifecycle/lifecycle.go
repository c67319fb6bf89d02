// Package lifecycle gives findings their place in time: new, ongoing,
// resolved, acknowledged or unverified, over any number of runs. Nothing is
// resolved that was not looked for and seen to be gone.
package lifecycle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// keepResolved is how long a resolved finding is remembered for digests that
// are posted more seldom than audits run.
const keepResolved = 8 * 24 * time.Hour

// Input of a merge.
type Input struct {
	Now     time.Time
	Current []report.Finding
	// Previous is nil on a first run, or when the cluster behind the name is another one.
	Previous *snapshot.Snapshot
	Outcomes []report.CheckOutcome
	// Off are checks that are switched off: their findings end.
	Off  map[string]bool
	Acks Acks
	// NodeGone tells that a node was looked for and is not there.
	NodeGone func(name string) bool
	// Rank orders checks in reports.
	Rank map[string]int
}

// Merge gives all findings of this run with their states, sorted by impact.
func Merge(in Input) []report.Finding {
	outcome := map[string]report.Outcome{}
	for _, o := range in.Outcomes {
		outcome[o.ID] = o.Outcome
	}
	earlier := map[string]*report.Finding{}
	limited := map[string]bool{}
	if in.Previous != nil {
		for i := range in.Previous.Findings {
			earlier[in.Previous.Findings[i].ID] = &in.Previous.Findings[i]
		}
		for _, id := range in.Previous.FoundLimited {
			limited[id] = true
		}
	}
	var out []report.Finding
	now := in.Now
	seen := map[string]bool{}
	for _, f := range in.Current {
		if seen[f.ID] {
			continue // one fact, one finding
		}
		seen[f.ID] = true
		f.State, f.FirstSeen, f.LastSeen = report.StateNew, &now, &now
		if old := earlier[f.ID]; old != nil {
			f.State = report.StateOngoing
			if old.FirstSeen != nil {
				f.FirstSeen = old.FirstSeen
			}
		}
		in.acknowledge(&f)
		out = append(out, f)
	}
	for id, old := range earlier {
		if seen[id] {
			continue
		}
		if f, keep := in.missing(*old, outcome[old.Check], limited[id]); keep {
			out = append(out, f)
		}
	}
	Sort(out, in.Rank)
	return out
}

// missing judges a finding of the previous run that this run did not make.
func (in *Input) missing(f report.Finding, outcome report.Outcome, wasLimited bool) (report.Finding, bool) {
	now := in.Now
	resolve := func(why string) (report.Finding, bool) {
		f.State, f.ResolvedAt, f.Resolution = report.StateResolved, &now, why
		f.Impact = report.Impact{}
		return f, true
	}
	switch {
	case in.Off[f.Check]:
		return resolve("check switched off in the configuration")
	case outcome == report.OutcomeFindings || outcome == report.OutcomeClean || (outcome == report.OutcomeLimited && wasLimited):
		if f.Node != "" && in.NodeGone != nil && in.NodeGone(f.Node) {
			return resolve("node removed")
		}
		return resolve("looked for and not found any more")
	case outcome == "":
		return f, false // a check that this program does not have any more
	}
	f.State = report.StateUnverified
	in.acknowledge(&f)
	return f, true
}

func (in *Input) acknowledge(f *report.Finding) {
	f.Ack = nil
	if ack, ok := in.Acks.Active(f.ID, in.Now); ok {
		f.State, f.Ack = report.StateAcknowledged, &ack
	}
}

var stateRank = map[report.State]int{report.StateNew: 0, report.StateOngoing: 0, report.StateUnverified: 1, report.StateAcknowledged: 2, report.StateResolved: 3}

// Sort orders findings by impact: open ones first, then by severity, devices,
// pods that a repair would unblock, the checks' order and the subject.
func Sort(list []report.Finding, rank map[string]int) {
	slices.SortStableFunc(list, func(a, b report.Finding) int {
		return cmp.Or(
			stateRank[a.State]-stateRank[b.State],
			a.Severity.Rank()-b.Severity.Rank(),
			cmp.Compare(b.Impact.Devices, a.Impact.Devices),
			cmp.Compare(b.Impact.PendingPodsUnblocked, a.Impact.PendingPodsUnblocked),
			rank[a.Check]-rank[b.Check],
			strings.Compare(a.Subject.String(), b.Subject.String()),
			strings.Compare(a.Label, b.Label),
			strings.Compare(a.ID, b.ID),
		)
	})
}

// Carry gives what the next run needs: the open findings, those confirmed by a
// limited check, and the ones resolved in the last days.
func Carry(all []report.Finding, previous *snapshot.Snapshot, outcomes []report.CheckOutcome, now time.Time) (open []report.Finding, foundLimited []string, resolved []report.Finding) {
	limited := map[string]bool{}
	for _, o := range outcomes {
		limited[o.ID] = o.Outcome == report.OutcomeLimited
	}
	again := map[string]bool{}
	for _, f := range all {
		again[f.ID] = true
		if f.State == report.StateResolved {
			resolved = append(resolved, f)
			continue
		}
		if limited[f.Check] && f.LastSeen != nil && f.LastSeen.Equal(now) {
			foundLimited = append(foundLimited, f.ID)
		}
		open = append(open, f)
	}
	if previous != nil {
		for _, f := range previous.Resolved {
			if !again[f.ID] && f.ResolvedAt != nil && now.Sub(*f.ResolvedAt) < keepResolved {
				resolved = append(resolved, f)
			}
		}
	}
	slices.Sort(foundLimited)
	slices.SortStableFunc(resolved, func(a, b report.Finding) int { return strings.Compare(a.ID, b.ID) })
	return open, foundLimited, resolved
}

// Acks are the acknowledged findings of one cluster.
type Acks struct {
	SchemaVersion int     `json:"schemaVersion"`
	Acks          []Entry `json:"acks"`
}

// Entry is one acknowledgement.
type Entry struct {
	Finding string `json:"finding"`
	report.Ack
}

// acksVersion is the shape of acks.json.
const acksVersion = 1

// ParseAcks reads acks.json; empty bytes are no acknowledgements.
func ParseAcks(body []byte) (Acks, error) {
	if len(body) == 0 {
		return Acks{SchemaVersion: acksVersion}, nil
	}
	var a Acks
	if err := json.Unmarshal(body, &a); err != nil {
		return Acks{}, fmt.Errorf("acks.json is broken: %w; restore it from the store's versions, or delete it to start without acknowledgements", err)
	}
	if a.SchemaVersion > acksVersion {
		return Acks{}, fmt.Errorf("acks.json has schemaVersion %d and this program knows %d: use a newer program", a.SchemaVersion, acksVersion)
	}
	return a, nil
}

// Active gives the acknowledgement of a finding that holds now.
func (a Acks) Active(id string, now time.Time) (report.Ack, bool) {
	for i := len(a.Acks) - 1; i >= 0; i-- {
		e := a.Acks[i]
		if e.Finding == id && (e.Until == nil || now.Before(*e.Until)) {
			return e.Ack, true
		}
	}
	return report.Ack{}, false
}

// Add puts an acknowledgement in, replacing an earlier one of the same finding.
func (a Acks) Add(id string, ack report.Ack) (Acks, error) {
	if strings.TrimSpace(ack.Reason) == "" {
		return a, errors.New("an acknowledgement needs a reason: give --reason")
	}
	out := Acks{SchemaVersion: acksVersion}
	for _, e := range a.Acks {
		if e.Finding != id {
			out.Acks = append(out.Acks, e)
		}
	}
	out.Acks = append(out.Acks, Entry{Finding: id, Ack: ack})
	return out, nil
}

// Encode writes acks.json.
func (a Acks) Encode() ([]byte, error) {
	a.SchemaVersion = acksVersion
	if a.Acks == nil {
		a.Acks = []Entry{}
	}
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode acks.json: %w", err)
	}
	return append(b, '\n'), nil
}
