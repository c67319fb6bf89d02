package table

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"gpuaudit/audit/report/plain"
)

const columnGap = 2

// column is one column of a grid. Cells are made to fit here, before the table
// writer sees them: it measures, aligns and draws, and cuts nothing.
type column struct {
	title string
	right bool
	// min is the least width to which the column may shrink; 0 is never.
	min int
	// wrap breaks long cells into lines; else they lose their middle, since
	// names often differ at the end.
	wrap bool
	// lines is the most lines of a wrapped cell; 0 is no limit.
	lines int
}

// cell is text and the colour that it gets when colour is on.
type cell struct {
	text   string
	colour string
}

func cells(texts ...string) []cell {
	out := make([]cell, len(texts))
	for i, t := range texts {
		out[i] = cell{text: t}
	}
	return out
}

// grid writes rows under columns within the printer's width.
func (p *printer) grid(columns []column, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	for _, row := range rows {
		for i := range row {
			row[i].text = plain.Line(row[i].text)
		}
	}
	const indent = 2
	widths := fit(columns, rows, p.width-indent)
	var b strings.Builder
	t := newTable(&b, columns)
	header := make([]any, len(columns))
	for i, c := range columns {
		c.lines = 0
		header[i] = p.fill(c, cell{c.title, dim}, widths[i])
	}
	t.Header(header...)
	for _, row := range rows {
		line := make([]any, len(columns))
		for i, c := range columns {
			line[i] = p.fill(c, row[i], widths[i])
		}
		if err := t.Append(line...); err != nil {
			p.err = fmt.Errorf("table row: %w", err)
			return
		}
	}
	if err := t.Render(); err != nil {
		p.err = fmt.Errorf("table: %w", err)
		return
	}
	text := secondReset.ReplaceAllString(b.String(), "\x1b[0m$1")
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		p.raw(strings.Repeat(" ", indent) + strings.TrimRight(line, " "))
	}
}

// secondReset is what the table writer adds behind the blanks after a coloured cell.
var secondReset = regexp.MustCompile("\x1b\\[0m( *)\x1b\\[0m")

// fill makes a cell fit its width and paints each of its lines.
func (p *printer) fill(c column, v cell, width int) string {
	if !c.wrap {
		return p.paint(v.colour, plain.CutMiddle(v.text, width))
	}
	lines := plain.Wrap(v.text, width)
	if c.lines > 0 && len(lines) > c.lines {
		rest := strings.Join(lines[c.lines-1:], " ")
		lines = append(lines[:c.lines-1], plain.Cut(rest, width))
	}
	for i := range lines {
		lines[i] = p.paint(v.colour, lines[i])
	}
	return strings.Join(lines, "\n")
}

// fit gives each column its natural width, then takes from the widest ones that
// may shrink until the row fits. When nothing can shrink any more, the widest
// columns are cut all the same: a line is never wider than asked for.
func fit(columns []column, rows [][]cell, width int) []int {
	widths := make([]int, len(columns))
	total := columnGap * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = titleWidth(c)
		for _, row := range rows {
			widths[i] = max(widths[i], plain.Width(row[i].text))
		}
		total += widths[i]
	}
	for _, forced := range []bool{false, true} {
		for total > width {
			widest := -1
			for i, c := range columns {
				shrinks := c.min > 0 && widths[i] > c.min || forced && widths[i] > 2
				if shrinks && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			total--
		}
	}
	return widths
}

// titleWidth is the room that a column's title needs: its longest word where titles may break.
func titleWidth(c column) int {
	if !c.wrap {
		return plain.Width(c.title)
	}
	width := 0
	for word := range strings.FieldsSeq(c.title) {
		width = max(width, plain.Width(word))
	}
	return width
}

func newTable(b *strings.Builder, columns []column) *tablewriter.Table {
	// The table writer takes the width of ambiguous characters from the
	// environment; cells were measured as one column, whatever the locale.
	if twwidth.IsEastAsian() {
		twwidth.SetEastAsian(false)
	}
	align := make([]tw.Align, len(columns))
	for i, c := range columns {
		align[i] = tw.AlignLeft
		if c.right {
			align[i] = tw.AlignRight
		}
	}
	padding := tw.CellPadding{Global: tw.Padding{Left: "", Right: strings.Repeat(" ", columnGap), Overwrite: true}}
	section := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    padding,
	}
	return tablewriter.NewTable(b,
		tablewriter.WithConfig(tablewriter.Config{
			Header: section, Row: section,
			Behavior: tw.Behavior{TrimSpace: tw.Off, TrimLine: tw.Off},
		}),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
	)
}
