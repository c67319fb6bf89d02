package slack

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// Preview shows messages about as Slack does, for a look without posting: one
// HTML file, without scripts and without the network.
func Preview(list []Message) ([]byte, error) {
	var rows []previewRow
	for i, m := range list {
		row := previewRow{Thread: i > 0 && strings.HasPrefix(m.Part, "details"), Part: m.Part}
		for _, b := range m.Blocks {
			raw, err := json.Marshal(b)
			if err != nil {
				return nil, fmt.Errorf("preview: %w", err)
			}
			var one struct {
				Type     string
				Text     struct{ Text string }
				Elements []struct{ Text string }
			}
			if err := json.Unmarshal(raw, &one); err != nil {
				return nil, fmt.Errorf("preview: %w", err)
			}
			text := one.Text.Text
			for _, e := range one.Elements {
				text += e.Text
			}
			row.Blocks = append(row.Blocks, previewBlock{one.Type, mrkdwn(text)})
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	if err := previewPage.Execute(&b, rows); err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	return []byte(b.String()), nil
}

type previewRow struct {
	Thread bool
	Part   string
	Blocks []previewBlock
}

type previewBlock struct {
	Type string
	Text template.HTML
}

var (
	previewCode   = regexp.MustCompile("`([^`]+)`")
	previewBold   = regexp.MustCompile(`\*([^*\n]+)\*`)
	previewItalic = regexp.MustCompile(`(^|\s)_([^_\n]+)_`)
	previewLink   = regexp.MustCompile(`&lt;(https?://[^|&]+(?:&amp;[^|&]+)*)\|([^&]+)&gt;`)
	previewEmoji  = strings.NewReplacer(":red_circle:", "🔴", ":large_yellow_circle:", "🟡", ":white_circle:", "⚪", ":warning:", "⚠️")
)

// mrkdwn turns the few marks that messages use into HTML. Everything is escaped
// first, so that only these marks mean anything.
func mrkdwn(s string) template.HTML {
	s = strings.NewReplacer("&amp;", "&", "&lt;", "\x01", "&gt;", "\x02").Replace(s)
	s = template.HTMLEscapeString(s)
	s = previewLink.ReplaceAllString(s, `<a href="$1" rel="noreferrer">$2</a>`)
	s = previewCode.ReplaceAllString(s, "<code>$1</code>")
	s = previewBold.ReplaceAllString(s, "<b>$1</b>")
	s = previewItalic.ReplaceAllString(s, "$1<i>$2</i>")
	s = strings.NewReplacer("\x01", "&lt;", "\x02", "&gt;", "\n", "<br>").Replace(previewEmoji.Replace(s))
	return template.HTML(s) //nolint:gosec // escaped above, but for the marks
}

var previewPage = template.Must(template.New("preview").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Digest</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.46 sans-serif; color: #1d1c1d; background: #fff; max-width: 46em; margin: 1em auto; padding: 0 1em }
article { margin: 0 0 1.5em } article.thread { margin-left: 3em; border-left: 3px solid #ddd; padding-left: 1em }
h2 { font-size: 1.2em; margin: .4em 0 } p { margin: .5em 0; overflow-wrap: anywhere } .context { color: #616061; font-size: .85em }
code { background: #f6f6f6; border: 1px solid #ddd; border-radius: 3px; padding: 0 .2em; color: #a01848 } a { color: #1264a3 }
@media (prefers-color-scheme: dark) { body { background: #1a1d21; color: #d1d2d3 } code { background: #222529; border-color: #444; color: #e8912d } a { color: #4ea8de } .context { color: #ababad } }
</style></head><body><main>
{{range .}}<article{{if .Thread}} class="thread"{{end}}>{{range .Blocks}}{{if eq .Type "header"}}<h2>{{.Text}}</h2>{{else}}<p{{if eq .Type "context"}} class="context"{{end}}>{{.Text}}</p>{{end}}
{{end}}</article>
{{else}}<p>nothing would be posted</p>{{end}}</main></body></html>
`))
