package page

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gpuaudit/audit/checklist"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// unknown stands where a value was not seen: never 0, never empty.
const unknown = "unknown"

func number[T int | int64](n *T) string {
	if n == nil {
		return unknown
	}
	return strconv.FormatInt(int64(*n), 10)
}

// bounded writes a number that may be unknown or an upper bound.
func bounded(n *int64, upperBound bool) string {
	if n == nil {
		return unknown
	}
	return outline.AtMost(upperBound && *n > 0) + number(n)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// moment writes a time and its age.
func moment(t *time.Time, now time.Time, atLeast bool) string {
	if t == nil {
		return unknown
	}
	age := plain.Age(now.Sub(*t))
	if atLeast {
		return fmt.Sprintf("at least %s, %s or earlier", age, stamp(*t))
	}
	return fmt.Sprintf("%s ago, %s", age, stamp(*t))
}

// since writes an age alone.
func since(t *time.Time, now time.Time) string {
	if t == nil {
		return unknown
	}
	return plain.Since(t, now, false)
}

func use(u *report.Utilization) string {
	if u == nil {
		return unknown
	}
	return strings.Replace(outline.Use(u), "-", " to ", 1)
}

// reasonWords says in words why a device is lost, and the letter that stands
// for it in the picture of nodes.
var reasonWords = map[string]struct{ letter, words string }{
	report.LostNotReady:         {"N", "node not ready"},
	report.LostSilent:           {"S", "node silent"},
	report.LostCordoned:         {"C", "node cordoned"},
	report.LostAdmission:        {"A", "pods fail at admission"},
	report.LostTaint:            {"T", "taint not tolerated"},
	report.LostLabelMissing:     {"L", "label missing"},
	report.LostLabelOtherValue:  {"O", "label has another value"},
	report.LostAffinity:         {"F", "node affinity"},
	report.LostReserved:         {"R", "reserved for a nominated pod"},
	report.LostTooSmall:         {"<", "too few for one replica"},
	report.LostPodSlots:         {"P", "no pod slots left"},
	report.LostCPU:              {"c", "too little CPU"},
	report.LostMemory:           {"m", "too little memory"},
	report.LostEphemeralStorage: {"e", "too little ephemeral storage"},
	report.LostRemainder:        {"r", "left over after whole replicas"},
}

func reasonText(reason string) string {
	if w, ok := reasonWords[reason]; ok {
		return w.words
	}
	return outline.Words(reason)
}

func reasonLetter(reason string) string {
	if w, ok := reasonWords[reason]; ok {
		return w.letter
	}
	return "!"
}

// link gives an address that is safe to follow: the finding's own when it is
// http or https, else the step of the checklist that lies beside the page.
func (b *builder) link(own string, step int) string {
	if u, err := url.Parse(own); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil {
		return own
	}
	return checklist.Link(b.options.ChecklistURL, step)
}

func readyText(n *report.Node, now time.Time) (text string, bad bool) {
	switch {
	case n.Ready == true && n.Silent:
		return "silent, last heartbeat " + since(n.LastHeartbeat, now), true
	case n.Ready == true && n.Initialising:
		return "ready, initialising", true
	case n.Ready == true:
		return "ready", false
	case n.Ready == false:
		return "not ready for " + since(n.Since, now), true
	}
	if n.Since != nil {
		return "readiness unknown for " + since(n.Since, now), true
	}
	return "readiness unknown", true
}

func outcomeText(o report.Outcome) string {
	switch o {
	case report.OutcomeNotEvaluated:
		return "not evaluated"
	}
	return cmp.Or(string(o), unknown)
}

// cut gives at most limit entries and how many were left out.
func cut[T any](list []T, limit int) ([]T, int) {
	if len(list) <= limit {
		return list, 0
	}
	return list[:limit], len(list) - limit
}

func names(list []string, limit int) string {
	shown, more := cut(list, limit)
	out := strings.Join(shown, ", ")
	if more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
