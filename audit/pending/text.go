// Package pending says why a pod waits. It reads what schedulers, queues and
// controllers write about pods, each in the dialect of who wrote it, and sets
// it against our own simulation over the nodes: one pod, one cause.
package pending

import (
	"regexp"
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

// Dialects, by who speaks.
const (
	KubeScheduler    = "kube-scheduler"
	Volcano          = "volcano"
	Koordinator      = "koordinator"
	SchedulerPlugins = "scheduler-plugins"
	YuniKorn         = "yunikorn"
	KAI              = "kai"
	HAMi             = "hami"
	Kueue            = "kueue"
	Autoscaler       = "autoscaler"
	UnknownDialect   = "unknown"
)

// maxText bounds what is read of one message; schedulers' messages are far shorter.
const maxText = 16 << 10

// Reading is what one message says.
type Reading struct {
	Dialect string
	// Reasons as the dialect names them, without counts: a count is never a set of nodes.
	Reasons []string
	// Causes that the reasons speak of, in the order of reading, each once.
	Causes []string
	Quota  *report.Quota
	// Opinion is true for words of somebody who does not place pods.
	Opinion bool
}

// Has is true when one of the causes is the given one.
func (r *Reading) Has(cause string) bool {
	for _, c := range r.Causes {
		if c == cause {
			return true
		}
	}
	return false
}

func (r *Reading) add(cause string) {
	if cause != "" && !r.Has(cause) {
		r.Causes = append(r.Causes, cause)
	}
}

// Parse reads a message in the dialect of its reporter, or, where the reporter
// is not known, in the one that its form shows. It never fails: what it does
// not understand gives no cause.
func Parse(reporter, reason, message string) Reading {
	text := cut(message)
	r := Reading{Dialect: dialect(reporter, reason, text)}
	switch r.Dialect {
	case Autoscaler:
		r.Opinion = true
		return r
	case Volcano:
		parseVolcano(&r, reason, text)
	case YuniKorn:
		parseYuniKorn(&r, reason, text)
	default:
		parseNodes(&r, text)
	}
	if q := quotaIn(reporter, text); q != nil {
		// A quota's words win over "Insufficient": they name the same resource.
		r.Quota = q
		r.Causes = append([]string{Quota}, remove(r.Causes, Quota)...)
	}
	if r.Has(Quota) && r.Quota == nil {
		r.Quota = &report.Quota{Source: "scheduler", Mode: "exhausted", Reporter: reporter}
	}
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(lower, "skip schedule deleting pod"), strings.Contains(lower, "skip scheduling deleting pod"):
		r.Causes = []string{Terminating}
	case reason == "SchedulingGated":
		r.Causes = []string{Gated}
	}
	return r
}

func remove(list []string, v string) []string {
	var out []string
	for _, s := range list {
		if s != v {
			out = append(out, s)
		}
	}
	return out
}

// cut bounds a message on a rune's border.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	s = s[:maxText]
	for len(s) > 0 && !utf8.ValidString(s[len(s)-min(len(s), 4):]) {
		s = s[:len(s)-1]
	}
	return s
}

var gangHistogram = regexp.MustCompile(`pod ?group is (?:not )?ready|tasks in gang unschedulable|job is not ready|\d+ minAvailable`)

// dialect chooses by who reported; the text's form decides only where the
// reporter says nothing.
func dialect(reporter, reason, text string) string {
	name := strings.ToLower(reporter)
	switch {
	case IsAutoscaler(name):
		return Autoscaler
	case strings.Contains(name, "kueue"):
		return Kueue
	case strings.Contains(name, "yunikorn"), reason == "SchedulingSkipped", reason == "PodUnschedulable":
		return YuniKorn
	case gangHistogram.MatchString(text):
		return Volcano // a form that only Volcano and its forks write, whatever they call themselves
	case strings.Contains(name, "volcano"), strings.HasPrefix(name, "vc-"):
		return Volcano
	case strings.Contains(name, "koord"):
		return Koordinator
	case strings.Contains(name, "kai"), strings.Contains(name, "runai"):
		return KAI
	case strings.Contains(name, "hami"):
		return HAMi
	case strings.Contains(name, "coscheduling"), strings.Contains(name, "scheduler-plugins"):
		return SchedulerPlugins
	case strings.Contains(text, "nodes are available"), strings.Contains(text, "No nodes are available"):
		return KubeScheduler
	case name == "default-scheduler":
		return KubeScheduler
	}
	return UnknownDialect
}

