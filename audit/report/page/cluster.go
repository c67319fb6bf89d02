package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

type clusterView struct {
	Name, Anchor, Status string
	Bad                  bool
	Unreachable          bool
	Facts                []fact
	Unseen               []string
	Waterfalls           []waterfall
	OtherClasses         int
	Grid                 *grid
	Trends               []trend
	Timeline             *timeline
	Findings             []findingView
	FindingsLeftOut      int
	Resolved             []closed
	Acknowledged         []closed
	MoreClosed           int
	Waiting              []waitingRow
	MoreWaiting          int
	PendingKnown         bool
	Devices              []deviceRow
	UnknownDevices       []unknownRow
	DeviceNotes          []string
	Classes              []classRow
	MoreClasses          int
	Nodes                []nodeRow
	MoreNodes            int
	NodesNote            string
	Changes              []changeRow
	MoreChanges          int
	Checks               []checkRow
	Gaps                 []gapRow
}

type fact struct{ Key, Value string }

type closed struct{ ID, Title, How string }

type waitingRow struct {
	Pods                                    int
	Owner, Cause, Oldest, By, Message, More string
	Names                                   string
}

type deviceRow struct {
	Resource, Unit, Physical, Capacity, Allocatable, Requested, Free, MaxFree   string
	Held, Over, Reclaimable, Nominated, NaiveRequested, NaiveFree, Share, Alias string
}

type unknownRow struct{ Resource, Nodes, Capacity, Allocatable, Requested, Note string }

type classRow struct {
	Name, Source, Wants, Waiting, Running, Nodes, Free, Usable, Replicas, Most, Reclaimable, Lost, NotModelled string
}

type nodeRow struct {
	Name, UID, Kind, Ready, Cordoned, Age, Devices, Labels, Taints string
	Bad                                                            bool
}

type changeRow struct{ After, Before, Node, Text, At, By string }

type checkRow struct {
	ID, Outcome, Class, Reason, Step, Link string
}

type gapRow struct {
	Resource, Reason, Message, Checks string
	Accepted                          string
}

// cluster makes one cluster's part. raw is its name as in the options.
func (b *builder) cluster(c *report.Cluster, anchor, raw string) clusterView {
	v := clusterView{
		Name: c.Name, Anchor: anchor, Status: string(c.Status), Bad: c.Status != report.Complete, Unreachable: c.Status == report.Unreachable,
		Unseen: outline.Unseen(c, b.now), Facts: b.facts(c), PendingKnown: c.Baseline.PendingPods != nil,
	}
	b.waterfalls(&v, c)
	v.Grid = b.grid(c)
	v.Trends = b.trends(c, anchor, b.options.Trend[raw])
	v.Timeline = b.timeline(c)
	b.findingsOf(&v, c)
	b.waiting(&v, c)
	b.devices(&v, c)
	b.classes(&v, c)
	b.nodes(&v, c)
	b.changes(&v, b.options.History[raw])
	b.outcomes(&v, c)
	return v
}

func (b *builder) facts(c *report.Cluster) []fact {
	out := []fact{{"Status", string(c.Status)}}
	add := func(key, value string) {
		if value != "" {
			out = append(out, fact{key, value})
		}
	}
	add("Vendor", c.Vendor)
	add("Kubernetes", cmp.Or(c.ServerVersion, unknown))
	add("kube-system UID", cmp.Or(c.UID, unknown))
	read := "never in this run"
	if c.CollectedAt != nil {
		read = stamp(*c.CollectedAt)
	}
	add("Read at", read)
	switch {
	case c.Comparison != "":
		add("Compared with", "nothing: "+c.Comparison)
	case c.PreviousSnapshot != nil:
		add("Compared with", stamp(c.PreviousSnapshot.CollectedAt)+", "+c.PreviousSnapshot.Key)
	default:
		add("Compared with", "nothing: this is the first snapshot")
	}
	if c.Platform.Virtual {
		add("Virtual cluster", "yes: other tenants are out of sight, so what is free is an upper bound ("+strings.Join(c.Platform.Markers, "; ")+")")
	}
	add("Schedulers that report", strings.Join(c.Platform.Schedulers, ", "))
	add("Kinds of quota or queue", strings.Join(c.Platform.QuotaKinds, ", "))
	add("Came (churn)", names(c.Churn.Added, maxObjects))
	add("Went (churn)", names(c.Churn.Removed, maxObjects))
	add("Head of the snapshots' chain", c.ChainHead)
	notes, more := cut(c.Notes, maxNotes)
	for _, n := range notes {
		add("Note", n)
	}
	if more > 0 {
		add("Note", fmt.Sprintf("and %d more, in the JSON report", more))
	}
	return out
}

