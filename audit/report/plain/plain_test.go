package plain

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	cases := []struct{ in, want string }{
		{"ui7rqebujn", "ui7rqebujn"},
		{"", ""},
		{"a\nb\tc\rd", `a\nb\tc\rd`},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"\u009b31mC1", `\x9b31mC1`},
		{"abc\u202egnp", `abc\u202egnp`},
		{"x\u200b\ufeff\u00ad", `x\u200b\ufeff\xad`},
		{"bad\xffutf8", `bad\xffutf8`},
		{"\ufffd", "\ufffd"},
		{"nul\x00", `nul\x00`},
		{"tag\U000e0041", `tag\U000e0041`},
		{"上海 节点", "上海 节点"},
		{"上海\u3000节点\u00a0x", "上海 节点 x"},
		{"line\u2028sep", `line\u2028sep`},
		{"e\u0301", "e\u0301"},
		{"z\u0301\u0302\u0303\u0304\u0305", "z\u0301\u0302\u0303" + `\u0304\u0305`},
		{"cloud\u2601\ufe0f", "cloud\u2601" + `\ufe0f`},
		{"blank\u3164\u2800", `blank\u3164\u2800`},
	}
	for _, c := range cases {
		if got := Line(c.in); got != c.want {
			t.Errorf("Line(%+q) = %+q, want %+q", c.in, got, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	cases := []struct {
		in    string
		width int
		want  string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, ""},
		{"abc def", 5, "abc…"},
		{"上海推理", 8, "上海推理"},
		{"上海推理", 7, "上海推…"},
		{"上海推理", 6, "上海…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
	}
	for _, c := range cases {
		if got := Cut(c.in, c.width); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestCutMiddle(t *testing.T) {
	cases := []struct {
		in    string
		width int
		want  string
	}{
		{"edit-client-6c9d8b7f5-4wz8k", 13, "edit-c…-4wz8k"},
		{"short", 13, "short"},
		{"上海推理集群节点", 9, "上海…节点"},
		{"abcdefgh", 5, "abcd…"},
	}
	for _, c := range cases {
		if got := CutMiddle(c.in, c.width); got != c.want || Width(got) > c.width {
			t.Errorf("CutMiddle(%q, %d) = %q of %d columns, want %q", c.in, c.width, got, Width(got), c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	cases := []struct {
		in    string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"a b c", 3, []string{"a b", "c"}},
		{"abcdefg hi", 4, []string{"abcd", "efg", "hi"}},
		{"Deployment/prod/inference", 18, []string{"Deployment/prod/", "inference"}},
		{"配额不足 等待", 6, []string{"配额不", "足", "等待"}},
		{"配额", 1, []string{"配", "额"}},
	}
	for _, c := range cases {
		if got := Wrap(c.in, c.width); !slices.Equal(got, c.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestPad(t *testing.T) {
	if got := Pad("上海", 6) + "|" + PadLeft("7", 3) + "|" + Pad("long", 2); got != "上海  |  7|long" {
		t.Errorf("got %q", got)
	}
}

func TestAge(t *testing.T) {
	hour, day := time.Hour, 24*time.Hour
	cases := map[time.Duration]string{
		-hour: "0s", 0: "0s", 42 * time.Second: "42s", 6*time.Minute + 59*time.Second: "6m", 14*hour + 50*time.Minute: "14h",
		47 * hour: "47h", 48 * hour: "2d", 155*day + 3*hour: "155d",
	}
	for d, want := range cases {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
	now := time.Date(2026, 6, 1, 1, 0, 0, 0, time.UTC)
	then := now.Add(-day)
	if got := Since(nil, now, false) + Since(&then, now, false) + Since(&then, now, true); got != "?24h≥24h" {
		t.Errorf("Since gives %q", got)
	}
}

func TestNumbers(t *testing.T) {
	seven := int64(7)
	if Number(&seven) != "7" || Number[int](nil) != "?" {
		t.Error("a number or an unknown one is wrong")
	}
	cases := map[float64]string{0: "0.0%", 0.0004: "<0.1%", 0.021: "2.1%", 0.8916: "89%", 0.995: "99.5%", 0.9996: ">99.9%", 1: "100%", math.NaN(): "?"}
	for share, want := range cases {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
	if Plural(1, "card") != "1 card" || Plural(0, "card") != "0 cards" {
		t.Error("plural is wrong")
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "上海\x1b[2J", "e\u0301\u0302\u0303\u0304", "\xff\u202e", "👩‍👩‍👧‍👦🇩🇪", "a b  c"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		line := Line(s)
		if !utf8.ValidString(line) {
			t.Fatalf("Line(%+q) is not UTF-8: %+q", s, line)
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("Line(%+q) holds an unprintable character: %+q", s, line)
		}
		if Line(line) != line {
			t.Fatalf("Line is not settled: %+q, then %+q", line, Line(line))
		}
		if width = width % 200; width < 2 {
			return
		}
		for _, cut := range append(Wrap(line, width), Cut(line, width), CutMiddle(line, width)) {
			if Width(cut) > width {
				t.Fatalf("%+q takes %d columns, want at most %d", cut, Width(cut), width)
			}
		}
	})
}
