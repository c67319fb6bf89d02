package table

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/plain"
	"gpuaudit/audit/report/sample"
)

func render(t *testing.T, r *report.Report, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func samples() map[string]*report.Report {
	return map[string]*report.Report{
		"incident": sample.Incident(), "partial": sample.Partial(), "hostile": sample.Hostile(),
		"chinese": sample.Chinese(), "many": sample.Many(40, 25), "empty": {},
	}
}

// UPDATE_GOLDEN=1 writes the golden files anew; look at the difference then.
func TestGolden(t *testing.T) {
	cases := []struct {
		name string
		r    *report.Report
		o    Options
	}{
		{"incident-80", sample.Incident(), Options{Width: 80}},
		{"incident-120", sample.Incident(), Options{Width: 120}},
		{"incident-200", sample.Incident(), Options{Width: 200}},
		{"incident-details-120", sample.Incident(), Options{Width: 120, Details: true}},
		{"incident-color-80", sample.Incident(), Options{Width: 80, Color: true}},
		{"partial-80", sample.Partial(), Options{Width: 80}},
		{"chinese-80", sample.Chinese(), Options{Width: 80}},
		{"hostile-100", sample.Hostile(), Options{Width: 100}},
		{"many-100", sample.Many(6, 20), Options{Width: 100}},
		{"empty-80", &report.Report{}, Options{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := render(t, c.r, c.o)
			file := filepath.Join("testdata", c.name+".txt")
			if os.Getenv("UPDATE_GOLDEN") == "1" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (UPDATE_GOLDEN=1 writes it anew):\n%s", file, diff)
			}
		})
	}
}

func TestNoLineIsWiderThanAsked(t *testing.T) {
	for name, r := range samples() {
		for _, width := range []int{40, 53, 80, 100, 139, 140, 200} {
			for _, details := range []bool{false, true} {
				if name == "many" && details && width != 80 {
					continue
				}
				for i, line := range strings.Split(render(t, r, Options{Width: width, Details: details}), "\n") {
					if plain.Width(line) > width {
						t.Errorf("%s at %d, line %d takes %d columns: %q", name, width, i+1, plain.Width(line), line)
					}
				}
			}
		}
	}
}

func TestNothingActsOnTheTerminal(t *testing.T) {
	for name, r := range samples() {
		without := render(t, r, Options{Width: 90, Details: true})
		for i, line := range strings.Split(without, "\n") {
			if j := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); j >= 0 {
				t.Errorf("%s, line %d holds an unprintable character: %+q", name, i+1, line)
			}
		}
		with := render(t, r, Options{Width: 90, Details: true, Color: true})
		if got := painted.ReplaceAllString(with, ""); got != without {
			t.Errorf("%s: colour changes more than colour:\n%s", name, cmp.Diff(without, got))
		}
		for i, line := range strings.Split(with, "\n") {
			if n := strings.Count(line, "\x1b["); n%2 != 0 || n > 0 && strings.Count(line, "\x1b[0m")*2 != n {
				t.Errorf("%s, line %d: colour is not closed: %q", name, i+1, line)
			}
		}
	}
}

func TestUnknownIsNeverZero(t *testing.T) {
	out := render(t, sample.Partial(), Options{Width: 160})
	rows := map[string][]string{}
	for line := range strings.SplitSeq(out, "\n") {
		if fields := strings.Fields(line); len(fields) > 5 && strings.HasPrefix(line, "  ") {
			if _, ok := rows[fields[0]]; !ok {
				rows[fields[0]] = fields
			}
		}
	}
	want := map[string][]string{
		"lost-site": {"lost-site", "?", "?", "?", "?", "?", "?", "?", "UNREACHABLE", "?", "?", "unknown", "unknown", "?", "3"},
		"no-pods":   {"no-pods", "3/4", "0", sample.GPU, "32", "?", "?", "?", "PARTIAL", "?", "?", "unknown", "unknown", "?", "1"},
	}
	for name, fields := range want {
		if !slices.Equal(rows[name], fields) {
			t.Errorf("%s: got %q, want %q", name, rows[name], fields)
		}
	}
	if !strings.Contains(out, "?/8") {
		t.Error("devices in use of a node whose pods were not seen are not ?")
	}
}

