package pending

import (
	"regexp"
	"strings"
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

// reporters gives the dialect of a reporter by a part of its name, in order.
var reporters = []struct{ part, dialect string }{
	{"kueue", Kueue},
	{"yunikorn", YuniKorn},
	{"volcano", Volcano}, {"vc-scheduler", Volcano}, {"vc-controller", Volcano}, {"kube-batch", Volcano},
	{"koord", Koordinator},
	{"kai-", KAI}, {"runai", KAI}, {"run-ai", KAI},
	{"hami", HAMi}, {"4pd", HAMi},
	{"scheduler-plugins", SchedulerPlugins}, {"coscheduling", SchedulerPlugins}, {"capacityscheduling", SchedulerPlugins},
}

// minAvailable is a setting that only Volcano's histogram counts.
var minAvailable = regexp.MustCompile(`(?i)\d minAvailable`)

// gangWords are of a form that only Volcano and its forks write, whatever those
// call themselves. Source of the form: volcano pkg/scheduler/api/job_info.go.
var gangWords = []string{"pod group is ready", "pod group is not ready", "podgroup is not ready", "podgroup is ready", "tasks in gang", "job is not ready",
	"once minavailable is satisfied", "queue resource quota insufficient"}

// forms tell a dialect from words of its text (in lower case, any of them), for
// reporters that say nothing: schedulers are renamed freely, and conditions
// have no reporter at all.
var forms = []struct {
	dialect string
	words   []string
}{
	{Koordinator, []string{"insufficient quotas", "quotanametopo", "gets rejected due to member pod", "gangname: ", "gang child pod"}},
	{YuniKorn, []string{"does not fit in queue '", "is pending for the requested resources", "placeholder allocation"}},
	{KAI, []string{"podschedulingerrors", "no nodes with enough resources were found", "resources were not found for", "resources were found for", "-pool has",
		"is over quota. workload requested", "quota has reached the allowable limit"}},
	{HAMi, []string{"nodeunfitpod", "no available node, ", "card insufficient", "cardinsufficient", "cardtypemismatch", "carduuidmismatch", "cardtimeslicing",
		"cardcomputeunits", "cardnot", "cardreused", "allocatedcards", "node unregistered", "nodeinsufficientdevice", "resourcequotanotfit", "exclusivedevice"}},
	{Kueue, []string{"couldn't assign flavors", " in flavor ", "clusterqueue", "localqueue"}},
	{SchedulerPlugins, []string{"sibling pods", "because elasticquota ", "total elasticquota", "pgname: ", "podgroup ", "optimistic rejection", "coscheduling"}},
	{KubeScheduler, []string{"nodes are available", "node is available", "nodes available", "no nodes available to schedule", "fit failure summary on nodes"}},
}

func anyOf(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// dialect chooses by who reported; the text's form decides where the reporter
// is not known. The name in a pod's spec has no say: admission webhooks hand
// pods to other schedulers.
func dialect(reporter, reason, text string) string {
	name := strings.ToLower(reporter)
	if IsAutoscaler(name) {
		return Autoscaler
	}
	lower := strings.ToLower(text)
	if anyOf(lower, gangWords) || (strings.Contains(lower, " minavailable") && minAvailable.MatchString(text)) {
		return Volcano
	}
	for _, r := range reporters {
		if strings.Contains(name, r.part) {
			return r.dialect
		}
	}
	if reason == "SchedulingSkipped" || reason == "PodUnschedulable" {
		return YuniKorn // source: yunikorn-k8shim pkg/cache/context.go
	}
	switch reason {
	case "FilteringFailed", "BindingFailed":
		return HAMi // source: HAMi pkg/scheduler/event.go
	case "TriggeredScaleUp", "NotTriggerScaleUp":
		return Autoscaler
	}
	for _, f := range forms {
		if anyOf(lower, f.words) {
			return f.dialect
		}
	}
	if name == "default-scheduler" || name == "kube-scheduler" {
		return KubeScheduler
	}
	return UnknownDialect
}

// IsAutoscaler is true for reporters that make nodes and place no pods.
func IsAutoscaler(reporter string) bool {
	name := strings.ToLower(reporter)
	return strings.Contains(name, "autoscaler") || strings.Contains(name, "karpenter") || strings.Contains(name, "node-provisioner")
}
