package slackfake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// File is one that was attached.
type File struct {
	ID, Name, Title, Channel, Thread string
	Body                             []byte
}

type files struct {
	refused  bool
	faults   []string
	begun    []File
	length   []int
	complete []File
}

// RefuseFiles makes the token one without files:write.
func (s *Server) RefuseFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.refused = true
}

// FileFault makes the next requests of uploads fail: ratelimited, cut (taken at
// the last request, then the connection breaks), or a Slack error code.
func (s *Server) FileFault(faults ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.faults = append(s.files.faults, faults...)
}

// Files gives what was attached.
func (s *Server) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]File(nil), s.files.complete...)
}

// upload answers the first and the last of the three requests of an upload.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	if s.files.refused {
		fail(w, "missing_scope")
		return
	}
	fault := ""
	if len(s.files.faults) > 0 {
		fault, s.files.faults = s.files.faults[0], s.files.faults[1:]
	}
	switch fault {
	case "":
	case "cut":
		if r.URL.Path == "/files.getUploadURLExternal" {
			panic(http.ErrAbortHandler)
		}
	case "ratelimited":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	default:
		fail(w, fault)
		return
	}
	if r.URL.Path == "/files.getUploadURLExternal" {
		length, err := strconv.Atoi(r.FormValue("length"))
		if err != nil || length < 1 || r.FormValue("filename") == "" {
			fail(w, "invalid_arguments")
			return
		}
		s.files.begun = append(s.files.begun, File{Name: r.FormValue("filename")})
		s.files.length = append(s.files.length, length)
		id := len(s.files.begun) - 1
		answer(w, map[string]any{"ok": true, "upload_url": fmt.Sprintf("%s/upload/%d", s.URL, id), "file_id": fmt.Sprintf("F%d", id)})
		return
	}
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(r.FormValue("files")), &list) != nil || len(list) != 1 {
		fail(w, "invalid_arguments")
		return
	}
	id, err := strconv.Atoi(strings.TrimPrefix(list[0].ID, "F"))
	if err != nil || id < 0 || id >= len(s.files.begun) || s.files.begun[id].Body == nil {
		fail(w, "file_not_found")
		return
	}
	if !strings.HasPrefix(r.FormValue("channel_id"), "C") {
		fail(w, "channel_not_found") // a name will not do here
		return
	}
	f := s.files.begun[id]
	f.ID, f.Title, f.Channel, f.Thread = list[0].ID, list[0].Title, r.FormValue("channel_id"), r.FormValue("thread_ts")
	s.files.complete = append(s.files.complete, f)
	if fault == "cut" {
		panic(http.ErrAbortHandler)
	}
	answer(w, map[string]any{"ok": true, "files": []map[string]any{{"id": list[0].ID, "title": f.Title}}})
}

// receive takes the body of a file.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/upload/"))
	if err != nil || id < 0 || id >= len(s.files.begun) {
		http.NotFound(w, r)
		return
	}
	in, _, err := r.FormFile("file")
	var body []byte
	if err == nil {
		body, err = io.ReadAll(in)
	}
	if err != nil || len(body) != s.files.length[id] {
		http.Error(w, "length differs from what was announced", http.StatusBadRequest)
		return
	}
	s.files.begun[id].Body = body
	fmt.Fprintf(w, "OK - %d", len(body))
}

// info answers for channel C1 (the bot is in it), C2 (it is not); others are not found.
func (s *Server) info(w http.ResponseWriter, r *http.Request) {
	if !s.authorised(w, r) {
		return
	}
	switch channel := r.FormValue("channel"); channel {
	case "C1", "C2":
		answer(w, map[string]any{"ok": true, "channel": map[string]any{"id": channel, "is_member": channel == "C1"}})
	default:
		fail(w, "channel_not_found")
	}
}
