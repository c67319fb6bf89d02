package table

import "gpuaudit/audit/report/plain"

// breakCommand breaks a shell line at blanks outside of quotes, each line but
// the last ending in a backslash. It gives false when a word is too long.
func breakCommand(line string, width int) ([]string, bool) {
	if plain.Width(line) <= width {
		return []string{line}, true
	}
	const continued = " \\"
	var lines []string
	at := ""
	for i, word := range shellWords(line) {
		indent := ""
		if len(lines) > 0 || i > 0 && at == "" {
			indent = "  "
		}
		switch {
		case at == "":
			at = indent + word
		case plain.Width(at)+1+plain.Width(word)+len(continued) <= width:
			at += " " + word
		default:
			lines = append(lines, at+continued)
			at = "  " + word
		}
		if plain.Width(at)+len(continued) > width {
			return nil, false
		}
	}
	return append(lines, at), true
}

// shellWords splits a line at single blanks outside of '..', ".." and $'..'.
func shellWords(line string) []string {
	var words []string
	var quote byte
	escapes := false // a backslash hides the next character
	begin := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && (quote == 0 || escapes):
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'':
			quote, escapes = c, i > 0 && line[i-1] == '$'
		case c == '"':
			quote, escapes = c, true
		case c == ' ':
			words, begin = append(words, line[begin:i]), i+1
		}
	}
	return append(words, line[begin:])
}
