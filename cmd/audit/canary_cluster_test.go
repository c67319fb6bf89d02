package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no: %%s","code":%d}`

// workloads answers as an API server whose objects hold secrets where objects do.
func (c *canaries) workloads() http.Handler {
	named := func(name string) string {
		return fmt.Sprintf(`"metadata":{"name":%q,"namespace":"prod","uid":"u-%s","creationTimestamp":"2026-06-01T08:00:00Z","annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q,"vault.example.com/token":%q}}`,
			name, name, c.plant("applied configuration"), c.plant("annotation"))
	}
	container := fmt.Sprintf(`{"name":"c","image":"i","command":["sh",%q],"args":["--password=%s"],"env":[{"name":"PASSWORD","value":%q}],"lifecycle":{"preStop":{"exec":{"command":[%q]}}},`+
		`"livenessProbe":{"httpGet":{"port":80,"httpHeaders":[{"name":"Authorization","value":%q}]}},"resources":{"requests":{"nvidia.com/gpu":"1"}}}`,
		c.plant("command"), c.plant("argument"), c.plant("environment"), c.plant("hook"), c.plant("probe header"))
	spec := fmt.Sprintf(`{"nodeSelector":{"env":"prod"},"containers":[%[1]s],"initContainers":[%[1]s],"hostAliases":[{"ip":"10.0.0.1","hostnames":[%[2]q]}],`+
		`"volumes":[{"name":"v","csi":{"driver":"d","volumeAttributes":{"password":%[3]q}}},{"name":"w","flexVolume":{"driver":"d","options":{"key":%[3]q}}},{"name":"x","iscsi":{"targetPortal":%[3]q,"iqn":"q","lun":1}}]}`,
		container, c.plant("host alias"), c.plant("volume"))
	failed := fmt.Sprintf(`{"exitCode":1,"reason":"Error","message":"log: %s","finishedAt":"2026-06-01T08:10:00Z"}`, c.plant("termination message"))
	status := func(phase string) string {
		return fmt.Sprintf(`"status":{"phase":%q,"startTime":"2026-06-01T08:00:00Z","initContainerStatuses":[{"name":"c","ready":false,"restartCount":9,"image":"i","imageID":"","state":{"terminated":%[2]s},"lastState":{"terminated":%[2]s}}]}`, phase, failed)
	}
	onNode := strings.Replace(spec, `{"nodeSelector"`, `{"nodeName":"n1","nodeSelector"`, 1)
	pods := []string{fmt.Sprintf(`{%s,"spec":%s,%s}`, named("stuck"), onNode, status("Pending")), fmt.Sprintf(`{%s,"spec":%s,"status":{"phase":"Pending"}}`, named("waits"), spec)}
	template := fmt.Sprintf(`{%s,"spec":{"selector":{},"schedule":"@daily","template":{%[1]s,"spec":%[2]s},"jobTemplate":{%[1]s,"spec":{"template":{%[1]s,"spec":%[2]s}}}}}`, named("w"), spec)
	node := fmt.Sprintf(`{%s,"status":{"capacity":{"nvidia.com/gpu":"8","pods":"110"},"allocatable":{"nvidia.com/gpu":"8","pods":"110"},"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-05-01T08:00:00Z"}]}}`, strings.Replace(named("n1"), `"namespace":"prod",`, "", 1))
	items := map[string]string{"nodes": node, "pods": strings.Join(pods, ","), "daemonsets": template, "deployments": template, "statefulsets": template, "jobs": template, "cronjobs": template,
		"services": fmt.Sprintf(`{%s,"spec":{"externalName":"s"}}`, named("s")), "resourcequotas": fmt.Sprintf(`{%s}`, named("q")), "namespaces": `{"metadata":{"name":"kube-system","uid":"u"}}`}
	kinds := map[string]string{"nodes": "Node", "pods": "Pod", "daemonsets": "DaemonSet", "deployments": "Deployment", "statefulsets": "StatefulSet", "jobs": "Job", "cronjobs": "CronJob", "services": "Service",
		"resourcequotas": "ResourceQuota", "namespaces": "Namespace", "leases": "Lease", "events": "Event", "endpointslices": "EndpointSlice", "priorityclasses": "PriorityClass", "runtimeclasses": "RuntimeClass"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		parts := strings.Split(r.URL.Path, "/")
		kind := kinds[parts[len(parts)-1]]
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.36.0"}`)
		case r.URL.Path == "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}`)
		case r.URL.Path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case kind == "":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		default:
			version := strings.Join(parts[2:len(parts)-1], "/")
			if i := strings.Index(version, "/namespaces"); i >= 0 {
				version = version[:i]
			}
			fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, kind, version, items[parts[len(parts)-1]])
		}
	})
}

