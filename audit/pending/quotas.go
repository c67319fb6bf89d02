package pending

import (
	"regexp"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// What API servers say of native quotas. Source: kubernetes
// plugin/pkg/admission/resourcequota and plugin/pkg/admission/limitranger.
var (
	exceeded    = regexp.MustCompile(`(?i)exceeded quota: ([^,\s]+), requested: ([^\s]+(?:, ?[^\s:]+=[^\s]+)*), used: ([^\s]+(?:, ?[^\s:]+=[^\s]+)*), limited: ([^\s"]+(?:, ?[^\s:]+=[^\s"]+)*)`)
	scopes      = regexp.MustCompile(`(?i)insufficient quota to match these scopes`)
	mustSpecify = regexp.MustCompile(`(?i)failed quota: ([^:\s]+): must specify ([^;\n]+)`)
	notCounted  = regexp.MustCompile(`(?i)status unknown for quota: ([^,\s]+), resources: ([^,\s]+)`)
	limitRange  = regexp.MustCompile(`(?i)(?:maximum|minimum) (\S+) usage per (?:Pod|Container|PersistentVolumeClaim) is ([^\s,\]]+)|(\S+) max limit to request ratio per (?:Pod|Container) is ([^\s,\]]+)`)
	webhook     = regexp.MustCompile(`admission webhook "([^"\s]{1,253})" denied the request: (.*)`)
)

// LimitRange is the name given to a limit of a namespace's LimitRange, whose
// own name no message tells.
const LimitRange = "LimitRange"

// ParseFailedCreate reads a controller's word that a pod was refused at
// creation by a quota: exhausted, scope (a priority class that no quota of the
// namespace permits: no ResourceQuota need exist) or misspecified (requests or
// limits missing, or outside a LimitRange). A quota that an admission webhook
// enforces has source scheduler and the webhook as its reporter. False for any
// other refusal.
func ParseFailedCreate(message string) (report.Quota, bool) {
	text := cut(message)
	if m := exceeded.FindStringSubmatch(text); m != nil {
		return exhaustedQuota(m[1], m[2], m[3], strings.TrimRight(m[4], ".;")), true
	}
	if scopes.MatchString(text) {
		return report.Quota{Source: "native", Mode: "scope"}, true
	}
	if m := mustSpecify.FindStringSubmatch(text); m != nil {
		what, _, _ := strings.Cut(m[2], " for: ")
		return report.Quota{Source: "native", Name: m[1], Mode: "misspecified", Resource: strings.Trim(what, ` ."`)}, true
	}
	if m := notCounted.FindStringSubmatch(text); m != nil {
		return report.Quota{Source: "native", Name: m[1], Resource: strings.Trim(m[2], ".[]"), Mode: "exhausted"}, true
	}
	if m := limitRange.FindStringSubmatch(text); m != nil {
		return report.Quota{Source: "native", Name: LimitRange, Mode: "misspecified", Resource: m[1] + m[3], Hard: strings.TrimRight(m[2]+m[4], ".")}, true
	}
	if m := webhook.FindStringSubmatch(text); m != nil && speaksOfQuota(m[2]) {
		return report.Quota{Source: "scheduler", Mode: "exhausted", Reporter: m[1]}, true
	}
	return report.Quota{}, false
}

// exhaustedQuota names the first resource of which there is not enough; the
// message lists all that the quota limits.
func exhaustedQuota(name, requested, used, limited string) report.Quota {
	q := report.Quota{Source: "native", Name: name, Mode: "exhausted"}
	asked, inUse, limits := amounts(requested), amounts(used), amounts(limited)
	for _, r := range order(requested) {
		if over(asked[r], inUse[r], limits[r]) {
			q.Resource, q.Used, q.Hard = r, inUse[r], limits[r]
			return q
		}
		if q.Resource == "" {
			q.Resource, q.Used, q.Hard = r, inUse[r], limits[r]
		}
	}
	return q
}

func order(list string) []string {
	var out []string
	for _, item := range strings.Split(list, ",") {
		name, _, _ := strings.Cut(item, "=")
		out = append(out, strings.TrimSpace(name))
	}
	return out
}

func amounts(list string) map[string]string {
	out := map[string]string{}
	for _, item := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(item, "=")
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out
}

func over(requested, used, limited string) bool {
	a, err1 := inventory.ReadQuantity(requested)
	b, err2 := inventory.ReadQuantity(used)
	c, err3 := inventory.ReadQuantity(limited)
	if err1 != nil || err2 != nil || err3 != nil {
		return false
	}
	a.Add(b)
	return a.Cmp(c) > 0
}

// What schedulers say of their own quotas.
var (
	koordinator  = regexp.MustCompile(`(?i)insufficient quotas?\b`)
	koordName    = regexp.MustCompile(`quotaName(?:Topo)?: ?(?:\[([^\]]*)\]|([^\s,\]]+))`)
	koordExceeds = regexp.MustCompile(`exceedDimensions: \[([^\]]*)\]`)
	koordList    = regexp.MustCompile(`(?i)insufficient quotas? \[\[?([^\]]*)\]`)
	koordRuntime = regexp.MustCompile(`runtime: (?:map)?\[([^\]]*)\]`)
	koordUsed    = regexp.MustCompile(`used: (?:map)?\[([^\]]*)\]`)
	yunikornFit  = regexp.MustCompile(`does not fit in queue '?([^\s']+)'? \(requested map\[([^\]]*)\], available map\[([^\]]*)\]\)`)
	yunikornName = regexp.MustCompile(`does not fit in queue '?([^\s',(]+)`)
	elasticQuota = regexp.MustCompile(`(?i)elasticquota (\S+) is more than (?:max|min)`)
	elasticTotal = regexp.MustCompile(`(?i)total elasticquota used is more than min`)
	kaiLimit     = regexp.MustCompile(`(\S+) quota has reached the allowable limit of ([^.]{1,64})\. Limit is (\S+)(?: [^,]{0,64}, currently (\S+))?`)
	kaiOver      = regexp.MustCompile(`Workload requested (\S+) ([^,]{1,64}), but (\S+) quota is (\S+)[^,]{0,64}, while (\S+)`)
	queueName    = regexp.MustCompile(`(?i)queue[ :]+["'<\[]?([A-Za-z0-9][\w.-]*)["'>\]]? (?:is overused|overused|resource quota|quota|has no|has insufficient)`)
	queueLacks   = regexp.MustCompile(`(?i)queue resource quota insufficient:? ?(?:insufficient )?([a-z0-9][\w.-]*(?:/[\w.-]+)?)?`)
)

// quotaWords are what every message about a quota holds one of, in lower case.
var quotaWords = []string{"quota", "overused", "queue", "borrowing limit", "maximum capacity"}

// quotaIn finds a quota in a scheduler's message; nil when it names none.
func quotaIn(reporter, text string) *report.Quota {
	if !anyOf(strings.ToLower(text), quotaWords) {
		return nil
	}
	q := &report.Quota{Source: "scheduler", Mode: "exhausted", Reporter: reporter}
	for _, read := range []func(*report.Quota, string) bool{yunikornQuota, koordinatorQuota, elasticQuotaIn, kaiQuota, kueueQuota, volcanoQuota} {
		if read(q, text) {
			return q
		}
	}
	if native, ok := ParseFailedCreate(text); ok && native.Name != LimitRange {
		return &native
	}
	return nil
}

func yunikornQuota(q *report.Quota, text string) bool {
	if m := yunikornFit.FindStringSubmatch(text); m != nil {
		q.Name = m[1]
		q.Resource, q.Hard = short(m[2], m[3])
		return true
	}
	if m := yunikornName.FindStringSubmatch(text); m != nil {
		q.Name = m[1]
		return true
	}
	return false
}

// short gives the first requested resource of which too little is available,
// and how much there is.
func short(requested, available string) (name, left string) {
	for _, field := range strings.Fields(requested) {
		n, want := cutLast(field)
		have := pairValue(available, n)
		if have == "" {
			continue // not limited by this queue
		}
		if name == "" || over(want, "0", have) {
			name, left = n, have
		}
		if over(want, "0", have) {
			return name, left
		}
	}
	if name == "" {
		name, _ = cutLast(strings.Join(strings.Fields(requested)[:min(1, len(strings.Fields(requested)))], ""))
	}
	return name, left
}

func cutLast(pair string) (name, value string) {
	if i := strings.LastIndexByte(pair, ':'); i >= 0 {
		return pair[:i], pair[i+1:]
	}
	return pair, ""
}

func pairValue(list, name string) string {
	for _, field := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		if v, ok := strings.CutPrefix(field, name+":"); ok {
			return v
		}
	}
	return ""
}

