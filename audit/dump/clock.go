package dump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// voice is what an object says of the time, at the latest.
type voice struct {
	at  time.Time
	who string
}

// stamp is the newest times that an object shows: by the control plane's clock,
// and by that of a node's kubelet. Deletion times and dates in certificates may
// lie ahead and are in neither.
type stamp struct {
	plane, kubelet time.Time
	node           string
	ready          bool // the object is the Node, and it is Ready
}

// clock tells the newest time of a dump. The kubelets' times are kept by node,
// since one node whose clock runs ahead must not move the whole cluster's now:
// every other node would look silent.
type clock struct {
	plane time.Time
	// last are the control plane's latest voices, the latest first; all counts them.
	last  []voice
	all   int
	nodes map[string]time.Time
	ready map[string]bool
}

// lastKept of the control plane's voices are enough to tell which are ahead.
const lastKept = 8

func newClock() clock { return clock{nodes: map[string]time.Time{}, ready: map[string]bool{}} }

func (c *clock) add(s stamp, who string) {
	plane := s.plane
	if s.node == "" {
		plane = later(plane, s.kubelet)
	}
	if !plane.IsZero() {
		c.plane = later(c.plane, plane)
		c.all++
		i, _ := slices.BinarySearchFunc(c.last, plane, func(v voice, t time.Time) int { return t.Compare(v.at) })
		if i < lastKept {
			c.last = slices.Insert(c.last, i, voice{plane.UTC(), who})
			c.last = c.last[:min(len(c.last), lastKept)]
		}
	}
	if s.node == "" {
		return
	}
	if at := later(c.nodes[s.node], s.kubelet); !at.IsZero() {
		c.nodes[s.node] = at
	}
	if s.ready {
		c.ready[s.node] = true
	}
}

// ahead is how far a node's times may lie after everybody else's.
const ahead = 24 * time.Hour

// alone is how far the few latest voices may lie after all the others. A cluster
// of which one object alone was heard for a year is no cluster; a clock that was
// never set, or a date computed wrong, is common.
const alone = 365 * 24 * time.Hour

// newest gives the newest time, and who was not believed. A node's times are
// left out when they lie more than a day after everything that the control plane
// wrote and after the upper median of the Ready nodes, of which three are
// needed: fewer do not tell which clock is wrong. Up to three voices of any
// kind, and no more than a quarter of all, are left out when all the others end
// more than a year before. note says so, and when a single voice alone decides.
func (c *clock) newest() (at time.Time, note string) {
	voices := c.voices()
	slices.SortFunc(voices, func(a, b voice) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.who, b.who)) })
	for few := min(3, (c.all+len(c.nodes))/4, len(voices)-1); few > 0; few-- {
		if voices[few-1].at.Sub(voices[few].at) > alone {
			var who []string
			for _, v := range voices[:few] {
				who = append(who, fmt.Sprintf("%s (%s)", v.who, v.at.UTC().Format(time.RFC3339)))
			}
			return voices[few].at, fmt.Sprintf("not believed when the dump was taken, since everything else in it ends more than a year before: %s; give the moment with --now if it is right", strings.Join(who, ", "))
		}
	}
	switch {
	case len(voices) == 0:
		return time.Time{}, ""
	case len(voices) > 2 && voices[0].at.Sub(voices[1].at) > ahead:
		note = fmt.Sprintf("the moment of the dump, %s, is told by %s alone: everything else in it ends %s before; give the moment with --now if that is wrong",
			voices[0].at.UTC().Format(time.RFC3339), voices[0].who, duration.HumanDuration(voices[0].at.Sub(voices[1].at)))
	}
	return voices[0].at, note
}

// voices are the latest ones of the control plane and one for each node whose
// clock is believed.
func (c *clock) voices() []voice {
	var ready []time.Time
	for node, at := range c.nodes {
		if c.ready[node] {
			ready = append(ready, at)
		}
	}
	bound := time.Time{}
	if len(ready) >= 3 {
		slices.SortFunc(ready, time.Time.Compare)
		bound = later(c.believed(), ready[len(ready)/2]).Add(ahead)
	}
	out := slices.Clone(c.last)
	for node, at := range c.nodes {
		if bound.IsZero() || !at.After(bound) {
			out = append(out, voice{at, fmt.Sprintf("node %q", node)})
		}
	}
	return out
}

// believed is the control plane's latest time, without one far ahead of its others.
func (c *clock) believed() time.Time {
	if few := min(3, c.all/4); few > 0 && len(c.last) > few && c.last[0].at.Sub(c.last[few].at) > alone {
		return c.last[few].at
	}
	return c.plane
}

// within is how far kubelets' clocks may honestly lie ahead of the moment given.
const within = 10 * time.Minute

// taken is a moment that the dump was surely not taken before: what the control
// plane wrote last, or what half of the Ready nodes' kubelets did.
func (c *clock) taken() time.Time {
	var ready []time.Time
	for node, at := range c.nodes {
		if c.ready[node] {
			ready = append(ready, at)
		}
	}
	if len(ready) == 0 {
		return c.believed()
	}
	slices.SortFunc(ready, time.Time.Compare)
	return later(c.believed(), ready[(len(ready)-1)/2])
}

func newest(times ...metav1.Time) time.Time {
	var out time.Time
	for _, t := range times {
		out = later(out, t.Time)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a
}
