package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/collect"
	"gpuaudit/audit/report"
	"gpuaudit/cmd/audit/demo"
	"gpuaudit/test/controlplane"
)

// TestRights: under the least role an audit is complete; with any rule's
// resource removed, the right gap appears, no check that needs it is clean and
// the run says that it is incomplete.
func TestRights(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "C", Users: []string{"reader"}})
	put(t, c, demo.ClusterC(2), func(string) bool { return true })
	c.KeepAlive(t, aliveNodes(demo.ClusterC(2))...)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: %q}]\n", c.Kubeconfig(t, "reader")))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "audit"}, Rules: collect.Rules()}
	ctx := context.Background()
	role, err := c.Admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "audit"},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "audit"}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "reader"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run := func() result { return audit(t, nil, "run", "-c", config, "--no-store", "-o", "json") }
	controlplane.Eventually(t, 20e9, "the role is in force", func() bool { return run().code == 0 })
	whole := run().report(t).Clusters[0]
	if whole.Status != report.Complete || len(whole.Gaps) > 0 {
		t.Fatalf("under the least role the audit is %s with gaps %+v", whole.Status, whole.Gaps)
	}
	for _, resource := range []string{"nodes", "pods", "leases", "daemonsets", "events", "resourcequotas", "services", "endpointslices", "namespaces", "deployments"} {
		role.Rules = without(resource)
		if role, err = c.Admin.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var got report.Cluster
		var last result
		controlplane.Eventually(t, 20e9, "the role without "+resource+" is in force", func() bool {
			last = run()
			got = last.report(t).Clusters[0]
			return len(got.Gaps) == 1 && got.Gaps[0].Resource == resource
		})
		g := got.Gaps[0]
		if g.Reason != "forbidden" || !strings.Contains(g.Message, "list "+resource) {
			t.Errorf("%s: the gap says %+v", resource, g)
		}
		for _, o := range got.Checks {
			for _, needs := range g.Checks {
				if o.ID == needs && o.Outcome == report.OutcomeClean {
					t.Errorf("%s: check %s says clean without it", resource, o.ID)
				}
			}
		}
		if partial := got.Status == report.Partial; partial != (last.code == 3) {
			t.Errorf("%s: status %s and exit code %d", resource, got.Status, last.code)
		}
		if resource == "pods" && (got.Devices[0].Free != nil || len(got.Classes) > 0) {
			t.Errorf("without pods free is %v and there are %d classes", *got.Devices[0].Free, len(got.Classes))
		}
	}
}

func without(resource string) []rbacv1.PolicyRule {
	rules := collect.Rules()
	for i := range rules {
		var kept []string
		for _, r := range rules[i].Resources {
			// Metrics are nodes too, of another group.
			if r != resource || (resource == "nodes" && rules[i].APIGroups[0] != "") {
				kept = append(kept, r)
			}
		}
		rules[i].Resources = kept
		if len(kept) == 0 {
			rules[i].Resources = []string{"none"}
		}
	}
	return rules
}

// TestUnreachable: clusters that refuse, and one without credentials, are rows
// of their own beside one that answers.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "good"})
	c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}}})
	dir := t.TempDir()
	bad := write(t, filepath.Join(dir, "bad.yaml"), "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: secret-canary}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n")
	wrong := write(t, filepath.Join(dir, "wrong.yaml"), fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: secret-canary}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n", c.URL))
	plugin := write(t, filepath.Join(dir, "plugin.yaml"), fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ['600']}}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n", c.URL))
	config := write(t, filepath.Join(dir, "audit.yaml"), fmt.Sprintf("apiVersion: audit/v1\nclusters:\n- {name: good, kubeconfig: %q}\n- {name: refused, kubeconfig: %q}\n- {name: wrong, kubeconfig: %q}\n- {name: plugin, kubeconfig: %q, timeout: 2s}\n", c.Kubeconfig(t, "admin"), bad, wrong, plugin))
	r := audit(t, nil, "run", "-c", config, "--no-store", "-o", "json")
	if r.code != 3 {
		t.Errorf("exit %d, want 3", r.code)
	}
	if strings.Contains(r.stdout+r.stderr, "secret-canary") {
		t.Error("a token got into the output")
	}
	want := map[string]string{"good": "", "refused": "unreachable", "wrong": "credentials", "plugin": "credentials"}
	for _, cl := range r.report(t).Clusters {
		reason := ""
		if cl.Status == report.Unreachable {
			reason = cl.Gaps[0].Reason
		}
		if reason != want[cl.Name] {
			t.Errorf("cluster %s: %s, %q (%s), want %q", cl.Name, cl.Status, reason, cl.Error, want[cl.Name])
		}
	}
}