// koordinatorQuota reads elastic quota messages. In a topology the last name is
// the quota itself, the others are its parents. Source of the form:
// koordinator pkg/scheduler/plugins/elasticquota.
func koordinatorQuota(q *report.Quota, text string) bool {
	if !koordinator.MatchString(text) || !(strings.Contains(text, "quotaName") || koordList.MatchString(text)) {
		return false
	}
	if m := koordName.FindStringSubmatch(text); m != nil {
		q.Name = m[2]
		if names := strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == ',' }); len(names) > 0 {
			q.Name = names[len(names)-1]
		}
	}
	for _, re := range []*regexp.Regexp{koordExceeds, koordList} {
		if m := re.FindStringSubmatch(text); m != nil && q.Resource == "" {
			if fields := strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' || r == '[' }); len(fields) > 0 {
				q.Resource = fields[0]
			}
		}
	}
	if m := koordRuntime.FindStringSubmatch(text); m != nil {
		q.Hard = pairValue(m[1], q.Resource)
	}
	if m := koordUsed.FindStringSubmatch(text); m != nil {
		q.Used = pairValue(m[1], q.Resource)
	}
	return true
}

// elasticQuotaIn reads the capacity scheduling of scheduler-plugins.
func elasticQuotaIn(q *report.Quota, text string) bool {
	if elasticTotal.MatchString(text) {
		return true // of all quotas together: none is to be named
	}
	m := elasticQuota.FindStringSubmatch(text)
	if m != nil {
		q.Name = m[1]
	}
	return m != nil
}

