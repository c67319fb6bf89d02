// Package outline puts a report in the order in which a reader needs it: what
// could not be seen, what is lost, what to do first, findings with what they
// cause, waiting pods by owner. The renderings for a terminal, for Markdown and
// others build on it, so that they all say the same.
//
// Texts are as they come from the cluster: whoever prints them escapes them for
// the medium.
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

// Units writes a count of devices in their unit: "7 cards", "1 slot".
func Units(n int64, unit string) string {
	switch unit {
	case "memory", "cores":
		return fmt.Sprintf("%d %s", n, unit)
	case "":
		unit = "device"
	}
	return plain.Plural(n, unit)
}

// Unit of a resource in a cluster: card, slot and so on, "device" when the
// cluster's table does not have it.
func Unit(c *report.Cluster, resource string) string {
	for i := range c.Devices {
		if c.Devices[i].Resource == resource {
			return c.Devices[i].Unit
		}
	}
	return "device"
}

// MainUnit is the unit of findings' device counts: that of the cluster's
// devices when they all have one, else "device".
func MainUnit(c *report.Cluster) string {
	unit := ""
	for i := range c.Devices {
		if c.Devices[i].AliasOf != "" || c.Devices[i].Unit == unit {
			continue
		}
		if unit != "" {
			return "device"
		}
		unit = c.Devices[i].Unit
	}
	return cmp.Or(unit, "device")
}

// Lost sums the devices that a class cannot get.
func Lost(k *report.Class) int64 {
	var sum int64
	for _, l := range k.Lost {
		sum += l.Devices
	}
	return sum
}

// Classes gives a cluster's classes, most urgent first: those with waiting pods
// and losses, then by losses, configured ones before observed ones.
func Classes(c *report.Cluster) []report.Class {
	out := slices.Clone(c.Classes)
	waits := func(k *report.Class) bool { return k.PendingPods != nil && *k.PendingPods > 0 && Lost(k) > 0 }
	slices.SortStableFunc(out, func(a, b report.Class) int {
		return cmp.Or(
			compareBool(waits(&a), waits(&b)), compareBool(a.Source == "configured", b.Source == "configured"),
			cmp.Compare(Lost(&b), Lost(&a)), strings.Compare(a.Name, b.Name),
		)
	})
	return out
}

// compareBool puts true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// LossText writes the parts of a waterfall: "7 notReady + 5 labelMissing".
func LossText(lost []report.Lost) string {
	parts := make([]string, len(lost))
	for i, l := range lost {
		parts[i] = fmt.Sprintf("%d %s", l.Devices, l.Reason)
	}
	return strings.Join(parts, " + ")
}

// AtMost is put before a number that is an upper bound.
func AtMost(upperBound bool) string {
	if upperBound {
		return "≤"
	}
	return ""
}

// Waterfall says in a line what of the free devices a class can get.
func Waterfall(c *report.Cluster, k *report.Class) string {
	free := AtMost(k.UpperBound) + freeUnits(k.ApparentFree, Unit(c, k.Resource))
	switch {
	case k.ApparentFree == 0:
		return fmt.Sprintf("%s for class %s", free, k.Name)
	case Lost(k) == 0:
		return fmt.Sprintf("%s, all usable by class %s", free, k.Name)
	}
	return fmt.Sprintf("%s, %s%d for class %s: %s", free, AtMost(k.UpperBound && k.Schedulable > 0), k.Schedulable, k.Name, LossText(k.Lost))
}

func freeUnits(n int64, unit string) string {
	words := strings.SplitN(Units(n, unit), " ", 2)
	return words[0] + " free " + words[1]
}

// KeptFromUse sums the devices that open findings keep from use. A device counts in one of them only.
func KeptFromUse(c *report.Cluster) int64 {
	var sum int64
	for i := range c.Findings {
		if c.Findings[i].Open() {
			sum += c.Findings[i].Impact.Devices
		}
	}
	return sum
}

// MostLost is the most devices that any class loses or, if that is more, that
// findings keep from use: a dead node full of pods has no free device to lose.
func MostLost(c *report.Cluster) int64 {
	most := KeptFromUse(c)
	for i := range c.Classes {
		most = max(most, Lost(&c.Classes[i]))
	}
	return most
}

