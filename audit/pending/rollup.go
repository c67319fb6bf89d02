package pending

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
)

// Row is what the waiting pods of one owner have in common: 83 pods of a job
// that wait for the same thing are one row.
type Row struct {
	Namespace string
	// Owner is Kind/name of the pods' owner; Pod/name for a pod of its own.
	Owner string
	Cause string
	// Bound is true for pods that a node has and that do not start.
	Bound bool
	Pods  int
	// Names are the first pods by name, Nodes the nodes they are for, at most shownNames each.
	Names, Nodes []string
	// Since is when the oldest was created, nil when unknown of all.
	Since *time.Time
	// Attempts is the sum over the pods, at least.
	Attempts int64
	// ReportedBy, Message, Reasons and Quota are of the pod that has waited longest
	// and of which something was said.
	ReportedBy, Message string
	Reasons             []string
	Quota               *report.Quota
}

// shownNames bounds the names of a row.
const shownNames = 8

// Rollup groups pods by namespace, owner, cause and whether they are bound, in
// that order. The order of the pods given changes nothing.
func Rollup(pods []report.Pending) []Row {
	sorted := slices.Clone(pods)
	slices.SortFunc(sorted, func(a, b report.Pending) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(rowOwner(&a), rowOwner(&b)), strings.Compare(a.Cause, b.Cause), boundOrder(a.Bound, b.Bound),
			oldest(a.Since, b.Since), strings.Compare(a.Name, b.Name))
	})
	var out []Row
	for i := range sorted {
		p := &sorted[i]
		last := len(out) - 1
		if last < 0 || !out[last].holds(p) {
			out = append(out, Row{Namespace: p.Namespace, Owner: rowOwner(p), Cause: p.Cause, Bound: p.Bound, Since: p.Since,
				ReportedBy: p.ReportedBy, Message: p.Message, Reasons: p.Reasons, Quota: p.Quota})
			last++
		}
		out[last].add(p)
	}
	for i := range out {
		out[i].Names, out[i].Nodes = first(out[i].Names), first(out[i].Nodes)
	}
	return out
}

func rowOwner(p *report.Pending) string { return cmp.Or(p.Owner, "Pod/"+p.Name) }

func boundOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// oldest puts earlier times first and unknown ones last.
func oldest(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

func (r *Row) holds(p *report.Pending) bool {
	return r.Namespace == p.Namespace && r.Owner == rowOwner(p) && r.Cause == p.Cause && r.Bound == p.Bound
}

func (r *Row) add(p *report.Pending) {
	r.Pods++
	r.Attempts += p.Attempts
	r.Names = append(r.Names, p.Name)
	if p.TargetNode != "" {
		r.Nodes = append(r.Nodes, p.TargetNode)
	}
	if r.Message == "" {
		r.ReportedBy, r.Message, r.Reasons = p.ReportedBy, p.Message, p.Reasons
	}
	if r.Quota == nil || (r.Quota.Name == "" && p.Quota != nil && p.Quota.Name != "") {
		r.Quota = p.Quota
	}
}

func first(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), shownNames)]
}
