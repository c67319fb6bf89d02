package checklist

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shell joins arguments into one line that a reader can paste into a POSIX
// shell (the $'..' form, used for control characters, is known to bash, zsh,
// ksh and busybox, and is in POSIX since 2024). Every argument arrives as it is: no name
// from a cluster can expand, end the line, or hide what the line does.
//
// A leading dash stays one: a shell cannot tell an option from a name. Where a
// name from a cluster could be taken for an option, put it after "--" or write
// it with what it belongs to ("--node=" + name); Name does so for plain names.
func Shell(args ...string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = quote(arg, i == 0)
	}
	return strings.Join(quoted, " ")
}

// Name makes a name from a cluster safe as an argument of its own: one that
// begins with a dash, which no Kubernetes name does, becomes "./-name": kubectl
// then answers that there is no such object instead of obeying an option.
func Name(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

// inert are the characters besides letters and digits that no shell gives a
// meaning to inside a word. Not =, ~ or %: they mean something at a word's beginning.
const inert = "-_./:@,+"

func quote(arg string, command bool) string {
	switch {
	case arg == "":
		return "''"
	case isInert(arg, command):
		return arg
	case strings.IndexFunc(arg, needsEscape) >= 0 || !utf8.ValidString(arg):
		return dollarQuote(arg)
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

func isInert(arg string, command bool) bool {
	for i, r := range arg {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case strings.ContainsRune(inert, r):
		case r == '=' && i > 0 && !command: // key=value; as the first word it would set a variable
		default:
			return false
		}
	}
	return true
}

// needsEscape is true for what a reader could not see or a terminal would act on.
func needsEscape(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r)
}

// dollarQuote writes every byte that is not plain ASCII as three octal digits: \u
// depends on the shell's locale, and \x swallows digits that follow it.
func dollarQuote(arg string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(arg) {
		switch c := arg[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		// A quote is never written as one: a shell without this form would end the
		// word there and run what follows. An interactive bash expands ! by its history.
		case c < 0x20 || c > 0x7e || c == '!' || c == '\'' || c == '\\':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
