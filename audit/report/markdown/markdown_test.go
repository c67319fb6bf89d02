package markdown

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/plain"
	"gpuaudit/audit/report/sample"
)

// UPDATE_GOLDEN=1 writes the golden files anew; look at the difference then.
func TestGolden(t *testing.T) {
	cases := map[string]*report.Report{
		"incident": sample.Incident(), "partial": sample.Partial(), "hostile": sample.Hostile(), "chinese": sample.Chinese(), "empty": {},
	}
	for name, r := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".md")
			got := Render(r)
			if os.Getenv("UPDATE_GOLDEN") == "1" {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (UPDATE_GOLDEN=1 writes it anew):\n%s", file, diff)
			}
		})
	}
}

// toHTML renders as GitHub does, with raw HTML let through, so that anything
// that slips by shows.
func toHTML(t *testing.T, source []byte) string {
	t.Helper()
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	var b bytes.Buffer
	if err := md.Convert(source, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	tag     = regexp.MustCompile(`<[^>]*>`)
	allowed = regexp.MustCompile(`^</?(h[1-4]|p|ul|ol|li|strong|table|thead|tbody|tr|th|td|pre|code|a)( (id|class|style|align|start)="[^"]*"| href="(https://audit\.example\.com/[^"]*|checklist\.html[^"]*)")*>$`)
)

func TestHostileTextStaysText(t *testing.T) {
	out := toHTML(t, Render(sample.Hostile()))
	for _, found := range tag.FindAllString(out, -1) {
		if found != "<!-- -->" && !allowed.MatchString(found) {
			t.Errorf("text from a cluster became markup: %s", found)
		}
	}
	// What a platform would make a mention of: an @ before a word, outside of code.
	outside := regexp.MustCompile(`(?s)<code[^>]*>.*?</code>`).ReplaceAllString(out, "")
	if found := regexp.MustCompile(`@\w+|https?://evil|(^|\s)#\d`).FindString(outside); found != "" {
		t.Errorf("a platform would link %q", found)
	}
	for i, line := range strings.Split(string(Render(sample.Hostile())), "\n") {
		if j := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); j >= 0 {
			t.Errorf("line %d holds an unprintable character: %+q", i+1, line)
		}
	}
}

// Nothing may be lost either: what a reader sees is the text, made visible.
func TestEscapedTextReadsAsItWas(t *testing.T) {
	texts := append([]string{
		"node_env=prod", "__init__", "1. one", "12) x", "- item", "+ x", "=== x", "a:b :smile: http://x.example www.x.example",
		"#12 GH-3 @team user@x.example", "$a$ ~~x~~ ![i](u) &lt; a\\b", "***", "| a | b |", "",
	}, sample.HostileTexts...)
	for _, s := range texts {
		want := strings.TrimSpace(plain.Line(s))
		for form, source := range map[string]string{"text": text(s), "cell": "| h |\n| --- |\n| " + text(s) + " |"} {
			out := tag.ReplaceAllString(toHTML(t, []byte(source)), "")
			out = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(out)
			if got := strings.Join(strings.Fields(strings.TrimPrefix(strings.TrimSpace(out), "h\n")), " "); got != strings.Join(strings.Fields(want), " ") {
				if form == "cell" && want == "" {
					continue // the header alone is left
				}
				t.Errorf("%s of %+q reads %q, want %q (source %q)", form, s, got, want, source)
			}
		}
	}
}

func TestCodeAndFence(t *testing.T) {
	for in, want := range map[string]string{
		"x": "`x`", "a`b": "``a`b``", "`": "`` ` ``", "": "(empty)", "a|b": "`a|b`", "  ": "(empty)", "a\nb": "`a\\nb`",
	} {
		if got := code(in); got != want {
			t.Errorf("code(%q) = %s, want %s", in, got, want)
		}
	}
	if got := fence("sh", []string{"echo ````", "x"}); got != "`````sh\necho ````\nx\n`````\n" {
		t.Errorf("fence gives %q", got)
	}
}

func TestLink(t *testing.T) {
	for in, want := range map[string]string{
		"https://x.example/c#labels": "[s](https://x.example/c#labels)", "checklist.html#labels": "[s](checklist.html#labels)",
		"javascript:alert(1)": "s", "//evil.example/x": "s", "": "s", "/etc/passwd": "s", "data:text/html,x": "s", "https://x.example/<b>": "s",
		"https://x.example/a)b": "[s](https://x.example/a%29b)", "mailto:a@b.example": "s", "http://": "s", "\x7f": "s",
	} {
		if got := link("s", in); got != want {
			t.Errorf("link(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestOrderAndWaterfall(t *testing.T) {
	out := string(Render(sample.Incident()))
	at := 0
	for _, want := range []string{
		"## What is lost", "0 for class prod: 7 notReady + 5 labelMissing + 1 labelOtherValue", "## What to do first", "52ew76fke2",
		"## Clusters", "## Cluster A", "## Cluster C", "#### CRITICAL: Node 52ew76fke2", "Evidence, as read:", "status.conditions", "```sh",
	} {
		i := strings.Index(out[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing or late", want)
		}
		at += i
	}
	partial := string(Render(sample.Partial()))
	if unseen, lost := strings.Index(partial, "## Not seen"), strings.Index(partial, "## What is lost"); unseen < 0 || unseen > lost {
		t.Error("what was not seen does not come first")
	}
	if !strings.Contains(partial, "| lost\\-site | ? | ? |") && !strings.Contains(partial, "| lost-site | ? | ? |") {
		t.Error("unknown numbers are not ?")
	}
}

func TestOneClusterNamesNoOther(t *testing.T) {
	out, err := RenderCluster(sample.Incident(), "C")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("vendor-A")) || bytes.Contains(out, []byte("Cluster B")) || !bytes.Contains(out, []byte("## Cluster C")) {
		t.Error("the report of C names others or lacks C")
	}
	if _, err := RenderCluster(sample.Incident(), "D"); err == nil {
		t.Error("an unknown cluster gives no error")
	}
}

func TestLongListsAreCut(t *testing.T) {
	out := string(Render(sample.Many(1, 400)))
	if n := strings.Count(out, "\n#### "); n != maxFindings {
		t.Errorf("%d findings are written, want %d", n, maxFindings)
	}
	if !strings.Contains(out, "… and 100 more findings") {
		t.Error("does not say how many findings are left out")
	}
}
