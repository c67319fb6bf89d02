package audit

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"gpuaudit/audit/check"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
)

// judged is one check's outcome and what it found.
type judged struct {
	outcome  report.CheckOutcome
	findings []report.Finding
	// gap is true when a gap keeps the check from being evaluated.
	gap bool
	// accepted is true when every such gap is accepted in the configuration.
	accepted bool
}

// judge runs one check as far as its inputs were seen.
func judge(in *check.Input, c check.Check) judged {
	out := judged{outcome: report.CheckOutcome{ID: c.ID}}
	if in.Settings.Off[c.ID] {
		out.outcome.Outcome, out.outcome.Reason = report.OutcomeNotEvaluated, "switched off in the configuration"
		return out
	}
	missing := missingInputs(in.Cluster, c.Required)
	partly := len(missing) > 0
	for _, r := range missing {
		if !in.Cluster.AnySeen(r) {
			// Nothing of it at all: the check has nothing to say.
			out.outcome.Outcome = report.OutcomeNotEvaluated
			out.outcome.Reason, out.gap, out.accepted = gapWords(in, missing)
			return out
		}
	}
	if c.Ready != nil {
		if why := c.Ready(in); why != "" {
			out.outcome.Outcome, out.outcome.Reason = report.OutcomeNotEvaluated, why
			if blocking := missingInputs(in.Cluster, c.Gap); len(blocking) > 0 {
				out.outcome.Reason, out.gap, out.accepted = gapWords(in, blocking)
			}
			return out
		}
	}
	out.findings = c.Run(in)
	lacking := missingInputs(in.Cluster, c.Optional)
	switch {
	case partly:
		// What was found in the seen part stands; that nothing else is there cannot be said.
		out.outcome.Outcome = report.OutcomeNotEvaluated
		out.outcome.Reason, out.gap, out.accepted = gapWords(in, missing)
		out.outcome.Reason += "; findings are from the part that was seen"
	case len(lacking) > 0:
		out.outcome.Outcome = report.OutcomeLimited
		words, _, _ := gapWords(in, lacking)
		out.outcome.Reason = words
		if rule := wider(c, lacking); rule != "" {
			out.outcome.Reason += ": " + rule
		}
	case listedOnly(in.Cluster, c):
		out.outcome.Outcome = report.OutcomeLimited
		out.outcome.Reason = "only the configured namespaces were read: " + strings.Join(in.Cluster.ListedNamespaces, ", ")
	case len(out.findings) > 0:
		out.outcome.Outcome = report.OutcomeFindings
	default:
		out.outcome.Outcome = report.OutcomeClean
	}
	return out
}

// wider words the rule that a check works by without some of its optional
// inputs: of those that were seen it says nothing.
func wider(c check.Check, lacking []inventory.Resource) string {
	var rules []string
	if c.Wider != "" {
		rules = append(rules, c.Wider)
	}
	for _, r := range lacking {
		if rule := c.WiderWithout[r]; rule != "" {
			rules = append(rules, rule)
		}
	}
	return strings.Join(rules, "; ")
}

// missingInputs lists those of the resources that have a gap.
func missingInputs(c *inventory.Cluster, resources []inventory.Resource) []inventory.Resource {
	var out []inventory.Resource
	for _, r := range resources {
		if !c.Seen(r) && len(c.GapsOf(r)) > 0 {
			out = append(out, r)
		}
	}
	return out
}

func listedOnly(c *inventory.Cluster, k check.Check) bool {
	for _, r := range append(slices.Clone(k.Required), k.Optional...) {
		if c.Extent(r) == inventory.SeenListed {
			return true
		}
	}
	return false
}

// gapWords words why inputs are missing; accepted is true when the
// configuration accepts each of them.
func gapWords(in *check.Input, missing []inventory.Resource) (words string, gap, accepted bool) {
	var parts []string
	accepted = true
	for _, r := range missing {
		gaps := in.Cluster.GapsOf(r)
		parts = append(parts, fmt.Sprintf("%s not seen (%s)", r, gaps[0].Reason))
		if _, ok := in.Settings.Accepts(string(r)); !ok {
			accepted = false
		}
	}
	return strings.Join(parts, ", "), true, accepted
}

// gaps lists what was not seen, with the checks that miss it.
func gaps(c *inventory.Cluster, s *settings.Settings, checks []check.Check) []report.Gap {
	out := make([]report.Gap, 0, len(c.Gaps))
	for _, g := range c.Gaps {
		r := report.Gap{Resource: string(g.Resource), Namespace: g.Namespace, Reason: string(g.Reason), Message: g.Message}
		for _, k := range checks {
			if slices.Contains(k.Required, g.Resource) || slices.Contains(k.Optional, g.Resource) || slices.Contains(k.Gap, g.Resource) {
				r.Checks = append(r.Checks, k.ID)
			}
		}
		sort.Strings(r.Checks)
		r.AcceptedReason, r.Accepted = s.Accepts(r.Resource)
		out = append(out, r)
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Resource != b.Resource {
			return a.Resource < b.Resource
		}
		return a.Namespace < b.Namespace
	})
	return out
}