func kaiQuota(q *report.Quota, text string) bool {
	if m := kaiLimit.FindStringSubmatch(text); m != nil {
		q.Name, q.Resource, q.Hard, q.Used = strings.Trim(m[1], `'"`), strings.TrimSpace(m[2]), m[3], m[4]
		return true
	}
	if m := kaiOver.FindStringSubmatch(text); m != nil {
		q.Resource, q.Name, q.Hard, q.Used = strings.TrimSpace(m[2]), m[3], m[4], m[5]
		return true
	}
	return false
}

// kueueQuota reads flavor assignment. The workload can never fit only when
// every flavor that was tried says so: one that is merely in use may free up.
func kueueQuota(q *report.Quota, text string) bool {
	found, waits := false, false
	for _, item := range kueueItems(kueueSets.ReplaceAllString(text, "")) {
		var name, flavor string
		never := kueueOver.MatchString(item)
		if m := kueueInner.FindStringSubmatch(item); m != nil {
			name, flavor = m[1], m[2]
		} else if m := kueueLimit.FindStringSubmatch(item); m != nil {
			name, flavor = m[1], m[2]
		} else if m := kueueNone.FindStringSubmatch(item); m != nil {
			name, never = m[1], true
		} else {
			continue
		}
		if !found || (!never && !waits) {
			q.Resource, q.Name, q.Hard = name, strings.TrimRight(flavor, ".;"), maximum(item)
		}
		found, waits = true, waits || !never
	}
	if found && !waits {
		q.Mode = "never"
	}
	return found
}

// maximum gives the capacity of "request > maximum capacity (8 > 4)".
func maximum(item string) string {
	m := kueueOver.FindStringSubmatch(item)
	if m == nil {
		return ""
	}
	_, limit, _ := strings.Cut(m[1], "> ")
	if limit == "" {
		limit = m[1]
	}
	return strings.TrimSpace(limit)
}

func volcanoQuota(q *report.Quota, text string) bool {
	if m := queueName.FindStringSubmatch(text); m != nil && !strings.EqualFold(m[1], "resource") {
		q.Name = m[1]
	}
	if m := queueLacks.FindStringSubmatch(text); m != nil {
		q.Resource = m[1]
		return true
	}
	return q.Name != ""
}
