package pending

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"gpuaudit/audit/report"
)

var (
	exceeded     = regexp.MustCompile(`exceeded quota: ([^,\s]+), requested: (.+?), used: (.+?), limited: ([^\s]+)`)
	scopes       = regexp.MustCompile(`insufficient quota to match these scopes: (\[.*)`)
	mustSpecify  = regexp.MustCompile(`failed quota: ([^:\s]+): must specify ([^;]+)`)
	koordinator  = regexp.MustCompile(`(?i)insufficient quotas?\b`)
	koordName    = regexp.MustCompile(`quotaName(?:Topo)?: ?(\[[^\]]*\]|[^\s,\]]+)`)
	koordExceeds = regexp.MustCompile(`exceedDimensions: \[([^\]]*)\]`)
	koordList    = regexp.MustCompile(`[Ii]nsufficient quotas \[\[?([^\]]*)\]`)
	koordRuntime = regexp.MustCompile(`runtime: (?:map)?\[([^\]]*)\]`)
	koordUsed    = regexp.MustCompile(`used: (?:map)?\[([^\]]*)\]`)
	yunikornFit  = regexp.MustCompile(`does not fit in queue '?([^\s']+)'? \(requested map\[([^\]]*)\], available map\[([^\]]*)\]\)`)
	elasticQuota = regexp.MustCompile(`(?i)pod .* is rejected in prefilter because elasticquota (\S+) is more than (max|min)`)
	queueName    = regexp.MustCompile(`(?i)queue[ :]+["'<]?([A-Za-z0-9][\w.-]*)["'>]? (?:is overused|resource quota|quota|has no)`)
	kueueFlavor  = regexp.MustCompile(`insufficient (?:unused )?quota (?:in cohort )?for (\S+) in flavor ([^\s,]+)`)
)

// ParseFailedCreate reads a controller's word that a pod was refused at
// creation by a native ResourceQuota. Source: kubernetes
// plugin/pkg/admission/resourcequota (controller.go).
func ParseFailedCreate(message string) (report.Quota, bool) {
	text := cut(message)
	if m := exceeded.FindStringSubmatch(text); m != nil {
		q := report.Quota{Source: "native", Name: m[1], Mode: "exhausted"}
		requested, used, limited := amounts(m[2]), amounts(m[3]), amounts(m[4])
		for _, name := range order(m[2]) {
			if q.Resource == "" || over(requested[name], used[name], limited[name]) {
				q.Resource, q.Used, q.Hard = name, used[name], limited[name]
			}
			if over(requested[name], used[name], limited[name]) {
				break
			}
		}
		return q, true
	}
	if scopes.MatchString(text) {
		return report.Quota{Source: "native", Mode: "scope"}, true
	}
	if m := mustSpecify.FindStringSubmatch(text); m != nil {
		return report.Quota{Source: "native", Name: m[1], Mode: "misspecified", Resource: strings.TrimSpace(strings.Split(m[2], " for")[0])}, true
	}
	return report.Quota{}, false
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
	a, err1 := resource.ParseQuantity(requested)
	b, err2 := resource.ParseQuantity(used)
	c, err3 := resource.ParseQuantity(limited)
	if err1 != nil || err2 != nil || err3 != nil {
		return false
	}
	a.Add(b)
	return a.Cmp(c) > 0
}

// quotaIn finds a scheduler's quota in a message; nil when it speaks of none.
func quotaIn(reporter, text string) *report.Quota {
	q := &report.Quota{Source: "scheduler", Mode: "exhausted", Reporter: reporter}
	switch {
	case yunikornFit.MatchString(text):
		m := yunikornFit.FindStringSubmatch(text)
		q.Name = m[1]
		q.Resource, _ = firstPair(m[2])
		_, q.Hard = firstPair(m[3])
		return q
	case koordinator.MatchString(text) && (strings.Contains(text, "quotaName") || koordList.MatchString(text)):
		if m := koordName.FindStringSubmatch(text); m != nil {
			// A topology lists the quota after all its parents.
			if path := strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == ',' || r == '[' || r == ']' }); len(path) > 0 {
				q.Name = path[len(path)-1]
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
		return q
	case elasticQuota.MatchString(text):
		q.Name = elasticQuota.FindStringSubmatch(text)[1]
		return q
	case kueueFlavor.MatchString(text):
		m := kueueFlavor.FindStringSubmatch(text)
		q.Resource, q.Name = m[1], m[2]
		if strings.Contains(text, "request > maximum capacity") {
			q.Mode = "never"
		}
		return q
	case queueName.MatchString(text):
		q.Name = queueName.FindStringSubmatch(text)[1]
		return q
	}
	if native, ok := ParseFailedCreate(text); ok {
		return &native
	}
	return nil
}

func firstPair(list string) (name, value string) {
	fields := strings.Fields(list)
	if len(fields) == 0 {
		return "", ""
	}
	i := strings.LastIndexByte(fields[0], ':')
	if i < 0 {
		return fields[0], ""
	}
	return fields[0][:i], fields[0][i+1:]
}

func pairValue(list, name string) string {
	for _, field := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		if v, ok := strings.CutPrefix(field, name+":"); ok {
			return v
		}
	}
	return ""
}
