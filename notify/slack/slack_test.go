package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
	"gpuaudit/notify/digest"
	"gpuaudit/notify/slack"
	"gpuaudit/notify/slack/slackfake"
)

func samples() map[string]*report.Report {
	return map[string]*report.Report{"incident": sample.Incident(), "hostile": sample.Hostile(), "partial": sample.Partial(), "chinese": sample.Chinese(),
		"40 clusters": sample.Many(40, 200), "500 findings": sample.Many(100, 500)}
}

func texts(m slack.Message) string {
	body, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// TestMessagesKeepTheLimits: whatever the report, Slack takes every message;
// the first is the digest and the rest is its thread.
func TestMessagesKeepTheLimits(t *testing.T) {
	for name, r := range samples() {
		list := slack.Messages(digest.Build(digest.Input{Report: r, ReportURL: "https://reports.example.com/r.html", ChecklistURL: "https://reports.example.com/c.html"}), true)
		if len(list) == 0 || list[0].Part != "digest" {
			t.Fatalf("%s: no digest", name)
		}
		parts := map[string]bool{}
		for i, m := range list {
			if parts[m.Part] {
				t.Errorf("%s: part %s is there twice", name, m.Part)
			}
			parts[m.Part] = true
			var blocks []json.RawMessage
			for _, b := range m.Blocks {
				raw, err := json.Marshal(b)
				if err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, raw)
			}
			if code := slackfake.Check(m.Text, blocks); code != "" {
				t.Errorf("%s: message %d: %s", name, i, code)
			}
		}
	}
}

// TestHostileTextIsInert: nothing from a cluster mentions, links or marks up.
func TestHostileTextIsInert(t *testing.T) {
	for _, m := range slack.Messages(digest.Build(digest.Input{Report: sample.Hostile()}), true) {
		var tree any
		if err := json.Unmarshal([]byte(texts(m)), &tree); err != nil {
			t.Fatal(err)
		}
		walk(tree, func(s string) {
			for _, bad := range []string{"<!", "<@", "<#", "<http:", "<javascript", "\x1b", "\u202e"} {
				if strings.Contains(s, bad) {
					t.Errorf("a message holds %q: %s", bad, s)
				}
			}
		})
	}
}

func walk(v any, visit func(string)) {
	switch x := v.(type) {
	case string:
		visit(x)
	case []any:
		for _, c := range x {
			walk(c, visit)
		}
	case map[string]any:
		for _, c := range x {
			walk(c, visit)
		}
	}
}

func poster(t *testing.T, c slack.Config) *slack.Poster {
	t.Helper()
	p, err := slack.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPost: rate limits are waited for, refusals explained, an unclear fate is
// called so, and no secret is in any error.
func TestPost(t *testing.T) {
	m := slack.Messages(digest.Build(digest.Input{Report: sample.Incident()}), true)[0]
	for fault, want := range map[string]string{"": "", "ratelimited": "", "not_in_channel": "invite the bot", "500": "not known", "garbage": "not known", "cut": "not known", "missing_scope": "chat:write"} {
		for _, hook := range []bool{false, true} {
			if hook && (fault == "cut" || fault == "garbage" || fault == "not_in_channel") {
				continue
			}
			f := slackfake.New(t, false)
			c := slack.Config{Token: slackfake.Token, APIURL: f.URL, Channel: "C1"}
			if hook {
				c = slack.Config{Webhook: f.URL + "/hook/secret-canary"}
			}
			if fault != "" {
				f.Fault(fault)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			_, err := poster(t, c).Post(ctx, "C1", "", m, "slot")
			cancel()
			switch {
			case want == "" && err != nil:
				t.Errorf("fault %q, webhook %v: %v", fault, hook, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("fault %q, webhook %v: error is %v, want %q", fault, hook, err, want)
			case want != "" && strings.Contains(err.Error(), "canary"):
				t.Errorf("fault %q, webhook %v: a secret is in %v", fault, hook, err)
			}
			var unknown *slack.UnknownError
			if want == "not known" && !errors.As(err, &unknown) {
				t.Errorf("fault %q: the fate is not called unknown", fault)
			}
			if want == "" && len(f.Messages()) != 1 {
				t.Errorf("fault %q: %d messages were taken, want 1", fault, len(f.Messages()))
			}
		}
	}
}

func TestConfigSaysEverythingAtOnce(t *testing.T) {
	c := slack.Config{Token: "x", WebhookEnv: "Y", Proxy: "::", Post: "sometimes", Routes: []slack.Route{{MinSeverity: "loud"}}}
	got := strings.Join(c.Check([]string{"a", "b"}, []string{"label-drift"}), "\n")
	for _, want := range []string{"one of both", "slack.proxy", "slack.post", "slack.routes[0].channel", "minSeverity"} {
		if !strings.Contains(got, want) {
			t.Errorf("the problems do not say %q:\n%s", want, got)
		}
	}
}

// TestSameRouteTwice: it would post everything twice to one channel.
func TestSameRouteTwice(t *testing.T) {
	same := slack.Route{Channel: "C2", Clusters: []string{"a"}}
	c := slack.Config{TokenEnv: "X", Channel: "C1", Routes: []slack.Route{same, {Channel: "C2", Clusters: []string{"b"}}, same}}
	if got := c.Check([]string{"a", "b"}, nil); len(got) != 1 || !strings.Contains(got[0], "slack.routes[2]: sends the same as slack.routes[0]") {
		t.Errorf("the same route twice: %q", got)
	}
}

// TestCommandsAreCopiedUnchanged: also one with a backtick.
func TestCommandsAreCopiedUnchanged(t *testing.T) {
	command := "kubectl get pod `hostname` -o wide"
	d := &digest.Digest{Title: "t", Findings: []digest.Item{{Cluster: "a", Text: "x", Action: command, Command: true}}}
	body, err := slack.EncodeMessages(slack.Messages(d, true))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), "``` "+command+" ```") {
		t.Errorf("%s", body)
	}
}
