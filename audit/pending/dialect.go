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

// gangHistogram is a form that only Volcano and its forks write, whatever
// those call themselves. Source of the form: volcano pkg/scheduler/api/job_info.go.
var gangHistogram = regexp.MustCompile(`(?i)pod ?group is (?:not )?ready|tasks in gang (?:un)?schedulable|job is not ready|\d+ minAvailable|once minAvailable is satisfied|queue resource quota insufficient`)

// forms tell a dialect from the text, for reporters that say nothing: schedulers
// are renamed freely, and conditions have no reporter at all.
var forms = []struct {
	form    *regexp.Regexp
	dialect string
}{
	{regexp.MustCompile(`(?i)insufficient quotas\b|quotaNameTopo|^gang(?:group)? ".*" gets rejected|gangName: |gang child pod`), Koordinator},
	{regexp.MustCompile(`(?i)does not fit in queue '|is pending for the requested resources|placeholder allocation`), YuniKorn},
	{regexp.MustCompile(`(?i)PodSchedulingErrors|no nodes with enough resources were found|resources were (?:not )?found for|-pool has|is over quota\. Workload requested|quota has reached the allowable limit`), KAI},
	{regexp.MustCompile(`NodeUnfitPod|no available node, |\bCard[A-Z]\w+|(?i)card insufficient|node unregistered|NodeInsufficientDevice`), HAMi},
	{regexp.MustCompile(`(?i)couldn't assign flavors|in flavor \S+|ClusterQueue|LocalQueue`), Kueue},
	{regexp.MustCompile(`(?i)sibling pods|elasticquota .* is more than|total elasticquota|pgName: |podgroup \S+ gets rejected|optimistic rejection|coscheduling`), SchedulerPlugins},
	{regexp.MustCompile(`(?i)nodes? (?:is|are) available|no nodes available to schedule|fit failure summary on nodes`), KubeScheduler},
}

// dialect chooses by who reported; the text's form decides where the reporter
// is not known. The name in a pod's spec has no say: admission webhooks hand
// pods to other schedulers.
func dialect(reporter, reason, text string) string {
	name := strings.ToLower(reporter)
	if IsAutoscaler(name) {
		return Autoscaler
	}
	if gangHistogram.MatchString(text) {
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
		if f.form.MatchString(text) {
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
