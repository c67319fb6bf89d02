package pending

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	origin      = regexp.MustCompile(`[.;]? *[Oo]rigin reasons? (?:is|are):? *`)
	pendingTail = regexp.MustCompile(`; ?Pending: `)
	taskState   = regexp.MustCompile(`^(\d{1,9}) ([A-Za-z]{1,32})$`)
)

// parseVolcano reads the histogram of task states, the reasons of pending
// tasks, and the node reasons that may follow. Volcano's forks add reasons of
// their own. The histogram is about the whole pod group and is sorted as text
// ("108 Running" before "4 Releasing"); minAvailable is a setting, no state;
// "10/6 tasks" is no count of nodes. Source of the form: volcano
// pkg/scheduler/api/job_info.go and unschedule_info.go.
func parseVolcano(r *Reading, reason, text string) {
	body, nodes := text, Reading{}
	if at := origin.FindStringIndex(text); at != nil {
		body = text[:at[0]]
		parseNodes(&nodes, text[at[1]:])
	}
	tasks := ""
	if at := pendingTail.FindStringIndex(body); at != nil {
		body, tasks = body[:at[0]], body[at[1]:]
	}
	lower := strings.ToLower(text)
	if anyOf(lower, gangWords) || strings.Contains(lower, "minavailable") {
		r.Group = histogram(body)
	}
	parseTasks(r, tasks, len(nodes.Causes) > 0)
	r.merge(nodes)
	if r.Group == nil && tasks == "" {
		parseNodes(r, body)
	}
	switch {
	case reason == "Schedulable", strings.Contains(lower, "minavailable is satisfied"), strings.Contains(lower, "possibly be assigned"):
		r.only(Gang)
	case len(r.Causes) == 0 && (r.Group != nil || strings.Contains(lower, "gang unschedulable")):
		r.add(Gang)
	}
	if len(r.Reasons) == 0 {
		first, _, _ := strings.Cut(body, ", ")
		r.reasonOnly(strings.Trim(first, ". "))
	}
}

// parseTasks reads "83 Unschedulable, 2 Undetermined". "Unschedulable" alone
// says that no node took the task, not why: where node reasons follow, they do.
func parseTasks(r *Reading, tasks string, explained bool) {
	for _, item := range split(strings.Trim(tasks, ". ")) {
		name := clean(item)
		if name == "" || strings.Contains(name, "minAvailable") {
			continue
		}
		if len(r.Reasons) < maxReasons && !slices.Contains(r.Reasons, name) {
			r.Reasons = append(r.Reasons, name)
		}
		lower := strings.ToLower(name)
		switch {
		case speaksOfQuota(name):
			r.add(Quota)
		case lower == "unschedulable":
			if !explained {
				r.add(Capacity)
			}
		case lower == "schedulable", lower == "undetermined":
			r.add(Gang)
		default:
			r.add(causeOf(name))
		}
	}
}

// histogram reads "pod group is not ready, 1 Pending, 1 minAvailable, 108 Running".
func histogram(text string) *Group {
	g := &Group{States: map[string]int{}}
	found := false
	for _, item := range strings.Split(strings.Trim(text, ". "), ", ") {
		m := taskState.FindStringSubmatch(strings.Trim(item, ". "))
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || len(g.States) >= maxReasons {
			continue
		}
		found = true
		if m[2] == "minAvailable" {
			g.MinAvailable = n
		} else {
			g.States[m[2]] = n
		}
	}
	if !found {
		return nil
	}
	return g
}
