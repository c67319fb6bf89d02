package evidence

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
	"gpuaudit/store/archive"
	"gpuaudit/store/local"
	"gpuaudit/store/storetest"
)

func packed(t testing.TB, key *minisign.PrivateKey) []byte {
	t.Helper()
	files := map[string][]byte{"findings.json": []byte("[]\n"), "ticket.md": []byte("# ticket\n")}
	return pack(t, files, chained(t), key)
}

func pack(t testing.TB, files map[string][]byte, headers []archive.RawHeader, key *minisign.PrivateKey) []byte {
	t.Helper()
	body, err := Pack(Manifest{SchemaVersion: 1, Cluster: "C", Run: "r", CreatedAt: time.Unix(1780000000, 0).UTC()}, files, headers, key)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// chained is the chain of one audit.
func chained(t testing.TB) []archive.RawHeader {
	t.Helper()
	s, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := archive.New(s)
	if _, err := a.SaveSnapshot(t.Context(), storetest.NewAudit("C", storetest.Day, "r")); err != nil {
		t.Fatal(err)
	}
	headers, err := a.Headers(t.Context(), "C", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return headers
}

// repack changes one entry of a zip: nil drops it.
func repack(t testing.TB, body []byte, name string, content []byte) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	add := func(name string, b []byte) {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	done := false
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == name {
			done = true
			if content == nil {
				continue
			}
			b = content
		}
		add(f.Name, b)
	}
	if !done {
		add(name, content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestVerifySaysExactlyWhatIsWrong(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body := packed(t, &private)
	if v, err := Verify(body, &public); err != nil || len(v.Problems) > 0 || v.Signed == "" || v.Headers != 1 || !v.Covers {
		t.Fatalf("a good bundle: %v %+v", err, v)
	}
	for name, c := range map[string]struct {
		body []byte
		key  *minisign.PublicKey
		want string
	}{
		"changed file":      {repack(t, body, "ticket.md", []byte("x")), nil, "file ticket.md was changed"},
		"missing file":      {repack(t, body, "findings.json", nil), nil, "file findings.json is missing"},
		"added file":        {repack(t, body, "more.txt", []byte("x")), nil, "file more.txt is not in the manifest"},
		"changed signature": {repack(t, body, SignatureName, []byte("x")), nil, "signature does not fit"},
		"another key":       {body, &other, "signed with another key"},
		"no signature":      {packed(t, nil), &public, "is not signed"},
		"no chain":          {pack(t, map[string][]byte{"ticket.md": nil}, nil, nil), nil, "chain.json holds no header"},
		"broken chain":      {repack(t, body, ChainName, []byte("{")), nil, "file chain.json is broken"},
	} {
		v, err := Verify(c.body, c.key)
		if err != nil || !strings.Contains(strings.Join(v.Problems, "\n"), c.want) {
			t.Errorf("%s: %v %v, want %q", name, err, v, c.want)
		}
	}
	for name, b := range map[string][]byte{"no zip": []byte("x"), "no manifest": repack(t, body, ManifestName, nil)} {
		if _, err := Verify(b, nil); err == nil {
			t.Errorf("%s was taken for a bundle", name)
		}
	}
}

// TestVerifyRefusesHostileZips says for each what is wrong with it.
func TestVerifyRefusesHostileZips(t *testing.T) {
	zipped := func(entries ...[2]string) []byte {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for _, e := range entries {
			f, err := w.Create(e[0])
			if err == nil {
				_, err = f.Write([]byte(e[1]))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	good := packed(t, nil)
	damaged := bytes.Clone(good)
	damaged[60] ^= 0x55 // inside of the first entry
	var many [][2]string
	for i := range maxEntries + 1 {
		many = append(many, [2]string{fmt.Sprint(i), ""})
	}
	zeros := strings.Repeat("\x00", maxUnpacked/4)
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"bomb":         {zipped([2]string{"a", zeros}, [2]string{"b", zeros}, [2]string{"c", zeros}, [2]string{"d", zeros}, [2]string{"e", "x"}), "unpacks to more than"},
		"many entries": {zipped(many...), "1001 entries"},
		"twice":        {zipped([2]string{"manifest.json", "{}"}, [2]string{"manifest.json", "{}"}), `"manifest.json" twice`},
		"path":         {zipped([2]string{"../../etc/passwd", "x"}), `"../../etc/passwd" is no plain path`},
		"other path":   {zipped([2]string{`..\x`, "x"}), "is no plain path"},
		"cut off":      {good[:len(good)-40], "was cut off"},
		"damaged":      {damaged, `"chain.json" is damaged`},
		"newer":        {repack(t, good, ManifestName, []byte(`{"schemaVersion": 2}`)), "schemaVersion 2 and this program reads 1"},
		"no version":   {repack(t, good, ManifestName, []byte(`{}`)), "has no schemaVersion"},
		"list":         {repack(t, good, ManifestName, []byte(`[]`)), "manifest.json is broken"},
	} {
		if _, err := Verify(c.body, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestRedaction searches the redacted report for every original name.
func TestRedaction(t *testing.T) {
	r := sample.Incident()
	one, err := report.Only(r, "C")
	if err != nil {
		t.Fatal(err)
	}
	for i := range one.Clusters[0].Pending {
		one.Clusters[0].Pending[i].UID = "" // a real one says nothing; the sample's holds the name
	}
	redaction, err := NewRedaction(&one.Clusters[0], []string{`registry\.example\.com`})
	if err != nil {
		t.Fatal(err)
	}
	out, err := redaction.Report(one)
	if err != nil {
		t.Fatal(err)
	}
	body, err := report.Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(redaction.Names) < 5 {
		t.Fatalf("only %d names were found to redact", len(redaction.Names))
	}
	for _, p := range one.Clusters[0].Pending {
		if strings.Contains(string(body), p.Name) {
			i := strings.Index(string(body), p.Name)
			t.Errorf("the redacted report still has pod %q: %s", p.Name, body[max(0, i-120):i+40])
		}
	}
	for _, keep := range []string{"52ew76fke2", "ujx4guefbh", "node_env"} {
		if !strings.Contains(string(body), keep) {
			t.Errorf("the redacted report lost %q", keep)
		}
	}
	again, err := redaction.Report(one)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := report.Encode(again); !bytes.Equal(body, b) {
		t.Error("the pseudonyms are not stable")
	}
}

// TestRedactionFindsImagesAndHosts: without a configured pattern. Names of kinds,
// label keys, nodes and numbers stay.
func TestRedactionFindsImagesAndHosts(t *testing.T) {
	one, err := report.Only(sample.Incident(), "C")
	if err != nil {
		t.Fatal(err)
	}
	secret := []string{"registry.corp.example:5000/team-x/trainer:2026-05", "ghcr.io/acme/model-server", "bare-image", "auth.team-x.svc.cluster.local", "vault.acme.internal", "10.11.12.13"}
	f := &one.Clusters[0].Findings[0]
	f.Detail = fmt.Sprintf(`Back-off pulling image "%s"; %s@sha256:%s; pull image "%s"; Get "https://%s:443/x": dial tcp %s:443; lookup %s: no such host; kind podgroups.scheduling.volcano.sh, label node.kubernetes.io/instance-type, metrics.k8s.io, v1.37.2`,
		secret[0], secret[1], strings.Repeat("ab", 32), secret[2], secret[4], secret[5], secret[3])
	one.Clusters[0].Nodes[0].Name = "10.0.0.7" // some clouds name nodes by their address
	one.Clusters[0].Findings[1].Detail = "on node 10.0.0.7"
	redaction, err := NewRedaction(&one.Clusters[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := redaction.Report(one)
	if err != nil {
		t.Fatal(err)
	}
	body, err := report.Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secret {
		if strings.Contains(string(body), s) {
			t.Errorf("the redacted report still has %q: %s", s, out.Clusters[0].Findings[0].Detail)
		}
	}
	for _, keep := range []string{"podgroups.scheduling.volcano.sh", "node.kubernetes.io/instance-type", "metrics.k8s.io", "on node 10.0.0.7", "v1.37.2"} {
		if !strings.Contains(string(body), keep) {
			t.Errorf("the redacted report lost %q: %s", keep, out.Clusters[0].Findings[0].Detail)
		}
	}
}

// TestRedactionOfPlainWords: names of one or two letters, names that are
// numbers and names that are words of a resource are replaced where they are
// written as names, and no figure, resource or sentence is touched.
func TestRedactionOfPlainWords(t *testing.T) {
	one, err := report.Only(sample.Incident(), "C")
	if err != nil {
		t.Fatal(err)
	}
	c := &one.Clusters[0]
	c.Findings = c.Findings[:2]
	c.Pending = nil
	for i, ns := range []string{"ml", "gpu", "15", "a"} {
		c.Pending = append(c.Pending, report.Pending{Namespace: ns, Name: fmt.Sprintf("p%d", i), Owner: "Deployment/in"})
	}
	c.Findings[0].Detail = `0/15 nodes are available: 15 Insufficient nvidia.com/gpu; pod ml/p0 in namespace ml; kubectl get pods -n 15; ml is a word in a sentence; "a" is quoted; Pod/gpu/p1, Deployment/a/in`
	redaction, err := NewRedaction(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := redaction.Names
	want := fmt.Sprintf(`0/15 nodes are available: 15 Insufficient nvidia.com/gpu; pod %[1]s/%[2]s in namespace %[1]s; kubectl get pods -n %[3]s; ml is a word in a sentence; "%[4]s" is quoted; Pod/%[5]s/%[6]s, Deployment/%[4]s/%[7]s`,
		n["ml"], n["p0"], n["15"], n["a"], n["gpu"], n["p1"], n["in"])
	if got := redaction.Text(c.Findings[0].Detail); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, ns := range []string{"ml", "gpu", "15", "a"} {
		if got := redaction.Text(ns); got != n[ns] || !strings.HasPrefix(got, "namespace-") {
			t.Errorf("namespace %q alone is %q", ns, got)
		}
	}
}
