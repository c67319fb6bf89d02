package dump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// object is one Kubernetes object as read, with where it stood.
type object struct {
	apiVersion, kind string
	metadata         json.RawMessage
	raw              json.RawMessage
}

// head is what every object shows.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   json.RawMessage   `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// stream calls yield for every object of a file, one at a time. fallback is the
// kind of items that name none.
func stream(path string, limit int64, fallback head, yield func(object) error) error {
	f, err := os.Open(path)
	if err != nil {
		return &fileError{path, "", err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return &fileError{path, "", err}
	}
	if info.Size() == 0 {
		return &fileError{path, "", errors.New("is empty (zero bytes); a broken collection, not an empty list")}
	}
	var in io.Reader = bufio.NewReaderSize(f, 1<<20)
	name := strings.ToLower(path)
	if strings.HasSuffix(name, ".gz") {
		zip, err := gzip.NewReader(in)
		if err != nil {
			return &fileError{path, "", fmt.Errorf("is no gzip file: %w", err)}
		}
		in = zip
		name = strings.TrimSuffix(name, ".gz")
	}
	isJSON := strings.HasSuffix(name, ".json")
	if !isJSON {
		limit = min(limit, MaxYAMLBytes)
	}
	bounded := &limitReader{in: in, left: limit}
	body, mark, err := unmarked(bounded)
	switch {
	case err != nil:
	case isJSON:
		err = jsonObjects(body, fallback, yield)
	default:
		err = yamlObjects(body, fallback, yield)
	}
	switch {
	case err == nil:
		return nil
	case bounded.over:
		return &fileError{path, "", fmt.Errorf("unpacks to more than %d bytes: refused; split it, or write YAML as JSON", limit)}
	}
	var at *posError
	if errors.As(err, &at) {
		offset := at.offset + mark
		if at.next {
			offset = fault(path, offset)
		}
		return &fileError{path, position(path, offset), at.err}
	}
	var line *lineError
	if errors.As(err, &line) {
		return &fileError{path, fmt.Sprint(line.line), line.err}
	}
	return &fileError{path, "", err}
}

// unmarked drops a UTF-8 byte order mark, and tells how long it was. UTF-16, as
// some shells write it, is refused in words.
func unmarked(in io.Reader) (io.Reader, int64, error) {
	r := bufio.NewReader(in)
	start, _ := r.Peek(3) // what cannot be read fails again where it is read
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, err := r.Discard(3)
		return r, 3, err
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return r, 0, &posError{0, errors.New("is UTF-16 text; write it as UTF-8"), false}
	}
	return r, 0, nil
}

// jsonObjects reads concatenated JSON values. The items of a list are read one
// by one, so that a large list is never in memory whole.
func jsonObjects(in io.Reader, fallback head, yield func(object) error) error {
	dec := json.NewDecoder(&blanksReader{in: in})
	for n := 0; ; n++ {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return errors.New("holds nothing but blanks; a broken collection, not an empty list")
			}
			return nil
		}
		if err != nil {
			return jsonError(dec, err)
		}
		switch token {
		case json.Delim('{'):
			if err := topLevel(dec, fallback, yield); err != nil {
				return err
			}
		case json.Delim('['):
			for dec.More() {
				if err := item(dec, fallback, yield); err != nil {
					return err
				}
			}
			if _, err := dec.Token(); err != nil {
				return jsonError(dec, err)
			}
		default:
			if fallback.Kind == "" {
				continue // some other tool's file: no object stands in it
			}
			return &posError{dec.InputOffset(), fmt.Errorf("holds %v where an object was expected", token), false}
		}
	}
}

func jsonError(dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &posError{dec.InputOffset(), errors.New(syntax.Error()), true}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &posError{dec.InputOffset(), errors.New("ends in the middle"), false}
	}
	return &posError{dec.InputOffset(), err, false}
}

// topLevel reads an object that may be a list: its items are handed on as they
// come where their kind is known, else when the list's kind is.
func topLevel(dec *json.Decoder, fallback head, yield func(object) error) error {
	fields := map[string]json.RawMessage{}
	own := fallback
	var waiting []json.RawMessage
	list := false
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return jsonError(dec, err)
		}
		key, _ := token.(string)
		if key == "items" {
			list = true
			late, err := items(dec, fallback, own, yield)
			if err != nil {
				return err
			}
			waiting = append(waiting, late...)
			continue
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return jsonError(dec, err)
		}
		fields[key] = raw
		if key == "kind" || key == "apiVersion" {
			own = listed(fields, fallback)
		}
	}
	if _, err := dec.Token(); err != nil {
		return jsonError(dec, err)
	}
	if err := whole(fields, list); err != nil {
		return &posError{dec.InputOffset(), err, false}
	}
	if list {
		own = listed(fields, fallback)
		for _, raw := range waiting {
			if err := one(raw, own, dec.InputOffset(), yield); err != nil {
				return err
			}
		}
		return nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return &posError{dec.InputOffset(), err, false}
	}
	return one(raw, fallback, dec.InputOffset(), yield)
}

