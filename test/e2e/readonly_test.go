package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/collect"
	"gpuaudit/cmd/audit/demo"
	"gpuaudit/test/controlplane"
)

// foreign are the kinds that other projects bring, as namespaced or not. Their
// schemas are open: only that they are served matters here.
var foreign = []struct {
	group, version, plural, kind string
	namespaced                   bool
}{
	{"metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", false},
	{"kueue.x-k8s.io", "v1beta1", "workloads", "Workload", true},
	{"kueue.x-k8s.io", "v1beta1", "clusterqueues", "ClusterQueue", false},
	{"kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue", true},
	{"scheduling.volcano.sh", "v1beta1", "queues", "Queue", false},
	{"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", true},
	{"scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota", true},
	{"scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup", true},
}

// everyKind makes the API server serve every kind that the audit knows.
func everyKind(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	for _, k := range foreign {
		scope := "Cluster"
		if k.namespaced {
			scope = "Namespaced"
		}
		c.Apply(t, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[3]s.%[1]s
  annotations: {api-approved.kubernetes.io: "unapproved, a test"}
spec:
  group: %[1]s
  names: {plural: %[3]s, kind: %[4]s, singular: %[5]s, listKind: %[4]sList}
  scope: %[6]s
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.group, k.version, k.plural, k.kind, strings.ToLower(k.kind), scope))
	}
	controlplane.Eventually(t, 60*time.Second, "every kind is served", func() bool {
		for _, k := range foreign {
			lists, err := c.Admin.Discovery().ServerResourcesForGroupVersion(k.group + "/" + k.version)
			if err != nil || !slices.ContainsFunc(lists.APIResources, func(r metav1.APIResource) bool { return r.Name == k.plural }) {
				return false
			}
		}
		return true
	})
}

// TestOnlyReads runs every command that speaks to a cluster under the least
// role: what they send is a list or a get, in the doctor a review of our own
// rights too, and together they use each verb on each kind that the role
// grants. The recorder itself refuses everything else, in every other test too.
func TestOnlyReads(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "C", Users: []string{"reader"}})
	put(t, c, demo.ClusterC(2), func(string) bool { return true })
	everyKind(t, c)
	c.KeepAlive(t, aliveNodes(demo.ClusterC(2))...)
	c.Pod(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "prod"}, Spec: corev1.PodSpec{NodeName: "no-such-node", Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
	grant(t, c, "reader")
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: %q}]\nstore: {url: %q}\nschedule: [{cron: '@every 1s', post: false}]\nlisten: 127.0.0.1:0\n",
		c.Kubeconfig(t, "reader"), filepath.Join(dir, "store")))
	controlplane.Eventually(t, 20*time.Second, "the role is in force", func() bool { return audit(t, nil, "run", "-c", config, "--no-store", "-o", "json").code == 0 })
	c.Recorder.Forget()

	used := map[string]bool{}
	sent := func(what string, post, any bool) {
		t.Helper()
		list := c.Recorder.Forget()
		if any != (len(list) > 0) {
			t.Errorf("%s sent %d requests", what, len(list))
		}
		for _, q := range list {
			if why := controlplane.Forbidden(q); why != "" {
				t.Errorf("%s sent %s %s: %s", what, q.Method, q.Path, why)
			}
			if q.Method == http.MethodPost && !post {
				t.Errorf("%s sent %s %s, which is the doctor's alone", what, q.Method, q.Path)
			}
			if q.Resource != "" && q.Method == http.MethodGet {
				used[q.Verb+" "+q.Resource+"."+q.Group] = true
			}
		}
	}
	run := func(code int, args ...string) {
		t.Helper()
		if r := audit(t, nil, args...); r.code != code {
			t.Errorf("%s: exit %d, want %d: %s%s", args[0], r.code, code, r.stdout, r.stderr)
		}
	}
	run(0, "run", "-c", config, "-o", "json")
	sent("run", false, true)
	run(0, "dump", "-c", config, "--cluster", "C", "--out", filepath.Join(dir, "dump"))
	sent("dump", false, true)
	scheduleOnce(t, config, filepath.Join(dir, "store"))
	sent("schedule", false, true)
	run(0, "doctor", "-c", config)
	sent("doctor", true, true)
	// What only reads the store sends nothing.
	run(0, "history", "-c", config, "--cluster", "C")
	run(0, "reports", "list", "-c", config)
	run(0, "evidence", "-c", config, "--cluster", "C", "--out", filepath.Join(dir, "e.zip"))
	sent("history, reports and evidence", false, false)

	granted := map[string]bool{}
	for _, rule := range collect.Rules() {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				granted[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	if !maps.Equal(granted, used) {
		t.Errorf("the role grants\n%q\nand what is used is\n%q", slices.Sorted(maps.Keys(granted)), slices.Sorted(maps.Keys(used)))
	}
}

// grant binds the least role to a user.
func grant(t *testing.T, c *controlplane.Cluster, user string) {
	t.Helper()
	ctx := context.Background()
	if _, err := c.Admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "audit"}, Rules: collect.Rules()}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "audit"},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "audit"}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: user}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// scheduleOnce runs the loop until it has kept one more snapshot.
func scheduleOnce(t *testing.T, config, store string) {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	kept := func() int {
		files, err := filepath.Glob(filepath.Join(store, "clusters", "C", "snapshots", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	before := kept()
	cmd := exec.Command(bin, "schedule", "-c", config)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 60*time.Second, "the loop has audited", func() bool { return kept() > before })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("schedule: %v\n%s", err, out.String())
	}
}
