package config

import (
	"os"
	"path/filepath"
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
thresholds: {ghost: soon, silent: 1s}
severities: {ghost-hold: loud, no-such-check: off}
workloads: [{name: w, requests: {gpu: many}}]
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
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s:\n%v", want, err)
		}
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