// ByLoss gives the clusters of a report, most devices lost first; one that could
// not be read comes before all others.
func ByLoss(r *report.Report) []*report.Cluster {
	out := make([]*report.Cluster, len(r.Clusters))
	for i := range r.Clusters {
		out[i] = &r.Clusters[i]
	}
	slices.SortStableFunc(out, func(a, b *report.Cluster) int {
		return cmp.Or(
			compareBool(a.Status == report.Unreachable, b.Status == report.Unreachable), cmp.Compare(MostLost(b), MostLost(a)),
		)
	})
	return out
}

// Losses are the lines that say what is lost in a cluster, most urgent first:
// one for each class, at most limit, then what findings keep from use beyond that. A cluster whose numbers are unknown gets
// one line that says so.
func Losses(c *report.Cluster, limit int) []string {
	if c.Status == report.Unreachable {
		return []string{"unknown: the cluster could not be read"}
	}
	var out []string
	for _, k := range Classes(c) {
		if len(out) == limit {
			break
		}
		if len(out) == 0 || Lost(&k) > 0 {
			out = append(out, Waterfall(c, &k))
		}
	}
	if len(out) == 0 {
		out = withoutClasses(c, limit)
	}
	var lost int64
	for i := range c.Classes {
		lost = max(lost, Lost(&c.Classes[i]))
	}
	if kept := KeptFromUse(c); kept > lost {
		out = append(out, fmt.Sprintf("findings keep %s from use, free or held", Units(kept, MainUnit(c))))
	}
	return out
}

// withoutClasses says what is free where no class of workload is known.
func withoutClasses(c *report.Cluster, limit int) []string {
	var out []string
	for i := range c.Devices {
		d := &c.Devices[i]
		switch {
		case d.AliasOf != "" || len(out) == limit:
		case d.Free == nil:
			out = append(out, fmt.Sprintf("%s (%s), free unknown: %s", Units(d.Allocatable, d.Unit), d.Resource, whyUnknown(c, d)))
		default:
			out = append(out, fmt.Sprintf("%s%s; no workload that wants them is known", AtMost(d.UpperBound), freeUnits(*d.Free, d.Unit)))
		}
	}
	if len(out) == 0 {
		if c.Baseline.Nodes == nil {
			return []string{"unknown: nodes were not seen"}
		}
		return []string{"no devices on its nodes"}
	}
	return out
}

// whyUnknown says why it is not known what is free of a device.
func whyUnknown(c *report.Cluster, d *report.Device) string {
	for _, g := range c.Gaps {
		if g.Resource == "pods" {
			return "pods were not seen"
		}
	}
	for _, note := range d.Notes {
		if why, _, ok := strings.Cut(note, ":"); ok && strings.HasSuffix(note, "unknown") {
			return why
		}
	}
	return "not everything that is charged was seen"
}

// Action is one thing to do.
type Action struct {
	Cluster string
	Text    string
	// Gain says what doing it would give, empty when that is not known.
	Gain    string
	Step    int
	Finding string
	// Command looks at the case or mends it, empty when there is none.
	Command string
}

// Actions are what to do first over all clusters: repairs by what they gain,
// then open critical findings that no repair covers.
func Actions(r *report.Report) []Action {
	var repairs, rest []ranked
	for i := range r.Clusters {
		a, b := clusterActions(&r.Clusters[i])
		repairs, rest = append(repairs, a...), append(rest, b...)
	}
	// Within a cluster the order is the report's own: each repair's worth given those before it.
	slices.SortStableFunc(repairs, func(a, b ranked) int {
		if a.Cluster == b.Cluster {
			return cmp.Compare(a.order, b.order)
		}
		return cmp.Or(cmp.Compare(b.devices, a.devices), strings.Compare(a.Cluster, b.Cluster))
	})
	slices.SortStableFunc(rest, func(a, b ranked) int { return cmp.Compare(b.devices, a.devices) })
	out := make([]Action, 0, len(repairs)+len(rest))
	for _, a := range slices.Concat(repairs, rest) {
		out = append(out, a.Action)
	}
	return out
}

type ranked struct {
	Action
	devices int64
	order   int
}

