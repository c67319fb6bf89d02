package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gpuaudit/audit/mask"
)

// Target is one cluster to read.
type Target struct {
	Name string
	// Kubeconfig is a file, or several joined as KUBECONFIG joins them; empty
	// means the default rules of kubectl.
	Kubeconfig string
	Context    string
	InCluster  bool
	// Timeout is the deadline for the whole cluster.
	Timeout time.Duration
	// Namespaces are the only ones that may be read; empty means all.
	Namespaces []string
}

// client is a connection to one cluster.
type client struct {
	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	guard   *guard
	secrets *mask.Words
}

// credentialsError is about who we are, not about the network.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// connect builds the client of a target; it sends nothing to the cluster, but
// may run a credentials plugin, under the context's deadline.
func connect(ctx context.Context, t Target) (*client, error) {
	secrets := &mask.Words{}
	cfg, err := restConfig(t, secrets)
	if err != nil {
		return nil, &credentialsError{errors.New(secrets.Text(err.Error()))}
	}
	if cfg.ExecProvider != nil {
		if err := runPlugin(ctx, cfg); err != nil {
			return nil, err
		}
	}
	c := &client{config: cfg, guard: &guard{secrets: secrets}, secrets: secrets}
	secrets.Add(cfg.BearerToken, cfg.Password, string(cfg.KeyData))
	cfg.QPS, cfg.Burst = -1, -1 // the server says when it is too much; we do not slow ourselves down
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.UserAgent = "gpu-audit (read-only)"
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.guard.next = next
		return c.guard
	})
	typed := rest.CopyConfig(cfg)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	if c.typed, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, &credentialsError{errors.New(secrets.Text(err.Error()))}
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, &credentialsError{errors.New(secrets.Text(err.Error()))}
	}
	return c, nil
}

// restConfig reads the kubeconfig. Nothing is ever asked of a person, and an
// empty server is refused: the library would fall back to localhost. What an
// error must not show is put into secrets.
func restConfig(t Target, secrets *mask.Words) (*rest.Config, error) {
	if t.InCluster {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("in-cluster credentials: %w; run inside a pod with a service account, or name a kubeconfig", err)
		}
		return cfg, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if t.Kubeconfig != "" {
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: strings.Split(t.Kubeconfig, string(os.PathListSeparator))}
		for _, file := range rules.Precedence {
			if _, err := os.Stat(file); err != nil {
				return nil, fmt.Errorf("kubeconfig %q: %w", file, errors.Unwrap(err))
			}
		}
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	keep(raw, secrets)
	if len(raw.Contexts) == 0 {
		return nil, noContexts(rules.GetLoadingPrecedence())
	}
	name := t.Context
	if name == "" {
		name = raw.CurrentContext
	}
	if err := checkContext(raw, name); err != nil {
		return nil, err
	}
	for _, user := range raw.AuthInfos {
		if user.Exec != nil {
			user.Exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
		}
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig context %q: %w", name, err)
	}
	return cfg, nil
}

// keep notes the secrets of a kubeconfig, and of the environment's proxies.
func keep(raw *clientcmdapi.Config, secrets *mask.Words) {
	for _, user := range raw.AuthInfos {
		secrets.Add(user.Token, user.Password, string(user.ClientKeyData))
	}
	for _, cluster := range raw.Clusters {
		secrets.AddURL(cluster.Server)
		secrets.AddURL(cluster.ProxyURL)
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		secrets.AddURL(os.Getenv(name))
	}
}

// noContexts says which files were looked at.
func noContexts(files []string) error {
	var looked []string
	for _, file := range files {
		switch _, err := os.Stat(file); {
		case err != nil:
			looked = append(looked, fmt.Sprintf("%q: %v", file, errors.Unwrap(err)))
		default:
			looked = append(looked, fmt.Sprintf("%q: no contexts in it", file))
		}
	}
	return fmt.Errorf("there is no kubeconfig with a context (%s); name one with KUBECONFIG, or in the configuration", strings.Join(looked, ", "))
}

