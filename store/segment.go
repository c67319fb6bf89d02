package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Names of clusters and slots come from people and from kubeconfig files: "prod-a", but also
// "arn:aws:eks:eu-west-1:123456789012:cluster/x", "上海/1", "..", or 300 bytes of anything. Segment makes one path
// part of each: plain names stay as they are, two names never get one part, and Name finds the name again.

const (
	// escapeMark starts an escape: "!" and two hexadecimal digits for each byte. Unlike "%" and "=" it means nothing
	// in a URL's path, and unlike ":" every file system and object store takes it.
	escapeMark = '!'
	// hashMark starts the hash of a name too long to be kept whole. No escape can look like it.
	hashMark = "!-"
	// maxName is the longest part in bytes; what is longer is cut and ends in a hash. Room is left for an extension.
	maxName = 200
	hashLen = 32 // hexadecimal digits: 128 bits
)

// reserved are the files that stand beside a cluster's folder in a report. A cluster of that name would need a
// folder and a file of one name, so its first letter is escaped.
var reserved = map[string]bool{
	"report.json": true, "report.html": true, "report.md": true, "checklist.html": true, "manifest.json": true,
}

// Segment gives the path part for a name. ASCII letters, digits, "-", "_" and ".", and letters, marks and
// digits of other scripts in their composed form (NFC: file systems that compose names must not make one of
// two) stand for themselves. Everything else is escaped: "!2F" for "/". An empty name is "!". Case is kept,
// so two names that differ only by case need a store that tells case apart; the local store refuses the
// second on a file system that does not.
func Segment(name string) string {
	if name == "" {
		return string(escapeMark)
	}
	composed := norm.NFC.IsNormalString(name)
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if plainRune(r, size, composed) && !(r == '.' && (i == 0 || i == len(name)-1)) && !(i == 0 && reserved[strings.ToLower(name)]) {
			b.WriteString(name[i : i+size])
		} else {
			escape(&b, name[i:i+size])
		}
		i += size
	}
	if b.Len() <= maxName {
		return b.String()
	}
	return cut(b.String(), maxName-len(hashMark)-hashLen) + hashMark + hashOf(name)
}

// Name gives the name that Segment made the part from. It is not exact, and ok is false, for a part that ends in a
// hash, where only the beginning is known, and for parts that Segment never makes.
func Name(segment string) (name string, ok bool) {
	if segment == string(escapeMark) {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(segment); i++ {
		if segment[i] != escapeMark {
			b.WriteByte(segment[i])
			continue
		}
		if i+2 >= len(segment) {
			return segment, false
		}
		raw, err := hex.DecodeString(segment[i+1 : i+3])
		if err != nil {
			return segment, false
		}
		b.WriteByte(raw[0])
		i += 2
	}
	name = b.String()
	return name, Segment(name) == segment
}

func plainRune(r rune, size int, composed bool) bool {
	switch {
	case r == utf8.RuneError && size <= 1:
		return false
	case r < utf8.RuneSelf:
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
	default:
		return composed && unicode.In(r, unicode.L, unicode.M, unicode.N)
	}
}

func escape(b *strings.Builder, raw string) {
	const digits = "0123456789ABCDEF"
	for i := range len(raw) {
		b.WriteByte(escapeMark)
		b.WriteByte(digits[raw[i]>>4])
		b.WriteByte(digits[raw[i]&15])
	}
}

// cut shortens an escaped name to at most n bytes, between runes and not inside an escape.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if mark := strings.LastIndexByte(s[:n], escapeMark); mark >= 0 && n-mark < 3 {
		n = mark
	}
	return s[:n]
}

func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:hashLen]
}
