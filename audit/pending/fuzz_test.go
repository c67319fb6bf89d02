package pending

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// bounded fails when a reading holds more than the message could give it.
func bounded(t *testing.T, r Reading) {
	t.Helper()
	if len(r.Reasons) > maxReasons+1 || len(r.Causes) > 15 || len(r.Lacking) > maxReasons {
		t.Fatalf("%d reasons, %d causes, %d resources", len(r.Reasons), len(r.Causes), len(r.Lacking))
	}
	size := 0
	for _, s := range r.Reasons {
		size += len(s)
	}
	if size > 2*maxText {
		t.Fatalf("reasons of %d bytes", size)
	}
	if r.Has(Quota) != (r.Quota != nil) && !r.Has(Terminating) && !r.Has(Gated) && !r.Has(Gang) {
		t.Fatalf("causes %v with quota %+v", r.Causes, r.Quota)
	}
	if r.Opinion && len(r.Causes) > 0 {
		t.Fatalf("an opinion gives the causes %v", r.Causes)
	}
}

func FuzzParse(f *testing.F) {
	for _, list := range samples(f) {
		for _, s := range list {
			f.Add(s.Reporter, s.Reason, s.Message)
		}
	}
	f.Add("volcano", "", "pod group is not ready, 999999999999 Pending; Pending: {[(\"")
	f.Add("default-scheduler", "", "0/99999999999999999999 nodes are available: preemption: preemption: {")
	f.Fuzz(func(t *testing.T, reporter, reason, message string) {
		if len(reason) > maxText {
			return // reasons have 128 bytes at most
		}
		r := Parse(reporter, reason, message)
		bounded(t, r)
		if utf8.ValidString(message) {
			for _, s := range r.Reasons {
				if !utf8.ValidString(s) && utf8.ValidString(reason) {
					t.Fatalf("reason %q is cut inside a rune", s)
				}
			}
		}
	})
}

func FuzzParseFailedCreate(f *testing.F) {
	var list []struct {
		Message string `json:"message"`
		Want    any    `json:"want"`
	}
	load(f, "testdata/failed-create.yaml", &list)
	for _, s := range list {
		f.Add(s.Message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		q, ok := ParseFailedCreate(message)
		if !ok {
			return
		}
		switch q.Mode {
		case "exhausted", "scope", "misspecified":
		default:
			t.Fatalf("mode %q", q.Mode)
		}
		if q.Source != "native" && q.Source != "scheduler" {
			t.Fatalf("source %q", q.Source)
		}
		if len(q.Name)+len(q.Resource)+len(q.Used)+len(q.Hard) > 4*maxText {
			t.Fatal("not bounded")
		}
	})
}

// TestHugeMessages: what a hostile or broken reporter writes takes no time.
func TestHugeMessages(t *testing.T) {
	const size = 10 << 20
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for _, message := range []string{
		repeat("a"), repeat("0/1 nodes are available: "), repeat("preemption: "), repeat("{[("), repeat(", "), repeat("\n"), repeat("节点"),
		repeat("1 Insufficient nvidia.com/gpu, "), repeat("with reason \""), repeat("due to: "), repeat("exceeded quota: q, requested: "),
		"0/1 nodes are available: " + repeat("1 node(s) had taint {"), "exceeded quota: q, requested: " + repeat("a=1,"), repeat("quota "), repeat("\xff"),
	} {
		for _, reporter := range []string{"", "volcano", "kai-scheduler", "kueue"} {
			start := time.Now()
			bounded(t, Parse(reporter, "FailedScheduling", message))
			ParseFailedCreate(message)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s %.20q took %s", reporter, message, took)
			}
		}
	}
}
