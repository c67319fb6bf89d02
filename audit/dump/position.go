package dump

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

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

// posError is an error at an offset of the unpacked file.
type posError struct {
	offset int64
	err    error
	next   bool // the error is in the value that follows the offset
}

func (e *posError) Error() string { return e.err.Error() }

// position words an offset of an unpacked file as line:column (in bytes). The
// file is read again, since remembering every line would cost more than reading
// a broken file twice.
func position(path string, offset int64) string {
	in, done := reopen(path)
	defer done()
	r := bufio.NewReader(io.LimitReader(in, offset))
	line, column := 1, 1
	for {
		c, err := r.ReadByte()
		if err != nil {
			return fmt.Sprintf("%d:%d", line, column)
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
}

// fault finds the offset of the syntax error in the value that follows offset:
// a decoder that went through tokens does not count what it names.
func fault(path string, offset int64) int64 {
	in, done := reopen(path)
	defer done()
	if _, err := io.CopyN(io.Discard, in, offset); err != nil {
		return offset
	}
	r := bufio.NewReader(in)
	for {
		c, err := r.ReadByte()
		if err != nil {
			return offset
		}
		if !strings.ContainsRune(" \t\r\n,:", rune(c)) {
			_ = r.UnreadByte() // follows a ReadByte
			break
		}
		offset++
	}
	var value json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.NewDecoder(r).Decode(&value), &syntax) {
		offset += syntax.Offset - 1
	}
	return offset
}

// reopen gives a file's unpacked content once more; what cannot be read is
// empty, since an error about the file is on its way already.
func reopen(path string) (io.Reader, func()) {
	f, err := os.Open(path)
	if err != nil {
		return strings.NewReader(""), func() {}
	}
	done := func() { _ = f.Close() }
	if !strings.HasSuffix(strings.ToLower(path), ".gz") {
		return f, done
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		return strings.NewReader(""), done
	}
	return zip, done
}
