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

	"sigs.k8s.io/yaml"
)

// object is one Kubernetes object as read, with where it stood.
type object struct {
	apiVersion, kind string
	raw              json.RawMessage
}

// head is what every object shows.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// fileError names the file and, where it is known, the position.
type fileError struct {
	file string
	at   string
	err  error
}

func (e *fileError) Error() string {
	if e.at != "" {
		return fmt.Sprintf("dump file %s:%s: %v", e.file, e.at, e.err)
	}
	return fmt.Sprintf("dump file %s: %v", e.file, e.err)
}

func (e *fileError) Unwrap() error { return e.err }

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
	bounded := &limitReader{in: in, left: limit}
	position := &lines{in: bounded}
	if strings.HasSuffix(name, ".json") {
		err = jsonObjects(position, fallback, yield)
	} else {
		err = yamlObjects(position, fallback, yield)
	}
	switch {
	case err == nil:
		return nil
	case bounded.over:
		return &fileError{path, "", fmt.Errorf("unpacks to more than %d bytes: refused", limit)}
	}
	var at *posError
	if errors.As(err, &at) {
		return &fileError{path, position.at(at.offset), at.err}
	}
	return &fileError{path, "", err}
}

// posError is an error at an offset of the unpacked file.
type posError struct {
	offset int64
	err    error
}

func (e *posError) Error() string { return e.err.Error() }

// jsonObjects reads concatenated JSON values. The items of a list are read one
// by one, so that a large list is never in memory whole.
func jsonObjects(in io.Reader, fallback head, yield func(object) error) error {
	dec := json.NewDecoder(in)
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
			return &posError{dec.InputOffset(), fmt.Errorf("holds %v where an object was expected", token)}
		}
	}
}

func jsonError(dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &posError{max(syntax.Offset, dec.InputOffset()), errors.New(syntax.Error())}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &posError{dec.InputOffset(), errors.New("ends in the middle")}
	}
	return &posError{dec.InputOffset(), err}
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
		if key != "items" {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return jsonError(dec, err)
			}
			fields[key] = raw
			if key == "kind" || key == "apiVersion" {
				own = listed(fields, fallback)
			}
			continue
		}
		list = true
		open, err := dec.Token()
		if err != nil {
			return jsonError(dec, err)
		}
		if open == nil {
			continue // items: null is an empty list
		}
		if open != json.Delim('[') {
			return &posError{dec.InputOffset(), errors.New("items is no list")}
		}
		for dec.More() {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return jsonError(dec, err)
			}
			var h head
			if json.Unmarshal(raw, &h) == nil && h.Kind == "" && own.Kind == "" {
				waiting = append(waiting, raw) // its kind follows the items
				continue
			}
			if err := one(raw, own, dec.InputOffset(), yield); err != nil {
				return err
			}
		}
		if _, err := dec.Token(); err != nil {
			return jsonError(dec, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return jsonError(dec, err)
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
		return &posError{dec.InputOffset(), err}
	}
	return one(raw, fallback, dec.InputOffset(), yield)
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
		return &posError{offset, fmt.Errorf("an entry that ends here is no object: %w", err)}
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
	if err := yield(object{h.APIVersion, h.Kind, raw}); err != nil {
		return &posError{offset, err}
	}
	return nil
}

// yamlObjects reads the documents of a YAML file, which is read whole.
func yamlObjects(in io.Reader, fallback head, yield func(object) error) error {
	body, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	found := false
	for _, doc := range documents(body) {
		if len(bytes.TrimSpace(stripComments(doc.text))) == 0 {
			continue
		}
		found = true
		raw, err := yaml.YAMLToJSON(doc.text)
		if err != nil {
			return fmt.Errorf("document that begins at line %d: %w", doc.line, err)
		}
		if err := jsonObjects(bytes.NewReader(raw), fallback, yield); err != nil {
			var at *posError
			if errors.As(err, &at) {
				err = at.err
			}
			return fmt.Errorf("document that begins at line %d: %w", doc.line, err)
		}
	}
	if !found {
		return errors.New("holds nothing but blanks; a broken collection, not an empty list")
	}
	return nil
}

type document struct {
	text []byte
	line int
}

func documents(body []byte) []document {
	var out []document
	start, line, from := 0, 1, 1
	for i := 0; i < len(body); {
		end := bytes.IndexByte(body[i:], '\n')
		next := len(body)
		if end >= 0 {
			next = i + end + 1
		}
		row := bytes.TrimRight(body[i:next], "\r\n \t")
		if bytes.Equal(row, []byte("---")) || bytes.HasPrefix(row, []byte("--- ")) {
			out = append(out, document{body[start:i], from})
			start, from = next, line+1
		}
		i = next
		line++
	}
	return append(out, document{body[start:], from})
}

func stripComments(doc []byte) []byte {
	var out [][]byte
	for _, row := range bytes.Split(doc, []byte("\n")) {
		if !bytes.HasPrefix(bytes.TrimSpace(row), []byte("#")) {
			out = append(out, row)
		}
	}
	return bytes.Join(out, []byte("\n"))
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

// lines remembers where lines begin, to word a position.
type lines struct {
	in     io.Reader
	offset int64
	starts []int64
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i := range p[:n] {
		if p[i] == '\n' {
			l.starts = append(l.starts, l.offset+int64(i)+1)
		}
	}
	l.offset += int64(n)
	return n, err
}

func (l *lines) at(offset int64) string {
	line, start := 1, int64(0)
	for i, s := range l.starts {
		if s > offset {
			break
		}
		line, start = i+2, s
	}
	return fmt.Sprintf("%d:%d", line, offset-start+1)
}
