package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuaudit/audit/report"
	"gpuaudit/cmd/audit/evidence"
)

// command runs the program in this process.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// entries unpacks a zip.
func entries(t *testing.T, file string) map[string]string {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(body)
	}
	return out
}

// pack writes a zip.
func pack(t *testing.T, file string, entries map[string]string) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(entries[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// story gives the store of the incident's four days.
func story(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "story")
	if _, err := command(t, "demo", "--keep", dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "store")
}

// ours are the names in the original report that a vendor must not read, in
// the forms in which a file can hold them.
func ours(t *testing.T, reportJSON string) []string {
	t.Helper()
	var r report.Report
	if err := json.Unmarshal([]byte(reportJSON), &r); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range r.Clusters[0].Pending {
		names[p.Name] = true
		if !strings.HasPrefix(p.Namespace, "kube-") && p.Namespace != "prod" { // prod is the value of the label in question as well
			names[p.Namespace] = true
		}
		if i := strings.LastIndexByte(p.Owner, '/'); i >= 0 {
			names[p.Owner[i+1:]] = true
		}
	}
	var out []string
	for n := range names {
		escaped, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n, strings.Trim(string(escaped), `"`), html.EscapeString(n))
	}
	if len(out) < 15 {
		t.Fatalf("only %d names to look for", len(out))
	}
	return out
}

// TestRedactedBundle searches every file of a redacted bundle of the incident
// for every name of ours, and the vendor's own names for staying.
func TestRedactedBundle(t *testing.T) {
	store, dir := story(t), t.TempDir()
	plain, file := filepath.Join(dir, "plain.zip"), filepath.Join(dir, "C.zip")
	if _, err := command(t, "evidence", "--store", store, "--cluster", "C", "--out", plain); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "evidence", "--store", store, "--cluster", "C", "--redact", "--out", file); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, "verify", file); err != nil || !strings.Contains(out, "everything verifies") {
		t.Fatalf("the redacted bundle does not verify: %v\n%s", err, out)
	}
	names := append(ours(t, entries(t, plain)["report.json"]), "task-monitor", "edit-client", "inference", "loongcollector", "promtail", "observability", "a-gpu-01", "b-gpu-01", "prod/", "/prod")
	all := ""
	for name, body := range entries(t, file) {
		all += body
		for _, n := range names {
			if strings.Contains(body, n) {
				t.Errorf("%s holds %q", name, n)
			}
		}
	}
	for _, name := range []string{"52ew76fke2", "ujx4guefbh", "x-scheduler", "earlier label node_env: prod", "node_env is prod", "node_env is test", "over stored runs</title>"} {
		if !strings.Contains(all, name) {
			t.Errorf("the bundle lost %q", name)
		}
	}
}

// TestTicketTellsOpenFromOver: on day 4 the node is gone and the label back;
// a vendor must not read that both still are.
func TestTicketTellsOpenFromOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "C.zip")
	if _, err := command(t, "evidence", "--store", story(t), "--cluster", "C", "--out", file); err != nil {
		t.Fatal(err)
	}
	ticket := entries(t, file)["ticket.md"]
	open, over, ok := strings.Cut(ticket, "No longer so")
	if !ok || strings.Contains(open, "node 52ew76fke2 is NotReady") || !strings.Contains(over, "node 52ew76fke2 is NotReady") || !strings.Contains(over, "ujx4guefbh") {
		t.Errorf("the resolved findings stand as open ones:\n%s", ticket)
	}
	facts, _, _ := strings.Cut(ticket, "\n- ")
	if !strings.Contains(facts, "Devices: ") || !strings.Contains(facts, "Seen: ") {
		t.Errorf("the facts do not come first:\n%s", ticket)
	}
}

// TestEachFileAndHeaderIsProtected changes every file, and every header of the
// chain, of a signed bundle, one at a time.
func TestEachFileAndHeaderIsProtected(t *testing.T) {
	dir := t.TempDir()
	key, conf, file, bad := filepath.Join(dir, "key"), filepath.Join(dir, "audit.yaml"), filepath.Join(dir, "C.zip"), filepath.Join(dir, "bad.zip")
	if _, err := command(t, "keygen", "--out", key); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: audit/v1\nclusters: [{name: C, inCluster: true}]\nsigning: {keyFile: " + key + "}\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "evidence", "-c", conf, "--store", story(t), "--cluster", "C", "--out", file); err != nil {
		t.Fatal(err)
	}
	verify := func(what string, changed map[string]string, want string) {
		t.Helper()
		pack(t, bad, changed)
		out, err := command(t, "verify", "--public-key", key+".pub", bad)
		if err != nil {
			out += err.Error()
		}
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in:\n%s", what, err, want, out)
		}
	}
	good := entries(t, file)
	for name, body := range good {
		want := "file " + name + " was changed"
		switch name {
		case evidence.ManifestName:
			body, want = strings.Replace(body, `"cluster": "C"`, `"cluster": "D"`, 1)+" ", "the signature does not fit the manifest"
		case evidence.SignatureName:
			want = "the signature does not fit the manifest"
		case evidence.KeyName:
			want = "file " + name + " is no public key"
		}
		changed := maps.Clone(good)
		changed[name] = "x" + body
		if name == evidence.ManifestName {
			changed[name] = body
		}
		verify("changed "+name, changed, want)
		changed = maps.Clone(good)
		delete(changed, name)
		verify("missing "+name, changed, name)
	}
	var chain []map[string]string
	if err := json.Unmarshal([]byte(good[evidence.ChainName]), &chain); err != nil || len(chain) < 3 {
		t.Fatalf("a chain of %d headers: %v", len(chain), err)
	}
	for i := range chain {
		other := slices.Clone(chain)
		other[i] = map[string]string{"key": chain[i]["key"], "body": strings.Replace(chain[i]["body"], `"snapshotSHA256":"`, `"snapshotSHA256":"0`, 1) + " "}
		body, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		changed := maps.Clone(good)
		changed[evidence.ChainName] = string(body)
		want := chain[i]["key"]
		if i == len(chain)-1 {
			want = "chain: "
		}
		verify("changed header "+chain[i]["key"], changed, want)
		if i == 0 || i == len(chain)-1 {
			continue
		}
		if body, err = json.Marshal(append(slices.Clone(chain[:i]), chain[i+1:]...)); err != nil {
			t.Fatal(err)
		}
		changed[evidence.ChainName] = string(body)
		verify("missing header", changed, fmt.Sprintf("header %q is missing", want))
	}
}
