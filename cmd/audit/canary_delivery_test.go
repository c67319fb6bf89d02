package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// deliveries are servers for Slack and S3, by what they do to whoever calls:
// the careless ones repeat what they were sent.
func (c *canaries) deliveries() map[string]string {
	t := c.t
	moved := quiet(t, true, echo(http.StatusForbidden, "text/html", "<html>%s</html>"))
	return map[string]string{
		"refused":   "http://127.0.0.1:1",
		"no dns":    "https://gone.invalid",
		"untrusted": quiet(t, true, echo(200, "application/json", `{"ok":true,"said":"%s"}`)).URL,
		"page 403":  quiet(t, false, echo(403, "text/html", "<html>%s</html>")).URL,
		"error 500": quiet(t, false, echo(500, "text/plain", "%s")).URL,
		"garbage":   quiet(t, false, echo(200, "application/json", "%s")).URL,
		"denied":    quiet(t, false, echo(200, "application/json", `{"ok":false,"error":"%s"}`)).URL,
		"xml denied": quiet(t, false, echo(403, "application/xml",
			`<?xml version="1.0"?><Error><Code>SignatureDoesNotMatch</Code><Message>%s</Message></Error>`)).URL,
		"moved": quiet(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, moved.URL+r.URL.Path+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		})).URL,
	}
}

// TestDeliveryKeepsSecrets: no secret of Slack, of the store or of the signing
// key is in anything that is written, whatever those do.
func TestDeliveryKeepsSecrets(t *testing.T) {
	t.Parallel()
	c := newCanaries(t)
	demo := c.out("demo")
	c.run(0, nil, "demo", "--keep", demo)
	env := []string{
		"SLACK_TOKEN=xoxb-" + c.plant("Slack token"), "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=" + c.plant("S3 secret key"),
		"AWS_SESSION_TOKEN=" + c.plant("S3 session token"), "AWS_REGION=us-east-1", "AWS_MAX_ATTEMPTS=1",
	}
	tokenFile := c.file("token", "xoxb-"+c.plant("Slack token of a file")+"\n")
	cluster := c.file("cluster.yaml", "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: u}}]\ncurrent-context: x\n")
	var group errgroup.Group
	group.SetLimit(8)
	run := func(code int, env []string, config string, args ...string) {
		group.Go(func() error { c.run(code, env, append(args, "-c", config)...); return nil })
	}
	n := 0
	for name, server := range c.deliveries() {
		n++
		begin := fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: %q}]\nstore: {url: %q}\n", cluster, c.out("store"))
		hook := strings.Replace(server, "://", "://u:"+c.plant("webhook's password")+"@", 1) + "/services/T0/B0/" + c.plant("webhook")
		for form, slack := range map[string]string{
			"token":   fmt.Sprintf("{tokenEnv: SLACK_TOKEN, channel: C1, apiURL: %q}", server),
			"file":    fmt.Sprintf("{tokenFile: %q, channel: C1, apiURL: 'http://127.0.0.1:2', proxy: %q}", tokenFile, server),
			"webhook": fmt.Sprintf("{webhookFile: %q}", c.file(fmt.Sprintf("hook-%d", n), hook+"\n")),
			"plain":   fmt.Sprintf("{webhookFile: %q}", c.file(fmt.Sprintf("plain-%d", n), strings.Replace(hook, "u:"+c.plant("webhook's password")+"@", "", 1)+"\n")),
		} {
			config := c.file(fmt.Sprintf("slack-%d-%s.yaml", n, form), begin+"slack: "+slack+"\n")
			out := c.out(fmt.Sprintf("%d-%s.json", n, form))
			run(-1, env, config, "run", "--from", demo+"/day2", "--cluster", "C", "--store", c.out("store"), "--slot", fmt.Sprintf("%d-%s", n, form), "-o", "json", "--out", out)
			if form == "token" || form == "plain" {
				run(-1, env, config, "doctor")
			}
		}
		config := c.file(fmt.Sprintf("s3-%d.yaml", n), fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: %q}]\nstore: {url: s3://bucket/prefix, endpoint: %q, addressing: path}\nreports: {presign: 1h}\n", cluster, server))
		if name != "garbage" { // what is no XML and no error may pass for an empty answer
			run(3, env, config, "run", "-o", "json", "--out", c.out(fmt.Sprintf("s3-%d.json", n)))
		}
		for _, args := range [][]string{{"doctor"}, {"reports", "list"}, {"history", "--cluster", "C"}, {"evidence", "--cluster", "C", "--out", c.out(fmt.Sprintf("%d.zip", n))}, {"digest"}} {
			run(-1, env, config, args...)
		}
	}
	_ = group.Wait() // what fails is an error of the test
	c.files()
}

// TestSigningKeepsSecrets: the key and its password are in nothing that is made with them.
func TestSigningKeepsSecrets(t *testing.T) {
	t.Parallel()
	c := newCanaries(t)
	demo := c.out("demo")
	c.run(0, nil, "demo", "--keep", demo)
	c.run(0, nil, "evidence", "--cluster", "C", "--store", demo+"/store", "--out", c.out("plain.zip"))
	broken := c.file("broken.key", "untrusted comment: minisign secret key\n"+c.plant("broken key")+"\n")
	config := c.file("audit.yaml", fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: none}]\nstore: {url: %q}\nsigning: {keyFile: %q}\n", demo+"/store", broken))
	c.run(-1, nil, "evidence", "-c", config, "--cluster", "C", "--out", c.out("signed.zip"))
	c.run(-1, nil, "doctor", "-c", config)
	c.run(-1, nil, "verify", c.out("plain.zip"), "--public-key", broken)
	password := []string{"AUDIT_KEY_PASSWORD=" + c.plant("key's password")}
	key := c.file("made/readme", "")
	key = strings.Replace(key, "readme", "audit.key", 1)
	c.run(0, password, "keygen", "--out", key)
	private, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(private)), "\n")
	c.list["private key"] = lines[len(lines)-1]
	config = c.file("signed.yaml", fmt.Sprintf("apiVersion: audit/v1\nclusters: [{name: C, kubeconfig: %q}]\nstore: {url: %q}\nsigning: {keyFile: %q}\n", c.file("cluster.yaml", "apiVersion: v1\nkind: Config\n"), demo+"/store", key))
	c.run(0, password, "evidence", "-c", config, "--cluster", "C", "--out", c.out("signed.zip"))
	c.run(0, nil, "verify", c.out("signed.zip"), "--public-key", key+".pub")
	c.run(3, []string{"AUDIT_KEY_PASSWORD=" + c.plant("wrong password")}, "evidence", "-c", config, "--cluster", "C", "--out", c.out("wrong.zip"))
	c.run(-1, password, "doctor", "-c", config)
	c.files()
}
