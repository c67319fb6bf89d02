package e2e

import (
	ziplib "archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/cmd/audit/demo"
	"gpuaudit/test/controlplane"
)

const (
	recreated = "ujx4guefbh"
	dead      = "52ew76fke2"
)

// TestIncident plays the incident on a real API server without a scheduler and
// without controllers: the node is really deleted and made again.
func TestIncident(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "C"})
	put(t, c, demo.ClusterC(1), func(string) bool { return true })
	alive := aliveNodes(demo.ClusterC(1))
	c.KeepAlive(t, alive...)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: %q}]\nstore: {url: %q}\nthresholds: {pending: 0s, ghost: 0s, cordoned: 0s}\n",
		c.Kubeconfig(t, "admin"), filepath.Join(dir, "store")))
	run := func() *report.Cluster {
		r := audit(t, nil, "run", "-c", config, "-o", "json")
		if r.code != 0 {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		return &r.report(t).Clusters[0]
	}

	day1 := run()
	if f := finding(day1, "node-not-ready", dead); f == nil || f.Devices != 8 {
		t.Fatalf("day 1 does not report the dead node with its 8 cards: %+v", f)
	}

	ctx := context.Background()
	zero := int64(0)
	for _, p := range demo.ClusterC(1).Pods {
		if p.Spec.NodeName == recreated {
			if err := c.Admin.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Admin.CoreV1().Nodes().Delete(ctx, recreated, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	before := names(demo.ClusterC(1))
	day2Objects := demo.ClusterC(2)
	put(t, c, day2Objects, func(name string) bool { return !before[name] || name == "Node/"+recreated })
	day2 := run()
	waterfall(t, day2)
	for _, want := range []struct{ check, name string }{
		{"node-not-ready", dead}, {"node-recreated", recreated}, {"label-drift", recreated}, {"quota-blocked-daemonset", "loongcollector"}, {"quota-blocked-daemonset", "promtail"},
		{"ghost-hold", "inference-5d7b8-xq4vn"}, {"scheduler-takeover", "x-scheduler"}, {"device-metrics", "C"}, {"metrics-api", "C"},
	} {
		if finding(day2, want.check, want.name) == nil {
			t.Errorf("day 2 lacks %s of %s", want.check, want.name)
		}
	}
	if f := finding(day2, "node-recreated", recreated); f != nil && f.Impact.PendingPodsUnblocked != 3 {
		t.Errorf("the label's return would start %d pods, want 3", f.Impact.PendingPodsUnblocked)
	}

	// Nothing repaired: what was lost is still reported, first seen on day 2.
	day3 := run()
	f2, f3 := finding(day2, "label-drift", recreated), finding(day3, "label-drift", recreated)
	if f3 == nil || f3.State != report.StateOngoing || !f3.FirstSeen.Equal(*f2.FirstSeen) {
		t.Errorf("day 3: the lost label is %+v", f3)
	}

	// The label is back and the vendor took the dead node away.
	n, err := c.Admin.CoreV1().Nodes().Get(ctx, recreated, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Labels["node_env"] = "prod"
	if _, err := c.Admin.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{FieldManager: "platform-team"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Admin.CoreV1().Pods("prod").Delete(ctx, "inference-5d7b8-xq4vn", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	if err := c.Admin.CoreV1().Nodes().Delete(ctx, dead, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	day4 := run()
	for check, name := range map[string]string{"node-not-ready": dead, "node-recreated": recreated, "label-drift": recreated} {
		if f := finding(day4, check, name); f == nil || f.State != report.StateResolved {
			t.Errorf("day 4: %s of %s is not resolved: %+v", check, name, f)
		}
	}

	setBy(t, config, filepath.Join(dir, "C.zip"))

	// A dump of it gives what the live run gave.
	from := filepath.Join(dir, "C")
	if r := audit(t, nil, "dump", "-c", config, "--cluster", "C", "--out", from); r.code != 0 {
		t.Fatalf("dump: exit %d: %s", r.code, r.stderr)
	}
	live := audit(t, nil, "run", "-c", config, "--no-store", "-o", "json").report(t).Clusters[0]
	dumped := audit(t, nil, "run", "-c", config, "--from", from, "-o", "json").report(t).Clusters[0]
	if a, b := comparable(t, live), comparable(t, dumped); a != b {
		t.Errorf("a run on the dump differs from the live run:\n%s\n---\n%s", a, b)
	}
}

// setBy: the bundle for the vendor verifies, and its history names who wrote the label again.
func setBy(t *testing.T, config, zip string) {
	t.Helper()
	for _, args := range [][]string{{"evidence", "-c", config, "--cluster", "C", "--out", zip}, {"verify", zip}} {
		if r := audit(t, nil, args...); r.code != 0 {
			t.Fatalf("%s: exit %d: %s%s", args[0], r.code, r.stdout, r.stderr)
		}
	}
	bundle, err := ziplib.OpenReader(zip)
	if err != nil {
		t.Fatal(err)
	}
	defer bundle.Close()
	file, err := bundle.Open("history.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var told struct{ Changes []history.Change }
	if err := json.NewDecoder(file).Decode(&told); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(told.Changes, func(k history.Change) bool {
		return k.Node == recreated && k.Key == "node_env" && k.New != nil && *k.New == "prod"
	})
	if i < 0 || told.Changes[i].SetBy == nil || told.Changes[i].SetBy.Manager != "platform-team" {
		t.Errorf("the bundle does not say who set the label again: %+v", told.Changes)
	}
}

func waterfall(t *testing.T, c *report.Cluster) {
	t.Helper()
	i := slices.IndexFunc(c.Classes, func(k report.Class) bool { return k.Name == "prod" })
	if i < 0 {
		t.Fatalf("no class prod among %d", len(c.Classes))
	}
	k := c.Classes[i]
	lost := map[string]int64{}
	for _, l := range k.Lost {
		lost[l.Reason] = l.Devices
	}
	if k.ApparentFree != 13 || k.Schedulable != 0 || lost["notReady"] != 7 || lost["labelMissing"] != 5 || lost["labelOtherValue"] != 1 {
		t.Errorf("class prod is %d = %d schedulable + %v, want 13 = 0 + 7 notReady + 5 labelMissing + 1 labelOtherValue", k.ApparentFree, k.Schedulable, lost)
	}
}

func names(o demo.Objects) map[string]bool {
	out := map[string]bool{}
	for _, n := range o.Nodes {
		out["Node/"+n.Name] = true
	}
	for _, p := range o.Pods {
		out["Pod/"+p.Namespace+"/"+p.Name] = true
	}
	return out
}

func aliveNodes(o demo.Objects) []string {
	var out []string
	for _, n := range o.Nodes {
		if n.Name != dead {
			out = append(out, n.Name)
		}
	}
	return out
}

// put makes the wanted objects of a scene on the API server.
func put(t *testing.T, c *controlplane.Cluster, o demo.Objects, want func(name string) bool) {
	t.Helper()
	ctx := context.Background()
	for i := range o.Nodes {
		if n := o.Nodes[i].DeepCopy(); want("Node/" + n.Name) {
			n.UID, n.CreationTimestamp = "", metav1.Time{}
			c.Node(t, n)
		}
	}
	uids := map[string]*corev1.Pod{}
	for i := range o.Pods {
		p := o.Pods[i].DeepCopy()
		if !want("Pod/" + p.Namespace + "/" + p.Name) {
			continue
		}
		c.Namespace(t, p.Namespace)
		p.UID, p.CreationTimestamp = "", metav1.Time{}
		uids[p.Namespace+"/"+p.Name] = c.Pod(t, p)
	}
	for i := range o.Events {
		e := o.Events[i].DeepCopy()
		p := uids[e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name]
		if p == nil {
			continue
		}
		e.UID, e.CreationTimestamp, e.InvolvedObject.UID = "", metav1.Time{}, p.UID
		now := metav1.Now()
		e.LastTimestamp = now
		e.FirstTimestamp = metav1.NewTime(now.Add(-14 * 3600e9))
		if _, err := c.Admin.CoreV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	services(t, c)
}

// services makes the exporter's service and the DaemonSets, once.
func services(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	ctx := context.Background()
	c.Namespace(t, "kube-system")
	if _, err := c.Admin.CoreV1().Services("kube-system").Get(ctx, "dcgm-exporter", metav1.GetOptions{}); err == nil {
		return
	}
	_, err := c.Admin.CoreV1().Services("kube-system").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "dcgm-exporter"},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "dcgm-exporter"}, Ports: []corev1.ServicePort{{Port: 9400}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
