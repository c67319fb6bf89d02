package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsRealOutput: the screen of output in README is what the demo
// prints, but for the run's random id.
func TestReadmeShowsRealOutput(t *testing.T) {
	body, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(body), "```\nThe report of day 2:\n")
	shown, _, closed := strings.Cut(after, "\n...\n```")
	if !found || !closed {
		t.Fatal("README shows no output of the demo")
	}
	t.Setenv("COLUMNS", "80")
	out, err := command(t, "demo")
	if err != nil {
		t.Fatal(err)
	}
	_, printed, _ := strings.Cut(out, "The report of day 2:\n")
	want, got := strings.Split(printed, "\n"), strings.Split(shown, "\n")
	for i, row := range got {
		if strings.Contains(row, ", run ") {
			continue
		}
		if i >= len(want) || row != want[i] {
			t.Fatalf("README line %d of the demo's output is\n%q, the demo prints\n%q", i+1, row, want[min(i, len(want)-1)])
		}
	}
}
