package plain

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Unknown stands where a value was not seen.
const Unknown = "?"

// Age writes a duration in its largest fitting unit: 42s, 6m, 14h, 155d. Hours
// are used up to two days. A negative one is 0s: clocks differ.
func Age(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Since writes the age at now of something that began at t: "?" when that is
// not known, "≥14h" when t is only the first sighting.
func Since(t *time.Time, now time.Time, atLeast bool) string {
	if t == nil {
		return Unknown
	}
	age := Age(now.Sub(*t))
	if atLeast {
		return "≥" + age
	}
	return age
}

// Number writes a count that may be unknown.
func Number[T int | int64](n *T) string {
	if n == nil {
		return Unknown
	}
	return strconv.FormatInt(int64(*n), 10)
}

// Percent writes a share from 0 to 1 as a percentage with one decimal at most.
// A share that is not zero never reads 0%, nor one below 1 100%.
func Percent(share float64) string {
	p := share * 100
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return Unknown
	case p > 0 && p < 0.1:
		return "<0.1%"
	case p > 99.9 && p < 100:
		return ">99.9%"
	case p < 10:
		return strconv.FormatFloat(p, 'f', 1, 64) + "%"
	case p > 99 && p < 100:
		return strconv.FormatFloat(p, 'f', 1, 64) + "%"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + "%"
}

// Plural writes "1 card", "7 cards". Irregular words are not needed here.
func Plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatInt(n, 10) + " " + word + "s"
}