// IsAutoscaler is true for reporters that make nodes and place no pods.
func IsAutoscaler(reporter string) bool {
	name := strings.ToLower(reporter)
	return strings.Contains(name, "autoscaler") || strings.Contains(name, "karpenter")
}

// split cuts at ", " outside braces, brackets, parentheses and quotes.
func split(s string) []string {
	var out []string
	depth, start := 0, 0
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			quoted = !quoted
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 && !quoted && i+1 < len(s) && s[i+1] == ' ' {
				out = append(out, s[start:i])
				start = i + 2
			}
		}
	}
	if quoted && len(out) == 0 && strings.Contains(s, ", ") {
		return strings.Split(s, ", ") // an odd quote: better to split too much than not at all
	}
	return append(out, s[start:])
}

var (
	nodesPrefix  = regexp.MustCompile(`(?:^|: )\d+/\d+ nodes are (?:un)?available: `)
	oldPrefix    = regexp.MustCompile(`^No nodes are available that match all of the (?:following )?predicates(?: and priorities)?:+ ?`)
	leadingCount = regexp.MustCompile(`^\d+ `)
	trailing     = regexp.MustCompile(` ?\(\d+\)$`)
	preemption   = regexp.MustCompile(`(?i)[.,;]? *preemption: `)
)

// nodePart gives the part of a scheduler's message that speaks of nodes: what
// follows "preemption:" is about victims and no reason.
func nodePart(text string) string {
	if at := preemption.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	for _, phrase := range []string{"no new claims to deallocate,", "no new claims to deallocate", "still not schedulable,"} {
		text = strings.ReplaceAll(text, phrase, "")
	}
	if at := nodesPrefix.FindStringIndex(text); at != nil {
		text = text[at[1]:]
	} else if at := oldPrefix.FindStringIndex(text); at != nil {
		text = text[at[1]:]
	}
	return strings.Trim(strings.TrimSpace(text), ". ,;")
}

// parseNodes reads "0/15 nodes are available: ..." in its wordings over the
// years, and every dialect that lists reasons in that form.
func parseNodes(r *Reading, text string) {
	part := nodePart(text)
	for _, item := range split(part) {
		reason := trailing.ReplaceAllString(leadingCount.ReplaceAllString(strings.Trim(item, " ."), ""), "")
		if reason == "" {
			continue
		}
		if len(r.Reasons) < 32 {
			r.Reasons = append(r.Reasons, reason)
		}
		r.add(causeOf(reason))
	}
}

// causeOf says which cause one reason speaks of, "" for none that is known.
// Quota is tested first: it names resources too.
func causeOf(reason string) string {
	s := strings.ToLower(reason)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(s, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("quota", "overused", "queue resource"):
		return Quota
	case has("preemption is not helpful", "no preemption victims", "not eligible due to"):
		return ""
	case strings.HasPrefix(s, "insufficient ") && !has("card", "topology"), has("too many pods", "outof", "podexceedsfreecpu", "podfitsresources", "not enough resource", "exceed the capacity", "exceeds the capacity"):
		return Capacity
	case has("persistentvolumeclaim", "persistent volume", "volume", "pvc", "storageclass", "csinode", "csi driver", "storage pool", "disk conflict", "nodiskconflict"):
		return Volume
	case has("topology spread", "pod affinity", "pod anti-affinity", "affinity rules", "podaffinity", "interpodaffinity", "matchinterpodaffinity", "topology constraint", "numa", "topologyaffinity"):
		return Topology
	case has("free ports", "hostport", "podfitshostports", "host ports"):
		return Ports
	case has("taint", "unschedulable", "not ready", "notready", "node is cordoned"):
		return Taint
	case has("node affinity", "node selector", "nodeselector", "node(s) didn't match", "nodes didn't match", "matchnodeselector", "requested node name", "podfitshost", "nodeaffinity", "selector"):
		return Selector
	case has("pod group", "podgroup", "gang", "minavailable", "minmember", "quorum", "minresources", "less than minmember", "rejected by coscheduling", "optimistic rejection", "task(s) in gang"):
		return Gang
	case has("resourceclaim", "allocate all claims", "cannot allocate", "devices", "device class", "dynamic resource"):
		return Capacity
	case has("card", "no available node", "gpu memory", "gpumem", "nodeunfitpod", "no enough", "not enough", "insufficient", "no node fits", "node resource", "nodes were unavailable", "no fit"):
		return Capacity
	}
	return ""
}

