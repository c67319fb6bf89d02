package inventory

import (
	"regexp"
	"strings"
)

// Texts that clusters give (conditions, events, container states) sometimes
// quote a URL with a password or a header with a token. Reports are kept and
// handed on, so what looks like a credential is masked as a text is taken in.
var credentials = []struct {
	hint string // no such text, no search
	re   *regexp.Regexp
	with string
}{
	{"://", regexp.MustCompile(`(://)[^/@\s"']+:[^/@\s"']+@`), "$1[masked]@"},
	{"earer ", regexp.MustCompile(`([Bb]earer )[A-Za-z0-9._~+/=-]{8,}`), "$1[masked]"},
	{"eyJ", regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "[masked]"},
	{"xox", regexp.MustCompile(`xox[a-z]-[A-Za-z0-9-]{8,}`), "[masked]"},
	{"gh", regexp.MustCompile(`gh[opsur]_[A-Za-z0-9]{20,}`), "[masked]"},
	{"glpat-", regexp.MustCompile(`glpat-[A-Za-z0-9_-]{16,}`), "[masked]"},
	{"AKIA", regexp.MustCompile(`AKIA[0-9A-Z]{16}`), "[masked]"},
	{"=", regexp.MustCompile(`(?i)((?:password|passwd|secret|token|api[_-]?key|signature)=)[^\s&"',;]{4,}`), "$1[masked]"},
}

// Said gives a text of a cluster without what looks like a credential.
func Said(s string) string {
	for _, c := range credentials {
		if strings.Contains(s, c.hint) {
			s = c.re.ReplaceAllString(s, c.with)
		}
	}
	return s
}
