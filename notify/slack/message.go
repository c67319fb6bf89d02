// Package slack posts digests to Slack: message.go makes messages and is pure,
// slack.go speaks HTTP.
package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/plain"
	"gpuaudit/notify/digest"
)

// Slack's limits, with room to spare: 50 blocks, 3000 characters a section,
// 4000 of fallback text, and about 13000 characters over all blocks, which
// Slack answers with msg_blocks_too_long.
const (
	maxBlocks  = 45
	maxSection = 2800
	maxText    = 3500
	maxTotal   = 9500
)

// Message is one message to post: the first goes to the channel, the others to
// its thread.
type Message struct {
	Part   string        `json:"part"`
	Text   string        `json:"text"`
	Blocks []slack.Block `json:"blocks"`
}

// Messages makes the messages of a digest. Nothing is cut inside a rune, a
// link or an entity; no text of a cluster can mention anybody or become a link.
// Without threads (a webhook) there is one message, which says what is left out.
func Messages(d *digest.Digest, threads bool) []Message {
	links := shared(d)
	first := &builder{part: "digest", fallback: escape(d.Title + ". " + d.Summary)}
	if d.Mention != "" {
		first.lines([]string{d.Mention}) // from the configuration, not from a cluster
	}
	first.header(d.Title)
	first.lines([]string{escape(d.Summary)})
	var unseen []string
	for _, i := range d.Unseen {
		unseen = append(unseen, ":warning: *"+escape(i.Cluster)+"* "+escape(i.Text))
	}
	for _, m := range d.Missed {
		unseen = append(unseen, ":warning: an earlier digest was not delivered: "+escape(m))
	}
	first.section("Not seen", unseen)
	if d.Quiet != "" {
		first.lines([]string{":white_check_mark: " + escape(d.Quiet)})
	}
	first.section("What is lost", texts(d.Capacity))
	first.section("Findings", links.findings(d.Findings))
	first.lines(links.steps)
	where := "the thread and the report"
	if !threads {
		where = "the report"
		if n := len(d.Waiting); n > 0 {
			first.lines([]string{fmt.Sprintf("_pods wait in %d groups, see the report_", n)})
		}
	}
	if len(d.More) > 0 {
		first.lines([]string{fmt.Sprintf("_and %d more, in %s_", len(d.More), where)})
	}
	first.section("Resolved", texts(d.Resolved))
	for _, note := range d.Notes {
		first.lines([]string{"_" + escape(note) + "_"})
	}
	switch {
	case digest.Linkable(d.Report):
		first.lines([]string{"<" + linkURL(d.Report) + "|The whole report>"})
	case d.Report != "":
		first.lines([]string{"The whole report: " + code(d.Report)})
	}
	first.context(d.Footer)
	out := first.done()
	if !threads {
		return out[:1]
	}
	thread := &builder{part: "details", fallback: "Details of " + escape(d.Title)}
	thread.section("Waiting pods", atMost(texts(d.Waiting), "groups of waiting pods"))
	thread.section("More findings", atMost(links.findings(d.More), "findings"))
	out = append(out, thread.done()...)
	// Only the first message is the digest; what did not fit follows in the thread.
	for i := range out {
		if i > 0 {
			out[i].Part = fmt.Sprintf("details-%d", i)
		}
	}
	return out
}

// Note is a message of one plain line for a digest's thread.
func Note(part, text string) Message {
	b := &builder{part: part, fallback: escape(text)}
	b.lines([]string{"_" + escape(text) + "_"})
	return b.done()[0]
}

// mostInThread bounds a list in the thread: a thread of hundreds of messages is
// read by nobody, and Slack takes one message a second.
const mostInThread = 60

func atMost(rows []string, what string) []string {
	if len(rows) <= mostInThread {
		return rows
	}
	return append(rows[:mostInThread:mostInThread], fmt.Sprintf("_and %d more %s, in the report_", len(rows)-mostInThread, what))
}

func texts(items []digest.Item) []string {
	var out []string
	for _, i := range items {
		out = append(out, "• *"+escape(i.Cluster)+"* "+escape(i.Text))
	}
	return out
}

var marks = map[report.Severity]string{report.Critical: ":red_circle:", report.Warning: ":large_yellow_circle:", report.Info: ":white_circle:"}

// longLink is the length from which a link (a presigned one, say) is given once
// and not with every finding: it would fill the message.
const longLink = 200

// stepLinks writes findings; a long link to the checklist stands once, in steps.
type stepLinks struct {
	once  bool
	steps []string
}

func shared(d *digest.Digest) stepLinks {
	for _, i := range d.Findings {
		if len(i.Link) > longLink {
			base, _, _ := strings.Cut(i.Link, "#")
			return stepLinks{once: true, steps: []string{"<" + linkURL(base) + "|The checklist with its steps>"}}
		}
	}
	return stepLinks{}
}

