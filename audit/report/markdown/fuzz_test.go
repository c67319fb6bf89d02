package markdown

import (
	"strings"
	"testing"
	"unicode"

	"gpuaudit/audit/report/plain"
	"gpuaudit/audit/report/sample"
)

// FuzzText: text from a cluster reads as it was, and is nothing but text.
func FuzzText(f *testing.F) {
	for _, s := range sample.HostileTexts {
		f.Add(s)
	}
	f.Add("a_b__c *d* :e: 1. http://x www.y.z @f #1 $g$")
	f.Add(strings.Repeat("a_b*", 2500))
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Join(strings.Fields(plain.Line(s)), " ")
		got := text(s)
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%+q holds an unprintable character", got)
		}
		out := toHTML(t, []byte("x "+got))
		for _, found := range tag.FindAllString(out, -1) {
			if found != split && found != "<p>" && found != "</p>" {
				t.Fatalf("%+q became markup: %s", s, found)
			}
		}
		out = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(tag.ReplaceAllString(out, ""))
		if out = strings.Join(strings.Fields(out), " "); out != strings.TrimSpace("x "+want) {
			t.Fatalf("%+q reads %q, want %q (source %q)", s, out, "x "+want, got)
		}
	})
}
