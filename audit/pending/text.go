// Package pending says why a pod waits. It reads what schedulers, queues and
// controllers write about pods, each in the dialect of who wrote it, and sets
// it against our own simulation over the nodes: one pod, one cause.
package pending

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gpuaudit/audit/report"
)

// The causes, as reports name them.
const (
	Quota         = "quota"
	Capacity      = "capacity"
	Selector      = "selector"
	Taint         = "taint"
	Volume        = "volume"
	Topology      = "topology"
	Ports         = "ports"
	Gang          = "gang"
	Gated         = "gated"
	Queue         = "queue"
	Unobserved    = "unobserved"
	DeviceMissing = "deviceMissing"
	Terminating   = "terminating"
	Preempting    = "preempting"
	Unclassified  = "unclassified"
)

// Bounds on what is read of one message; schedulers' messages are far shorter
// (an event's note has 1 KiB, a condition's message 32 KiB).
const (
	maxText    = 8 << 10
	maxReasons = 32
)

// Reading is what one message says.
type Reading struct {
	Dialect string
	// Reasons as the dialect names them, without counts: a count is never a set of nodes.
	Reasons []string
	// Causes that the reasons speak of, in the order of reading, each once.
	// None means that the text is not understood.
	Causes []string
	// Quota is set when a quota is among the causes.
	Quota *report.Quota
	// Lacking are the resources named as insufficient, in the order of reading.
	Lacking []string
	// Nodes is the "0/15 nodes" of the text, nil when there is none. The counts
	// of single reasons need not add up to it: a node may lack several things.
	Nodes *NodeCount
	// Group is the pod group's state, where the text tells it.
	Group *Group
	// Opinion is true for words of somebody who does not place pods.
	Opinion bool
}

// NodeCount is how many of all nodes a scheduler found fit.
type NodeCount struct {
	Fit int `json:"fit"`
	All int `json:"all"`
}

// Group is a pod group: how many members have to go together, and how many
// there are in each state, as the scheduler names the states.
type Group struct {
	MinAvailable int
	States       map[string]int
}

// Has is true when one of the causes is the given one.
func (r *Reading) Has(cause string) bool { return slices.Contains(r.Causes, cause) }

func (r *Reading) add(cause string) {
	if cause != "" && !r.Has(cause) {
		r.Causes = append(r.Causes, cause)
	}
}

// reason takes one reason in, with the cause that it speaks of.
func (r *Reading) reason(text string) {
	if text == "" {
		return
	}
	if len(r.Reasons) < maxReasons && !slices.Contains(r.Reasons, text) {
		r.Reasons = append(r.Reasons, text)
	}
	r.add(causeOf(text))
	if name := lackingResource(text); name != "" && len(r.Lacking) < maxReasons && !slices.Contains(r.Lacking, name) {
		r.Lacking = append(r.Lacking, name)
	}
}

// merge takes in what a part of the message says.
func (r *Reading) merge(part Reading) {
	for _, s := range part.Reasons {
		if len(r.Reasons) < maxReasons && !slices.Contains(r.Reasons, s) {
			r.Reasons = append(r.Reasons, s)
		}
	}
	for _, c := range part.Causes {
		r.add(c)
	}
	for _, s := range part.Lacking {
		if !slices.Contains(r.Lacking, s) {
			r.Lacking = append(r.Lacking, s)
		}
	}
	if r.Nodes == nil {
		r.Nodes = part.Nodes
	}
}

// only leaves one cause.
func (r *Reading) only(cause string) { r.Causes = []string{cause} }

// Parse reads a message in the dialect of its reporter, or, where the reporter
// is not known, in the one that its form shows. Reason is the condition's or
// event's reason. It never fails: what it does not understand gives no cause,
// and its text is then the one reason.
func Parse(reporter, reason, message string) Reading {
	text := strings.TrimSpace(cut(message))
	r := Reading{Dialect: dialect(reporter, reason, text)}
	switch r.Dialect {
	case Autoscaler:
		r.Opinion = true
		r.reasonOnly(text)
		return r
	case Volcano:
		parseVolcano(&r, reason, text)
	case YuniKorn:
		parseYuniKorn(&r, reason, text)
	case KAI:
		parseKAI(&r, text)
	case HAMi:
		parseHAMi(&r, text)
	case Kueue:
		parseKueue(&r, text)
	case Koordinator, SchedulerPlugins:
		parseNested(&r, text)
	default:
		parsePlain(&r, text)
	}
	settle(&r, reporter, reason, text)
	return r
}

// reasonOnly keeps a text as a reason without judging it.
func (r *Reading) reasonOnly(text string) {
	if text != "" && len(r.Reasons) < maxReasons {
		r.Reasons = append(r.Reasons, text)
	}
}

// parsePlain reads a text of kube-scheduler or of no known dialect: its reasons
// where it lists some, else the whole text as one.
func parsePlain(r *Reading, text string) {
	if nodesPrefix.MatchString(text) || oldPrefix.MatchString(text) {
		parseNodes(r, text)
		return
	}
	r.reason(trailing.ReplaceAllString(text, ""))
}

// settle applies what holds in every dialect: a quota's words win, also those
// of the reason beside the message; a pod that is being deleted is no puzzle.
func settle(r *Reading, reporter, reason, text string) {
	if speaksOfQuota(reason) {
		r.Reasons = append([]string{reason}, r.Reasons...)
		r.add(Quota)
	}
	if q := quotaIn(reporter, text); q != nil {
		r.Quota = q
		r.add(Quota)
	}
	if r.Has(Quota) {
		// It names the same resources as "Insufficient" does: first of all causes.
		r.Causes = append([]string{Quota}, slices.DeleteFunc(r.Causes, func(c string) bool { return c == Quota })...)
		if r.Quota == nil {
			r.Quota = &report.Quota{Source: "scheduler", Mode: "exhausted", Reporter: reporter}
		}
	}
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(lower, "skip schedule deleting pod"), strings.Contains(lower, "skip scheduling deleting pod"):
		r.only(Terminating)
	case reason == "SchedulingGated":
		r.only(Gated)
	}
	if len(r.Reasons) == 0 {
		r.reasonOnly(text)
	}
}

// cut bounds a message on a rune's border.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	at := maxText
	for at > maxText-utf8.UTFMax && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}
