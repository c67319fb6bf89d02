package check

import (
	"fmt"
	"sort"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/pending"
	"gpuaudit/audit/report"
)

var modelDisagreement = Check{
	ID: "model-disagreement", Step: 9, Title: "our verdict on a waiting pod differs from the scheduler's own message",
	Required: []inventory.Resource{inventory.Nodes, inventory.Pods},
	Optional: []inventory.Resource{inventory.Events, inventory.DeviceClasses},
	WiderWithout: map[inventory.Resource]string{
		inventory.Events:        "only the pods' own conditions are compared",
		inventory.DeviceClasses: "pods that ask for a resource which no node advertises are not compared: a DRA driver may serve it",
	},
	Run: runModelDisagreement,
}

// freshMessage bounds the age of a message that is compared: the cluster moves on.
const freshMessage = 15 * 60 // seconds

func runModelDisagreement(in *Input) []report.Finding {
	if in.Reasons == nil {
		return nil
	}
	var out []report.Finding
	seen := map[string]bool{}
	for _, w := range in.Waiting {
		key := ownerSubject(w.Pod).String()
		if w.Bound || seen[key] || in.ignoredNamespace(w.Namespace) || len(w.Pod.Shape.NotModelled) > 0 || w.Pod.Nominated != "" {
			continue
		}
		said, fresh := pending.NodeReasons(w.Pod, in.Cluster.Events, in.Now, freshMessage)
		if !fresh {
			continue
		}
		if extra, missing := compareReasons(in, w.Pod, said); len(extra)+len(missing) > 0 {
			seen[key] = true
			out = append(out, disagreement(in, w, extra, missing))
		}
	}
	return out
}

// compareReasons sets the scheduler's reasons against those that our own
// simulation gives over all nodes. A pod that we could place has no reason.
func compareReasons(in *Input, p *inventory.Pod, said []string) (extra, missing []string) {
	ours := map[string]bool{}
	for _, n := range in.Cluster.Nodes {
		reasons := in.Reasons(p, n)
		if len(reasons) == 0 {
			return nil, []string{"node " + n.Name + " would take it by our own count"}
		}
		for _, r := range reasons {
			ours[r] = true
		}
	}
	theirs := map[string]bool{}
	for _, r := range said {
		if !pending.Modelled(r) {
			return nil, nil // the scheduler speaks of what we do not simulate
		}
		theirs[r] = true
		if !ours[r] {
			extra = append(extra, r)
		}
	}
	for r := range ours {
		if short, ok := strings.CutPrefix(r, "Insufficient "); ok && in.Survey.MayBeServed(short) {
			continue // our count knows nothing of a driver's devices behind the name
		}
		if !theirs[r] {
			missing = append(missing, r)
		}
	}
	sort.Strings(extra)
	sort.Strings(missing)
	return extra, missing
}

func disagreement(in *Input, w Waiting, extra, missing []string) report.Finding {
	f := in.finding("model-disagreement", report.Info, ownerSubject(w.Pod))
	in.firstSighting(&f)
	f.Title = fmt.Sprintf("our reasons why %s waits are not the scheduler's", ownerSubject(w.Pod))
	f.Detail = "One of both is wrong or late; do not trust this pod's class figures until it is known which. "
	if len(extra) > 0 {
		f.Detail += "Only the scheduler says: " + list(extra, 5) + ". "
	}
	if len(missing) > 0 {
		f.Detail += "Only our count says: " + list(missing, 5) + "."
	}
	f.Evidence = []report.Evidence{podEvidence(w.Pod, "scheduler's message", w.Message)}
	f.Commands = []string{kubectl("describe", "pod", "-n", w.Namespace, w.Name)}
	return f
}
