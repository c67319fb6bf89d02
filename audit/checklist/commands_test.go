package checklist

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"gpuaudit/audit/report/sample"
)

func TestShell(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"kubectl", "get", "node", "ui7rqebujn"}, "kubectl get node ui7rqebujn"},
		{[]string{"kubectl", "label", "node", "n", "node_env=prod"}, "kubectl label node n node_env=prod"},
		{[]string{"A=b", "x"}, "'A=b' x"},
		{[]string{"echo", ""}, "echo ''"},
		{[]string{"echo", "it's $HOME"}, `echo 'it'\''s $HOME'`},
		{[]string{"echo", "a\nb"}, `echo $'a\nb'`},
		{[]string{"echo", "it's\x1b1"}, `echo $'it\047s\0331'`},
		{[]string{"echo", "\u202ex!\\"}, `echo $'\342\200\256x\041\134'`},
		{[]string{"echo", "~root", "*", "#x", "=ls"}, `echo '~root' '*' '#x' '=ls'`},
		{[]string{"echo", "节点"}, `echo '节点'`},
		{[]string{"echo", "\xff"}, `echo $'\377'`},
	}
	for _, c := range cases {
		if got := Shell(c.args...); got != c.want {
			t.Errorf("Shell(%q) = %s, want %s", c.args, got, c.want)
		}
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{"node-1": "node-1", "-o": "./-o", "--all": "./--all", "": ""} {
		if got := Name(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
}

// A real shell must hand every text on unchanged, and the line must be one visible line.
func TestShellKeepsHostileTexts(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("no bash to try the quoting with")
	}
	texts := append([]string{"!!", "a'b\\c", "{a,b}", "$((1+1))", "\\", "'", "''", "x\\'\n!y", "-n"}, sample.HostileTexts...)
	for _, text := range texts {
		text = strings.ReplaceAll(text, "\x00", "") // no argument can hold NUL
		line := Shell("printf", "%s", text)
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("Shell(%+q) holds an invisible character: %+q", text, line)
		}
		// LC_ALL=C and UTF-8 must agree.
		for _, locale := range []string{"LC_ALL=C", "LC_ALL=C.UTF-8"} {
			cmd := exec.Command(bash, "-c", line)
			cmd.Env = []string{locale}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil || out.String() != text {
				t.Errorf("%s: a shell made %+q of %+q (%v %s)", locale, out.String(), text, err, errs.String())
			}
		}
	}
}

// TestNoShellRunsANameAsCode: a shell that does not know the $'..' form must not
// end the word inside of a name either.
func TestNoShellRunsANameAsCode(t *testing.T) {
	for _, name := range []string{"a\x1b';touch pwned;#", "a\n'$(touch pwned)'", "\\'\x00;touch pwned", "x\u202e';touch pwned;'"} {
		quoted := Shell("echo", name)
		body, found := strings.CutPrefix(quoted, "echo $'")
		if !found || strings.Count(body, "'") != 1 || !strings.HasSuffix(body, "'") {
			t.Errorf("%q is quoted as %s: it has a quote inside", name, quoted)
		}
	}
}
