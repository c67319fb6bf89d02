package dump

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/inventory"
)

const (
	node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","creationTimestamp":"2026-06-01T08:00:00Z"}}`
	pod  = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1","namespace":"prod","creationTimestamp":"2026-06-01T09:00:00Z"},"spec":{"nodeName":"n1","containers":[]},"status":{"phase":"Running"}}`
)

func list(kind string, items ...string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"items":[%s]}`, kind, strings.Join(items, ","))
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestForms: however the objects stand in files, the inventory is the same.
func TestForms(t *testing.T) {
	bare := func(s string) string { return strings.Replace(s, `"apiVersion":"v1","kind":"Pod",`, "", 1) }
	for name, files := range map[string]map[string]string{
		"lists":           {"nodes.json": list("List", node), "pods.json": list("List", pod)},
		"typed lists":     {"nodes.json": list("NodeList", node), "pods.json": list("PodList", bare(pod))},
		"kind at the end": {"nodes.json": list("List", node), "pods.json": `{"items":[` + bare(pod) + `],"kind":"PodList","apiVersion":"v1"}`},
		"one file":        {"all.json": list("List", node, pod)},
		"nested":          {"all.json": list("List", list("NodeList", node), list("List", pod))},
		"concatenated":    {"all.json": node + "\n" + pod + "\n"},
		"an array":        {"all.json": "[" + node + "," + pod + "]"},
		"yaml":            {"nodes.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + node + "\n", "pods.yml": "---\n" + pod + "\n---\n# nothing\n"},
		"gzip":            {"nodes.json.gz": zipped(t, list("List", node)), "pods.yaml.gz": zipped(t, pod)},
		"twice":           {"nodes.json": list("List", node), "a.json": pod, "b.json": pod},
	} {
		clusters, now, err := Read(folderOf(t, files), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := clusters[0]
		if len(clusters) != 1 || c.Name != "c" || len(c.Nodes) != 1 || c.PodCount != 1 || c.Nodes[0].Load.Pods != 1 {
			t.Errorf("%s: %d clusters, %d nodes, %d pods", name, len(clusters), len(c.Nodes), c.PodCount)
		}
		if want := time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC); !now.Equal(want) {
			t.Errorf("%s: now is %s, want the newest time %s", name, now, want)
		}
	}
}

func TestSubfoldersAreClusters(t *testing.T) {
	clusters, _, err := Read(folderOf(t, map[string]string{"a/nodes.json": list("List", node), "b/nodes.json": list("List", node), ".git/x.json": "{", "notes/readme.txt": "x"}), Options{})
	if err != nil || len(clusters) != 2 || clusters[0].Name != "a" || clusters[1].Name != "b" {
		t.Errorf("clusters %v, %v", clusters, err)
	}
}

func gaps(c *inventory.Cluster) string {
	var out []string
	for _, g := range c.Gaps {
		out = append(out, strings.TrimSuffix(string(g.Resource)+"/"+g.Namespace, "/"))
	}
	return strings.Join(out, " ")
}

// TestExtents: what declares that a resource was collected, and what is a gap.
func TestExtents(t *testing.T) {
	rest := map[string]string{"leases.json": "", "daemonsets.json": "", "events.json": "", "resourcequotas.json": "", "services.json": "", "endpointslices.json": ""}
	ns := func(names ...string) string {
		var items []string
		for _, n := range names {
			items = append(items, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"creationTimestamp":"2026-06-01T08:00:00Z"}}`, n))
		}
		return list("List", items...)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
		pods  inventory.Extent
	}{
		"empty lists are whole":  {map[string]string{"nodes.json": list("List", node), "pods.json": list("List"), "namespaces.json": ns("prod")}, "", inventory.SeenWhole},
		"no pods":                {map[string]string{"nodes.json": list("List", node), "namespaces.json": ns("prod")}, "pods", inventory.NotSeen},
		"by namespace, all":      {map[string]string{"nodes.json": list("List", node), "namespaces.json": ns("prod", "test"), "prod/pods.json": list("List", pod), "test/pods.json": list("List")}, "", inventory.SeenWhole},
		"by namespace, not all":  {map[string]string{"nodes.json": list("List", node), "namespaces.json": ns("prod", "test"), "prod/pods.json": list("List", pod)}, "pods/test", inventory.SeenSome},
		"support bundle":         {map[string]string{"nodes.json": list("List", node), "namespaces.json": ns("prod", "test"), "pods/prod.json": list("List", pod), "pods/test.json": list("List")}, "", inventory.SeenWhole},
		"namespaces not listed":  {map[string]string{"nodes.json": list("List", node), "prod/pods.json": list("List", pod)}, "namespaces pods", inventory.SeenSome},
		"discovery names a kind": {map[string]string{"nodes.json": list("List", node), "pods.json": list("List"), "namespaces.json": ns("prod"), "api.json": `{"kind":"APIResourceList","groupVersion":"kueue.x-k8s.io/v1beta1","resources":[{"name":"workloads","kind":"Workload","namespaced":true}]}`}, "workloads.kueue.x-k8s.io", inventory.SeenWhole},
	} {
		for file := range rest {
			c.files[file] = list("List")
		}
		clusters, _, err := Read(folderOf(t, c.files), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := gaps(clusters[0]); got != c.want || clusters[0].Extent(inventory.Pods) != c.pods {
			t.Errorf("%s: gaps %q and pods %d, want %q and %d", name, got, clusters[0].Extent(inventory.Pods), c.want, c.pods)
		}
	}
}

