package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
)

func encode(t *testing.T, r *report.Report) []byte {
	t.Helper()
	data, err := report.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// nullable are the keys whose null means unknown, or that there is none.
var nullable = map[string]bool{
	"collectedAt": true, "previousSnapshot": true, "nodes": true, "readyNodes": true, "cordonedNodes": true,
	"pods": true, "pendingPods": true, "cpuUtilization": true, "memoryUtilization": true,
	"physical": true, "physicalHealthy": true, "requested": true, "free": true, "occupancy": true, "overcommitted": true,
	"maxFreeOnOneNode": true, "held": true, "reclaimable": true, "nominated": true, "affinity": true, "runningPods": true,
	"created": true, "ready": true, "since": true, "lastHeartbeat": true, "clockSkewSeconds": true, "cordonedSince": true,
	"firstSeen": true, "lastSeen": true, "resolvedAt": true, "ack": true, "quota": true, "until": true,
}

// fill gives every list and map of v one zero element, at any depth, so that each type occurs.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	}
}

// emptyLists sets the lists of v's elements to nil while keeping the elements.
func emptyLists(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				emptyLists(v.Field(i), depth)
			}
		}
	case reflect.Slice, reflect.Map:
		if depth == 0 {
			v.Set(reflect.Zero(v.Type()))
			return
		}
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				emptyLists(v.Index(i), depth-1)
			}
		}
	}
}

func TestNoListIsNull(t *testing.T) {
	for depth := range 4 {
		var r report.Report
		fill(reflect.ValueOf(&r).Elem())
		emptyLists(reflect.ValueOf(&r).Elem(), depth)
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch x := v.(type) {
			case map[string]any:
				for k, e := range x {
					if e == nil && !nullable[k] {
						t.Errorf("depth %d: %s.%s is null", depth, path, k)
					}
					walk(path+"."+k, e)
				}
			case []any:
				for _, e := range x {
					walk(path+"[]", e)
				}
			}
		}
		var got any
		if err := json.Unmarshal(encode(t, &r), &got); err != nil {
			t.Fatal(err)
		}
		walk("", got)
		if depth == 0 && !bytes.Contains(encode(t, &r), []byte(`"clusters": []`)) {
			t.Error("an empty report has no list of clusters")
		}
		if depth == 1 {
			cluster := got.(map[string]any)["clusters"].([]any)[0].(map[string]any)
			if _, ok := cluster["nodes"].([]any); !ok {
				t.Errorf("nodes of a cluster are %v, want a list", cluster["nodes"])
			}
		}
	}
}

func TestEveryKeyIsPresent(t *testing.T) {
	for i := range reflect.TypeFor[report.Cluster]().NumField() {
		tag := reflect.TypeFor[report.Cluster]().Field(i).Tag.Get("json")
		if !bytes.Contains(encode(t, &report.Report{Clusters: make([]report.Cluster, 1)}), []byte(`"`+tag+`": `)) {
			t.Errorf("key %q of a cluster is missing when empty", tag)
		}
	}
}

func TestRoundTripKeepsBytes(t *testing.T) {
	with := sample.Incident()
	seconds := int64(300)
	with.Clusters[2].Classes[1].Tolerations = []corev1.Toleration{{Key: "gpu", Operator: "Exists", TolerationSeconds: &seconds}}
	with.Clusters[2].Classes[1].Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{},
	}}
	with.Clusters[2].Classes[0].Affinity = (*corev1.Affinity)(nil)
	with.Clusters[2].Classes[0].Tolerations = []corev1.Toleration(nil)
	reports := map[string]*report.Report{
		"incident": with, "partial": sample.Partial(), "hostile": sample.Hostile(), "chinese": sample.Chinese(), "empty": {SchemaVersion: "1"},
	}
	for name, r := range reports {
		first := encode(t, r)
		back, err := report.Decode(first)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(first), string(encode(t, back))); diff != "" {
			t.Errorf("%s: encode, decode, encode differs:\n%s", name, diff)
		}
		if !bytes.HasSuffix(first, []byte("}\n")) || bytes.HasSuffix(first, []byte("\n\n")) {
			t.Errorf("%s: does not end in one newline", name)
		}
		if bytes.Contains(first, []byte(`"tolerations": null`)) {
			t.Errorf("%s: tolerations are null", name)
		}
	}
}

