package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

var kueueFolder = sync.OnceValues(func() (string, error) { return build(filepath.Join("tools", "kueue", "build.sh")) })

// StartKueue installs Kueue's CRDs and runs its controller, without its
// webhooks: a test sets itself what they would default (suspend, gates).
func (c *Cluster) StartKueue(t testing.TB) {
	t.Helper()
	folder, err := kueueFolder()
	if err != nil {
		t.Fatal(err)
	}
	crds, err := filepath.Glob(filepath.Join(folder, "crd", "*.yaml"))
	if err != nil || len(crds) < 5 {
		t.Fatalf("kueue's CRDs in %s: %v (%v)", folder, crds, err)
	}
	for _, file := range crds {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(t, string(body))
	}
	c.Namespace(t, "kueue-system")
	ports := freePorts(t, 3)
	c.certificate(t, c.file("kueue-certs"))
	config := fmt.Sprintf(`apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "127.0.0.1:%d"}
webhook: {host: 127.0.0.1, port: %d, certDir: %q}
internalCertManagement: {enable: false}
leaderElection: {leaderElect: false}
integrations: {frameworks: [batch/job, pod]}
`, ports[0], ports[1], ports[2], c.file("kueue-certs"))
	write(t, c.file("kueue.yaml"), []byte(config))
	Eventually(t, 60*time.Second, "kueue's kinds are served", func() bool {
		lists, err := c.Admin.Discovery().ServerResourcesForGroupVersion("kueue.x-k8s.io/v1beta2")
		kinds := map[string]bool{}
		if err == nil {
			for _, r := range lists.APIResources {
				kinds[r.Kind] = true
			}
		}
		return len(kinds) >= len(crds)
	})
	c.environment = append(os.Environ(), "KUEUE_METRICS_CERTS="+c.file("kueue-certs"))
	c.process(t, filepath.Join(folder, "kueue"), "--config="+c.file("kueue.yaml"), "--kubeconfig="+c.Direct(t), "--feature-gates=VisibilityOnDemand=false")
}

// certificate makes a self-signed one for a server on loopback.
func (c *Cluster) certificate(t testing.TB, dir string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}

// Apply creates the objects of a YAML stream, waiting for kinds that were
// registered a moment ago.
func (c *Cluster) Apply(t testing.TB, documents string) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq("\n"+documents, "\n---") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		Eventually(t, 30*time.Second, fmt.Sprintf("%s %s is created", u.GetKind(), u.GetName()), func() bool {
			mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: u.GroupVersionKind().Group, Kind: u.GetKind()}, u.GroupVersionKind().Version)
			if err != nil {
				return false
			}
			resource := client.Resource(mapping.Resource)
			create := resource.Create
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				create = resource.Namespace(u.GetNamespace()).Create
			}
			_, err = create(context.Background(), &u, metav1.CreateOptions{})
			if err != nil {
				t.Logf("%s %s: %v", u.GetKind(), u.GetName(), err)
			}
			return err == nil
		})
	}
}