// TestBroken: a broken file is an error that names it and where; every one at once.
func TestBroken(t *testing.T) {
	good := list("List", node)
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"syntax":       {map[string]string{"nodes.json": "{\n \"kind\": \"List\",\n \"items\": [,]\n}"}, []string{"nodes.json:3:"}},
		"two at once":  {map[string]string{"nodes.json": "{", "pods.json": "[1"}, []string{"nodes.json", "pods.json"}},
		"ends early":   {map[string]string{"nodes.json": good[:len(good)-4]}, []string{"nodes.json", "ends in the middle"}},
		"zero bytes":   {map[string]string{"nodes.json": good, "pods.json": ""}, []string{"pods.json", "zero bytes"}},
		"blanks":       {map[string]string{"nodes.json": good, "pods.json": " \n"}, []string{"pods.json", "blanks"}},
		"not gzip":     {map[string]string{"nodes.json.gz": good}, []string{"nodes.json.gz", "no gzip"}},
		"wrong type":   {map[string]string{"nodes.json": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"},"spec":7}]}`}, []string{"nodes.json", `Node "n"`}},
		"no name":      {map[string]string{"nodes.json": good, "pods.json": `{"kind":"PodList","apiVersion":"v1","items":[{}]}`}, []string{"pods.json", "metadata.name"}},
		"no object":    {map[string]string{"nodes.json": `{"kind":"List","items":[7]}`}, []string{"nodes.json", "no object"}},
		"items a map":  {map[string]string{"nodes.json": `{"kind":"List","items":{}}`}, []string{"nodes.json", "items is no list"}},
		"yaml":         {map[string]string{"nodes.yaml": "kind: ConfigMap\n---\nkind: [\n"}, []string{"nodes.yaml:3:"}},
		"too large":    {map[string]string{"nodes.json": good}, []string{"nodes.json", "refused"}},
		"bare scalar":  {map[string]string{"nodes.json": "7"}, []string{"nodes.json", "where an object was expected"}},
		"second value": {map[string]string{"nodes.json": good + "}"}, []string{"nodes.json:1:"}},
	} {
		o := Options{}
		if name == "too large" {
			o.MaxBytes = 20
		}
		clusters, _, err := Read(folderOf(t, c.files), o)
		if err == nil || clusters != nil {
			t.Errorf("%s: was taken", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not say %q", name, err, want)
			}
		}
	}
	if _, _, err := Read(folderOf(t, map[string]string{"nodes.json": `{"kind":"List","items":[]}`}), Options{}); err == nil || !strings.Contains(err.Error(), "--now") {
		t.Errorf("a dump without any time: %v", err)
	}
}

// TestCutLists: a page of a longer list and a list without items are refused:
// they would pass for whole lists.
func TestCutLists(t *testing.T) {
	for name, c := range map[string]struct{ pods, want string }{
		"a page":    {`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"x","remainingItemCount":900},"items":[]}`, "one page of a longer list"},
		"remaining": {`{"metadata":{"remainingItemCount":3},"items":[],"kind":"List"}`, "one page of a longer list"},
		"no items":  {`{"kind":"List","apiVersion":"v1"}`, "without items"},
	} {
		_, _, err := Read(folderOf(t, map[string]string{"nodes.json": list("List", node), "pods.json": c.pods}), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "pods.json") {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{node, pod, list("List", node, pod), list("PodList", `{"metadata":{"name":"x"}}`), "{", "[[]]", `{"items":null}`, `{"kind":"List","items":[{"kind":"List","items":[{}]}]}`} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, asYAML bool) {
		dir := t.TempDir()
		name := "pods.json"
		if asYAML {
			name = "pods.yaml"
		}
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			t.Fatal(err)
		}
		clusters, _, err := Read(dir, Options{Now: time.Unix(1780000000, 0), MaxBytes: 1 << 20})
		if (err == nil) != (len(clusters) == 1) {
			t.Fatalf("clusters %v and error %v", clusters, err)
		}
	})
}
