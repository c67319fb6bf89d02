package page

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
	"gpuaudit/audit/snapshot"
)

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// waterfall leads from the free devices of a class to the usable ones.
type waterfall struct {
	ID, Class, Wants, Sentence, Resource string
	Height                               int
	Bars                                 []bar
	NotModelled                          string
}

// bar is a line of a waterfall; Text and Bar are its two heights in the drawing.
type bar struct {
	Label, Count, Nodes, Detail, Class, Step, Link string
	Y, TextY                                       int
	X, W                                           string
}

const barHeight = 40

func (b *builder) waterfalls(v *clusterView, c *report.Cluster) {
	for i, k := range outline.Classes(c) {
		if i > 0 && (len(v.Waterfalls) == maxWaterfalls || outline.Lost(&k) == 0) {
			v.OtherClasses++
			continue
		}
		v.Waterfalls = append(v.Waterfalls, b.waterfall(c, &k, fmt.Sprintf("%s-class-%d", v.Anchor, i+1)))
	}
}

func (b *builder) waterfall(c *report.Cluster, k *report.Class, id string) waterfall {
	unit := outline.Unit(c, k.Resource)
	w := waterfall{
		ID: id, Class: k.Name, Wants: outline.Wants(k), Sentence: sentence(k, unit), Resource: k.Resource,
		NotModelled: strings.Join(k.NotModelled, ", "),
	}
	total := float64(k.ApparentFree)
	add := func(r bar) {
		r.TextY, r.Y = len(w.Bars)*barHeight+14, len(w.Bars)*barHeight+20
		w.Bars = append(w.Bars, r)
	}
	add(bar{
		Label: "apparently free", Count: outline.AtMost(k.UpperBound && k.ApparentFree > 0) + outline.Units(k.ApparentFree, unit),
		Class: "free", X: "0", W: percent(total, total),
	})
	left := k.ApparentFree
	for _, l := range k.Lost {
		left -= l.Devices
		r := bar{
			Label: reasonText(l.Reason), Count: "−" + outline.Units(l.Devices, unit), Nodes: names(l.Nodes, maxLostNodes), Detail: l.Detail, Class: "lost",
			X: percent(float64(left), total), W: percent(float64(l.Devices), total),
		}
		if l.Step > 0 {
			r.Step, r.Link = fmt.Sprintf("step %d", l.Step), b.link("", l.Step)
		}
		add(r)
	}
	add(bar{
		Label: "usable", Count: outline.AtMost(k.UpperBound && k.Schedulable > 0) + outline.Units(k.Schedulable, unit),
		Class: "usable", X: "0", W: percent(float64(k.Schedulable), total),
	})
	w.Height = len(w.Bars) * barHeight
	return w
}

func sentence(k *report.Class, unit string) string {
	free := atMost(k.ApparentFree, k.UpperBound)
	switch {
	case k.ApparentFree == 0:
		return "No " + unit + " is free for " + k.Name + " pods"
	case outline.Lost(k) == 0:
		return fmt.Sprintf("All %s free %s can be used by %s pods", free, plural(unit), k.Name)
	}
	return fmt.Sprintf("Of %s free %s, %s pods can use %s", free, plural(unit), k.Name, atMost(k.Schedulable, k.UpperBound))
}

// trend draws free and usable devices of one resource over stored runs.
type trend struct {
	ID, Resource, Unit, From, To, Alt string
	// Class is whose share is drawn, "" for the best of any.
	Class        string
	Top          int64
	Free, Usable []string // paths of points, broken where unknown
	Lost         []string // areas between the two
	Dots         []dot
	Rows         []trendRow
	Earlier      int
}

type dot struct{ X, Y, Class string }

type trendRow struct{ At, Capacity, Allocatable, Free, Usable, Lost string }

type trendPoint struct {
	at     time.Time
	figure snapshot.Figure
}