// items hands the items of a list on, and gives back those whose kind is not
// known yet, since it follows them.
func items(dec *json.Decoder, fallback, own head, yield func(object) error) ([]json.RawMessage, error) {
	open, err := dec.Token()
	if err != nil {
		return nil, jsonError(dec, err)
	}
	if open == nil {
		return nil, nil // items: null is an empty list
	}
	if open != json.Delim('[') {
		if fallback.Kind != "" {
			return nil, &posError{dec.InputOffset(), errors.New("items is no list"), false}
		}
		return nil, pass(dec, open)
	}
	var waiting []json.RawMessage
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, jsonError(dec, err)
		}
		if own.Kind == "" && kindless(raw) {
			waiting = append(waiting, raw)
			continue
		}
		if err := one(raw, own, dec.InputOffset(), yield); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(dec, err)
	}
	return waiting, nil
}

func kindless(raw json.RawMessage) bool {
	var h struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(raw, &h) == nil && h.Kind == ""
}

// pass reads over the rest of a value that began with token.
func pass(dec *json.Decoder, token json.Token) error {
	for depth := 0; ; {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		if token, err = dec.Token(); err != nil {
			return jsonError(dec, err)
		}
	}
}

// whole refuses a list that says itself that it is only a page of a longer one,
// and one that has lost its items: both would pass for lists without the rest.
func whole(fields map[string]json.RawMessage, items bool) error {
	var kind string
	var meta struct {
		Continue  string `json:"continue"`
		Remaining int64  `json:"remainingItemCount"`
	}
	_ = json.Unmarshal(fields["kind"], &kind)     // a kind that is no string is none
	_ = json.Unmarshal(fields["metadata"], &meta) // metadata of another shape says nothing of pages
	switch {
	case items && (meta.Continue != "" || meta.Remaining > 0):
		return errors.New("is one page of a longer list (metadata.continue is set): collect the whole list")
	case !items && strings.HasSuffix(kind, "List") && kind != "APIResourceList" && kind != "APIGroupList":
		return fmt.Errorf("is a %s without items: a broken collection, not an empty list", kind)
	}
	return nil
}

// listed gives the kind of a list's items: PodList holds Pods, List says nothing.
func listed(fields map[string]json.RawMessage, fallback head) head {
	var h head
	_ = json.Unmarshal(fields["kind"], &h.Kind) // a kind that is no string is none
	_ = json.Unmarshal(fields["apiVersion"], &h.APIVersion)
	if item, ok := strings.CutSuffix(h.Kind, "List"); ok && item != "" {
		return head{APIVersion: h.APIVersion, Kind: item}
	}
	return fallback
}

func item(dec *json.Decoder, fallback head, yield func(object) error) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return jsonError(dec, err)
	}
	return one(raw, fallback, dec.InputOffset(), yield)
}

// one hands an object on, or the items of a nested list.
func one(raw json.RawMessage, fallback head, offset int64, yield func(object) error) error {
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		if fallback.Kind == "" {
			return nil // some other tool's file: no object stands here
		}
		return &posError{offset, fmt.Errorf("an entry that ends here is no object: %w", err), false}
	}
	if strings.HasSuffix(h.Kind, "List") && h.Kind != "APIResourceList" && h.Kind != "APIGroupList" {
		inner := fallback
		if k := strings.TrimSuffix(h.Kind, "List"); k != "" {
			inner = head{APIVersion: h.APIVersion, Kind: k}
		}
		for _, r := range h.Items {
			if err := one(r, inner, offset, yield); err != nil {
				return err
			}
		}
		return nil
	}
	if h.Kind == "" {
		h.Kind = fallback.Kind
		h.APIVersion = fallback.APIVersion
	}
	if h.APIVersion == "" {
		h.APIVersion = fallback.APIVersion
	}
	if err := yield(object{h.APIVersion, h.Kind, h.Metadata, raw}); err != nil {
		return &posError{offset, err, false}
	}
	return nil
}

// maxBlanks in a row: more of them are a broken file, and the decoder looks at
// all of them again with every block that it reads.
const maxBlanks = 1 << 20

// blanksReader fails where a file has more blanks in a row than anybody writes.
type blanksReader struct {
	in  io.Reader
	row int
}

func (b *blanksReader) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	for _, c := range p[:n] {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			b.row = 0
			continue
		}
		if b.row++; b.row > maxBlanks {
			return 0, fmt.Errorf("holds more than %d blanks in a row; a broken collection", maxBlanks)
		}
	}
	return n, err
}

// limitReader fails beyond a bound, so that a bomb is not unpacked.
type limitReader struct {
	in   io.Reader
	left int64
	over bool
}

func (l *limitReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.over = true
		return 0, errors.New("too large")
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.in.Read(p)
	l.left -= int64(n)
	return n, err
}
