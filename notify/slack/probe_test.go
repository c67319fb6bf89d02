package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gpuaudit/notify/slack"
	"gpuaudit/notify/slack/slackfake"
)

func TestProbe(t *testing.T) {
	words := func(c slack.Config, channels ...string) string {
		p, err := slack.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", p.Probe(context.Background(), channels))
	}
	whole, blind := slackfake.New(t, true), slackfake.New(t, false)
	for _, c := range []struct{ got, want string }{
		{words(slack.Config{Token: slackfake.Token, APIURL: whole.URL}, "C1"), "the bot is in it OK:true"},
		{words(slack.Config{Token: slackfake.Token, APIURL: whole.URL}, "C2"), "the bot is not in it: invite it there OK:false"},
		{words(slack.Config{Token: slackfake.Token, APIURL: whole.URL}, "#general"), "is not found: name it by its id"},
		{words(slack.Config{Token: slackfake.Token, APIURL: blind.URL}, "C1"), "the scope channels:history is missing"},
		{words(slack.Config{Token: "xoxb-canary-wrong", APIURL: whole.URL}), "invalid_auth"},
		{words(slack.Config{Token: "xoxb-canary-wrong", APIURL: "http://127.0.0.1:1"}), "cannot reach Slack"},
	} {
		if !strings.Contains(c.got, c.want) || strings.Contains(c.got, "canary") {
			t.Errorf("the probe says %s, want %q and no secret", c.got, c.want)
		}
	}
	if len(whole.Messages()) > 0 {
		t.Error("the probe posted something")
	}
}

// TestAttach: a file is uploaded, then shared; what goes wrong on the way is told
// apart: not permitted, not attached for certain, fate unknown.
func TestAttach(t *testing.T) {
	f := slackfake.New(t, true)
	p, err := slack.New(slack.Config{Token: slackfake.Token, APIURL: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	file := slack.File{Name: "a.html", Title: "GPU audit of a", Body: []byte("<html>a")}
	attach := func() (id string, err error) {
		if id, err = p.Upload(ctx, file); err != nil {
			return id, err
		}
		return id, p.Share(ctx, "C1", "17.1", id, file.Title)
	}
	f.FileFault("ratelimited", "", "ratelimited") // waited for, at either request
	id, err := attach()
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Files(); len(got) != 1 || got[0].Thread != "17.1" || string(got[0].Body) != "<html>a" {
		t.Errorf("attached %+v", got)
	}
	if found, known := p.FindFile(ctx, "C1", "17.1", id); !found || !known {
		t.Errorf("the file is found %t, known %t", found, known)
	}
	if found, known := p.FindFile(ctx, "C1", "17.1", "F-other"); found || !known {
		t.Errorf("a file that is not there is found %t, known %t", found, known)
	}

	var unknown *slack.UnknownError
	f.FileFault("", "cut")
	if id, err = attach(); !errors.As(err, &unknown) {
		t.Errorf("cut while sharing: %v, want an unknown fate", err)
	}
	if found, _ := p.FindFile(ctx, "C1", "17.1", id); !found {
		t.Error("the file that was shared before the cut is not found")
	}
	for _, fault := range []string{"cut", "internal_error"} {
		f.FileFault(fault)
		if _, err = attach(); err == nil || errors.As(err, &unknown) {
			t.Errorf("%s while uploading: %v, want a certain failure", fault, err)
		}
	}
	f.RefuseFiles()
	if _, err := attach(); !errors.Is(err, slack.ErrMayNotAttach) {
		t.Errorf("without files:write: %v", err)
	}
	blind := slackfake.New(t, false)
	if p, err = slack.New(slack.Config{Token: slackfake.Token, APIURL: blind.URL}); err != nil {
		t.Fatal(err)
	}
	if found, known := p.FindFile(ctx, "C1", "17.1", id); found || known {
		t.Errorf("where the thread cannot be read the file is found %t, known %t", found, known)
	}
}

// TestProxyThatRefuses: nothing was sent, so the fate is known; its password is in no error.
func TestProxyThatRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer proxy.Close()
	for name, c := range map[string]slack.Config{
		"407":         {Webhook: "https://hooks.slack.test/secret-canary", Proxy: strings.Replace(proxy.URL, "http://", "http://user:canary-password@", 1)},
		"certificate": {Webhook: httptest.NewTLSServer(nil).URL + "/secret-canary"},
	} {
		p, err := slack.New(c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Post(context.Background(), "", "", slack.Message{Part: "digest", Text: "x"}, "s")
		var unknown *slack.UnknownError
		if err == nil || errors.As(err, &unknown) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want a certain failure without a secret", name, err)
		}
	}
}
