package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestExampleLoads holds config.example.yaml to the code: every field in it is
// known and valid, and every field that is known is in it.
func TestExampleLoads(t *testing.T) {
	body, err := os.ReadFile("../../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "kubeconfigs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfigs", "vendor-c.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Parse(filepath.Join(dir, "config.yaml"), body)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Cluster("C").Kubeconfig, filepath.Join(dir, "kubeconfigs", "vendor-c.yaml"); got != want {
		t.Errorf("kubeconfig is %q, want it beside the file: %q", got, want)
	}
	s := f.Settings(f.Cluster("C"))
	if s.Thresholds.Ghost != 10*time.Minute || s.Workloads[0].Requests["cpu"] != 8000 {
		t.Errorf("settings are %+v", s)
	}
	if why, ok := s.Accepts("nodes.metrics.k8s.io"); !ok || why == "" {
		t.Error("the accepted gap is lost")
	}
}

// TestEveryProblemAtOnce: a wrong file gets one error that names all of it.
func TestEveryProblemAtOnce(t *testing.T) {
	_, err := Parse("bad.yaml", []byte(`
apiVersion: audit/v2
clusters:
  - {name: A, kubeconfig: /no/such/file, timeout: 5}
  - {name: a}
  - {context: x, surprise: 1}
  - {name: b, acceptGaps: [{resource: nodez, reason: x}]}
thresholds: {ghost: soon, silent: 1s}
severities: {ghost-hold: loud, no-such-check: off}
workloads: [{name: w, requests: {gpu: many, none: 0, huge: 1e300, "no name!": 1}, nodeSelector: {k: "no value!"}, affinity: {nodeSelectorTerms: 3}, tolerations: [{key: 5}]}]
redaction: {patterns: ["", "a*", "("]}
listen: nope
schedule: [{cron: "every day", timeZone: Mars/Olympus}]
parallelism: -1
`))
	if err == nil {
		t.Fatal("a wrong file was taken")
	}
	for _, want := range []string{
		`apiVersion: is "audit/v2"`, `clusters[0].kubeconfig: "/no/such/file"`, `clusters[0].timeout: "5"`, `clusters[1].name: "a"`, `clusters[2].name: is missing`,
		`unknown field "clusters[2].surprise"`, `thresholds.ghost: "soon"`, `thresholds.silent: "1s"`, `severities.ghost-hold: is "loud"`, `severities.no-such-check`,
		`workloads[0].requests.gpu: "many"`, `schedule[0].cron`, `schedule[0].timeZone: "Mars/Olympus"`, `parallelism: is -1`,
		`clusters[3].acceptGaps[0].resource: "nodez"`, `workloads[0].requests.none: is 0`, `workloads[0].requests.huge: "1e+300" is more than any node has`, `"no name!" is no name of a resource`, `"no value!" is no label`,
		`workloads[0].affinity.nodeSelectorTerms: is a number, want a list`, `workloads[0].tolerations[0].key: is a number`, `redaction.patterns[0]`, `redaction.patterns[1]`, `redaction.patterns[2]`, `listen: is "nope"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s:\n%v", want, err)
		}
	}
}

// TestKinds: values of another kind than their field are told by path, all of
// them, without Go's types and without the value, which may be a secret.
func TestKinds(t *testing.T) {
	_, err := Parse("bad.yaml", []byte(`
apiVersion: audit/v1
clusters: [{name: a, timeout: [5]}, {name: 5, namespaces: prod, vendor: xoxb-secret}]
store: s3://key:secret@bucket
parallelism: 1.5
listen: 8080
thresholds: {peersWithLabel: most, churnWithLabel: autoscaled, admissionFailures: 99999999999999999999}
severities: {ghost-hold: [off]}
schedule: {cron: x}
`))
	want := `config bad.yaml has 11 problems:
  clusters[0].timeout: is a list, want a text or a number
  clusters[1].name: is a number, want a text (in quotes)
  clusters[1].namespaces: is a text, want a list
  clusters[1].vendor: is a text, want fields with values
  listen: is a number, want a text (in quotes)
  parallelism: is a number with a fraction or an exponent, want a whole number
  schedule: is a block of fields, want a list
  severities.ghost-hold: is a list, want a text or a number
  store: is a text, want fields with values
  thresholds.admissionFailures: is a number, want a whole number
  thresholds.peersWithLabel: is a text, want a number`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}

// TestClasses: a class that no API server would take as a pod is refused.
func TestClasses(t *testing.T) {
	class := func(rest string) string {
		return "apiVersion: audit/v1\nclusters: [{name: a}]\nworkloads: [{name: w, requests: {nvidia.com/gpu: 8}, " + rest + "}]\n"
	}
	for rest, want := range map[string]string{
		`affinity: {nodeSelectorTerms: []}`:                                                                        "nodeSelectorTerms: is empty",
		`affinity: {nodeSelectorTerms: [null]}`:                                                                    "nodeSelectorTerms[0]: is empty",
		`affinity: {nodeSelectorTerms: [{matchExpressions: []}]}`:                                                  "nodeSelectorTerms[0]: is empty",
		`affinity: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Foo}]}]}`:                           `operator: Unsupported value: "Foo"`,
		`affinity: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In}]}]}`:                            "values",
		`affinity: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Gt, values: [many]}]}]}`:            "many",
		`affinity: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: Exists}]}]}`:                 "matchFields",
		`tolerations: [{key: k, operator: Bad}]`:                                                                   `operator: is "Bad"`,
		`tolerations: [null]`:                                                                                      "tolerations[0]: is null",
		`tolerations: [{operator: Equal}]`:                                                                         "tolerations[0].key: is missing",
		`tolerations: [{key: k, operator: Exists, value: v}]`:                                                      "takes none",
		`tolerations: [{key: k, effect: Never}]`:                                                                   `effect: is "Never"`,
		`tolerations: [{key: k, effect: NoSchedule, tolerationSeconds: 5}]`:                                        "NoExecute only",
		`affinity: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: NotIn, values: [a, b]}]}]}`:         "",
		`affinity: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}`:        "",
		`affinity: null, tolerations: null`:                                                                        "",
		`tolerations: [{operator: Exists}, {key: k, value: v}, {key: k, effect: NoExecute, tolerationSeconds: 5}]`: "",
	} {
		_, err := Parse("x.yaml", []byte(class(rest)))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", rest, err, want)
		}
	}
	for requests, want := range map[string]string{
		"{nvidia.com/gpu: 0.5}": "no whole number", "{cpu: 8}": "names no device", "{nvidia.com/gpu: -1}": "no quantity", "{nvidia.com/gpu: 1e-999999999}": "workloads[0].requests",
		"{nvidia.com/gpu: 8, cpu: 500m, memory: 0.5Gi}": "",
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(class("tolerations: []"), "{nvidia.com/gpu: 8}", requests, 1)))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("requests %s: error is %v, want %q", requests, err, want)
		}
	}
}

// TestOddValues: each is told with its field, and no secret is repeated.
func TestOddValues(t *testing.T) {
	for body, want := range map[string]string{
		"parallelism: 0":                                           "parallelism: is 0",
		"thresholds: {peersWithLabel: .nan}":                       "line 3: thresholds: {peersWithLabel: .nan",
		"thresholds:\n  peersWithLabel: -.INF":                     "line 4: peersWithLabel: -.INF",
		"devices: [{resource: a/b, perCard: 9223372036854775807}]": "devices[0].perCard",
		"checklist: {baseURL: \"https://me:hunter2@wiki/x\"}":      "checklist.baseURL: has a user name",
		"reports: {baseURL: \"https://me@wiki/x\"}":                "reports.baseURL: has a user name",
	} {
		_, err := Parse("x.yaml", []byte("apiVersion: audit/v1\nclusters: [{name: a}]\n"+body+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v, want %q", body, err, want)
		}
	}
	for _, body := range []string{"- a\n- b\n", "7\n", "text\n"} {
		if _, err := Parse("x.yaml", []byte(body)); err == nil || !strings.Contains(err.Error(), "the file as a whole: is") {
			t.Errorf("%q: error is %v", body, err)
		}
	}
}

func TestCron(t *testing.T) {
	no := false
	for text, want := range map[string]string{
		"0 8 * * 1-5": "", "@daily": "", "0 0 29 2 *": "", "": "is missing", "TZ=0": "timeZone", "CRON_TZ=Asia/Tokyo 0 8 * * *": "timeZone",
		"0 8 * *": "five fields", "0 0 31 2 *": "never comes", "@every 5m": "twice", "@every -5m": "whole seconds", "@every 0s": "whole seconds", "@every 90m30.5s": "whole seconds",
	} {
		if got := (&Entry{Cron: text}).cronProblem(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("cron %q: %q, want %q", text, got, want)
		}
	}
	if got := (&Entry{Cron: "@every 5m", Post: &no}).cronProblem(); got != "" {
		t.Errorf("an entry that posts nothing may run @every: %q", got)
	}
}

func TestBrokenFiles(t *testing.T) {
	for name, body := range map[string]string{
		"empty":     "  \n",
		"not yaml":  "clusters: [",
		"duplicate": "apiVersion: audit/v1\napiVersion: audit/v1\n",
		"no list":   "apiVersion: audit/v1\nclusters: 3\n",
	} {
		if _, err := Parse("x.yaml", []byte(body)); err == nil || !strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%s: error is %v, want one that names the file", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: audit/v1\nclusters: [{name: a}]\n"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		file, err := Parse("f.yaml", body)
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
	})
}

// TestKeep: how long things are kept is written with a unit, or 0 for ever.
func TestKeep(t *testing.T) {
	for text, want := range map[string]time.Duration{"400d": 400 * 24 * time.Hour, `"8w"`: 8 * 7 * 24 * time.Hour, "1h": time.Hour, "0": 0, `"0"`: 0} {
		f, err := Parse("c.yaml", []byte("apiVersion: audit/v1\nclusters: [{name: a}]\nstore: {keep: "+text+"}\n"))
		if err != nil || time.Duration(f.Store.Keep) != want {
			t.Errorf("keep %s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"400", "[]", "soon", "-1d"} {
		if _, err := Parse("c.yaml", []byte("apiVersion: audit/v1\nclusters: [{name: a}]\nstore: {url: /tmp/x, keep: "+text+"}\n")); err == nil || !strings.Contains(err.Error(), "keep") {
			t.Errorf("keep %s is taken, or its error does not name it: %v", text, err)
		}
	}
}

// TestPathsAreTheFilesOwn: relative paths are taken from the configuration's folder, wherever the program is started.
func TestPathsAreTheFilesOwn(t *testing.T) {
	f, err := Parse("/etc/audit/c.yaml", []byte("apiVersion: audit/v1\nclusters: [{name: a}]\nstore: {url: data, caFile: ca.pem}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{f.Store.URL, f.Store.CAFile, f.Path("token"), f.Path("/run/token"), f.Path("")}; !slices.Equal(got, []string{"/etc/audit/data", "/etc/audit/ca.pem", "/etc/audit/token", "/run/token", ""}) {
		t.Errorf("paths %q", got)
	}
}
