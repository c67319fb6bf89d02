package pending

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	nodesPrefix  = regexp.MustCompile(`(?i)(?:^|: )(\d+)/(\d+) nodes? (?:is|are) (?:un)?available: ?`)
	oldPrefix    = regexp.MustCompile(`(?i)^No nodes are available that match all of the (?:following )?predicates(?: and priorities)?:+ ?|fit failure summary on nodes ?: ?`)
	leadingCount = regexp.MustCompile(`^\d+ `)
	trailing     = regexp.MustCompile(` ?\((?:\d+|repeated \d+ times)\)$`)
)

// phrases that are no reason, wherever a version of the scheduler puts them.
var noReason = []string{"no new claims to deallocate,", "no new claims to deallocate", "still not schedulable,", "still not schedulable"}

// parseNodes reads "0/15 nodes are available: ..." in its wordings over the
// years, and every dialect that lists reasons in that form. Source of the form:
// kubernetes pkg/scheduler/framework/types.go (FitError).
func parseNodes(r *Reading, text string) {
	part, count := nodePart(text)
	if r.Nodes == nil {
		r.Nodes = count
	}
	for _, item := range split(part) {
		r.reason(clean(item))
	}
}

// clean takes a reason's counts, stops and repeats off.
func clean(item string) string {
	item = strings.Trim(item, " .\n\t;")
	return strings.Trim(trailing.ReplaceAllString(leadingCount.ReplaceAllString(item, ""), ""), " .\n\t;")
}

// nodePart gives the part of a scheduler's message that speaks of nodes: what
// follows "preemption:" is about victims and no reason.
func nodePart(text string) (string, *NodeCount) {
	if at := preemption(text); at >= 0 {
		text = text[:at]
	}
	for _, phrase := range noReason {
		text = strings.ReplaceAll(text, phrase, "")
	}
	var count *NodeCount
	if at := nodesPrefix.FindStringSubmatchIndex(text); at != nil {
		fit, err1 := strconv.Atoi(text[at[2]:at[3]])
		all, err2 := strconv.Atoi(text[at[4]:at[5]])
		if err1 == nil && err2 == nil {
			count = &NodeCount{Fit: fit, All: all}
		}
		text = text[at[1]:]
	} else if at := oldPrefix.FindStringIndex(text); at != nil {
		text = text[at[1]:]
	}
	return strings.Trim(text, " .,;\n\t"), count
}

// preemption finds where the preemption half begins, -1 for nowhere. Inside
// braces it is a taint's key.
func preemption(text string) int {
	const word = "preemption:"
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth = max(0, depth-1)
		case 'p', 'P':
			if depth == 0 && len(text)-i >= len(word) && strings.EqualFold(text[i:i+len(word)], word) {
				return i
			}
		}
	}
	return -1
}

// split cuts at ", " and line ends outside braces, brackets, parentheses and quotes.
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
		case ',', '\n':
			if depth == 0 && !quoted && (s[i] == '\n' || (i+1 < len(s) && s[i+1] == ' ')) {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	if (quoted || depth > 0) && strings.Contains(s[start:], ", ") {
		// Something is left open: better to split too much than not at all.
		return rejoin(append(out, strings.Split(s[start:], ", ")...))
	}
	return rejoin(append(out, s[start:]))
}

// rejoin mends reasons that have a comma of their own: schedulers of 1.17 to
// 1.23 wrote "had taint {a: b}, that the pod didn't tolerate".
func rejoin(items []string) []string {
	out := items[:0:0]
	for _, item := range items {
		trimmed := strings.TrimSpace(item)
		if len(out) > 0 && strings.HasPrefix(trimmed, "that the pod didn't tolerate") {
			out[len(out)-1] += ", " + trimmed
			continue
		}
		out = append(out, trimmed)
	}
	return out
}

var nested = regexp.MustCompile(`(?i)with reason "((?:[^"\\]|\\.)*)|with message: '([^']*)`)

// parseNested reads a text that quotes another scheduler message as the reason
// of a gang's or a predicate's failure: the quoted one is what decides. Events
// cut long messages, so the closing quote may be gone.
func parseNested(r *Reading, text string) {
	m := nested.FindStringSubmatchIndex(text)
	if m == nil {
		parseNodes(r, text)
		return
	}
	from, to := m[2], m[3]
	if from < 0 {
		from, to = m[4], m[5]
	}
	parseNodes(r, strings.ReplaceAll(text[from:to], `\"`, `"`))
	r.add(causeOf(text[:m[0]]))
}
