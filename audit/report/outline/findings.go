package outline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/plain"
)

// Item is an open finding with those that it causes.
type Item struct {
	Finding report.Finding
	Effects []report.Finding
}

// Sorted are a cluster's findings by what they want of a reader.
type Sorted struct {
	Open         []Item
	Resolved     []report.Finding
	Acknowledged []report.Finding
}

// ByImpact orders findings: severity, devices kept from use, pods that wait for it.
func ByImpact(a, b report.Finding) int {
	return cmp.Or(
		cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(b.Impact.Devices, a.Impact.Devices),
		cmp.Compare(b.Impact.PendingPodsUnblocked, a.Impact.PendingPodsUnblocked), cmp.Compare(b.Devices, a.Devices),
		cmp.Compare(a.Step, b.Step), strings.Compare(a.ID, b.ID),
	)
}

// Findings sorts a cluster's findings by impact; one whose cause is open too
// stands under its cause.
func Findings(c *report.Cluster) Sorted {
	all := slices.Clone(c.Findings)
	slices.SortStableFunc(all, ByImpact)
	byID := map[string]*report.Finding{}
	for i := range all {
		if all[i].Open() {
			byID[all[i].ID] = &all[i]
		}
	}
	var out Sorted
	effects := map[string][]report.Finding{}
	for _, f := range all {
		root := rootOf(&f, byID)
		switch {
		case f.State == report.StateResolved:
			out.Resolved = append(out.Resolved, f)
		case f.State == report.StateAcknowledged:
			out.Acknowledged = append(out.Acknowledged, f)
		case root != f.ID:
			effects[root] = append(effects[root], f)
		default:
			out.Open = append(out.Open, Item{Finding: f})
		}
	}
	for i := range out.Open {
		out.Open[i].Effects = effects[out.Open[i].Finding.ID]
	}
	return out
}

// rootOf follows causes to the first one; findings that name each other in a
// circle, or a cause that is not open, stay roots.
func rootOf(f *report.Finding, byID map[string]*report.Finding) string {
	seen := map[string]bool{f.ID: true}
	id := f.ID
	for at := f; ; {
		cause := byID[at.CausedBy]
		if cause == nil {
			return id
		}
		if seen[cause.ID] {
			return f.ID
		}
		seen[cause.ID] = true
		id, at = cause.ID, cause
	}
}

// StateText writes a finding's state with how long it has been known: "new", "ongoing 12d".
func StateText(f *report.Finding, now time.Time) string {
	switch f.State {
	case report.StateOngoing:
		if f.FirstSeen != nil {
			return "ongoing " + plain.Age(now.Sub(*f.FirstSeen))
		}
	case report.StateUnverified:
		if f.LastSeen != nil {
			return "unverified, last seen " + plain.Age(now.Sub(*f.LastSeen)) + " ago"
		}
	}
	return string(f.State)
}

// Worth writes what a finding keeps from use and holds up: "8 cards, 3 waiting pods".
func Worth(c *report.Cluster, f *report.Finding) string {
	var parts []string
	if f.Impact.Devices > 0 {
		parts = append(parts, Units(f.Impact.Devices, MainUnit(c)))
	}
	if f.Impact.PendingPodsUnblocked > 0 {
		parts = append(parts, plain.Plural(int64(f.Impact.PendingPodsUnblocked), "waiting pod"))
	}
	return strings.Join(parts, ", ")
}

// Unseen says in lines what could not be audited in a cluster: nothing at all,
// gaps, checks that were not evaluated, a comparison that was not made. Gaps
// that the configuration accepts are left out. No line means that all was seen.
func Unseen(c *report.Cluster, now time.Time) []string {
	var out []string
	if c.Status == report.Unreachable {
		line := "UNREACHABLE: " + cmp.Or(c.Error, "nothing could be read")
		if c.PreviousSnapshot != nil {
			line += fmt.Sprintf(" (last read %s ago)", plain.Age(now.Sub(c.PreviousSnapshot.CollectedAt)))
		}
		return append(out, line)
	}
	var uncollected []string
	for _, g := range c.Gaps {
		switch {
		case g.Accepted:
		case g.Reason == "notCollected" && g.Namespace == "":
			uncollected = append(uncollected, g.Resource)
		default:
			out = append(out, GapText(&g))
		}
	}
	if len(uncollected) > 0 {
		out = append(out, "not collected: "+strings.Join(uncollected, ", "))
	}
	if ids := NotEvaluated(c); len(ids) > 0 {
		out = append(out, fmt.Sprintf("not evaluated: %s", strings.Join(ids, ", ")))
	}
	if c.Comparison != "" {
		if strings.HasPrefix(c.Comparison, "first run") {
			return append(out, "first run: what changed since an earlier one is not known")
		}
		out = append(out, "not compared: "+c.Comparison)
	}
	return out
}

// GapText writes a gap: "pods: forbidden: message".
func GapText(g *report.Gap) string {
	text := g.Resource
	if g.Namespace != "" {
		text += " in " + g.Namespace
	}
	text += ": " + g.Reason
	if g.Message != "" {
		text += ": " + g.Message
	}
	if g.Accepted {
		text += " (accepted: " + cmp.Or(g.AcceptedReason, "by the configuration") + ")"
	}
	return text
}

// NotEvaluated are the ids of the checks that were not evaluated.
// Those that only lack an earlier run are left out: that there is none is said by itself.
func NotEvaluated(c *report.Cluster) []string {
	var ids []string
	for _, o := range c.Checks {
		if c.Comparison != "" && strings.HasPrefix(o.Reason, "first run") {
			continue
		}
		if o.Outcome == report.OutcomeNotEvaluated {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Gaps writes the number of gaps: "2", or "1 (+2)" with two more that are accepted.
func Gaps(c *report.Cluster) string {
	open, accepted := 0, 0
	for _, g := range c.Gaps {
		if g.Accepted {
			accepted++
		} else {
			open++
		}
	}
	if accepted == 0 {
		return fmt.Sprint(open)
	}
	return fmt.Sprintf("%d (+%d)", open, accepted)
}
