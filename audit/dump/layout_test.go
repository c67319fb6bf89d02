package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/inventory"
)

func named1(kind, apiVersion, namespace, name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":"u-%s","creationTimestamp":"2026-06-01T08:00:00Z"}%s}`, apiVersion, kind, namespace, name, name, rest)
}

func names(clusters []*inventory.Cluster) string {
	var out []string
	for _, c := range clusters {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// TestWhichFolderIsACluster: folders named like parts of a cluster are parts.
func TestWhichFolderIsACluster(t *testing.T) {
	nodes, pods := list("List", node), list("List", pod)
	for name, c := range map[string]struct {
		files map[string]string
		want  string // names, or a part of the error
		fails bool
	}{
		"cluster-info dump":        {map[string]string{"nodes.json": nodes, "prod/pods.json": pods, "prod/p1/logs.txt": "x"}, "c", false},
		"namespaces alone":         {map[string]string{"prod/pods.json": pods, "kube-system/pods.json": list("List")}, "c", false},
		"resources alone":          {map[string]string{"pods/prod.json": pods, "nodes/n1.json": node}, "c", false},
		"bundle without its top":   {map[string]string{"cluster-resources/nodes.json": nodes, "cluster-resources/pods/prod.json": pods}, "cluster-resources", false},
		"bundle with its top":      {map[string]string{"version.yaml": "a: b", "cluster-resources/nodes.json": nodes, "cluster-resources/pods/prod.json": pods}, "c", false},
		"clusters":                 {map[string]string{"a/nodes.json": nodes, "b/nodes.json": nodes}, "a b", false},
		"a cluster called default": {map[string]string{"default/nodes.json": nodes, "other/nodes.json": nodes}, "default other", false},
		"a cluster of folders":     {map[string]string{"a/cluster-resources/nodes.json": nodes, "b/nodes.json": nodes}, "a b", false},
		"a file beside clusters":   {map[string]string{"notes.json": "{}", "a/nodes.json": nodes, "b/nodes.json": nodes}, "several clusters", true},
		"nothing":                  {map[string]string{"a/readme.txt": "x"}, "holds no .json", true},
	} {
		clusters, _, err := Read(folderOf(t, c.files), Options{})
		switch {
		case c.fails && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		case !c.fails && (err != nil || names(clusters) != c.want):
			t.Errorf("%s: clusters %q and error %v, want %q", name, names(clusters), err, c.want)
		}
	}
}

// TestLinks: what stays inside is read, what leads out is refused.
func TestLinks(t *testing.T) {
	mounted := folderOf(t, map[string]string{"..data/nodes.json": list("List", node)})
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	link("..data/nodes.json", filepath.Join(mounted, "nodes.json"))
	latest := filepath.Join(t.TempDir(), "latest")
	link(mounted, latest)
	for _, dir := range []string{mounted, latest} {
		clusters, _, err := Read(dir, Options{})
		if err != nil || len(clusters) != 1 || len(clusters[0].Nodes) != 1 || clusters[0].Name != filepath.Base(dir) {
			t.Errorf("%s: clusters %q, %v", dir, names(clusters), err)
		}
	}
	out := folderOf(t, map[string]string{"nodes.json": list("List", node)})
	link(filepath.Join(mounted, "..data/nodes.json"), filepath.Join(out, "pods.json"))
	if _, _, err := Read(out, Options{}); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("a link out of the dump: %v", err)
	}
}

// TestNow: one clock that runs ahead does not move everybody's now, and a
// single live node among dead ones does.
func TestNow(t *testing.T) {
	at := func(name, ready, heartbeat string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"creationTimestamp":"2026-01-01T00:00:00Z"},"status":{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":%q}]}}`, name, ready, heartbeat)
	}
	renewed := func(name, when string) string {
		return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"kube-node-lease","name":%q},"spec":{"renewTime":%q}}`, name, when)
	}
	event := func(when string) string {
		return named1("Event", "v1", "prod", "e", fmt.Sprintf(`,"lastTimestamp":%q,"involvedObject":{"kind":"Pod","name":"p"}`, when))
	}
	live, month := "2026-06-01T09:00:00Z", "2026-05-01T09:00:00Z"
	for name, c := range map[string]struct {
		objects []string
		want    string
	}{
		"the newest heartbeat":         {[]string{at("a", "True", live), at("b", "True", "2026-06-01T08:59:00Z")}, live},
		"a lease in the future":        {[]string{at("a", "True", live), at("b", "True", live), at("c", "True", live), renewed("c", "2099-01-01T00:00:00.000000Z")}, live},
		"dead nodes do not vote":       {[]string{at("a", "True", live), at("b", "Unknown", month), at("c", "Unknown", month), at("d", "Unknown", month)}, live},
		"two do not tell who is wrong": {[]string{at("a", "True", live), at("b", "True", month)}, live},
		"a deletion ahead":             {[]string{at("a", "True", live), strings.Replace(pod, `"name":"p1"`, `"name":"p1","deletionTimestamp":"2026-06-02T00:00:00Z"`, 1)}, live},
		"an event":                     {[]string{at("a", "True", month), event(live)}, live},
		"an event of 2099":             {[]string{at("a", "True", live), at("b", "True", live), at("c", "True", month), event("2099-01-01T00:00:00Z")}, live},
		"a node made in 2099":          {[]string{strings.Replace(at("a", "True", live), "2026-01-01", "2099-01-01", 1), at("b", "True", live), at("c", "True", live), event(live)}, live},
		"one event of a quiet month":   {[]string{at("a", "Unknown", month), at("b", "Unknown", month), at("c", "Unknown", month), at("d", "Unknown", month), event("2026-05-30T09:00:00Z")}, "2026-06-01T08:00:00Z"},
		"too few to tell":              {[]string{at("a", "True", live), event("2099-01-01T00:00:00Z")}, "2099-01-01T00:00:00Z"},
	} {
		clusters, now, err := Read(folderOf(t, map[string]string{"all.json": list("List", c.objects...)}), Options{})
		if said := len(clusters) == 1 && len(clusters[0].Notes) == 1 && strings.Contains(clusters[0].Notes[0], "not believed"); said != strings.HasSuffix(name, " 2099") {
			t.Errorf("%s: said that a date is not believed: %v", name, said)
		}
		if err != nil || now.Format(time.RFC3339) != c.want {
			t.Errorf("%s: now %s and error %v, want %s", name, now.Format(time.RFC3339), err, c.want)
		}
	}
	given := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	clusters, now, err := Read(folderOf(t, map[string]string{"nodes.json": list("List", node)}), Options{Now: given})
	if err != nil || !now.Equal(given) || !clusters[0].CollectedAt.Equal(given) {
		t.Errorf("now given: %s, %v", now, err)
	}
	// A moment before the dump would make every age 0; one kubelet whose clock
	// runs ahead is no reason to refuse the right moment.
	beats := func(times ...string) map[string]string {
		var nodes []string
		for i, t := range times {
			nodes = append(nodes, at(fmt.Sprint("n", i), "True", t))
		}
		return map[string]string{"nodes.json": list("List", nodes...)}
	}
	for name, c := range map[string]struct {
		files  map[string]string
		broken bool
	}{
		"a month before":       {beats(live, live, live), true},
		"one node alone":       {beats(live), true},
		"one clock ahead":      {beats(month, month, live), false},
		"minutes of skew":      {beats("2026-05-01T09:05:00Z", "2026-05-01T09:01:00Z"), false},
		"the moment of a dump": {beats(month), false},
	} {
		then, err := time.Parse(time.RFC3339, month)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Read(folderOf(t, c.files), Options{Now: then})
		if c.broken && (err == nil || !strings.Contains(err.Error(), live) || !strings.Contains(err.Error(), month)) || !c.broken && err != nil {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// TestRefusals: what an API server answered in place of a list is a gap, and a
// file that holds something else than its name says is an error.
func TestRefusals(t *testing.T) {
	status := func(code int) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden","code":%d}`, code)
	}
	nodes := list("List", node)
	ns := list("List", named1("Namespace", "v1", "", "prod", ""), named1("Namespace", "v1", "", "test", ""), named1("Namespace", "v1", "", "dev", ""))
	for name, c := range map[string]struct {
		files  map[string]string
		extent inventory.Extent
		want   string
	}{
		"forbidden":        {map[string]string{"nodes.json": nodes, "pods.json": status(403)}, inventory.NotSeen, "forbidden/"},
		"late":             {map[string]string{"nodes.json": nodes, "pods.json": status(504)}, inventory.NotSeen, "timeout/"},
		"in a namespace":   {map[string]string{"nodes.json": nodes, "namespaces.json": ns, "prod/pods.json": list("List", pod), "test/pods.json": status(403)}, inventory.SeenSome, "notCollected/dev forbidden/test"},
		"beside an object": {map[string]string{"nodes.json": nodes, "pods.json": status(403), "p1.json": pod}, inventory.NotSeen, "forbidden/"},
		"a stray object":   {map[string]string{"nodes.json": nodes, "namespaces.json": ns, "prod/pods.json": list("List"), "x.json": pod}, inventory.SeenSome, "notCollected/dev notCollected/test"},
	} {
		clusters, _, err := Read(folderOf(t, c.files), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, g := range clusters[0].GapsOf(inventory.Pods) {
			got = append(got, string(g.Reason)+"/"+g.Namespace)
		}
		if strings.Join(got, " ") != c.want || clusters[0].Extent(inventory.Pods) != c.extent {
			t.Errorf("%s: gaps %q and extent %d, want %q and %d", name, got, clusters[0].Extent(inventory.Pods), c.want, c.extent)
		}
	}
	for name, c := range map[string]struct{ body, want string }{
		"nodes as pods":   {nodes, "holds Node objects and no Pod"},
		"two identities":  {list("List", pod, strings.Replace(node, `"n1"`, `"n1","uid":"other"`, 1)), "two moments"},
		"a secret's list": {list("List", named1("Secret", "v1", "prod", "s", "")), "holds Secret objects"},
	} {
		first := strings.Replace(node, `"n1"`, `"n1","uid":"one"`, 1)
		_, _, err := Read(folderOf(t, map[string]string{"nodes.json": list("List", first), "pods.json": c.body}), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "pods.json") {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestKinds: what is read of each kind, how its file may be called.
func TestKinds(t *testing.T) {
	slice := strings.Replace(named1("ResourceSlice", "resource.k8s.io/v1", "", "s1", `,"spec":{"driver":"gpu.example.com","nodeName":"n1","pool":{"name":"n1","generation":3,"resourceSliceCount":1}}`), `"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",`, "", 1)
	files := map[string]string{
		"nodes.json":                          list("List", node),
		"namespaces.json":                     list("List", named1("Namespace", "v1", "", "kube-system", "")),
		"resource-quotas/kube-system.json":    list("ResourceQuotaList"),
		"nodes.metrics.k8s.io.json":           `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[]}`,
		"resourceslices.json":                 `{"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","items":[` + slice + `]}`,
		"queues.scheduling.run.ai.json":       `{"kind":"List","items":[]}`,
		"elasticquotas.other.example.io.yaml": named1("ElasticQuota", "other.example.io/v1", "prod", "eq", ""),
		"version.json":                        `{"serverVersion":{"gitVersion":"v1.33.1"}}`,
		"notes/strings.json":                  `["one",{"kind":7},{"items":{"a":[1]}}]`,
		"secrets.json":                        list("SecretList", named1("Secret", "v1", "prod", "s", "")),
	}
	clusters, _, err := Read(folderOf(t, files), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := clusters[0]
	if c.UID != "u-kube-system" || c.ServerVersion != "v1.33.1" {
		t.Errorf("uid %q, version %q", c.UID, c.ServerVersion)
	}
	if c.Usage == nil || c.MetricsServed != inventory.Unknown || c.Extent(inventory.NodeMetrics) != inventory.SeenWhole {
		t.Errorf("an empty metrics list: usage %v, served %d", c.Usage, c.MetricsServed)
	}
	if len(c.Slices) != 1 || c.Slices[0].Generation != 3 || c.Slices[0].Name != "s1" {
		t.Errorf("slices that leave their kind to the list: %+v", c.Slices)
	}
	for resource, want := range map[inventory.Resource]inventory.Extent{
		"queues.scheduling.run.ai":       inventory.SeenWhole,
		"elasticquotas.other.example.io": inventory.SeenWhole,
		"workloads.kueue.x-k8s.io":       inventory.NotInstalled,
		inventory.ResourceQuotas:         inventory.SeenWhole,
		inventory.Deployments:            inventory.NotSeen,
	} {
		if got := c.Extent(resource); got != want {
			t.Errorf("extent of %s is %d, want %d", resource, got, want)
		}
	}
	if len(c.GapsOf(inventory.Deployments)) != 0 {
		t.Error("deployments are a gap, and no check needs them")
	}
}

// TestSplitting: the same objects in any files give the same inventory.
func TestSplitting(t *testing.T) {
	var objects []string
	for i := range 3 {
		objects = append(objects, strings.ReplaceAll(node, `"n1"`, fmt.Sprintf(`"n%d"`, i)))
	}
	for i := range 5 {
		objects = append(objects,
			named1("Pod", "v1", "prod", fmt.Sprintf("p%d", i), fmt.Sprintf(`,"spec":{"nodeName":"n%d","nodeSelector":{"k%d":"v"},"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"1"}}}]},"status":{"phase":"Pending"}`, i%3, i)),
			named1("DaemonSet", "apps/v1", "prod", fmt.Sprintf("d%d", i), `,"spec":{"template":{"spec":{"nodeSelector":{"k1":"w"}}}}`),
			named1("Event", "v1", "prod", fmt.Sprintf("e%d", i), fmt.Sprintf(`,"reason":"FailedScheduling","message":"m%d","count":2,"involvedObject":{"kind":"Pod","namespace":"prod","name":"p1"}`, i)),
			named1("PodGroup", "scheduling.volcano.sh/v1beta1", "prod", fmt.Sprintf("g%d", i), ""))
	}
	read := func(files map[string]string) *inventory.Cluster {
		t.Helper()
		clusters, _, err := Read(folderOf(t, files), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return clusters[0]
	}
	want := read(map[string]string{"all.json": list("List", objects...)})
	if len(want.Pods) != 5 || len(want.Workloads) != 5 || len(want.Events) != 1 || len(want.Custom) != 1 {
		t.Fatalf("%d pods, %d workloads, %d events", len(want.Pods), len(want.Workloads), len(want.Events))
	}
	for parts := 2; parts <= len(objects); parts += 5 {
		split := make([][]string, parts)
		for i := range objects {
			part := (i * 7) % parts
			split[part] = append(split[part], objects[len(objects)-1-i])
		}
		files := map[string]string{}
		for i, part := range split {
			files[fmt.Sprintf("f%02d.json", parts-i)] = list("List", part...)
		}
		if got := read(files); !reflect.DeepEqual(got, want) {
			t.Errorf("%d files give another inventory", parts)
		}
	}
}

// TestPositions: the line and column of a fault, in a list's items and behind a mark.
func TestPositions(t *testing.T) {
	long := strings.Repeat(node+",\n", 300)
	for name, c := range map[string]struct{ file, body, want string }{
		"in an item":      {"nodes.json", "{\"kind\":\"List\",\"items\":[\n" + long + "{\"kind\": x}]}", "nodes.json:302:10: "},
		"behind a mark":   {"nodes.json", "\xef\xbb\xbf{\n  x}", "nodes.json:2:"},
		"utf-16":          {"nodes.json", "\xff\xfe{\x00", "UTF-8"},
		"yaml, in a part": {"nodes.yaml", "a: b\n...\n--- # x\nkind: List\nitems: [\n", "nodes.yaml:"},
		"yaml, an object": {"nodes.yaml", "--- {kind: Node, apiVersion: v1}\n", "nodes.yaml:1: "},
	} {
		_, _, err := Read(folderOf(t, map[string]string{c.file: c.body}), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
