package dump

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	nodes map[string]time.Time
	ready map[string]bool
}

func newClock() clock { return clock{nodes: map[string]time.Time{}, ready: map[string]bool{}} }

func (c *clock) add(s stamp) {
	if s.node == "" {
		c.plane = later(c.plane, later(s.plane, s.kubelet))
		return
	}
	c.plane = later(c.plane, s.plane)
	if at := later(c.nodes[s.node], s.kubelet); !at.IsZero() {
		c.nodes[s.node] = at
	}
	if s.ready {
		c.ready[s.node] = true
	}
}

// ahead is how far a node's times may lie after everybody else's.
const ahead = 24 * time.Hour

// newest gives the newest time. A node's times are left out only when they lie
// more than a day after everything that the control plane wrote and after the
// upper median of the Ready nodes, of which three are needed: fewer do not tell
// which clock is wrong.
func (c *clock) newest() time.Time {
	var ready []time.Time
	for node, at := range c.nodes {
		if c.ready[node] {
			ready = append(ready, at)
		}
	}
	bound := time.Time{}
	if len(ready) >= 3 {
		slices.SortFunc(ready, time.Time.Compare)
		bound = later(c.plane, ready[len(ready)/2]).Add(ahead)
	}
	out := c.plane
	for _, at := range c.nodes {
		if bound.IsZero() || !at.After(bound) {
			out = later(out, at)
		}
	}
	return out
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
		return c.plane
	}
	slices.SortFunc(ready, time.Time.Compare)
	return later(c.plane, ready[(len(ready)-1)/2])
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
