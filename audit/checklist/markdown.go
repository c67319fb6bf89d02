package checklist

import (
	"bytes"
	"fmt"
	"strings"

	"gpuaudit/audit/report/plain"
)

const (
	pageTitle = "Checklist: free devices that nobody can use"
	intro     = "Every finding of the audit names the step that covers it. The steps are in the order in which to look: " +
		"a fault of an early step is often the cause of what a later one shows."
	setFirst = "The commands use these variables; set the ones that a command needs before pasting it:"
)

// Markdown gives the whole checklist as docs/checklist.md holds it.
func Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", pageTitle, intro)
	for _, s := range steps {
		fmt.Fprintf(&b, "%d. [%s](#%s)\n", s.Number, s.Title, s.ID)
	}
	fmt.Fprintf(&b, "\n%s\n\n```sh\n", setFirst)
	for _, v := range Variables() {
		fmt.Fprintf(&b, "%s= # %s\n", plain.Pad(v.Name, 7), v.Meaning)
	}
	b.WriteString("```\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "\n<a id=\"%s\"></a>\n\n## %d. %s\n\n", s.ID, s.Number, s.Title)
		fmt.Fprintf(&b, "Checks: `%s`\n\n", strings.Join(s.Checks, "`, `"))
		fmt.Fprintf(&b, "**%s**\n\n### Why it matters\n\n%s\n\n", s.Question, s.Why)
		fmt.Fprintf(&b, "### Commands\n\n```sh\n%s\n```\n\n", strings.Join(s.Commands, "\n"))
		fmt.Fprintf(&b, "### What to do\n\n%s\n", s.Do)
	}
	return b.Bytes()
}

// textWidth is the width of Text in columns. Commands are never broken: a
// broken one could not be pasted.
const textWidth = 80

// Text gives one step for a terminal, without colour.
func Text(s Step) string {
	var b strings.Builder
	title := fmt.Sprintf("Step %d: %s", s.Number, s.Title)
	fmt.Fprintf(&b, "%s\n%s\n\n", title, strings.Repeat("=", plain.Width(title)))
	fmt.Fprintf(&b, "%s\n\n", strings.Join(plain.Wrap(s.Question, textWidth), "\n"))
	b.WriteString("Why it matters\n")
	writeParagraphs(&b, s.Why)
	b.WriteString("\nCommands\n")
	for _, line := range s.Commands {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString("\nWhat to do\n")
	writeParagraphs(&b, s.Do)
	fmt.Fprintf(&b, "\nChecks: %s\n", strings.Join(s.Checks, ", "))
	return b.String()
}

// Overview lists all steps for a terminal, one question each.
func Overview() string {
	var b strings.Builder
	b.WriteString(pageTitle + "\n\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "%d  %s\n", s.Number, s.Title)
		for _, line := range plain.Wrap(s.Question, textWidth-3) {
			b.WriteString("   " + line + "\n")
		}
	}
	b.WriteString("\nOne step: audit checklist NUMBER\n")
	return b.String()
}

// writeParagraphs wraps Markdown text: paragraphs, and numbered items whose
// further lines are set under their text.
func writeParagraphs(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		for _, item := range items(paragraph) {
			hanging := "  "
			if number, _, ok := strings.Cut(item, ". "); ok && len(number) == 1 && number[0] >= '1' && number[0] <= '9' {
				hanging = "     "
			}
			for j, line := range plain.Wrap(item, textWidth-len(hanging)) {
				if j == 0 {
					b.WriteString("  " + line + "\n")
				} else {
					b.WriteString(hanging + line + "\n")
				}
			}
		}
	}
}

// items joins the lines of a paragraph, one item for each line that begins a numbered one.
func items(paragraph string) []string {
	var out []string
	for line := range strings.SplitSeq(paragraph, "\n") {
		numbered := len(line) > 2 && line[0] >= '1' && line[0] <= '9' && line[1] == '.'
		if len(out) == 0 || numbered {
			out = append(out, line)
			continue
		}
		out[len(out)-1] += " " + strings.TrimSpace(line)
	}
	return out
}
