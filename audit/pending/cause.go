package pending

import (
	"regexp"
	"strings"
)

// phrases says which words speak of which cause, first match first. They are
// the wordings of kube-scheduler since 1.8 (predicate names, then the filter
// plugins' sentences) and of the schedulers built beside or upon it. Words that
// name two things stand in the order in which they are to be told apart: a
// volume's node affinity is no selector.
var phrases = []struct {
	cause string
	words []string
}{
	{"", []string{"preemption is not helpful", "no preemption victims", "not eligible due to", "found a potential placement"}},
	{Taint, []string{"had taint", "untolerated taint", "taints that the pod", "podtoleratesnodetaints", "tainttoleration", "checknodeunschedulable",
		"were unschedulable", "node is unschedulable", "nodeunschedulable", "were not ready", "node(s) not ready", "nodenotready", "node is cordoned", "checknodecondition",
		"had memory pressure", "had disk pressure", "had pid pressure", "nodeundermemorypressure", "nodeunderdiskpressure", "nodeunderpidpressure", "out of disk space",
		"network unavailable", "networkunavailable"}},
	{Volume, []string{"persistentvolume", "persistent volume", "pvc", "volume", "storageclass", "storage class", "csinode", "csi driver", "storage pool",
		"available disk", "nodiskconflict", "free storage", "not the published node"}},
	{Topology, []string{"topology", "pod affinity", "pod anti-affinity", "pods anti-affinity", "podaffinity", "interpodaffinity", "numa", "cannot align",
		"resourceclaim not available on the node"}},
	{Ports, []string{"free ports", "hostport", "nodeports", "host port"}},
	{Selector, []string{"node affinity", "nodeaffinity", "node selector", "nodeselector", "matchnodeselector", "requested node name", "requested hostname", "hostname", "nodename",
		"affinity/selector", "nodes that the pod selects", "cardtypemismatch", "carduuidmismatch", "matching labels"}},
	{Gang, []string{"pod group", "podgroup", "gang", "minavailable", "minmember", "sibling pods", "quorum", "optimistic rejection", "notenoughpods", "notenoughtasks",
		"waiting on permit", "at plugin coscheduling", "rejected by \"coscheduling\"", "undetermined", "pgname"}},
	{DeviceMissing, []string{"node unregistered", "device class", "deviceclass", "node is not a gpu node", "no gpu nodes"}},
	{Capacity, []string{"insufficient", "too many pods", "pod number exceeded", "cannot allocate all claims", "resourceclaim in use", "podexceedsfreecpu", "podfitsresources", "not enough resource", "notenoughresource",
		"enough resources", "resource fit failed", "exceed the capacity", "exceeds the capacity", "exceed threshold", "no nodes available to schedule", "no node fits", "no free", "not enough", "no enough",
		"no available node", "nodeunfitpod", "no fit", "cardtimeslicing", "cardcomputeunits", "cardnot", "cardreused", "allocatedcards", "device requirements", "exclusivedevice", "nodeinsufficientdevice", "requested resources become available", "no resources"}},
}

var (
	// inner is what a message quotes from objects: a taint's key, a claim's
	// name. Its words say nothing about the cause.
	inner      = regexp.MustCompile(`\{[^{}]*\}|"[^"]*"`)
	lacking    = regexp.MustCompile(`^(?i:(?:Reservation\(s\) )?insufficient) ([A-Za-z0-9][A-Za-z0-9._/-]*)$`)
	noResource = regexp.MustCompile(`(?i)no node in the \S+ node-pool has|No node .* has .* resources`)
)

// causeOf says which cause one reason speaks of, "" for none that is known.
// Quota is tested first: its words name resources too.
func causeOf(reason string) string {
	if lackingResource(reason) != "" {
		return Capacity
	}
	s := inner.ReplaceAllString(reason, "")
	switch {
	case speaksOfQuota(s):
		return Quota
	case strings.Contains(reason, "device class") && strings.Contains(reason, "does not exist"), noResource.MatchString(s):
		return DeviceMissing
	}
	s = strings.ToLower(s)
	for _, p := range phrases {
		for _, w := range p.words {
			if strings.Contains(s, w) {
				return p.cause
			}
		}
	}
	return ""
}

// lackingResource gives the resource of "Insufficient <resource>", "" for any
// other reason. "Insufficient quotas" names none.
func lackingResource(reason string) string {
	m := lacking.FindStringSubmatch(reason)
	if m == nil || strings.EqualFold(m[1], "quota") || strings.EqualFold(m[1], "quotas") {
		return ""
	}
	return m[1]
}

// speaksOfQuota is true for words about a quota or a queue's share, in any
// spelling that a fork may invent (InsufficientQuota, QuotaNotSelected). A
// name that happens to hold the word (pod quota-test-0, resource
// example.com/quota) is none.
func speaksOfQuota(s string) bool {
	lower := strings.ToLower(s)
	if strings.Contains(lower, "queue resource") || strings.Contains(lower, "over-quota") {
		return true
	}
	if !strings.Contains(lower, "quota") && !strings.Contains(lower, "overused") {
		return false
	}
	for _, word := range strings.FieldsFunc(lower, func(r rune) bool { return strings.ContainsRune(" ,;:()[]{}<>'\"\n\t=", r) }) {
		word = strings.TrimRight(word, ".!?")
		if (strings.Contains(word, "quota") || word == "overused") && !strings.ContainsAny(word, "-./") {
			return true
		}
	}
	return false
}