func clusterActions(c *report.Cluster) (repairs, rest []ranked) {
	covered := map[string]bool{}
	byID := map[string]*report.Finding{}
	for i := range c.Findings {
		byID[c.Findings[i].ID] = &c.Findings[i]
	}
	for _, p := range c.Repairs {
		f := byID[p.Finding]
		if p.Devices == 0 && p.PendingPodsUnblocked == 0 || f == nil || !f.Open() {
			continue
		}
		covered[p.Finding] = true
		a := ranked{Action{Cluster: c.Name, Text: p.Action, Gain: gainText(c, p), Step: f.Step, Finding: f.ID, Command: command(f)}, p.Devices, p.Order}
		if a.order == 0 {
			a.order = len(c.Repairs) + 1
		}
		repairs = append(repairs, a)
	}
	for _, item := range Findings(c).Open {
		f := item.Finding
		if f.Severity != report.Critical || covered[f.ID] || f.CausedBy != "" && covered[f.CausedBy] {
			continue
		}
		a := Action{Cluster: c.Name, Text: f.Title, Step: f.Step, Finding: f.ID, Command: command(&f)}
		rest = append(rest, ranked{Action: a, devices: f.Impact.Devices})
	}
	return repairs, rest
}

func gainText(c *report.Cluster, p report.Repair) string {
	var best report.Gain
	urgency := map[string]int{}
	for i, k := range Classes(c) {
		urgency[k.Name] = i
	}
	for _, g := range p.Gains {
		better := g.Devices == best.Devices && urgency[g.Class] < urgency[best.Class]
		if g.Devices > best.Devices || better {
			best = g
		}
	}
	var parts []string
	if best.Devices > 0 {
		parts = append(parts, fmt.Sprintf("+%s for %s", Units(best.Devices, classUnit(c, best.Class)), best.Class))
	}
	if p.PendingPodsUnblocked > 0 {
		parts = append(parts, plain.Plural(int64(p.PendingPodsUnblocked), "waiting pod")+" would start")
	}
	return strings.Join(parts, ", ")
}

func classUnit(c *report.Cluster, class string) string {
	for i := range c.Classes {
		if c.Classes[i].Name == class {
			return Unit(c, c.Classes[i].Resource)
		}
	}
	return "device"
}

func command(f *report.Finding) string {
	if len(f.Commands) == 0 {
		return ""
	}
	return f.Commands[0]
}

// Group is waiting pods of one owner and one cause.
type Group struct {
	Namespace  string
	Owner      string // Kind/namespace/name or as reported; a lone pod's own name
	Cause      string
	ReportedBy string
	Bound      bool
	Pods       []string // namespace/name
	Oldest     *time.Time
	Message    string
	TargetNode string // when all pods have the same
	Attempts   int64  // the most of any pod
}

// Waiting rolls a cluster's waiting pods up, most pods first.
func Waiting(c *report.Cluster) []Group {
	type key struct {
		namespace, owner, cause, by string
		bound                       bool
	}
	groups := map[key]*Group{}
	var order []*Group
	for _, p := range c.Pending {
		owner := p.Owner
		if owner == "" {
			owner = "Pod/" + p.Name
		}
		k := key{p.Namespace, owner, p.Cause, p.ReportedBy, p.Bound}
		g := groups[k]
		if g == nil {
			g = &Group{
				Namespace: p.Namespace, Owner: owner, Cause: p.Cause, ReportedBy: p.ReportedBy, Bound: p.Bound,
				Message: p.Message, TargetNode: p.TargetNode,
			}
			groups[k] = g
			order = append(order, g)
		}
		g.Pods = append(g.Pods, p.Namespace+"/"+p.Name)
		g.Attempts = max(g.Attempts, p.Attempts)
		if p.Since != nil && (g.Oldest == nil || p.Since.Before(*g.Oldest)) {
			g.Oldest = p.Since
		}
		if g.TargetNode != p.TargetNode {
			g.TargetNode = ""
		}
	}
	slices.SortStableFunc(order, func(a, b *Group) int { return cmp.Compare(len(b.Pods), len(a.Pods)) })
	out := make([]Group, len(order))
	for i, g := range order {
		out[i] = *g
	}
	return out
}
