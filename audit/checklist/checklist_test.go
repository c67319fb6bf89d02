package checklist

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gpuaudit/audit/report/plain"
)

func TestStepsAreWhole(t *testing.T) {
	checks := map[string]int{
		"node-not-ready": 1, "node-cordoned": 1, "device-loss": 1, "admission-failures": 1, "label-missing": 2, "label-drift": 2,
		"pending-unschedulable": 3, "scheduler-takeover": 3, "ghost-hold": 4, "stuck-starting": 4, "terminating-hold": 4,
		"dead-node-hold": 4, "orphan-pod": 4, "quota-blocked-daemonset": 5, "quota-blocked": 5, "node-recreated": 6,
		"node-disappeared": 6, "device-metrics": 7, "metrics-api": 7, "audit-trail": 8, "model-disagreement": 9,
	}
	covered := 0
	ids := map[string]bool{}
	for i, s := range All() {
		if s.Number != i+1 || s.ID == "" || s.Title == "" || s.Question == "" || s.Why == "" || s.Do == "" || len(s.Commands) == 0 {
			t.Errorf("step %d lacks something: %+v", i+1, s)
		}
		if ids[s.ID] {
			t.Errorf("anchor %q is used twice", s.ID)
		}
		ids[s.ID] = true
		for _, check := range s.Checks {
			covered++
			if checks[check] != s.Number {
				t.Errorf("check %q is in step %d, want %d", check, s.Number, checks[check])
			}
			if got, ok := ByCheck(check); !ok || got.Number != s.Number {
				t.Errorf("ByCheck(%q) gives step %d", check, got.Number)
			}
		}
	}
	if len(All()) != 9 || covered != len(checks) {
		t.Errorf("%d steps cover %d checks, want 9 and %d", len(All()), covered, len(checks))
	}
	if _, ok := ByNumber(10); ok {
		t.Error("there is a step 10")
	}
	if _, ok := ByCheck("no-such-check"); ok {
		t.Error("a step covers a check that does not exist")
	}
}

func TestAllCannotBeSpoilt(t *testing.T) {
	All()[0].Commands[0] = "rm"
	All()[0].Checks[0] = "x"
	if s, _ := ByNumber(1); s.Commands[0] == "rm" || s.Checks[0] == "x" {
		t.Error("a caller changed the checklist")
	}
}

// A variable that nobody explains, or that is not quoted, cannot be pasted.
func TestCommandsUseKnownQuotedVariables(t *testing.T) {
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	used := map[string]bool{}
	for _, s := range All() {
		for _, line := range s.Commands {
			for i, part := range strings.Split(line, "$") {
				if i == 0 || part == "" || part[0] < 'A' || part[0] > 'Z' { // awk's $4
					continue
				}
				name := part[:strings.IndexFunc(part+" ", func(r rune) bool { return r < 'A' || r > 'Z' })]
				used[name] = true
				before := line[:strings.Index(line, "$"+name)]
				if !known[name] || strings.Count(before, `"`)%2 == 0 && !strings.Contains(before, "'") {
					t.Errorf("step %d: $%s is unknown or not quoted: %s", s.Number, name, line)
				}
			}
		}
		text := s.Do
		for name := range known {
			if strings.Contains(text, "$"+name) {
				used[name] = true
			}
		}
	}
	for name := range known {
		if !used[name] {
			t.Errorf("variable %s is explained and never used", name)
		}
	}
}

func TestCommandsParseInAShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal("no POSIX shell to parse the commands with")
	}
	for _, s := range All() {
		cmd := exec.Command(sh, "-n")
		cmd.Stdin = strings.NewReader(strings.Join(s.Commands, "\n"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("step %d: %v: %s", s.Number, err, out)
		}
	}
}

func TestLink(t *testing.T) {
	cases := []struct {
		base string
		step int
		want string
	}{
		{"", 1, "checklist.html#nodes-not-ready"},
		{"https://wiki.example.com/gpu", 2, "https://wiki.example.com/gpu#labels"},
		{"https://wiki.example.com/gpu#top", 5, "https://wiki.example.com/gpu#quotas"},
		{"", 12, "checklist.html"},
	}
	for _, c := range cases {
		if got := Link(c.base, c.step); got != c.want {
			t.Errorf("Link(%q, %d) = %q, want %q", c.base, c.step, got, c.want)
		}
	}
}

// The file in docs is this package's text. UPDATE_GOLDEN=1 writes it anew.
func TestDocumentIsUpToDate(t *testing.T) {
	const file = "../../docs/checklist.md"
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(file, Markdown(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, Markdown()) {
		t.Errorf("%s differs from the steps; run UPDATE_GOLDEN=1 go test ./audit/checklist", file)
	}
}

func TestEveryFormHasEveryStep(t *testing.T) {
	html, markdown := string(HTML()), string(Markdown())
	for _, s := range All() {
		if !strings.Contains(html, `<section id="`+s.ID+`">`) || strings.Count(html, `id="`+s.ID+`"`) != 1 {
			t.Errorf("the page has not exactly one anchor %q", s.ID)
		}
		if !strings.Contains(markdown, `<a id="`+s.ID+`"></a>`) {
			t.Errorf("the Markdown form has no anchor %q", s.ID)
		}
	}
	for _, bad := range []string{"<script", "src=", "http://", "https://", "@import", "url("} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q: it must need nothing else", bad)
		}
	}
	if !strings.Contains(html, "kubectl --context &#34;$CTX&#34; get nodes") {
		t.Error("commands are not escaped in the page")
	}
}

func TestTextFitsATerminal(t *testing.T) {
	for _, s := range All() {
		text := Text(s)
		for line := range strings.SplitSeq(text, "\n") {
			if plain.Width(line) > textWidth && !slices.Contains(s.Commands, strings.TrimPrefix(line, "  ")) {
				t.Errorf("step %d: a line of %d columns: %s", s.Number, plain.Width(line), line)
			}
		}
		if !strings.Contains(text, "\n  1. ") || !strings.Contains(text, "\n  2. ") {
			t.Errorf("step %d: the numbered list is broken:\n%s", s.Number, text)
		}
		if !strings.Contains(Overview(), s.Title) {
			t.Errorf("step %d is not in the overview", s.Number)
		}
	}
}
