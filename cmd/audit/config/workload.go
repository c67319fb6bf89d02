package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"gpuaudit/audit/inventory"
)

// workloadProblems holds the classes to what an API server would take of a pod:
// one that it refuses would only collect wrong reasons.
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
		w.requestProblems(at, bad)
		for key, value := range w.NodeSelector {
			if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
				bad("%s.nodeSelector: %q: %q is no label", at, key, value)
			}
		}
		w.affinityProblems(at+".affinity", bad)
		w.tolerationProblems(at+".tolerations", bad)
	}
}

func (w *Workload) requestProblems(at string, bad func(string, ...any)) {
	if len(w.Requests) == 0 {
		bad("%s.requests: is empty; name the device and how many one replica needs", at)
		return
	}
	device := false
	for name, q := range w.Requests {
		device = device || !inventory.IsPlain(name)
		if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
			bad("%s.requests: %q is no name of a resource, such as cpu or nvidia.com/gpu", at, name)
		}
		parsed, err := inventory.ReadQuantity(string(q))
		wrong := ""
		if err == nil {
			wrong = inventory.WrongAmount(name, parsed)
		}
		switch {
		case err != nil || parsed.Sign() < 0:
			bad("%s.requests.%s: %q is no quantity", at, name, string(q))
		case parsed.CmpInt64(1<<50) > 0:
			bad("%s.requests.%s: %q is more than any node has", at, name, string(q))
		case parsed.IsZero():
			bad("%s.requests.%s: is 0; leave out what a replica does not need", at, name)
		case wrong != "":
			bad("%s.requests.%s: %q %s", at, name, string(q), wrong)
		}
	}
	if !device {
		bad("%s.requests: names no device, such as nvidia.com/gpu: 8; a class without one takes no device", at)
	}
}

func (w *Workload) affinityProblems(at string, bad func(string, ...any)) {
	if absent(w.Affinity) {
		return
	}
	var selector corev1.NodeSelector
	if !strictly(w.Affinity, &selector, at, bad) {
		return
	}
	if len(selector.NodeSelectorTerms) == 0 {
		bad("%s.nodeSelectorTerms: is empty, which no node matches; leave affinity out, or name a term", at)
	}
	for i, term := range selector.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			bad("%s.nodeSelectorTerms[%d]: is empty, which no node matches; name matchExpressions or matchFields", at, i)
		}
	}
	// What is left is the scheduler's own reading of it.
	if _, err := nodeaffinity.NewNodeSelector(&selector, field.WithPath(field.NewPath(at))); err != nil {
		for _, e := range flat(err) {
			bad("%s", e.Error())
		}
	}
}

// flat gives the errors that an error is made of.
func flat(err error) []error {
	if many, ok := err.(interface{ Errors() []error }); ok {
		var out []error
		for _, e := range many.Errors() {
			out = append(out, flat(e)...)
		}
		return out
	}
	return []error{err}
}

// tolerationProblems follows kubernetes pkg/apis/core/validation, ValidateTolerations.
func (w *Workload) tolerationProblems(at string, bad func(string, ...any)) {
	if absent(w.Tolerations) {
		return
	}
	var list []corev1.Toleration
	if !strictly(w.Tolerations, &list, at, bad) {
		return
	}
	var raw []json.RawMessage
	_ = json.Unmarshal(w.Tolerations, &raw) // it was read as a list just now
	for i, t := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if i < len(raw) && absent(raw[i]) {
			bad("%s: is null; want a toleration such as {key: nvidia.com/gpu, operator: Exists}", at)
			continue
		}
		if t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0 {
			bad("%s.key: %q is no key of a taint", at, t.Key)
		}
		operators := []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}
		switch {
		case !slices.Contains(operators, t.Operator):
			bad("%s.operator: is %q, want Equal or Exists", at, string(t.Operator))
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			bad("%s.value: is %q, and operator Exists takes none", at, t.Value)
		case t.Operator != corev1.TolerationOpExists && t.Key == "":
			bad("%s.key: is missing; only operator Exists may leave it out, for every taint", at)
		}
		if !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
			bad("%s.effect: is %q, want NoSchedule, PreferNoSchedule, NoExecute, or leave it out for all", at, string(t.Effect))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			bad("%s.tolerationSeconds: goes with effect NoExecute only", at)
		}
	}
}

func absent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || strings.EqualFold(string(raw), "null")
}
