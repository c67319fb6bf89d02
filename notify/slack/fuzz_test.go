package slack

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
	"gpuaudit/notify/digest"
)

// FuzzMessages: whatever a cluster says, messages stay within Slack's limits,
// are whole UTF-8, and hold no mention, no link of a cluster's and nothing that
// acts on a terminal or turns text around.
func FuzzMessages(f *testing.F) {
	for i, s := range sample.HostileTexts {
		f.Add(s, uint8(i*20))
	}
	f.Add(strings.Repeat("&<>", 2000), uint8(3))
	f.Add(strings.Repeat("节点", 5000), uint8(200))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		items := make([]digest.Item, n)
		for i := range items {
			items[i] = digest.Item{Cluster: text, Severity: report.Critical, Word: "new", Text: text, Step: 1, Action: text}
		}
		d := &digest.Digest{Title: text, Summary: text, Unseen: items, Findings: items, More: items, Waiting: items, Missed: []string{text}}
		for _, m := range Messages(d, true) {
			if len(m.Blocks) > 50 || utf8.RuneCountInString(m.Text) > 4000 {
				t.Fatalf("%d blocks, %d characters", len(m.Blocks), utf8.RuneCountInString(m.Text))
			}
			inert(t, m.Text)
			total := 0
			for _, b := range m.Blocks {
				section, ok := b.(*slack.SectionBlock)
				if !ok || section.Text == nil {
					continue
				}
				size := utf8.RuneCountInString(section.Text.Text)
				if total += size; size > 3000 || !section.Text.Verbatim {
					t.Fatalf("a section of %d characters, verbatim %v", size, section.Text.Verbatim)
				}
				inert(t, section.Text.Text)
			}
			if _, err := json.Marshal(m); err != nil || total > 13000 {
				t.Fatalf("%d characters in all, %v", total, err)
			}
		}
	})
}

func inert(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsAny(s, "<>") {
		t.Fatalf("%q is no UTF-8, or holds a link or a mention", s)
	}
	for _, r := range s {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Fatalf("%q holds %U", s, r)
		}
	}
	for rest := s; ; {
		i := strings.IndexByte(rest, '&')
		if i < 0 {
			return
		}
		if rest = rest[i:]; !strings.HasPrefix(rest, "&amp;") && !strings.HasPrefix(rest, "&lt;") && !strings.HasPrefix(rest, "&gt;") {
			t.Fatalf("%q is cut inside an entity", s)
		}
		rest = rest[1:]
	}
}
