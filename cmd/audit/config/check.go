package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"gpuaudit/audit/check"
	"gpuaudit/audit/collect"
)

// problems lists everything that is wrong, each with its path.
func (f *File) problems(dir string) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if f.APIVersion != APIVersion {
		bad("apiVersion: is %q, want %q", f.APIVersion, APIVersion)
	}
	f.clusterProblems(dir, bad)
	f.workloadProblems(bad)
	f.thresholdProblems(bad)
	for id, s := range f.Severities {
		if !knownCheck(id) {
			bad("severities.%s: no check has this id; the ids are %s", id, strings.Join(checkIDs(), ", "))
		}
		if !s.known() {
			bad("severities.%s: is %q, want critical, warning, info or off", id, string(s))
		}
	}
	for i, d := range f.Devices {
		at := fmt.Sprintf("devices[%d]", i)
		if d.Resource == "" {
			bad("%s.resource: is missing", at)
		}
		if !oneOf(d.Unit, "", "card", "slot", "slice", "memory", "cores", "device") {
			bad("%s.unit: is %q, want card, slot, slice, memory, cores or device", at, d.Unit)
		}
		if !oneOf(d.Role, "", "device", "view", "monitoring", "none") {
			bad("%s.role: is %q, want device, view, monitoring or none", at, d.Role)
		}
		if d.PerCard < 0 {
			bad("%s.perCard: is %d, want 0 (unknown) or more", at, d.PerCard)
		}
	}
	webURL(f.Checklist.BaseURL, "checklist.baseURL", bad)
	webURL(f.Reports.BaseURL, "reports.baseURL", bad)
	duration(f.Reports.Presign, "reports.presign", 0, 7*24*time.Hour, bad)
	for i, e := range f.Schedule {
		if wrong := e.cronProblem(); wrong != "" {
			bad("schedule[%d].cron: %s", i, wrong)
		}
		if _, err := time.LoadLocation(e.TimeZone); err != nil {
			bad("schedule[%d].timeZone: %q is no time zone; want a name such as Asia/Shanghai", i, e.TimeZone)
		}
	}
	if f.Parallelism < 0 || f.Parallelism > mostParallel {
		bad("parallelism: is %d, want 1 to %d (leave it out for %d)", f.Parallelism, mostParallel, DefaultParallelism)
	}
	if _, port, err := net.SplitHostPort(f.Listen); f.Listen != "" && (err != nil || !portNumber(port)) {
		bad("listen: is %q, want an address such as \":8080\" or \"127.0.0.1:8080\"", f.Listen)
	}
	if _, err := f.Store.Resolve(); f.Store.URL != "" && err != nil {
		bad("store: %v", err)
	}
	for i, p := range f.Redaction.Patterns {
		switch re, err := regexp.Compile(p); {
		case err != nil:
			bad("redaction.patterns[%d]: %v", i, err)
		case re.MatchString(""):
			bad("redaction.patterns[%d]: %q matches everywhere; want a pattern that matches what is to be hidden", i, p)
		}
	}
	return out
}

func (f *File) clusterProblems(dir string, bad func(string, ...any)) {
	if len(f.Clusters) == 0 {
		bad("clusters: is empty; name at least one cluster")
	}
	first := map[string]int{}
	for i, c := range f.Clusters {
		at := fmt.Sprintf("clusters[%d]", i)
		switch before, dup := first[strings.ToLower(c.Name)]; {
		case c.Name == "":
			bad("%s.name: is missing", at)
		case dup:
			bad("%s.name: %q is the name of clusters[%d] already (names that differ in case only share a folder in some stores)", at, c.Name, before)
		default:
			first[strings.ToLower(c.Name)] = i
		}
		switch file := resolve(dir, c.Kubeconfig); {
		case c.InCluster && (c.Kubeconfig != "" || c.Context != ""):
			bad("%s: inCluster excludes kubeconfig and context", at)
		case file != "":
			if info, err := os.Stat(file); err != nil {
				bad("%s.kubeconfig: %q: %v", at, c.Kubeconfig, unwrapped(err))
			} else if info.IsDir() {
				bad("%s.kubeconfig: %q is a folder", at, c.Kubeconfig)
			}
		}
		duration(c.Timeout, at+".timeout", time.Second, time.Hour, bad)
		for j, ns := range c.Namespaces {
			if ns == "" {
				bad("%s.namespaces[%d]: is empty", at, j)
			}
		}
		for j, g := range c.AcceptGaps {
			if g.Resource == "" {
				bad("%s.acceptGaps[%d].resource: is missing", at, j)
			} else if known := collect.Resources(); !slices.Contains(known, g.Resource) {
				bad("%s.acceptGaps[%d].resource: %q is nothing that is read; want one of %s", at, j, g.Resource, strings.Join(known, ", "))
			}
			if strings.TrimSpace(g.Reason) == "" {
				bad("%s.acceptGaps[%d].reason: is missing; say why this gap will never close", at, j)
			}
		}
		globs(c.Ignore.Nodes, at+".ignore.nodes", bad)
		globs(c.Ignore.Namespaces, at+".ignore.namespaces", bad)
		globs(c.Ignore.Labels, at+".ignore.labels", bad)
		webURL(c.Vendor.TicketURL, at+".vendor.ticketURL", bad)
	}
}