func (b *builder) trends(c *report.Cluster, anchor string, stored []TrendPoint) []trend {
	if len(stored) == 0 {
		return nil
	}
	all := slices.Clone(stored)
	slices.SortStableFunc(all, func(x, y TrendPoint) int { return x.At.Compare(y.At) })
	if c.CollectedAt != nil && all[len(all)-1].At.Before(*c.CollectedAt) {
		all = append(all, TrendPoint{At: *c.CollectedAt, Figures: figures(c)})
	}
	byResource := map[string][]trendPoint{}
	for _, p := range all {
		for _, f := range p.Figures {
			name := text(f.Resource)
			byResource[name] = append(byResource[name], trendPoint{p.At, f})
		}
	}
	var out []trend
	for _, resource := range sortedKeys(byResource) {
		points := byResource[resource]
		if len(points) < 2 {
			continue
		}
		if over := len(points) - maxTrendPoints; over > 0 {
			points = points[over:]
		}
		for _, class := range trendClasses(c, resource, points) {
			t := drawTrend(ofClass(points, class), resource, outline.Unit(c, resource))
			t.ID, t.Class = fmt.Sprintf("%s-trend-%d", anchor, len(out)+1), text(class)
			out = append(out, t)
		}
	}
	return out
}

// trendClasses are the classes whose share is drawn: those of this report that
// earlier runs knew, the most urgent first; "" is the best share of any, where
// none is known.
func trendClasses(c *report.Cluster, resource string, points []trendPoint) []string {
	var out []string
	for _, k := range outline.Classes(c) {
		known := 0
		for _, p := range points {
			if _, ok := p.figure.Classes[k.Name]; ok {
				known++
			}
		}
		if text(k.Resource) == resource && known > 1 && len(out) < maxTrendClasses {
			out = append(out, k.Name)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// ofClass puts a class's share in the place of the best one.
func ofClass(points []trendPoint, class string) []trendPoint {
	if class == "" {
		return points
	}
	out := slices.Clone(points)
	for i := range out {
		out[i].figure.Schedulable = nil // a run that did not know the class
		if n, ok := out[i].figure.Classes[class]; ok {
			out[i].figure.Schedulable = &n
		}
	}
	return out
}

func figures(c *report.Cluster) []snapshot.Figure {
	var out []snapshot.Figure
	for _, d := range c.Devices {
		f := snapshot.Figure{Resource: d.Resource, Capacity: d.Capacity, Allocatable: d.Allocatable, Requested: d.Requested, Free: d.Free}
		for i := range c.Classes {
			if k := &c.Classes[i]; k.Resource == d.Resource && (f.Schedulable == nil || k.Schedulable > *f.Schedulable) {
				f.Schedulable = &k.Schedulable
			}
			if k := &c.Classes[i]; k.Resource == d.Resource {
				if f.Classes == nil {
					f.Classes = map[string]int64{}
				}
				f.Classes[k.Name] = k.Schedulable
			}
		}
		if d.AliasOf == "" {
			out = append(out, f)
		}
	}
	return out
}

func drawTrend(points []trendPoint, resource, unit string) trend {
	first, last := points[0].at, points[len(points)-1].at
	t := trend{Resource: resource, Unit: plural(unit), From: stamp(first), To: stamp(last), Top: 1}
	for _, p := range points {
		if p.figure.Free != nil {
			t.Top = max(t.Top, *p.figure.Free)
		}
	}
	span := max(last.Sub(first), time.Second)
	x := func(p trendPoint) string { return percent(float64(p.at.Sub(first)), float64(span)) }
	y := func(n int64) string { return percent(float64(t.Top-min(n, t.Top)), float64(t.Top)) }
	var free, usable, upper, lower []string
	flush := func() {
		if len(upper) > 1 {
			slices.Reverse(lower)
			t.Lost = append(t.Lost, strings.Join(slices.Concat(upper, lower), " "))
		}
		upper, lower = nil, nil
	}
	line := func(into *[]string, points *[]string, n *int64, p trendPoint, class string) {
		if n == nil {
			*into, *points = appended(*into, *points), nil
			return
		}
		*points = append(*points, x(p)+","+y(*n))
		t.Dots = append(t.Dots, dot{x(p), y(*n), class})
	}
	for _, p := range points {
		f := p.figure
		line(&t.Free, &free, f.Free, p, "free")
		line(&t.Usable, &usable, f.Schedulable, p, "usable")
		if f.Free == nil || f.Schedulable == nil {
			flush()
			continue
		}
		upper, lower = append(upper, x(p)+","+y(*f.Free)), append(lower, x(p)+","+y(*f.Schedulable))
	}
	flush()
	t.Free, t.Usable = appended(t.Free, free), appended(t.Usable, usable)
	if len(t.Dots) > 120 {
		t.Dots = nil // a line of its own by then
	}
	t.rows(points)
	return t
}

func appended(list, points []string) []string {
	if len(points) < 2 {
		return list
	}
	return append(list, strings.Join(points, " "))
}

func (t *trend) rows(points []trendPoint) {
	t.Earlier = max(0, len(points)-maxTrendRows)
	for _, p := range slices.Backward(points) {
		if len(t.Rows) == maxTrendRows {
			break
		}
		f := p.figure
		row := trendRow{At: stamp(p.at), Capacity: fmt.Sprint(f.Capacity), Allocatable: fmt.Sprint(f.Allocatable), Free: number(f.Free), Usable: number(f.Schedulable), Lost: unknown}
		if f.Free != nil && f.Schedulable != nil {
			row.Lost = fmt.Sprint(*f.Free - *f.Schedulable)
		}
		t.Rows = append(t.Rows, row)
	}
	newest, oldest := t.Rows[0], points[0].figure
	t.Alt = fmt.Sprintf("From %s to %s free went from %s to %s, usable from %s to %s.", t.From, t.To, number(oldest.Free), newest.Free,
		number(oldest.Schedulable), newest.Usable)
}

// timeline shows from when to when findings were seen.
type timeline struct {
	From, To string
	Rows     []span
	LeftOut  int
}

type span struct {
	ID, Title, Severity, State, Words string
	X, W                              string
	// Before is true when the fact began before the picture does.
	Before bool
	// FactX and FactW are the time between the fact's begin and its first sighting.
	FactX, FactW string
	Linked       bool
}

func (b *builder) timeline(c *report.Cluster) *timeline {
	list, left := cut(urgent(c.Findings), maxTimeline)
	first := b.now.Add(-24 * time.Hour)
	for _, f := range list {
		if f.FirstSeen != nil && f.FirstSeen.Before(first) {
			first = *f.FirstSeen
		}
	}
	first = first.Add(-b.now.Sub(first) / 8) // room for what began before it was seen
	whole := float64(b.now.Sub(first))
	if len(list) == 0 || whole <= 0 {
		return nil
	}
	t := &timeline{From: stamp(first), To: stamp(b.now), LeftOut: left}
	at := func(x time.Time) float64 { return max(0, min(whole, float64(x.Sub(first)))) }
	for _, f := range list {
		if f.FirstSeen == nil {
			t.LeftOut++
			continue
		}
		end := cmp.Or(f.ResolvedAt, f.LastSeen)
		if end == nil {
			end = &b.now
		}
		s := span{ID: f.ID, Title: f.Title, Severity: string(f.Severity), State: string(f.State), Linked: f.Open()}
		s.Words = fmt.Sprintf("seen %s to %s", f.FirstSeen.UTC().Format("01-02 15:04"), end.UTC().Format("01-02 15:04"))
		from, to := at(*f.FirstSeen), at(*end)
		s.X, s.W = percent(min(from, whole*.988), whole), percent(max(to-from, whole*.012), whole)
		if f.Since != nil && f.Since.Before(*f.FirstSeen) {
			begun := at(*f.Since)
			s.Before = f.Since.Before(first)
			s.FactX, s.FactW = percent(begun, whole), percent(from-begun, whole)
			s.Words += ", begun " + plain.Age(b.now.Sub(*f.Since)) + " ago"
		}
		t.Rows = append(t.Rows, s)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}
