package pending

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"gpuaudit/audit/report"
)

// sample is one message in its real form and what it says.
type sample struct {
	What     string `json:"what"`
	Reporter string `json:"reporter"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Want     struct {
		Dialect string   `json:"dialect"`
		Causes  []string `json:"causes"`
		// Reasons, where given, are all of them.
		Reasons []string      `json:"reasons"`
		Quota   *report.Quota `json:"quota"`
		Lacking []string      `json:"lacking"`
		Nodes   *NodeCount    `json:"nodes"`
		Group   *struct {
			MinAvailable int            `json:"minAvailable"`
			States       map[string]int `json:"states"`
		} `json:"group"`
		Opinion bool `json:"opinion"`
	} `json:"want"`
}

func load(t testing.TB, path string, into any) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(body, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func samples(t testing.TB) map[string][]sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/dialects/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	out := map[string][]sample{}
	for _, path := range paths {
		var list []sample
		load(t, path, &list)
		out[strings.TrimSuffix(filepath.Base(path), ".yaml")] = list
	}
	return out
}

func TestDialects(t *testing.T) {
	for name, list := range samples(t) {
		for _, s := range list {
			t.Run(name+"/"+s.What, func(t *testing.T) {
				got := Parse(s.Reporter, s.Reason, s.Message)
				want := Reading{Dialect: s.Want.Dialect, Causes: s.Want.Causes, Reasons: s.Want.Reasons, Quota: s.Want.Quota,
					Lacking: s.Want.Lacking, Nodes: s.Want.Nodes, Opinion: s.Want.Opinion}
				if g := s.Want.Group; g != nil {
					want.Group = &Group{MinAvailable: g.MinAvailable, States: g.States}
				}
				if want.Reasons == nil {
					if len(got.Reasons) == 0 && s.Message != "" {
						t.Error("no reason is kept")
					}
					want.Reasons = got.Reasons
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%q (-want +got):\n%s", s.Message, diff)
				}
			})
		}
	}
}

// TestConditionReadsAsEvent makes sure that what a condition and an event say of the same
// message is the same: the reporter decides the dialect, not the reading.
func TestConditionReadsAsEvent(t *testing.T) {
	for name, list := range samples(t) {
		for _, s := range list {
			if s.Want.Opinion || s.Reporter == "" || name == "yunikorn" || name == "kueue" {
				continue // autoscalers set no condition; the other two are known by their reporter
			}
			event, condition := Parse(s.Reporter, s.Reason, s.Message), Parse("", "Unschedulable", s.Message)
			if s.Reason != "FailedScheduling" && s.Reason != "Unschedulable" {
				continue
			}
			if diff := cmp.Diff(event.Causes, condition.Causes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s/%s (-event +condition):\n%s", name, s.What, diff)
			}
		}
	}
}

func TestParseFailedCreate(t *testing.T) {
	var list []struct {
		Message string        `json:"message"`
		Want    *report.Quota `json:"want"`
	}
	load(t, "testdata/failed-create.yaml", &list)
	for _, s := range list {
		got, ok := ParseFailedCreate(s.Message)
		if ok != (s.Want != nil) {
			t.Errorf("%q: a quota %v, got %+v", s.Message, s.Want != nil, got)
			continue
		}
		if ok {
			if diff := cmp.Diff(*s.Want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", s.Message, diff)
			}
		}
	}
}
