package checklist

import (
	"bytes"
	_ "embed"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
)

//go:embed page.html.tmpl
var pageSource string

var page = template.Must(template.New("checklist").Funcs(template.FuncMap{"markdown": toHTML}).Parse(pageSource))

// toHTML turns the embedded Markdown of a step into HTML. Raw HTML in it would
// be dropped; no text from a cluster gets here.
func toHTML(text string) (template.HTML, error) {
	var b bytes.Buffer
	if err := goldmark.Convert([]byte(text), &b); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // rendered from the program's own embedded text
}

// HTML gives the whole checklist as one page that needs nothing else: no
// script, no network, readable in light, dark and on paper, with the same
// anchors as the Markdown form.
func HTML() []byte {
	var commands []template.HTML
	for _, s := range steps {
		commands = append(commands, highlight(s.Commands))
	}
	var b bytes.Buffer
	err := page.Execute(&b, map[string]any{
		"Title": pageTitle, "Intro": intro, "SetFirst": setFirst, "Steps": steps, "Variables": Variables(), "Commands": commands,
	})
	if err != nil {
		panic(err) // the template and its data are part of the program
	}
	return b.Bytes()
}

// highlight sets comments apart from commands.
func highlight(lines []string) template.HTML {
	var b strings.Builder
	for _, line := range lines {
		escaped := template.HTMLEscapeString(line)
		if strings.HasPrefix(line, "#") {
			escaped = "<i>" + escaped + "</i>"
		}
		b.WriteString(escaped + "\n")
	}
	return template.HTML(b.String()) //nolint:gosec // each line is escaped above
}
