// Package slackfake is a strict stand-in for Slack's Web API and incoming
// webhooks: it enforces the documented limits and gives the documented errors.
package slackfake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Token that the fake takes.
const Token = "xoxb-canary-token"

// Message is one that was taken.
type Message struct {
	Channel, TS, Thread, Text, Slot, Part string
	Blocks                                []json.RawMessage
}

// Server is a fake Slack.
type Server struct {
	URL string
	mu  sync.Mutex
	// Messages that were taken, in order.
	messages []Message
	// Next faults, one a request: ratelimited, cut (taken, then the connection
	// breaks), 500, garbage, or a Slack error code.
	faults  []string
	clock   int
	history bool
	files   files
}

// New starts a fake that ends with the test; history tells whether the token
// may read channels.
func New(t testing.TB, history bool) *Server {
	s := &Server{history: history}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Fault makes the next requests fail.
func (s *Server) Fault(faults ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Messages gives what was taken.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

// ServeHTTP answers as Slack does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/chat.postMessage":
		s.post(w, r)
	case "/auth.test":
		if s.authorised(w, r) {
			scopes := "chat:write,files:write,channels:read"
			if s.history {
				scopes += ",channels:history"
			}
			w.Header().Set("X-OAuth-Scopes", scopes)
			answer(w, map[string]any{"ok": true, "user": "auditbot", "team": "example"})
		}
	case "/conversations.info":
		s.info(w, r)
	case "/files.getUploadURLExternal", "/files.completeUploadExternal":
		if s.authorised(w, r) {
			s.upload(w, r)
		}
	case "/conversations.history", "/conversations.replies":
		s.readHistory(w, r)
	case "/hook/secret-canary":
		s.hook(w, r)
	default:
		if strings.HasPrefix(r.URL.Path, "/upload/") {
			s.receive(w, r)
			return
		}
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, code string) { answer(w, map[string]any{"ok": false, "error": code}) }

func (s *Server) authorised(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Bearer "+Token || r.FormValue("token") == Token {
		return true
	}
	fail(w, "invalid_auth")
	return false
}

func (s *Server) fault() string {
	if len(s.faults) == 0 {
		return ""
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	if !s.authorised(w, r) {
		return
	}
	f := s.fault()
	switch f {
	case "", "cut":
	case "ratelimited":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "garbage":
		fmt.Fprint(w, "<html>proxy says no</html>")
		return
	default:
		fail(w, f)
		return
	}
	m := Message{Channel: r.FormValue("channel"), Thread: r.FormValue("thread_ts"), Text: r.FormValue("text")}
	if err := json.Unmarshal([]byte(r.FormValue("blocks")), &m.Blocks); err != nil {
		fail(w, "invalid_blocks_format")
		return
	}
	if code := Check(m.Text, m.Blocks); code != "" {
		fail(w, code)
		return
	}
	var meta struct {
		EventPayload struct{ Slot, Part string } `json:"event_payload"`
	}
	_ = json.Unmarshal([]byte(r.FormValue("metadata")), &meta) // absent is allowed
	s.clock++
	m.TS = fmt.Sprintf("1780000000.%06d", s.clock)
	m.Slot, m.Part = meta.EventPayload.Slot, meta.EventPayload.Part
	s.messages = append(s.messages, m)
	if f == "cut" {
		panic(http.ErrAbortHandler)
	}
	answer(w, map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS})
}

func (s *Server) readHistory(w http.ResponseWriter, r *http.Request) {
	if !s.authorised(w, r) {
		return
	}
	if !s.history {
		fail(w, "missing_scope")
		return
	}
	var list []map[string]any
	for _, m := range s.messages {
		// A channel's history holds no replies of threads.
		ofThread := m.Thread == r.FormValue("ts") || m.TS == r.FormValue("ts")
		if m.Channel == r.FormValue("channel") && ((r.URL.Path == "/conversations.history" && m.Thread == "") || (r.URL.Path == "/conversations.replies" && ofThread)) {
			list = append(list, map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "metadata": map[string]any{"event_type": "gpu_audit", "event_payload": map[string]any{"slot": m.Slot, "part": m.Part}}})
		}
	}
	if r.URL.Path == "/conversations.replies" {
		for _, f := range s.files.complete {
			if f.Channel == r.FormValue("channel") && f.Thread == r.FormValue("ts") {
				list = append(list, map[string]any{"type": "message", "ts": "1790000000.000001", "files": []map[string]any{{"id": f.ID}}})
			}
		}
	}
	answer(w, map[string]any{"ok": true, "messages": list})
}

func (s *Server) hook(w http.ResponseWriter, r *http.Request) {
	switch f := s.fault(); f {
	case "":
	case "ratelimited":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
		return
	default:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, f)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m struct {
		Text   string
		Blocks []json.RawMessage
	}
	if err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "invalid_payload")
		return
	}
	if code := Check(m.Text, m.Blocks); code != "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, code)
		return
	}
	s.messages = append(s.messages, Message{Channel: "webhook", Text: m.Text, Blocks: m.Blocks})
	fmt.Fprint(w, "ok")
}

// Check gives Slack's error for blocks beyond its limits, "" for good ones.
func Check(text string, blocks []json.RawMessage) string {
	if len(blocks) > 50 || utf8.RuneCountInString(text) > 40000 {
		return "invalid_blocks"
	}
	total := 0
	for _, raw := range blocks {
		var b struct {
			Type     string
			Text     *struct{ Type, Text string }
			Elements []struct{ Type, Text string }
		}
		if json.Unmarshal(raw, &b) != nil {
			return "invalid_blocks"
		}
		n := 0
		if b.Text != nil {
			n = utf8.RuneCountInString(b.Text.Text)
		}
		total += n
		switch b.Type {
		case "header":
			if n == 0 || n > 150 || b.Text.Type != "plain_text" {
				return "invalid_blocks"
			}
		case "section":
			if n == 0 || n > 3000 {
				return "invalid_blocks"
			}
		case "context":
			if len(b.Elements) == 0 || len(b.Elements) > 10 {
				return "invalid_blocks"
			}
			for _, e := range b.Elements {
				total += utf8.RuneCountInString(e.Text)
			}
		case "divider":
		default:
			return "invalid_blocks"
		}
	}
	if total > 13000 {
		return "msg_blocks_too_long"
	}
	return ""
}
