package main

import (
	"flag"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
	"k8s.io/klog/v2"

	"gpuaudit/audit/report/plain"
)

// silenceKubernetes keeps the client library's own log lines off stderr: what
// matters of them is in the gaps.
func silenceKubernetes() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
}

// clean makes text from clusters and files safe for a terminal, line by line.
func clean(s string) string {
	rows := strings.Split(s, "\n")
	for i := range rows {
		rows[i] = plain.Line(rows[i])
	}
	return strings.Join(rows, "\n")
}

// screen gives the width of stdout and whether colours are wanted on it.
func screen(out io.Writer) (width int, colour bool) {
	width = 80
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	if o, ok := out.(*output); ok {
		out = o.File
	}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return width, false
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		width = w
	}
	_, none := os.LookupEnv("NO_COLOR")
	return width, !none && os.Getenv("TERM") != "dumb"
}
