package table

import (
	"strings"
	"testing"
	"unicode"

	"gpuaudit/audit/report/plain"
	"gpuaudit/audit/report/sample"
)

// FuzzRender: whatever a cluster says and however wide the terminal is, no line
// is wider and nothing acts on the terminal.
func FuzzRender(f *testing.F) {
	for i, s := range sample.HostileTexts {
		f.Add(s, sample.HostileTexts[(i+5)%len(sample.HostileTexts)], uint8(i*17))
	}
	f.Add(strings.Repeat("节点", 5000), strings.Repeat("x", 10_000), uint8(0))
	f.Fuzz(func(t *testing.T, one, other string, more uint8) {
		width := 40 + int(more)
		for i, line := range strings.Split(render(t, sample.Saying(one, other), Options{Width: width, Details: true}), "\n") {
			if plain.Width(line) > width {
				t.Fatalf("line %d takes %d columns of %d: %q", i+1, plain.Width(line), width, line)
			}
			if j := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); j >= 0 {
				t.Fatalf("line %d holds an unprintable character: %+q", i+1, line)
			}
		}
	})
}
