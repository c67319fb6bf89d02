// Package mask takes secrets out of text that is to be shown or kept: errors
// of libraries and answers of servers may repeat what they were given.
package mask

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// shortest is the length from which a word is looked for: a shorter one would
// be found in the middle of other words.
const shortest = 4

// Words are the secrets of one connection. The zero value has none; it may be
// used by several goroutines at once.
type Words struct {
	mu    sync.Mutex
	words []string
}

// Add takes secrets in, each also as it stands in a URL.
func (w *Words) Add(secrets ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range secrets {
		for _, form := range []string{s, strings.TrimSpace(s), url.QueryEscape(s), url.PathEscape(s)} {
			if len(form) >= shortest && !slices.Contains(w.words, form) {
				w.words = append(w.words, form)
			}
		}
	}
	// The longest first: one may be a part of another.
	slices.SortStableFunc(w.words, func(a, b string) int { return len(b) - len(a) })
}

// AddURL takes the password of a URL and the values of its query in, also of
// one that is malformed.
func (w *Words) AddURL(raw string) {
	rest := raw
	if _, after, ok := strings.Cut(raw, "://"); ok {
		rest = after
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		w.addCoded(rest[:at])
		// As a client sends it.
		if plain, err := url.PathUnescape(rest[:at]); err == nil {
			w.Add(base64.StdEncoding.EncodeToString([]byte(plain)))
		}
		_, password, _ := strings.Cut(rest[:at], ":")
		w.addCoded(password)
		rest = rest[at+1:]
	}
	if _, query, ok := strings.Cut(rest, "?"); ok {
		for pair := range strings.SplitSeq(query, "&") {
			_, value, _ := strings.Cut(pair, "=")
			w.addCoded(value)
		}
	}
}

func (w *Words) addCoded(s string) {
	w.Add(s)
	if plain, err := url.PathUnescape(s); err == nil && plain != s {
		w.Add(plain)
	}
}

// AddHeader takes what a request says of who sends it: the credentials of its
// Authorization, and the password in them.
func (w *Words) AddHeader(h http.Header) {
	for _, value := range h.Values("Authorization") {
		scheme, coded, ok := strings.Cut(value, " ")
		if !ok {
			w.Add(value)
			continue
		}
		w.Add(coded)
		if !strings.EqualFold(scheme, "Basic") {
			continue
		}
		if plain, err := base64.StdEncoding.DecodeString(coded); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			w.Add(password)
		}
	}
}

// Text gives a text without the secrets.
func (w *Words) Text(s string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, word := range w.words {
		s = strings.ReplaceAll(s, word, Redacted)
	}
	return s
}
