package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gpuaudit/audit/checklist"
)

// age words a duration as people say it: 155d, 14h, 6m, 40s.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// since words the age of a moment; "an unknown time" when nothing tells.
func since(now, t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return age(now.Sub(t))
}

// count words a number and its noun: 1 card, 2 cards. An empty noun gives the number.
func count(n int64, noun string) string {
	text := strconv.FormatInt(n, 10)
	if noun == "" {
		return text
	}
	if n != 1 {
		noun += "s"
	}
	return text + " " + noun
}

// list joins at most max items and says how many more there are.
func list(items []string, max int) string {
	if len(items) <= max {
		return strings.Join(items, ", ")
	}
	return strings.Join(items[:max], ", ") + fmt.Sprintf(" and %d more", len(items)-max)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(time.RFC3339)
}

// ours are the options that this package writes; anything else that begins with
// a dash came from a cluster and must not be taken for one.
var ours = map[string]bool{
	"-n": true, "-A": true, "-o": true, "-L": true, "--field-selector": true, "--overwrite": true, "--force": true, "--grace-period=0": true, "--show-labels": true,
}

// kubectl words a command that a reader can paste, whatever the names in it.
func kubectl(args ...string) string {
	for i, a := range args {
		if strings.HasPrefix(a, "-") && !ours[a] {
			args[i] = checklist.Name(a)
		}
	}
	return checklist.Shell(append([]string{"kubectl"}, args...)...)
}

// reported words who said something of a pod, and how often at least.
func reported(by string, attempts int64) string {
	switch {
	case by == "":
		return "as its conditions say"
	case attempts == 0:
		return "reported by " + by
	}
	return fmt.Sprintf("reported by %s, at least x%d", by, attempts)
}
