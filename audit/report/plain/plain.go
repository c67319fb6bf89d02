// Package plain makes text from clusters fit to be read in one line: nothing
// in it moves a cursor, changes a colour, hides or turns around what stands
// beside it. It also writes ages and numbers that may be unknown.
//
// It does not escape for markup: HTML, Markdown and Slack do that on top.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// maxMarks is how many combining marks may stack on one character: more than
// any language needs draw over the lines above and below.
const maxMarks = 3

// columns measures as a terminal with Western defaults does, whatever the
// locale of this process: the same report gives the same bytes everywhere.
var columns = displaywidth.Options{EastAsianWidth: false}

// Line makes s one line of visible text. Control characters, ESC, direction
// marks, zero-width and other invisible characters, and bytes that are not
// UTF-8 become visible escapes such as \n, \x1b or \u202e.
func Line(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	marks := 0
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r != ' ' && unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case !unicode.IsPrint(r) || isBlank(r) || marks > maxMarks:
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

func isPlainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// isBlank is true for characters that count as printable and show nothing:
// fillers, and variation selectors, which change widths as well.
func isBlank(r rune) bool {
	if unicode.Is(unicode.Variation_Selector, r) {
		return true
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return false
}

func escape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r < 0x100:
		fmt.Fprintf(b, `\x%02x`, r)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// Width is how many terminal columns s takes. Chinese characters take two.
//
// Characters that a terminal may join (flags, skin tones) are counted one by
// one, as most terminals and the table writer do: never too few.
func Width(s string) int {
	width := 0
	for _, r := range s {
		width += columns.Rune(r)
	}
	return width
}

// Cut shortens s to at most width columns, ending in … when anything was cut,
// never inside a character and its marks. A width below 1 gives "".
func Cut(s string, width int) string {
	if width < 1 {
		return ""
	}
	if Width(s) <= width {
		return s
	}
	head, _ := split(s, width-1)
	return strings.TrimRight(head, " ") + "…"
}

// CutMiddle shortens s to at most width columns by taking out its middle:
// names of pods and nodes often differ only at the end.
func CutMiddle(s string, width int) string {
	if Width(s) <= width || width < 7 {
		return Cut(s, width)
	}
	tail := (width - 1) / 2
	head, rest := split(s, width-1-tail)
	over := Width(rest) - tail
	graphemes := columns.StringGraphemes(rest)
	for over > 0 && graphemes.Next() {
		over -= Width(graphemes.Value())
		rest = rest[len(graphemes.Value()):]
	}
	return head + "…" + rest
}

// split gives the longest beginning of s within width columns, and the rest.
func split(s string, width int) (head, rest string) {
	end, used := 0, 0
	graphemes := columns.StringGraphemes(s)
	for graphemes.Next() {
		if used += Width(graphemes.Value()); used > width {
			break
		}
		end += len(graphemes.Value())
	}
	return s[:end], s[end:]
}

// Pad fills s with blanks on the right up to width columns.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// PadLeft fills s with blanks on the left up to width columns.
func PadLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-Width(s))) + s
}

// breakWord moves the break of a long word back to behind the last separator in
// head, if that leaves head at least a third of its length.
func breakWord(head, rest string) (string, string) {
	i := strings.LastIndexAny(head, "/-.,:;=_@") + 1
	if i < len(head)/3+1 || i == len(head) {
		return head, rest
	}
	return head[:i], head[i:] + rest
}

// Wrap breaks s into lines of at most width columns, at blanks where it can
// and inside longer words, behind a separator if there is one, where it must. It gives at least one line. A width
// below 2 is taken as 2, the width of the widest character.
func Wrap(s string, width int) []string {
	width = max(width, 2)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for {
			head, rest := split(line, width)
			if rest == "" || head == "" { // it fits, or one character is wider than the line
				break
			}
			head, rest = breakWord(head, rest)
			lines, line = append(lines, head), rest
		}
	}
	return append(lines, line)
}