// quiet is a server on loopback that does not log.
func quiet(t *testing.T, tls bool, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// servers are API servers, by what they do to whoever asks.
func (c *canaries) servers() map[string]string {
	t := c.t
	moved := quiet(t, true, echo(http.StatusForbidden, "text/html", "<html>%s</html>"))
	return map[string]string{
		"works":      quiet(t, true, c.workloads()).URL,
		"status 401": quiet(t, true, echo(401, "application/json", fmt.Sprintf(refusal, "Unauthorized", 401))).URL,
		"status 403": quiet(t, true, echo(403, "application/json", fmt.Sprintf(refusal, "Forbidden", 403))).URL,
		"status 500": quiet(t, true, echo(500, "application/json", fmt.Sprintf(refusal, "InternalError", 500))).URL,
		"page 401":   quiet(t, true, echo(401, "text/html", "<html>%s</html>")).URL,
		"page 502":   quiet(t, true, echo(502, "text/plain", "%s")).URL,
		"garbage":    quiet(t, true, echo(200, "application/json", "%s")).URL,
		"moved": quiet(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, moved.URL+r.URL.Path, http.StatusFound)
		})).URL,
		"plain http":  "https" + strings.TrimPrefix(quiet(t, false, echo(400, "text/plain", "%s")).URL, "http"),
		"refused":     "https://127.0.0.1:1",
		"no such dns": "https://gone.invalid",
	}
}

// keyPair makes a client certificate and its key, which is planted.
func (c *canaries) keyPair() (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "u"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	body := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
	c.list["client key"] = strings.Split(string(body), "\n")[1]
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), base64.StdEncoding.EncodeToString(body)
}

// users are credentials of a kubeconfig, by kind, in YAML.
func (c *canaries) users() map[string]string {
	cert, key := c.keyPair()
	plugin := func(name, body string) string {
		return fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, args: [%q], env: [{name: SECRET, value: %q}], interactiveMode: Never}}",
			c.file("plugin-"+name, "#!/bin/sh\n"+body+"\n"), "--secret="+c.plant("plugin's argument"), c.plant("plugin's environment"))
	}
	prints := c.plant("plugin's output")
	return map[string]string{
		"token":          fmt.Sprintf("{token: %q}", c.plant("token")),
		"token file":     fmt.Sprintf("{tokenFile: %q}", c.file("token", c.plant("token of a file")+"\n")),
		"password":       fmt.Sprintf("{username: u, password: %q}", c.plant("password")),
		"key":            fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}", cert, key),
		"broken key":     fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}", cert, base64.StdEncoding.EncodeToString([]byte("-----BEGIN EC PRIVATE KEY-----\n"+c.plant("broken key")))),
		"no base64":      fmt.Sprintf("{client-certificate-data: %s, client-key-data: %q}", cert, "%"+c.plant("key that is no base64")),
		"plugin":         plugin("good", fmt.Sprintf(`echo '{"status":{"token":"%s"}}'`, c.plant("plugin's token"))),
		"plugin fails":   plugin("fails", "echo "+prints+"; echo "+prints+" >&2; exit 1"),
		"plugin babbles": plugin("babbles", "echo "+prints),
		"plugin's key":   plugin("key", fmt.Sprintf(`echo '{"status":{"clientCertificateData":"x","clientKeyData":"%s"}}'`, prints)),
		"two at once":    fmt.Sprintf("{token: %q, username: u, password: %q}", c.plant("token"), c.plant("password")),
	}
}