var (
	origin      = regexp.MustCompile(`[.;]? *[Oo]rigin reasons? (?:is|are):? *`)
	pendingTail = regexp.MustCompile(`; ?Pending: `)
)

// parseVolcano reads the histogram of task states, the reasons of pending
// tasks, and the node reasons that may follow. minAvailable is a setting, no
// state; the histogram is about the whole pod group.
func parseVolcano(r *Reading, reason, text string) {
	body := text
	if at := origin.FindStringIndex(text); at != nil {
		body = text[:at[0]]
		var nodes Reading
		parseNodes(&nodes, text[at[1]:])
		r.Reasons = append(r.Reasons, nodes.Reasons...)
		for _, c := range nodes.Causes {
			r.add(c)
		}
	}
	if at := pendingTail.FindStringIndex(body); at != nil {
		for _, item := range split(strings.Trim(body[at[1]:], ". ")) {
			name := strings.TrimSpace(leadingCount.ReplaceAllString(strings.TrimSpace(item), ""))
			if name == "" || strings.Contains(name, " minAvailable") {
				continue
			}
			r.Reasons = append([]string{name}, r.Reasons...)
			r.add(taskReason(name))
		}
	} else if strings.Contains(body, "nodes are") {
		parseNodes(r, body)
	}
	lower := strings.ToLower(text)
	switch {
	case reason == "Schedulable", strings.Contains(lower, "minavailable is satisfied"), strings.Contains(lower, "possibly be assigned"):
		r.Causes = []string{Gang}
	case len(r.Causes) == 0 && (strings.Contains(lower, "not ready") || strings.Contains(lower, "gang unschedulable") || strings.Contains(lower, "minavailable")):
		r.add(Gang)
	}
	if len(r.Reasons) == 0 {
		r.Reasons = append(r.Reasons, strings.Trim(split(body)[0], ". "))
	}
}

// taskReason maps the reasons of tasks: forks add their own, and any that
// speaks of a quota is one.
func taskReason(name string) string {
	lower := strings.ToLower(name)
	switch {
	case strings.Contains(lower, "quota"):
		return Quota
	case strings.Contains(lower, "undetermined"), strings.Contains(lower, "notready"):
		return Gang
	case strings.Contains(lower, "schedulable") && !strings.Contains(lower, "unschedulable"):
		return Gang
	case strings.Contains(lower, "notenoughresource"), strings.Contains(lower, "unschedulable"), strings.Contains(lower, "insufficient"):
		return Capacity
	}
	return causeOf(name)
}

func parseYuniKorn(r *Reading, reason, text string) {
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(lower, "does not fit in queue"), strings.Contains(lower, "does not fit in user quota"), strings.Contains(lower, "quota"), reason == "SchedulingSkipped" && strings.Contains(lower, "queue"):
		r.Reasons, r.Causes = []string{strings.TrimSpace(text)}, []string{Quota}
	default:
		parseNodes(r, text)
		if len(r.Causes) == 0 {
			r.add(Capacity) // it looked at nodes and took none
		}
	}
}
