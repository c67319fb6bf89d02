// Package checklist holds the steps by which a person finds out why devices
// that look free cannot be used. Every finding names the step that covers it.
// The text is embedded: a terminal, docs/checklist.md and the page beside each
// report all show the same.
package checklist

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Step is one question of the checklist.
type Step struct {
	Number int
	// ID is the step's anchor in the Markdown and HTML forms. Links in old
	// reports point to it: it never changes.
	ID       string
	Title    string
	Question string
	// Why and Do are Markdown: paragraphs, and a numbered list.
	Why string
	Do  string
	// Commands are lines for a POSIX shell, comments included. What differs
	// from case to case is a variable: see Variables.
	Commands []string
	// Checks are the ids of the checks that this step covers.
	Checks []string
}

// Variable is a placeholder of the commands.
type Variable struct{ Name, Meaning string }

// Variables are all placeholders of the commands, to be set before pasting.
func Variables() []Variable {
	return []Variable{
		{"CTX", "the kubeconfig context of the cluster"},
		{"CLUSTER", "the cluster's name in the audit's configuration"},
		{"NODE", "a node's name"},
		{"NS", "a namespace"},
		{"POD", "a pod's name"},
		{"SERVICE", "a Service's name"},
		{"LABEL", "a label key, such as node_env"},
		{"VALUE", "the value that the label should have"},
	}
}

//go:embed steps/*.md
var sources embed.FS

// steps are parsed once. The sources are part of the program, so a broken one
// is a fault of the build, which the tests find.
var steps = mustParse()

func mustParse() []Step {
	entries, err := sources.ReadDir("steps")
	if err != nil {
		panic(err)
	}
	var out []Step
	for _, entry := range entries {
		data, err := sources.ReadFile("steps/" + entry.Name())
		if err != nil {
			panic(err)
		}
		step, err := parse(entry.Name(), string(data))
		if err != nil {
			panic(err)
		}
		out = append(out, step)
	}
	slices.SortFunc(out, func(a, b Step) int { return a.Number - b.Number })
	return out
}

// parse reads one source: its name is NUMBER-ID.md, its sections are fixed.
func parse(file, text string) (Step, error) {
	number, id, ok := strings.Cut(strings.TrimSuffix(file, ".md"), "-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return Step{}, fmt.Errorf("checklist step %q: the name is not NUMBER-ID.md", file)
	}
	parts := strings.Split("\n"+text, "\n## ")
	names := []string{"Question", "Why it matters", "Commands", "What to do"}
	if len(parts) != len(names)+1 {
		return Step{}, fmt.Errorf("checklist step %q: has %d sections, want %q", file, len(parts)-1, names)
	}
	for i, name := range names {
		body, found := strings.CutPrefix(parts[i+1], name+"\n")
		if !found {
			return Step{}, fmt.Errorf("checklist step %q: section %d is not %q", file, i+1, name)
		}
		parts[i+1] = strings.TrimSpace(body)
	}
	title, checks, _ := strings.Cut(strings.TrimSpace(parts[0]), "\n")
	checks = strings.TrimPrefix(strings.TrimSpace(checks), "Checks: ")
	commands := strings.TrimSuffix(strings.TrimPrefix(parts[3], "```sh\n"), "\n```")
	return Step{
		Number: n, ID: id, Title: strings.TrimPrefix(title, "# "), Question: parts[1], Why: parts[2], Do: parts[4],
		Commands: strings.Split(commands, "\n"), Checks: strings.Split(checks, ", "),
	}, nil
}

// All gives the steps in order. The caller may keep and change the list.
func All() []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Commands, out[i].Checks = slices.Clone(out[i].Commands), slices.Clone(out[i].Checks)
	}
	return out
}

// ByNumber gives one step, and false when there is none of that number.
func ByNumber(n int) (Step, bool) {
	for _, step := range All() {
		if step.Number == n {
			return step, true
		}
	}
	return Step{}, false
}

// ByCheck gives the step that covers a check, and false for an unknown check.
func ByCheck(check string) (Step, bool) {
	for _, step := range All() {
		if slices.Contains(step.Checks, check) {
			return step, true
		}
	}
	return Step{}, false
}

// Link gives the address of a step: the base URL with the step's anchor, or,
// without a base, the checklist page that lies beside every report. A step that
// does not exist gives the top of the checklist.
func Link(baseURL string, number int) string {
	base, _, _ := strings.Cut(baseURL, "#")
	if base == "" {
		base = "checklist.html"
	}
	step, ok := ByNumber(number)
	if !ok {
		return base
	}
	return base + "#" + step.ID
}
