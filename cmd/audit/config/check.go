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
		if d.PerCard < 0 || d.PerCard > mostPerCard {
			bad("%s.perCard: is %d, want 0 (unknown) or up to %d units a card", at, d.PerCard, mostPerCard)
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
	if n := f.Parallelism; n != nil && (*n < 1 || *n > mostParallel) {
		bad("parallelism: is %d, want 1 to %d (leave it out for %d)", *n, mostParallel, DefaultParallelism)
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

// strictly reads a block of the Kubernetes API, and is false when something is wrong.
func strictly(raw json.RawMessage, into any, at string, bad func(string, ...any)) bool {
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
	return err == nil && len(mismatched) == 0 && len(strict) == 0
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
	switch u, err := url.Parse(raw); {
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
		bad("%s: is no http or https URL", at)
	case u.User != nil:
		bad("%s: has a user name or password in it, which every reader of the links would see; leave them out", at)
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

// mostPerCard bounds how many units one card is cut into: its memory in bytes at most.
const mostPerCard = int64(1) << 40

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
