package markdown

import (
	"net/url"
	"strings"

	"gpuaudit/audit/report/plain"
)

// split is put inside what a platform would make a link or a mention of, since
// no backslash stops it: nothing shows, and the word is no word any more.
const split = "<!-- -->"

// text makes text from a cluster inert in GitHub-flavoured Markdown: it is one
// line, makes no markup, HTML, link, mention, reference, emoji or formula, and
// breaks no table.
func text(s string) string {
	s = strings.TrimSpace(plain.Line(s))
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '_' && i > 0 && i+1 < len(s) && isWord(s[i-1]) && isWord(s[i+1]):
			b.WriteByte(c) // inside a word it marks nothing: node_env stays readable in the source
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case c == '&':
			b.WriteString("&amp;")
		case strings.IndexByte("\\`*_{}[]|~$", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '@', c == '#':
			b.WriteString("\\" + string(c) + split)
		case c == ':' && i+1 < len(s) && (s[i+1] == '/' || isWord(s[i+1])):
			b.WriteString(":" + split) // http://, mailto:x, :emoji:
		case c == '!' && i+1 < len(s) && s[i+1] == '[':
			b.WriteString("\\!")
		case c == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteString("." + split)
		default:
			b.WriteByte(c)
		}
	}
	return atLineStart(b.String())
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// atLineStart escapes what would begin a list, a heading line or a rule.
func atLineStart(s string) string {
	if s == "" {
		return s
	}
	if strings.IndexByte("-+=", s[0]) >= 0 {
		return "\\" + s
	}
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits > 0 && digits < len(s) && (s[digits] == '.' || s[digits] == ')') {
		return s[:digits] + "\\" + s[digits:]
	}
	return s
}

// cut is text of at most width columns before escaping, for tables.
func cut(s string, width int) string { return text(plain.Cut(plain.Line(s), width)) }

// code makes a code span, in which nothing is markup. It is not for tables: a
// pipe would end the cell even there.
func code(s string) string {
	s = plain.Line(s)
	if strings.TrimSpace(s) == "" {
		return "(empty)"
	}
	ticks := strings.Repeat("`", longestRun(s)+1)
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// fence makes a block of lines, each shown as it is.
func fence(language string, lines []string) string {
	var b strings.Builder
	longest := 2
	for _, line := range lines {
		longest = max(longest, longestRun(line))
	}
	ticks := strings.Repeat("`", longest+1)
	b.WriteString(ticks + language + "\n")
	for _, line := range lines {
		b.WriteString(plain.Line(line) + "\n")
	}
	b.WriteString(ticks + "\n")
	return b.String()
}

// longestRun is the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// link makes a link of a web address or of a page beside the report; anything
// else, such as a script, stays text.
func link(label, target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Opaque != "" || strings.ContainsAny(target, "<>\\\"") {
		return label
	}
	web := (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
	beside := u.Scheme == "" && u.Host == "" && u.Path != "" && !strings.HasPrefix(u.Path, "/")
	if !web && !beside {
		return label
	}
	escaped := strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C", "`", "%60").Replace(u.String())
	return "[" + label + "](" + escaped + ")"
}
