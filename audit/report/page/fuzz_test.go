package page_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gpuaudit/audit/report/page"
	"gpuaudit/audit/report/sample"
)

// shape gives the elements of a page and the names of their attributes, each
// once, and where links lead.
func shape(t testing.TB, text string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			out[token.Data] = true
			for _, a := range token.Attr {
				out[token.Data+" "+a.Key] = true
				if a.Key == "href" && token.Data == "a" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "https://audit.example.com/") && !strings.HasPrefix(a.Val, "checklist.html") {
					t.Fatalf("a link leads to %q", a.Val)
				}
			}
		}
	}
}

// FuzzPage: whatever a cluster says, a page has no element, attribute or link
// that it has not without it.
func FuzzPage(f *testing.F) {
	usual := map[string]bool{}
	for _, r := range []string{"word", strings.Repeat("long ", 400)} {
		for part := range shape(f, render(f, sample.Saying(r), page.Options{})) {
			usual[part] = true
		}
	}
	for i, s := range sample.HostileTexts {
		f.Add(s, sample.HostileTexts[(i+5)%len(sample.HostileTexts)])
	}
	f.Add(strings.Repeat("x", 10_000), strings.Repeat("<b>", 5000))
	f.Fuzz(func(t *testing.T, one, other string) {
		for part := range shape(t, render(t, sample.Saying(one, other), page.Options{})) {
			if !usual[part] {
				t.Fatalf("%+q, %+q: the page has <%s>", one, other, part)
			}
		}
	})
}