func TestFirstLinesSayWhatMatters(t *testing.T) {
	incident := strings.Join(strings.Fields(render(t, sample.Incident(), Options{Width: 80})), " ")
	order := []string{
		"WHAT IS LOST", "C: ≤13 free cards, 0 for class prod: 7 notReady + 5 labelMissing + 1 labelOtherValue",
		"WHAT TO DO FIRST", "node 52ew76fke2 (+7 cards for prod, 3 waiting pods would start)", "node_env=prod on node ujx4guefbh (+5 cards",
		"CLUSTERS",
	}
	at := 0
	for _, want := range order {
		i := strings.Index(incident[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing or late", want)
		}
		at += i
	}
	partial := render(t, sample.Partial(), Options{Width: 80})
	if unseen, lost := strings.Index(partial, "UNREACHABLE: "), strings.Index(partial, "WHAT IS LOST"); unseen < 0 || unseen > lost {
		t.Error("what was not seen does not come first")
	}
}

// A line that a reader pastes must be the command of the finding.
func TestBrokenCommandsAreTheSameCommand(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("no bash to try commands with")
	}
	commands := []string{
		`printf '%s|' a 'b  c' d\ e "f g" $'h\' i' 'j'\''k l' m`,
		`printf %s\| --context C -n kube-system describe pod loongcollector-7xk2p -o yaml --show-managed-fields`,
	}
	for _, command := range commands {
		want, err := exec.Command(bash, "-c", command).Output()
		if err != nil {
			t.Fatal(err)
		}
		broken := 0
		for width := 20; width <= plain.Width(command); width++ {
			lines, ok := breakCommand(command, width)
			if !ok {
				continue
			}
			broken++
			for _, line := range lines {
				if plain.Width(line) > width {
					t.Errorf("width %d: %q is wider", width, line)
				}
			}
			got, err := exec.Command(bash, "-c", strings.Join(lines, "\n")).Output()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("width %d: %q gives %q (%v), want %q", width, lines, got, err, want)
			}
		}
		if broken == 0 {
			t.Errorf("%s was never broken", command)
		}
	}
	if _, ok := breakCommand("kubectl get pod "+strings.Repeat("x", 80), 60); ok {
		t.Error("a word wider than the line was broken")
	}
}

func TestLocaleAndConcurrencyChangeNothing(t *testing.T) {
	want := render(t, sample.Chinese(), Options{Width: 80})
	twwidth.SetEastAsian(true)
	if got := render(t, sample.Chinese(), Options{Width: 80}); got != want {
		t.Errorf("an East Asian locale changes the table:\n%s", cmp.Diff(want, got))
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			var b bytes.Buffer
			if err := Render(&b, sample.Chinese(), Options{Width: 80}); err != nil || b.String() != want {
				t.Errorf("side by side: %v or another text", err)
			}
		})
	}
	wait.Wait()
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorIsReturned(t *testing.T) {
	err := Render(full{}, sample.Incident(), Options{})
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v, want disk full", err)
	}
}

func TestLongListsSayWhatTheyLeaveOut(t *testing.T) {
	r := sample.Many(2, 60)
	short, long := render(t, r, Options{Width: 100}), render(t, r, Options{Width: 100, Details: true})
	if !strings.Contains(short, fmt.Sprintf("… and %d more findings", 45-maxFindings)) {
		t.Error("does not say how many findings are left out")
	}
	if strings.Contains(long, "more findings") || strings.Count(long, "node-not-ready-") < 90 {
		t.Error("details leave findings out")
	}
}