func TestEncodeDoesNotChangeTheReport(t *testing.T) {
	r := sample.Hostile()
	encode(t, r)
	if diff := cmp.Diff(sample.Hostile(), r); diff != "" {
		t.Errorf("the report was changed:\n%s", diff)
	}
}

func TestEncodedTextIsPlainAndUnharmed(t *testing.T) {
	data := encode(t, sample.Hostile())
	for _, bad := range []string{"\x1b", "\u202e", "\u2066", "\u0085", "\u200b", "\x00"} {
		if bytes.Contains(data, []byte(bad)) {
			t.Errorf("holds a raw %+q", bad)
		}
	}
	if !bytes.Contains(data, []byte("<script>alert(1)</script>")) {
		t.Error("markup was rewritten: JSON is no HTML")
	}
	back, err := report.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range sample.HostileTexts {
		if got := back.Clusters[0].Notes[i]; got != strings.ToValidUTF8(want, "\uFFFD") {
			t.Errorf("text %d: %q became %q", i, want, got)
		}
	}
}

func TestTimesAndNumbersThatJSONCannotHold(t *testing.T) {
	east := time.FixedZone("east", 8*3600)
	late := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -8*3600))
	nan := math.NaN()
	r := &report.Report{SchemaVersion: "1", GeneratedAt: time.Date(2026, 6, 1, 9, 0, 0, 0, east), Clusters: []report.Cluster{{
		CollectedAt: &late,
		Devices:     []report.Device{{Occupancy: &nan}},
		Baseline:    report.Baseline{CPUUtilization: &report.Utilization{Max: math.Inf(1)}},
	}}}
	data := encode(t, r)
	for _, want := range []string{
		`"generatedAt": "2026-06-01T01:00:00Z"`, `"collectedAt": "9999-12-31T23:59:59Z"`, `"occupancy": null`, `"cpuUtilization": null`,
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in\n%s", want, data)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"other version": {`{"schemaVersion":"2","clusters":7}`, `"2"`},
		"no version":    {`{"clusters":[]}`, "no schemaVersion"},
		"cut off":       {`{"schemaVersion":"1","clust`, "whole"},
		"two values":    {`{"schemaVersion":"1"}{}`, "after top-level value"},
		"wrong type":    {`{"schemaVersion":"1","clusters":7}`, "clusters"},
		"list":          {`[]`, "decode report"},
		"too large":     {strings.Repeat(" ", report.MaxSize+1), "limit"},
	}
	for name, c := range cases {
		if _, err := report.Decode([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := report.Decode([]byte(`{"schemaVersion":"1","addedLater":{"x":1}}`)); err != nil {
		t.Errorf("an added key is refused: %v", err)
	}
}

func TestOneClusterNamesNoOther(t *testing.T) {
	data, err := report.EncodeCluster(sample.Incident(), "C")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("gpu-A-001")) || bytes.Contains(data, []byte("vendor-B")) {
		t.Error("names another vendor's cluster")
	}
	one, err := report.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want := report.Summary{Clusters: 1, Complete: 1, Critical: 6, Warning: 4, Info: 2, New: 6, Ongoing: 6}
	if diff := cmp.Diff(want, one.Summary); diff != "" {
		t.Errorf("summary of C:\n%s", diff)
	}
	if _, err := report.EncodeCluster(sample.Incident(), "D"); err == nil || !strings.Contains(err.Error(), `"D"`) {
		t.Errorf("unknown cluster: error %v, want one that names it", err)
	}
}