func (l stepLinks) findings(items []digest.Item) []string {
	var out []string
	for _, i := range items {
		line := fmt.Sprintf("%s *%s* [%s] %s", marks[i.Severity], escape(i.Cluster), escape(i.Word), escape(i.Text))
		switch {
		case i.Action == "":
		case i.Command:
			line += "\n      → " + code(i.Action)
		default:
			line += "\n      → " + escape(i.Action)
		}
		switch {
		case i.Step == 0:
		case i.Link == "" || l.once:
			line += fmt.Sprintf(" (step %d)", i.Step)
		default:
			line += fmt.Sprintf(" (<%s|step %d>)", linkURL(i.Link), i.Step)
		}
		out = append(out, line)
	}
	return out
}

// code writes a command so that it can be copied: only what would end the code
// or begin an entity is changed. One with a backtick goes into a block of code.
func code(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(plain.Line(s))
	if !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	for strings.Contains(s, "```") {
		s = strings.ReplaceAll(s, "```", "ˋˋˋ")
	}
	return "``` " + s + " ```"
}

// escape makes text inert: Slack's three control characters as entities, and
// nothing that acts on a terminal or on the direction of text. Messages are
// sent verbatim, so that bare names and addresses do not become links.
func escape(s string) string {
	s = plain.Line(s)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "*", "∗", "`", "ˋ", "~", "∼").Replace(s)
}

// linkURL makes a configured URL safe inside <...|...>.
func linkURL(s string) string {
	return strings.NewReplacer("|", "%7C", ">", "%3E", "<", "%3C", " ", "%20", "\n", "").Replace(s)
}

// builder fills messages up to Slack's limits and begins a new one when one is full.
type builder struct {
	part, fallback string
	messages       []Message
	blocks         []slack.Block
	total          int
}

func (b *builder) room(n int) {
	if len(b.blocks) >= maxBlocks || b.total+n > maxTotal {
		b.flush()
	}
}

func (b *builder) flush() {
	if len(b.blocks) == 0 {
		return
	}
	text := cut(b.fallback, maxText)
	b.messages = append(b.messages, Message{Part: b.part, Text: text, Blocks: b.blocks})
	b.blocks, b.total = nil, 0
}

func (b *builder) done() []Message {
	b.flush()
	return b.messages
}

func (b *builder) header(text string) {
	text = cut(plain.Line(text), 140)
	b.room(len(text))
	b.blocks = append(b.blocks, slack.NewHeaderBlock(slack.NewTextBlockObject(slack.PlainTextType, text, false, false)))
	b.total += utf8.RuneCountInString(text)
}

func (b *builder) section(title string, rows []string) {
	if len(rows) > 0 {
		b.lines(append([]string{"*" + title + "*"}, rows...))
	}
}

// lines puts whole lines into sections; a line that is too long for one is cut
// on a rune, outside of links and entities.
func (b *builder) lines(rows []string) {
	var current strings.Builder
	length := 0
	put := func() {
		if length == 0 {
			return
		}
		b.room(length)
		text := slack.NewTextBlockObject(slack.MarkdownType, current.String(), false, true)
		b.blocks = append(b.blocks, slack.NewSectionBlock(text, nil, nil))
		b.total += length
		current.Reset()
		length = 0
	}
	for _, row := range rows {
		row = cut(row, maxSection)
		n := utf8.RuneCountInString(row)
		if length+n+1 > maxSection {
			put()
		}
		if length > 0 {
			current.WriteByte('\n')
			length++
		}
		current.WriteString(row)
		length += n
	}
	put()
}

// context writes small print, whole rows in as many blocks as it takes: the
// heads of the chains are of use only when none is cut.
func (b *builder) context(rows []string) {
	const most = 1900
	text := ""
	put := func() {
		if text == "" {
			return
		}
		b.room(utf8.RuneCountInString(text))
		b.blocks = append(b.blocks, slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, text, false, true)))
		b.total += utf8.RuneCountInString(text)
		text = ""
	}
	for _, row := range rows {
		row = cut(escape(row), most)
		if text != "" && utf8.RuneCountInString(text)+utf8.RuneCountInString(row)+3 > most {
			put()
		}
		if text != "" {
			text += " · "
		}
		text += row
	}
	put()
}

// cut bounds a text in runes; it never ends inside an entity or a link.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	runes := []rune(s)[:most-1]
	text := string(runes)
	if i := strings.LastIndexByte(text, '<'); i >= 0 && !strings.Contains(text[i:], ">") {
		text = text[:i]
	}
	if i := strings.LastIndexByte(text, '&'); i >= 0 && !strings.Contains(text[i:], ";") {
		text = text[:i]
	}
	if strings.Count(text, "```")%2 == 1 {
		return strings.TrimRight(text, "`") + " …```"
	}
	if strings.Count(text, "`")%2 == 1 {
		return text + "…`"
	}
	return text + "…"
}

// EncodeMessages gives the messages as a JSON list, as audit digest -o blocks prints.
func EncodeMessages(list []Message) ([]byte, error) {
	if list == nil {
		list = []Message{}
	}
	body, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode messages: %w", err)
	}
	return append(body, '\n'), nil
}
