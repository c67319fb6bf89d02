package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/report"
	"gpuaudit/test/controlplane"
)

// answer is one recorded answer of a real API server.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// tape is what a real API server answered while the program read it once.
type tape struct {
	mu      sync.Mutex
	answers map[string]answer
}

func key(r *http.Request) string {
	return r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Accept")
}

// record lets the program read a real cluster through a proxy that keeps every answer.
func record(t *testing.T, c *controlplane.Cluster) *tape {
	t.Helper()
	out := &tape{answers: map[string]answer{}}
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
	proxy.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		out.mu.Lock()
		defer out.mu.Unlock()
		out.answers[key(r.Request)] = answer{r.StatusCode, r.Header.Clone(), body}
		return nil
	}
	server := httptest.NewTLSServer(proxy)
	defer server.Close()
	file := kubeconfigFor(t, "recorded", server.URL, nil)
	if got := audit(t, []string{"KUBECONFIG=" + file}, "run", "--no-store", "-o", "json"); got.code != 0 {
		t.Fatalf("recording: exit %d\n%s%s", got.code, got.stderr, got.stdout)
	}
	return out
}

// play answers as recorded. Continue tokens hold for the recorded lists alone,
// so each answer is found by its whole URI.
func (p *tape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	a, ok := p.answers[key(r)]
	p.mu.Unlock()
	if !ok {
		http.Error(w, "not recorded: "+key(r), http.StatusTeapot)
		return
	}
	for name, values := range a.header {
		if name != "Date" && name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body) // the client may be gone
}

func kubeconfigFor(t *testing.T, name, server string, ca []byte) string {
	t.Helper()
	trust := "insecure-skip-tls-verify: true"
	switch {
	case ca != nil:
		trust = "certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca)
	case strings.HasPrefix(server, "http:"):
		trust = ""
	}
	return write(t, filepath.Join(t.TempDir(), name+".yaml"), fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: %s\n    %s\nusers:\n- name: u\n  user: {token: token-of-admin}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\ncurrent-context: c\n", server, trust))
}

// crowd counts the clusters that are being read at the same time.
type crowd struct {
	mu        sync.Mutex
	now, most int
}

// enter is called with a cluster's first request and leave when its last list was answered.
func (c *crowd) enter() { c.mu.Lock(); c.now++; c.most = max(c.most, c.now); c.mu.Unlock() }
func (c *crowd) leave() { c.mu.Lock(); c.now--; c.mu.Unlock() }

// oneCluster is a fake API server over a tape that tells the crowd while requests are under way.
func oneCluster(t *testing.T, p http.Handler, c *crowd) *httptest.Server {
	var mu sync.Mutex
	open := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if open++; open == 1 {
			c.enter()
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			if open--; open == 0 {
				c.leave()
			}
			mu.Unlock()
		}()
		p.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestManyClusters: a hundred clusters answer with the bytes of a real API
// server; five more are broken, each in its own way. Every broken one is its
// own row with its own reason, all others are whole, and never are more read
// at once than the configuration says.
func TestManyClusters(t *testing.T) {
	t.Parallel()
	real := controlplane.Start(t, controlplane.Options{Name: "recorded"})
	fill(t, real)
	recorded := record(t, real)

	var config strings.Builder
	config.WriteString("apiVersion: audit/v1\nparallelism: 16\nclusters:\n")
	add := func(name, kubeconfig, timeout string) {
		fmt.Fprintf(&config, "  - {name: %s, kubeconfig: %q, timeout: %s}\n", name, kubeconfig, timeout)
	}
	var c crowd
	broken := map[string]string{
		"silent":  "no answer within 3s",
		"refuses": "connection refused",
		"slow":    "deadline",
		"cut":     "broke off",
		"expired": "expired",
	}
	add("silent", kubeconfigFor(t, "silent", "https://"+listenAndSay(t), nil), "3s")
	add("refuses", kubeconfigFor(t, "refuses", "https://127.0.0.1:1", nil), "3s")
	add("slow", kubeconfigFor(t, "slow", plain(t, throttled(recorded)), nil), "3s")
	add("cut", kubeconfigFor(t, "cut", plain(t, cutBodies(recorded)), nil), "20s")
	add("expired", kubeconfigFor(t, "expired", expired(t, recorded), []byte(authority)), "3s")
	for i := range 100 {
		s := oneCluster(t, recorded, &c)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		add(fmt.Sprintf("whole-%03d", i), kubeconfigFor(t, fmt.Sprint(i), s.URL, ca), "60s")
	}
	got := audit(t, nil, "run", "-c", write(t, filepath.Join(t.TempDir(), "audit.yaml"), config.String()), "--no-store", "-o", "json")
	if got.code != 3 {
		t.Fatalf("exit %d, want 3 with broken clusters\n%s", got.code, got.stderr)
	}
	r := got.report(t)
	t.Logf("105 clusters: %s, %s of CPU, %d MB at most", got.elapsed.Round(10*time.Millisecond), got.cpu.Round(10*time.Millisecond), got.memory)
	for i := range r.Clusters {
		k := &r.Clusters[i]
		want, bad := broken[k.Name]
		switch {
		case !bad && (k.Status != report.Complete || len(k.Gaps) > 0 || len(k.Nodes) != 3 || len(k.Findings) == 0):
			t.Errorf("%s: %s, %d nodes, gaps %+v", k.Name, k.Status, len(k.Nodes), k.Gaps)
		case bad && k.Status == report.Complete:
			t.Errorf("%s is broken and reported complete", k.Name)
		case bad && !strings.Contains(k.Error+fmt.Sprintf("%+v", k.Gaps), want):
			t.Errorf("%s: its reason does not say %q: %q %+v", k.Name, want, k.Error, k.Gaps)
		}
		if bad {
			t.Logf("%s: %s %s %v", k.Name, k.Status, k.Error, k.Gaps)
		}
	}
	if r.Summary.Clusters != 105 || r.Summary.Complete != 100 {
		t.Errorf("summary %+v, want 100 of 105 complete", r.Summary)
	}
	if c.most > 16 || c.most < 2 {
		t.Errorf("%d clusters were read at once, want several and at most the 16 of the configuration", c.most)
	}
}

// fill makes three nodes with cards, one of them cordoned.
func fill(t *testing.T, c *controlplane.Cluster) {
	size := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("512Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	for i := range 3 {
		now := metav1.Now()
		c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}, Spec: corev1.NodeSpec{Unschedulable: i == 0},
			Status: corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: now, LastTransitionTime: now}}}})
	}
	c.Namespace(t, "prod")
	c.Namespace(t, "kube-node-lease")
}

// listenAndSay accepts connections and never answers.
func listenAndSay(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, conn)
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return l.Addr().String()
}

func plain(t *testing.T, h http.Handler) string {
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// throttled answers lists with a kilobyte a second.
func throttled(p *tape) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for body := rec.Body.Bytes(); len(body) > 0; {
			n := min(100, len(body))
			if _, err := w.Write(body[:n]); err != nil {
				return
			}
			body = body[n:]
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	})
}

// cutBodies breaks off in the middle of every list of pods.
func cutBodies(p *tape) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/pods") {
			p.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()+1000))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
}

// authority is the certificate that signs the expired server's, set by expired.
var authority string

// expired serves with a certificate that ended a day ago.
func expired(t *testing.T, p *tape) string {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s := httptest.NewUnstartedServer(p)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: secret}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
