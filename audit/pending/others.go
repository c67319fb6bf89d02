package pending

import (
	"regexp"
	"strings"
)

// parseYuniKorn reads what YuniKorn's shim sets: "does not fit in queue" is the
// queue's quota, everything else was tried on nodes. Source of the forms:
// yunikorn-k8shim pkg/cache/context.go, yunikorn-core pkg/scheduler/objects.
func parseYuniKorn(r *Reading, reason, text string) {
	lower := strings.ToLower(text)
	if strings.Contains(lower, "does not fit in queue") || speaksOfQuota(inner.ReplaceAllString(text, "")) || (reason == "SchedulingSkipped" && strings.Contains(lower, "queue")) {
		r.reasonOnly(text)
		r.only(Quota)
		return
	}
	parseNested(r, text)
	if len(r.Causes) == 0 && text != "" && !anyOf(lower, []string{"rejected", "not exist", "not running"}) {
		r.add(Capacity) // it looked at nodes and took none
	}
}

var (
	kaiNodes = regexp.MustCompile(`(?i)no nodes with enough resources were found: ?`)
	kaiDue   = regexp.MustCompile(`(?i)(?:due to|conditions were not met for pod [^:\n]{1,600}): ?`)
)

// parseKAI reads KAI's (Run:ai's) fit errors. Where only part of a gang fits,
// the node reasons of the others say why the gang waits.
func parseKAI(r *Reading, text string) {
	if speaksOfQuota(inner.ReplaceAllString(text, "")) {
		r.reasonOnly(text)
		r.add(Quota)
		return
	}
	rest := text
	if at := kaiNodes.FindStringIndex(rest); at != nil {
		rest = rest[at[1]:]
	} else {
		for at := kaiDue.FindStringIndex(rest); at != nil && strings.TrimSpace(rest[at[1]:]) != ""; at = kaiDue.FindStringIndex(rest) {
			rest = rest[at[1]:]
		}
	}
	parseNodes(r, rest)
	if strings.Contains(text, "required for gang scheduling") {
		r.add(Gang)
	}
}

var (
	hamiNodes = regexp.MustCompile(`^no available node, (?:\d+ )?(?:nodes? )?(?:do not meet|does not meet)`)
	hamiCode  = regexp.MustCompile(`^(?:nodes? )?(?:\d+/\d+ )?([A-Z][A-Za-z]{2,63})(?:\([^)]*\))?$`)
)

// parseHAMi reads the filter's own events ("2 nodes CardInsufficientMemory(a,b)")
// and kube-scheduler's text with the extender's reasons in it ("1 NodeUnfitPod",
// "4/8 CardTimeSlicingExhausted"). Source of the codes: HAMi pkg/device/common.
func parseHAMi(r *Reading, text string) {
	if hamiNodes.MatchString(text) {
		r.reason("no available node")
		return
	}
	part, count := nodePart(text)
	r.Nodes = count
	for _, item := range split(part) {
		if m := hamiCode.FindStringSubmatch(clean(item)); m != nil {
			r.reason(m[1])
			continue
		}
		r.reason(clean(item))
	}
}

var (
	kueueSets   = regexp.MustCompile(`(?i)couldn't assign flavors to pod sets? [^:]{1,300}: `)
	kueueInner  = regexp.MustCompile(`(?i)insufficient (?:unused )?quota (?:in cohort )?for ([^\s,]+)(?: in flavor ([^\s,]+))?`)
	kueueLimit  = regexp.MustCompile(`(?i)borrowing limit for ([^\s,]+)(?: in flavor ([^\s,]+))? exceeded`)
	kueueNone   = regexp.MustCompile(`(?i)resource ([^\s,]+) (?:is )?unavailable in ClusterQueue`)
	kueueOver   = regexp.MustCompile(`> maximum capacity(?: \(([^)]{1,200})\))?`)
	kueueClosed = regexp.MustCompile(`(?i)(?:ClusterQueue|LocalQueue) \S* ?(?:is inactive|is stopped|doesn't exist|does not exist)`)
)

// parseKueue reads the conditions and events of Workloads, which Kueue also
// writes on plain pods. Source of the forms: kueue
// pkg/scheduler/flavorassigner.
func parseKueue(r *Reading, text string) {
	rest := kueueSets.ReplaceAllString(text, "")
	for _, item := range kueueItems(rest) {
		item = strings.Trim(item, " .")
		if item == "" {
			continue
		}
		if len(r.Reasons) < maxReasons {
			r.Reasons = append(r.Reasons, item)
		}
		switch {
		case kueueInner.MatchString(item), kueueLimit.MatchString(item), kueueNone.MatchString(item), kueueOver.MatchString(item):
			r.add(Quota)
		case kueueClosed.MatchString(item):
			r.add(Queue)
		default:
			r.add(causeOf(item))
		}
	}
	if len(r.Causes) == 0 && text != "" {
		lower := strings.ToLower(text)
		for _, w := range []string{"preempt", "waiting for", "admission check", "queue", "suspended", "inactive", "didn't fit", "evicted"} {
			if strings.Contains(lower, w) {
				r.add(Queue)
				break
			}
		}
	}
}

// kueueItems splits at ", " before a new reason only: "8 more needed" and
// "request > maximum capacity" belong to the quota before them.
func kueueItems(text string) []string {
	var out []string
	for _, item := range split(strings.ReplaceAll(text, "; ", "\n")) {
		trimmed := strings.TrimSpace(item)
		belongs := strings.HasSuffix(strings.TrimRight(trimmed, "."), "more needed") || kueueOver.MatchString(trimmed)
		if belongs && len(out) > 0 && !kueueInner.MatchString(trimmed) {
			out[len(out)-1] += ", " + trimmed
			continue
		}
		out = append(out, trimmed)
	}
	return out
}
