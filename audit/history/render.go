package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"gpuaudit/audit/report/plain"
)

// maxValue is the widest value in a table, in columns; JSON has all of it.
const maxValue = 60

// JSON gives the history with two spaces of indent and a final newline. Bytes
// that are not UTF-8 become U+FFFD.
func JSON(h *History) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(h); err != nil {
		return nil, fmt.Errorf("encode the history of cluster %q: %w", h.Cluster, err)
	}
	return visible(b.Bytes()), nil
}

// visible writes characters that a terminal acts on, or that no reader sees,
// as JSON escapes. They occur only inside strings.
func visible(data []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }
	if bytes.IndexFunc(data, hidden) < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for _, r := range string(data) {
		if !hidden(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// Table gives the history for a terminal, one line a change, oldest first,
// each with the window in which it happened. All text is made plain.
func Table(h *History) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", plain.Line(h.Cluster), covered(h))
	for _, p := range h.Partial {
		fmt.Fprintf(&b, "not seen: run %s at %s: %s\n", plain.Line(p.Run), stamp(p.At), plain.Line(p.Reason))
	}
	for _, e := range h.Unread {
		fmt.Fprintf(&b, "not read: %s\n", plain.Line(e))
	}
	b.WriteByte('\n')
	switch {
	case len(h.Changes) > 0:
		rows := [][]string{{"BETWEEN", "AND", "NODE", "CHANGE", "AT", "BY"}}
		for i := range h.Changes {
			rows = append(rows, row(&h.Changes[i]))
		}
		align(&b, rows)
	case h.Snapshots > 1:
		b.WriteString("No change was seen.\n")
	case h.Snapshots == 1:
		b.WriteString("One snapshot: nothing to compare it with.\n")
	}
	if len(h.Values) > 0 {
		rows := [][]string{{"NODE", "NOW", "SEEN SINCE"}}
		for _, v := range h.Values {
			rows = append(rows, []string{plain.CutMiddle(plain.Line(v.Node), maxValue), value(v.Value), stamp(v.SeenSince)})
		}
		b.WriteByte('\n')
		align(&b, rows)
	}
	return b.Bytes()
}

func covered(h *History) string {
	if h.From == nil || h.To == nil {
		return "no snapshot shows its nodes: nothing is known"
	}
	return fmt.Sprintf("%s from %s to %s, %s", plain.Plural(int64(h.Snapshots), "snapshot"), stamp(*h.From), stamp(*h.To),
		plain.Plural(int64(len(h.Changes)), "change"))
}

func row(c *Change) []string {
	at := ""
	if c.At != nil {
		at = stamp(*c.At)
	}
	by := ""
	if c.SetBy != nil {
		by = plain.Line(fmt.Sprintf("%s (%s)", c.SetBy.Manager, c.SetBy.Operation))
	}
	return []string{stamp(c.After), stamp(c.Before), plain.CutMiddle(plain.Line(c.Node), maxValue), c.Text(), at, by}
}

// Text says in words what changed, in one plain line: "label node_env: prod -> absent, with the recreation".
func (c *Change) Text() string {
	key := plain.CutMiddle(plain.Line(c.Key), maxValue)
	var s string
	switch c.What {
	case Added:
		s = "node added, uid " + value(c.New)
	case Removed:
		s = "node removed, uid " + value(c.Old)
	case Recreated:
		s = "node recreated: uid " + value(c.Old) + " -> " + value(c.New)
	case Cordon:
		s = "cordoned"
		if c.New != nil && *c.New == "false" {
			s = "uncordoned"
		}
	default:
		s = strings.TrimRight(c.What+" "+key, " ") + ": " + value(c.Old) + " -> " + value(c.New)
	}
	if c.WithRecreation && c.What != Recreated {
		s += ", with the recreation"
	}
	if c.Note != "" {
		s += " (" + plain.Cut(plain.Line(c.Note), 2*maxValue) + ")"
	}
	return s
}

func value(v *string) string {
	if v == nil {
		return "absent"
	}
	return cmp.Or(plain.CutMiddle(plain.Line(*v), maxValue), `""`)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// align writes rows in columns, two blanks apart.
func align(b *bytes.Buffer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], plain.Width(cell))
		}
	}
	for _, r := range rows {
		line := ""
		for i, cell := range r {
			line += plain.Pad(cell, widths[i]+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