func (b *builder) waiting(v *clusterView, c *report.Cluster) {
	groups, more := cut(outline.Waiting(c), maxWaiting)
	v.MoreWaiting = more
	for _, g := range groups {
		row := waitingRow{
			Pods: len(g.Pods), Owner: outline.OwnerText(&g), Cause: outline.Words(g.Cause), Oldest: since(g.Oldest, b.now),
			By: cmp.Or(g.ReportedBy, "nobody"), Message: cmp.Or(g.Message, "none was read"), Names: names(g.Pods, maxObjects),
		}
		if g.Bound {
			row.Cause = "bound to " + cmp.Or(g.TargetNode, "several nodes") + ", never started"
		} else if g.TargetNode != "" {
			row.Cause += ", for node " + g.TargetNode
		}
		if g.Attempts > 0 {
			row.By += fmt.Sprintf(", %d times", g.Attempts)
		}
		v.Waiting = append(v.Waiting, row)
	}
}

func (b *builder) devices(v *clusterView, c *report.Cluster) {
	for i := range c.Devices {
		d := &c.Devices[i]
		held := unknown
		if d.Held != nil {
			held = heldText(d.Held)
		}
		share := unknown
		if d.Occupancy != nil {
			share = plain.Percent(*d.Occupancy)
			if share == plain.Unknown {
				share = unknown
			}
		}
		v.Devices = append(v.Devices, deviceRow{
			Resource: d.Resource, Unit: cmp.Or(d.Unit, "device") + " (" + cmp.Or(d.Source, unknown) + ")", Physical: number(d.Physical),
			Capacity: fmt.Sprint(d.Capacity), Allocatable: fmt.Sprint(d.Allocatable), Requested: number(d.Requested),
			Free: bounded(d.Free, d.UpperBound), MaxFree: bounded(d.MaxFreeOnOneNode, d.UpperBound), Held: held, Over: number(d.Overcommitted),
			Reclaimable: number(d.Reclaimable), Nominated: number(d.Nominated), NaiveRequested: number(d.Naive.Requested), NaiveFree: number(d.Naive.Free),
			Share: share, Alias: d.AliasOf,
		})
		if d.PhysicalNote != "" {
			v.DeviceNotes = append(v.DeviceNotes, d.Resource+": "+d.PhysicalNote)
		}
		for _, n := range d.Notes {
			v.DeviceNotes = append(v.DeviceNotes, d.Resource+": "+n)
		}
	}
	v.DeviceNotes, _ = cut(v.DeviceNotes, maxNotes)
	for _, u := range c.Unknown {
		v.UnknownDevices = append(v.UnknownDevices, unknownRow{
			u.Resource, fmt.Sprint(u.Nodes), fmt.Sprint(u.Capacity), fmt.Sprint(u.Allocatable), number(u.Requested), u.Note,
		})
	}
}

func heldText(h *report.Held) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{h.Ghost, "never started"}, {h.StuckStarting, "stuck starting"}, {h.Terminating, "terminating"}, {h.DeadNode, "on dead nodes"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "0")
}

