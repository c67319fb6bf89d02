package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxYAMLBytes of one unpacked YAML file, which is read whole: a parsed one
// takes several times as much memory. JSON is read as it comes.
const MaxYAMLBytes = 512 << 20

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
			return yamlError(doc, err)
		}
		if err := jsonObjects(bytes.NewReader(raw), fallback, yield); err != nil {
			var at *posError
			if errors.As(err, &at) {
				err = at.err
			}
			return &lineError{doc.line, fmt.Errorf("in the document that begins here: %w", err)}
		}
	}
	if !found {
		return errors.New("holds nothing but blanks; a broken collection, not an empty list")
	}
	return nil
}

// lineError is an error at a line of the file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }

var yamlLine = regexp.MustCompile(`\bline (\d+): `)

// yamlError moves the line that the parser names from the document to the file.
func yamlError(doc document, err error) error {
	line := doc.line
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		if n, bad := strconv.Atoi(text[m[2]:m[3]]); bad == nil && n > 0 {
			line += n - 1
			text = text[:m[0]] + text[m[1]:]
		}
	}
	return &lineError{line, errors.New(text)}
}

// document is one YAML document of a file, and the line that it begins at.
type document struct {
	text []byte
	line int
}

// documents splits a file at its markers: "---", which content may follow, and "...".
func documents(body []byte) []document {
	var out []document
	start, line, from := 0, 1, 1
	for i := 0; i < len(body); line++ {
		next := len(body)
		if end := bytes.IndexByte(body[i:], '\n'); end >= 0 {
			next = i + end + 1
		}
		row := bytes.TrimRight(body[i:next], "\r\n \t")
		switch {
		case bytes.Equal(row, []byte("---")), bytes.HasPrefix(row, []byte("--- ")), bytes.HasPrefix(row, []byte("---\t")):
			out = append(out, document{body[start:i], from})
			start, from = i+len("---"), line
		case bytes.Equal(row, []byte("...")):
			out = append(out, document{body[start:i], from})
			start, from = next, line+1
		}
		i = next
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