// kubeconfigs writes one for each server and each kind of credentials, and some
// that are broken themselves. It gives the files by cluster name.
func (c *canaries) kubeconfigs() map[string]string {
	out := map[string]string{}
	add := func(name, cluster, user string) {
		name = strings.NewReplacer(" ", "-", "'", "").Replace(name)
		out[name] = c.file(name+".yaml", fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: %s}]\nusers: [{name: u, user: %s}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n", cluster, user))
	}
	servers, users := c.servers(), c.users()
	for server, url := range servers {
		for kind, user := range users {
			if kind != "token" && kind != "password" && server != "works" && server != "page 401" {
				continue // what fails before anything is sent fails alike everywhere
			}
			add(kind+" "+server, fmt.Sprintf("{server: %q, insecure-skip-tls-verify: true}", url), user)
		}
	}
	user := users["token"]
	add("unknown authority", fmt.Sprintf("{server: %q}", servers["works"]), user)
	proxyPassword := userinfo(c.plant("proxy's password"))
	for name, code := range map[string]int{"proxy 407": 407, "proxy 502": 502, "proxy 200": 200} {
		proxy := quiet(c.t, false, echo(code, "text/plain", "%s"))
		add(name, fmt.Sprintf("{server: %q, insecure-skip-tls-verify: true, proxy-url: %q}", servers["works"], strings.Replace(proxy.URL, "://", "://"+proxyPassword+"@", 1)), user)
	}
	for name, at := range map[string]string{"proxy refused": "127.0.0.1:1", "proxy no port": "127.0.0.1:x", "proxy blank": "a b", "proxy scheme": "", "proxy no dns": "gone.invalid"} {
		scheme := "http://"
		if at == "" {
			scheme, at = "ftp://", "h"
		}
		add(name, fmt.Sprintf("{server: %q, insecure-skip-tls-verify: true, proxy-url: %q}", servers["works"], scheme+proxyPassword+"@"+at), user)
	}
	server := userinfo(c.plant("server's password"))
	add("password in server", fmt.Sprintf("{server: %q, insecure-skip-tls-verify: true}", strings.Replace(servers["page 401"], "://", "://"+server+"@", 1)), user)
	add("password in dead server", fmt.Sprintf("{server: %q}", "https://"+server+"@127.0.0.1:1"), user)
	add("password in no URL", fmt.Sprintf("{server: %q}", "https://"+server+"@127.0.0.1:x"), user)
	add("password in query", fmt.Sprintf("{server: %q}", "https://127.0.0.1:1/?token="+c.plant("server's query")), user)
	for name, text := range map[string]string{
		"only a token": c.plant("token alone in a file"), "no yaml": "users: [{name: u, user: {token: " + c.plant("token in no yaml") + "}",
		"wrong shape": "apiVersion: v1\nkind: Config\nusers: {token: " + c.plant("token in a wrong place") + "}\n", "tabs": "users:\n\t- token: " + c.plant("token after a tab") + "\n",
	} {
		out[strings.ReplaceAll(name, " ", "-")] = c.file(name+".yaml", text)
	}
	return out
}

// TestClustersKeepSecrets: no secret of a kubeconfig or of a cluster's objects
// is in anything that is written, whatever goes wrong.
func TestClustersKeepSecrets(t *testing.T) {
	t.Parallel()
	c := newCanaries(t)
	files := c.kubeconfigs()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := listener.Addr().String()
	_ = listener.Close()
	var clusters strings.Builder
	for name, file := range files {
		fmt.Fprintf(&clusters, "- {name: %s, kubeconfig: %q, timeout: 6s}\n", name, file)
	}
	store := c.out("store")
	config := c.file("audit.yaml", fmt.Sprintf("apiVersion: audit/v1\nparallelism: 16\nlisten: %q\nstore: {url: %q}\nschedule: [{cron: '@every 1s', post: false}]\nthresholds: {stuckStarting: 1m}\nclusters:\n%s", listen, store, clusters.String()))
	c.run(3, nil, "run", "-c", config, "-o", "json", "--out", c.out("report.json"))
	for _, form := range []string{"table", "markdown", "html", "json"} {
		c.run(0, nil, "reports", "show", "latest", "-c", config, "-o", form, "--out", c.out("latest."+form))
	}
	c.run(-1, nil, "digest", "-c", config)
	c.run(-1, nil, "digest", "-c", config, "-o", "blocks")
	c.run(3, nil, "doctor", "-c", config)
	for _, name := range []string{"token-works", "key-works", "password-works"} {
		c.run(0, nil, "dump", "-c", config, "--cluster", name, "--out", c.out("dump/"+name))
		c.run(0, nil, "history", "-c", config, "--cluster", name)
		c.run(0, nil, "evidence", "-c", config, "--cluster", name, "--out", c.out(name+".zip"))
	}
	for name := range files {
		if (strings.HasPrefix(name, "token-") && !strings.HasPrefix(name, "token-file")) || strings.HasPrefix(name, "pro") || strings.HasPrefix(name, "password-in") {
			c.run(-1, nil, "dump", "-c", config, "--cluster", name, "--out", c.out("dump/"+name))
		}
	}
	// Without a configuration the kubeconfig is the environment's.
	for _, name := range []string{"only-a-token", "no-yaml", "wrong-shape", "proxy-no-port", "password-in-no-URL", "plugin-fails-works"} {
		c.run(-1, []string{"KUBECONFIG=" + files[name]}, "run", "--no-store")
		c.run(-1, []string{"KUBECONFIG=" + files[name]}, "doctor")
	}
	c.run(-1, nil, "run", "--from", c.out("dump"), "--no-store", "-o", "json")
	before, err := filepath.Glob(filepath.Join(store, "clusters", "token-works", "snapshots", "*"))
	if err != nil {
		t.Fatal(err)
	}
	c.loop(config, listen, nil, func() bool {
		now, err := filepath.Glob(filepath.Join(store, "clusters", "token-works", "snapshots", "*"))
		return err == nil && len(now) > len(before)
	})
	c.files()
}
