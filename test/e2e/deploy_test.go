package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"gpuaudit/audit/collect"
	"gpuaudit/test/controlplane"
)

// TestManifests applies every manifest to a real API server with strict field
// validation, and holds them to what they promise.
func TestManifests(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t, controlplane.Options{Name: "deploy"})
	c.Namespace(t, "audit")
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../deploy/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("deploy holds %v (%v)", files, err)
	}
	plurals := map[string]string{"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "ConfigMap": "configmaps", "CronJob": "cronjobs", "Deployment": "deployments", "Job": "jobs"}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range bytes.Split(body, []byte("\n---\n")) {
			raw, err := yaml.YAMLToJSONStrict(doc)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			var u unstructured.Unstructured
			if err := json.Unmarshal(raw, &u); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
			if err != nil || plurals[u.GetKind()] == "" {
				t.Fatalf("%s: kind %q (%v)", file, u.GetKind(), err)
			}
			if u.GetKind() == "Namespace" {
				continue // is there
			}
			resource := client.Resource(gv.WithResource(plurals[u.GetKind()]))
			create := resource.Create
			if ns := u.GetNamespace(); ns != "" {
				create = resource.Namespace(ns).Create
			}
			if _, err := create(context.Background(), &u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
				t.Errorf("%s: %s: %v", file, u.GetKind(), err)
			}
			promises(t, file, u.GetKind(), raw)
		}
	}
}

func promises(t *testing.T, file, kind string, raw []byte) {
	t.Helper()
	switch kind {
	case "ClusterRole":
		var role rbacv1.ClusterRole
		if err := json.Unmarshal(raw, &role); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(role.Rules, collect.Rules()) {
			t.Errorf("%s: the role is not what the program reads:\n%+v\nwant\n%+v", file, role.Rules, collect.Rules())
		}
	case "CronJob":
		var job batchv1.CronJob
		if err := json.Unmarshal(raw, &job); err != nil {
			t.Fatal(err)
		}
		if job.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
			t.Errorf("%s: concurrencyPolicy is %s", file, job.Spec.ConcurrencyPolicy)
		}
		hardened(t, file, job.Spec.JobTemplate.Spec.Template.Spec)
	}
}

func hardened(t *testing.T, file string, spec corev1.PodSpec) {
	t.Helper()
	if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		t.Errorf("%s: may run as root", file)
	}
	for _, c := range spec.Containers {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: container %s is not hardened, or has no memory limit", file, c.Name)
		}
	}
}
