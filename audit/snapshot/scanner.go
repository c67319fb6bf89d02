package snapshot

import "bytes"

// scanner finds where values of JSON begin and end, without judging what is in
// them: whoever takes a value decodes it, or knows its bytes.
type scanner struct {
	text []byte
	at   int
}

// space passes over white space.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// byte passes over one sign, with the white space before it, if it is next.
func (s *scanner) byte(c byte) bool {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// end is true when nothing but white space remains.
func (s *scanner) end() bool {
	s.space()
	return s.at == len(s.text)
}

// same passes over a value if it is next, byte for byte. The value is a whole
// one that was read before. Only what is followed by a comma or a bracket is
// the same: 12 is not 123.
func (s *scanner) same(value []byte) bool {
	s.space()
	end := s.at + len(value)
	if len(value) == 0 || end >= len(s.text) || !bytes.Equal(s.text[s.at:end], value) {
		return false
	}
	switch s.text[end] {
	case ',', ']', '}':
		s.at = end
		return true
	}
	return false
}

// literal is same for a word.
func (s *scanner) literal(word string) bool { return s.same([]byte(word)) }

// key reads a key of an object and its colon; not one with an escape in it.
func (s *scanner) key() (string, bool) {
	if !s.byte('"') {
		return "", false
	}
	length := bytes.IndexByte(s.text[s.at:], '"')
	if length < 0 || bytes.IndexByte(s.text[s.at:s.at+length], '\\') >= 0 {
		return "", false
	}
	key := string(s.text[s.at : s.at+length])
	s.at += length + 1
	return key, s.byte(':')
}

// object calls field for each key; field passes over the value. It is false as
// soon as something is not as it should be.
func (s *scanner) object(field func(key string) bool) bool {
	if !s.byte('{') {
		return false
	}
	for {
		key, ok := s.key()
		if !ok || !field(key) {
			return false
		}
		if s.byte('}') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

// array calls element for each element; element passes over it.
func (s *scanner) array(element func() bool) bool {
	if !s.byte('[') {
		return false
	}
	if s.byte(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.byte(']') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

// deepest bounds nesting; a snapshot is 6 deep.
const deepest = 64

// value passes over the next value and gives its bytes. Brackets are counted,
// not matched.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	begin, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			if !s.quoted() {
				return nil, false
			}
		case '{', '[':
			if depth++; depth > deepest {
				return nil, false
			}
			s.at++
			continue
		case '}', ']':
			if depth == 0 {
				return nil, false
			}
			depth--
			s.at++
		case ',', ':':
			if depth == 0 {
				return nil, false
			}
			s.at++
			continue
		case ' ', '\t', '\r', '\n':
			s.at++
			continue
		default:
			s.scalar()
		}
		if depth == 0 {
			return s.text[begin:s.at], true
		}
	}
	return nil, false
}

// quoted passes over a text in quotes.
func (s *scanner) quoted() bool {
	s.at++
	for {
		length := bytes.IndexByte(s.text[s.at:], '"')
		if length < 0 {
			return false
		}
		quote := s.at + length
		escapes := 0
		for escapes < length && s.text[quote-1-escapes] == '\\' {
			escapes++
		}
		s.at = quote + 1
		if escapes%2 == 0 {
			return true
		}
	}
}

// scalar passes over a number or a word.
func (s *scanner) scalar() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\r', '\n':
			return
		}
		s.at++
	}
}