func (b *builder) classes(v *clusterView, c *report.Cluster) {
	all, more := cut(outline.Classes(c), maxClasses)
	v.MoreClasses = more
	for _, k := range all {
		wants := []string{outline.Labels(k.Requests)}
		for _, w := range []struct{ what, value string }{
			{"node selector", outline.Labels(k.NodeSelector)}, {"affinity", compact(k.Affinity)}, {"tolerations", compact(k.Tolerations)},
			{"host ports", strings.Join(k.HostPorts, ", ")}, {"runtime class", k.RuntimeClass}, {"owners", names(k.Owners, 6)},
		} {
			if w.value != "" {
				wants = append(wants, w.what+": "+plain.Cut(w.value, 400))
			}
		}
		v.Classes = append(v.Classes, classRow{
			Name: k.Name, Source: k.Source, Wants: strings.Join(wants, "; "), Waiting: number(k.PendingPods), Running: number(k.RunningPods),
			Nodes: fmt.Sprint(k.EligibleNodes), Free: atMost(k.ApparentFree, k.UpperBound),
			Usable: atMost(k.Schedulable, k.UpperBound), Replicas: fmt.Sprint(k.Replicas),
			Most: fmt.Sprint(k.MaxReplicasNode), Reclaimable: fmt.Sprint(k.Reclaimable), Lost: strings.TrimPrefix(strings.TrimSuffix(outline.NotOffered(&k)+"; "+lossWords(k.Lost), "; "), "; "),
			NotModelled: strings.Join(k.NotModelled, ", "),
		})
	}
}

func lossWords(lost []report.Lost) string {
	parts := make([]string, len(lost))
	for i, l := range lost {
		parts[i] = fmt.Sprintf("%d %s", l.Devices, reasonText(l.Reason))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// nodes lists all nodes of a small cluster, those in trouble of a large one.
func (b *builder) nodes(v *clusterView, c *report.Cluster) {
	list := slices.Clone(c.Nodes)
	limit := min(maxNodeRows, b.nodeRows)
	if len(list) > limit {
		list = outline.TroubledNodes(c)
		v.NodesNote = fmt.Sprintf("Of %d nodes, those to look at; the picture above names the others.", len(c.Nodes))
	}
	list, v.MoreNodes = cut(list, limit)
	b.nodeRows -= len(list)
	for i := range list {
		n := &list[i]
		row := nodeRow{
			Name: n.Name, UID: cmp.Or(n.UID, unknown), Kind: cmp.Or(n.Kind, unknown), Age: since(n.Created, b.now), Devices: outline.NodeDevices(n),
			Labels: cmp.Or(outline.Labels(n.Labels), "none"), Taints: cmp.Or(names(n.Taints, maxObjects), "none"), Cordoned: "no",
		}
		row.Devices = strings.ReplaceAll(row.Devices, plain.Unknown+"/", unknown+" of ")
		row.Ready, row.Bad = readyText(n, b.now)
		if n.Cordoned {
			row.Cordoned, row.Bad = "for "+since(n.CordonedSince, b.now), true
		}
		v.Nodes = append(v.Nodes, row)
	}
}

// changes shows the newest changes first.
func (b *builder) changes(v *clusterView, all []history.Change) {
	list := slices.Clone(all)
	slices.Reverse(list)
	list, v.MoreChanges = cut(list, maxChanges)
	for i := range list {
		c := &list[i]
		row := changeRow{After: stamp(c.After), Before: stamp(c.Before), Node: text(c.Node), Text: c.Text(), At: "nothing", By: "not a label"}
		if c.What == history.Label {
			row.By = unknown
		}
		if c.At != nil {
			row.At = stamp(*c.At)
		}
		if c.SetBy != nil {
			row.By = text(c.SetBy.Manager + " (" + c.SetBy.Operation + ")")
		}
		v.Changes = append(v.Changes, row)
	}
}

func (b *builder) outcomes(v *clusterView, c *report.Cluster) {
	steps := map[string]int{}
	for id, number := range stepsByCheck() {
		steps[id] = number
	}
	for _, o := range c.Checks {
		row := checkRow{ID: o.ID, Outcome: outcomeText(o.Outcome), Class: string(o.Outcome), Reason: o.Reason}
		if n := steps[o.ID]; n > 0 {
			row.Step, row.Link = fmt.Sprint(n), b.link("", n)
		}
		v.Checks = append(v.Checks, row)
	}
	for _, g := range c.Gaps {
		row := gapRow{Resource: g.Resource, Reason: outline.Words(g.Reason), Message: g.Message, Checks: strings.Join(g.Checks, ", ")}
		if g.Namespace != "" {
			row.Resource += " in " + g.Namespace
		}
		if g.Accepted {
			row.Accepted = cmp.Or(g.AcceptedReason, "by the configuration")
		}
		v.Gaps = append(v.Gaps, row)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
