package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuaudit/audit/checklist"
)

// TestDocs holds the documentation to the code: README's table of checks, one
// page a check, and a step of the checklist for each.
func TestDocs(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.ID] {
			t.Errorf("check %s is there twice", c.ID)
		}
		seen[c.ID] = true
		row := fmt.Sprintf("| [%s](docs/checks/%s.md) | %d | %s |", c.ID, c.ID, c.Step, c.Title)
		if !strings.Contains(string(readme), row) {
			t.Errorf("README lacks the row\n%s", row)
		}
		page, err := os.ReadFile(filepath.Join("../../docs/checks", c.ID+".md"))
		if err != nil {
			t.Errorf("check %s has no page: %v", c.ID, err)
			continue
		}
		for _, heading := range []string{"# " + c.ID, "## What it means", "## How it decides", "## Inputs", "## What to do"} {
			if !strings.Contains(string(page), heading) {
				t.Errorf("docs/checks/%s.md lacks %q", c.ID, heading)
			}
		}
		for _, r := range append(c.Required, c.Optional...) {
			if !strings.Contains(string(page), "`"+string(r)+"`") {
				t.Errorf("docs/checks/%s.md does not name its input %s", c.ID, r)
			}
		}
		if step, ok := checklist.ByCheck(c.ID); !ok || step.Number != c.Step {
			t.Errorf("check %s is of step %d; the checklist says otherwise", c.ID, c.Step)
		}
	}
	pages, err := os.ReadDir("../../docs/checks")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if !seen[strings.TrimSuffix(p.Name(), ".md")] {
			t.Errorf("docs/checks/%s is about no check", p.Name())
		}
	}
}