func checkContext(raw *clientcmdapi.Config, name string) error {
	var names []string
	for n := range raw.Contexts {
		names = append(names, n)
	}
	context := raw.Contexts[name]
	switch {
	case name == "":
		return errors.New("the kubeconfig has no current context; choose one with kubectl config use-context, or name one")
	case context == nil:
		return fmt.Errorf("the kubeconfig has no context %q; it has %s", name, strings.Join(sortedStrings(names), ", "))
	}
	cluster := raw.Clusters[context.Cluster]
	if cluster == nil || cluster.Server == "" {
		return fmt.Errorf("kubeconfig context %q: its cluster %q has no server; an empty one would mean localhost and is refused", name, context.Cluster)
	}
	if _, err := url.Parse(cluster.Server); err != nil {
		return fmt.Errorf("kubeconfig context %q: its server is no URL", name)
	}
	return nil
}

// guard is the transport of every request: it lets only reading through,
// counts, takes the server's time, and notes the secrets that are sent, which a
// careless server may repeat. An answer may be of maxAnswer bytes at most.
type guard struct {
	next     http.RoundTripper
	secrets  *mask.Words
	requests atomic.Int64
	mu       sync.Mutex
	date     time.Time
	skew     time.Duration
	told     map[string]int // to wait: answers 429 by collection since it last gave one
}

// RoundTrip sends GET and HEAD, and reviews of our own rights; all else is refused here.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	review := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !review {
		return nil, fmt.Errorf("refused to send %s %s: this program only reads", r.Method, r.URL.Path)
	}
	if r.URL.Query().Has("watch") || strings.Contains(r.URL.Path, "/secrets") || strings.Contains(r.URL.Path, "/configmaps") {
		return nil, fmt.Errorf("refused to send %s %s: this is never read", r.Method, r.URL.Path)
	}
	if g.secrets != nil {
		g.secrets.AddHeader(r.Header)
	}
	g.requests.Add(1)
	response, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 && to.Host != r.URL.Host {
		_ = response.Body.Close() // what it says beside is not read
		return nil, &net.OpError{Op: "redirect", Err: errors.New("the server sends on to another host, which is not followed: credentials would go there; put the host itself into the kubeconfig")}
	}
	g.note(r.URL.Path, response.StatusCode)
	response.Body = &bounded{ReadCloser: response.Body, left: maxAnswer}
	if t, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		g.mu.Lock()
		if g.date.IsZero() {
			g.date, g.skew = t.UTC(), time.Since(t)
		}
		g.mu.Unlock()
	}
	return response, nil
}

// note counts how often a collection's reader was told to wait.
func (g *guard) note(path string, code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch key := collection(path); {
	case code != http.StatusTooManyRequests:
		delete(g.told, key)
	case g.told == nil:
		g.told = map[string]int{key: 1}
	default:
		g.told[key]++
	}
}

// toldToWait is how often the last tries to read a collection were answered with 429.
func (g *guard) toldToWait(r resource) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.told[r.group+"/"+r.plural]
}

// collection gives group/plural of a list's path: /api/v1/pods, /apis/apps/v1/namespaces/x/daemonsets.
func collection(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	if parts[0] == "apis" && len(parts) > 1 {
		group = parts[1]
	}
	return group + "/" + parts[len(parts)-1]
}

// serverTime is the server's Date of the first answer; the local clock's where it had none.
func (g *guard) serverTime() (time.Time, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.date.IsZero() {
		return time.Now().UTC().Truncate(time.Second), 0
	}
	return g.date, g.skew
}

// Contexts lists the contexts of a kubeconfig and the current one; none at all is an error.
func Contexts(kubeconfig string) (names []string, current string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if kubeconfig != "" {
		rules.ExplicitPath = kubeconfig
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	if len(raw.Contexts) == 0 {
		return nil, "", noContexts(rules.GetLoadingPrecedence())
	}
	for n := range raw.Contexts {
		names = append(names, n)
	}
	return sortedStrings(names), raw.CurrentContext, nil
}

// redact takes our own secrets out of a message.
func (c *client) redact(s string) string {
	if c != nil && c.secrets != nil {
		return c.secrets.Text(s)
	}
	return s
}

// maxAnswer bounds one unpacked answer: a page of 500 objects, each as large as
// an API server takes, is not much more, and a usual one is a hundredth.
const maxAnswer = 512 << 20

// bounded fails a body that is longer than it may be.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes: refused", int64(maxAnswer))
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