// unwrapped drops the operation and path that os errors repeat.
func unwrapped(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func globs(list []string, at string, bad func(string, ...any)) {
	for i, g := range list {
		if _, err := path.Match(g, ""); err != nil || g == "" {
			bad("%s[%d]: %q is no pattern; want a name, or a name with * and ?", at, i, g)
		}
	}
}

func (f *File) workloadProblems(bad func(string, ...any)) {
	first := map[string]int{}
	for i, w := range f.Workloads {
		at := fmt.Sprintf("workloads[%d]", i)
		if before, dup := first[w.Name]; w.Name == "" {
			bad("%s.name: is missing", at)
		} else if dup {
			bad("%s.name: %q is the name of workloads[%d] already", at, w.Name, before)
		} else {
			first[w.Name] = i
		}
		if len(w.Requests) == 0 {
			bad("%s.requests: is empty; name the device and how many one replica needs", at)
		}
		for name, q := range w.Requests {
			if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
				bad("%s.requests: %q is no name of a resource, such as cpu or nvidia.com/gpu", at, name)
			}
			switch parsed, err := resource.ParseQuantity(string(q)); {
			case err != nil || parsed.Sign() < 0:
				bad("%s.requests.%s: %q is no quantity", at, name, string(q))
			case parsed.CmpInt64(1<<50) > 0:
				bad("%s.requests.%s: %q is more than any node has", at, name, string(q))
			case parsed.IsZero():
				bad("%s.requests.%s: is 0; leave out what a replica does not need", at, name)
			}
		}
		for key, value := range w.NodeSelector {
			if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
				bad("%s.nodeSelector: %q: %q is no label", at, key, value)
			}
		}
		var affinity corev1.NodeSelector
		strictly(w.Affinity, &affinity, at+".affinity", bad)
		var tolerations []corev1.Toleration
		strictly(w.Tolerations, &tolerations, at+".tolerations", bad)
	}
}

func strictly(raw json.RawMessage, into any, at string, bad func(string, ...any)) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	mismatched := Mismatches(raw, into, at)
	for _, m := range mismatched {
		bad("%s", m)
	}
	if err != nil && len(mismatched) == 0 {
		bad("%s: %v", at, strings.TrimPrefix(err.Error(), "json: "))
	}
	for _, e := range strict {
		bad("%s: %v", at, e)
	}
}

func (f *File) thresholdProblems(bad func(string, ...any)) {
	t := f.Thresholds
	for name, d := range map[string]Duration{
		"notReady": t.NotReady, "cordoned": t.Cordoned, "ghost": t.Ghost, "stuckStarting": t.StuckStarting, "terminating": t.Terminating,
		"pending": t.Pending, "initialising": t.Initialising, "admissionWindow": t.AdmissionWindow,
	} {
		duration(d, "thresholds."+name, 0, 10*365*24*time.Hour, bad)
	}
	duration(t.Silent, "thresholds.silent", 3*time.Minute, 10*365*24*time.Hour, bad)
	if t.AdmissionFailures != nil && *t.AdmissionFailures < 0 {
		bad("thresholds.admissionFailures: is %d, want 0 (never) or more", *t.AdmissionFailures)
	}
	if t.PeersWithLabel != nil && (*t.PeersWithLabel <= 0 || *t.PeersWithLabel > 1) {
		bad("thresholds.peersWithLabel: is %v, want a share above 0 and up to 1", *t.PeersWithLabel)
	}
}

// duration checks one that may be empty.
func duration(d Duration, at string, least, most time.Duration, bad func(string, ...any)) {
	if d == "" {
		return
	}
	v, err := ParseDuration(string(d))
	switch {
	case err != nil:
		bad("%s: %q is no duration; want a number with a unit, such as 90s, 10m, 2h or 7d", at, string(d))
	case v < least:
		bad("%s: %q is less than %s", at, string(d), least)
	case v > most:
		bad("%s: %q is more than %s", at, string(d), most)
	}
}

func webURL(raw, at string, bad func(string, ...any)) {
	if raw == "" {
		return
	}
	if u, err := url.Parse(raw); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		bad("%s: is no http or https URL", at)
	}
}

func oneOf(s string, options ...string) bool {
	for _, o := range options {
		if s == o {
			return true
		}
	}
	return false
}

// mostParallel is more clusters at once than one process has use for.
const mostParallel = 1000

func portNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n < 1<<16
}

func knownCheck(id string) bool {
	for _, c := range check.All() {
		if c.ID == id {
			return true
		}
	}
	return false
}

func checkIDs() []string {
	var out []string
	for _, c := range check.All() {
		out = append(out, c.ID)
	}
	return out
}
