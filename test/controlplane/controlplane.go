// Package controlplane runs a real control plane on loopback for tests: etcd,
// kube-apiserver and, when asked for, kube-scheduler and
// kube-controller-manager. There are no kubelets: nodes are objects that a
// test makes, and a bound pod stays Pending until somebody says otherwise.
package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options of a control plane.
type Options struct {
	// Name of the kubeconfig context.
	Name              string
	Scheduler         bool
	ControllerManager bool
	// Controllers is the controller manager's --controllers, "" for its default.
	Controllers string
	// Users are further users by name, each with a token and no rights.
	Users []string
	// APIServerFlags are added to the API server's.
	APIServerFlags []string
}

// Cluster is a running control plane.
type Cluster struct {
	Name   string
	URL    string
	Admin  kubernetes.Interface
	Config *rest.Config
	// Recorder keeps what came through kubeconfigs made by Kubeconfig.
	Recorder *Recorder
	dir      string
	ca       []byte
	users    []string
	// environment of the processes that are started from now on; nil is the test's own.
	environment []string
}

var binaries = sync.OnceValues(func() (string, error) {
	return build("build.sh")
})

// build runs a script of this module that builds programs and prints their folder.
func build(script string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find this module: %w", err)
	}
	cmd := exec.Command(filepath.Join(strings.TrimSpace(string(root)), script))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", script, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Start starts a control plane that ends with the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	if o.Name == "" {
		o.Name = "test"
	}
	c := &Cluster{Name: o.Name, dir: t.TempDir(), users: append([]string{"admin"}, o.Users...)}
	ports := freePorts(t, 5)
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	c.process(t, filepath.Join(bin, "etcd"), "--data-dir", filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	c.URL = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	c.secrets(t)
	c.process(t, filepath.Join(bin, "kube-apiserver"), append([]string{"--etcd-servers=" + client, "--service-account-issuer=https://kubernetes.test",
		"--service-account-key-file=" + c.file("sa.key"), "--service-account-signing-key-file=" + c.file("sa.key"), "--cert-dir=" + c.file("certs"),
		fmt.Sprintf("--secure-port=%d", ports[2]), "--bind-address=127.0.0.1", "--token-auth-file=" + c.file("tokens"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount"}, o.APIServerFlags...)...)
	c.ready(t)
	c.Config = &rest.Config{Host: c.URL, BearerToken: token("admin"), TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
	if c.Admin, err = kubernetes.NewForConfig(c.Config); err != nil {
		t.Fatal(err)
	}
	c.Recorder = record(t, c.URL)
	kubeconfig := c.Direct(t)
	auth := []string{"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1"}
	if o.Scheduler {
		c.process(t, filepath.Join(bin, "kube-scheduler"), append(auth, fmt.Sprintf("--secure-port=%d", ports[3]))...)
	}
	if o.ControllerManager {
		args := append(auth, fmt.Sprintf("--secure-port=%d", ports[4]), "--node-monitor-grace-period=87600h", "--service-account-private-key-file="+c.file("sa.key"))
		if o.Controllers != "" {
			args = append(args, "--controllers="+o.Controllers)
		}
		c.process(t, filepath.Join(bin, "kube-controller-manager"), args...)
	}
	return c
}

// StartScheduler runs one more kube-scheduler, for pods that name it.
func (c *Cluster) StartScheduler(t testing.TB, name string) {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := c.Direct(t)
	config := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q}\nprofiles: [{schedulerName: %s}]\n", kubeconfig, name)
	write(t, c.file(name+".yaml"), []byte(config))
	c.process(t, filepath.Join(bin, "kube-scheduler"), "--config="+c.file(name+".yaml"), "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", freePorts(t, 1)[0]))
}

func token(user string) string { return "token-of-" + user }

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// secrets makes the service account key and the users' tokens.
func (c *Cluster) secrets(t testing.TB) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	body := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	write(t, c.file("sa.key"), body)
	var tokens strings.Builder
	for _, u := range c.users {
		group := ""
		if u == "admin" {
			group = ",system:masters"
		}
		fmt.Fprintf(&tokens, "%s,%s,%s%s\n", token(u), u, u, group)
	}
	write(t, c.file("tokens"), []byte(tokens.String()))
}

func write(t testing.TB, file string, body []byte) {
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Kubeconfig writes a kubeconfig for the audit with one context, named as the
// cluster, for a user. What is sent with it goes through the recorder, which
// fails the test when it is more than the audit may send.
func (c *Cluster) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	return c.kubeconfig(t, c.Recorder.server.URL, user, "kubeconfig-"+user)
}

// Direct is the controllers' own kubeconfig, past the recorder.
func (c *Cluster) Direct(t testing.TB) string {
	t.Helper()
	return c.kubeconfig(t, c.URL, "admin", "kubeconfig")
}

func (c *Cluster) kubeconfig(t testing.TB, server, user, name string) string {
	t.Helper()
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[c.Name] = &clientcmdapi.Cluster{Server: server, InsecureSkipTLSVerify: true}
	cfg.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token(user)}
	cfg.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: user}
	cfg.CurrentContext = c.Name
	file := c.file(name)
	if err := clientcmd.WriteToFile(*cfg, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// process starts a program that is killed when the test ends, and with the
// test's own process. Its log's end is shown when the test fails.
func (c *Cluster) process(t testing.TB, path string, args ...string) {
	t.Helper()
	log, err := os.Create(c.file(filepath.Base(path) + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, c.environment
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		// The death signal follows the thread that starts the process, so that
		// thread has to live as long as the process.
		runtime.LockOSThread()
		defer close(done)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait() // it is killed at the end
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", filepath.Base(path), err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		log.Close()
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(path), tail(log.Name()))
		}
	})
}

func tail(file string) string {
	body, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(body[max(0, len(body)-2000):])
}

func (c *Cluster) ready(t testing.TB) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 2 * time.Second}
	Eventually(t, 90*time.Second, "the API server is ready", func() bool {
		r, err := http.NewRequest(http.MethodGet, c.URL+"/readyz", nil)
		if err != nil {
			return false
		}
		r.Header.Set("Authorization", "Bearer "+token("admin"))
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// Eventually polls until something is so, or fails the test at the deadline.
func Eventually(t testing.TB, within time.Duration, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

func freePorts(t testing.TB, n int) []int {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}
