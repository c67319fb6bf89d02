package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"gpuaudit/audit/report"
	"gpuaudit/notify/digest"
)

// Config is the `slack:` block of the configuration. Secrets come from files or
// the environment; Resolve puts them in.
type Config struct {
	Token       string  `json:"token"`
	TokenFile   string  `json:"tokenFile"`
	TokenEnv    string  `json:"tokenEnv"`
	Webhook     string  `json:"webhook"`
	WebhookFile string  `json:"webhookFile"`
	WebhookEnv  string  `json:"webhookEnv"`
	Proxy       string  `json:"proxy"`
	Channel     string  `json:"channel"`
	Post        string  `json:"post"` // always, changes, problems
	Routes      []Route `json:"routes"`
	// AttachReports puts each cluster's own report into the digest's thread; nil is true.
	AttachReports *bool `json:"attachReports"`
	// APIURL is Slack's own; another one is for tests.
	APIURL string `json:"apiURL"`
}

// Route sends a part of the report to a channel of its own.
type Route struct {
	Clusters    []string        `json:"clusters"`
	Checks      []string        `json:"checks"`
	MinSeverity report.Severity `json:"minSeverity"`
	Channel     string          `json:"channel"`
	Mention     string          `json:"mention"`
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Check lists everything that is wrong, each with its path below slack. clusters
// and checks are the names that routes may use.
func (c *Config) Check(clusters, checks []string) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	tokens, hooks := count(c.Token, c.TokenFile, c.TokenEnv), count(c.Webhook, c.WebhookFile, c.WebhookEnv)
	switch {
	case tokens+hooks == 0:
		bad("slack: names neither a token nor a webhook; give tokenFile, tokenEnv, webhookFile or webhookEnv")
	case tokens > 0 && hooks > 0:
		bad("slack: names a token and a webhook; one of both")
	case tokens > 1 || hooks > 1:
		bad("slack: names its secret more than once")
	case tokens == 1 && c.Channel == "":
		bad("slack.channel: is missing; a token needs one")
	}
	for field, name := range map[string]string{"tokenEnv": c.TokenEnv, "webhookEnv": c.WebhookEnv} {
		if name != "" && !variable.MatchString(name) { // it is not repeated: it may be the secret itself
			bad("slack.%s: is no name of an environment variable, such as SLACK_TOKEN; the secret itself never stands in the configuration", field)
		}
	}
	if c.Proxy != "" {
		if u, err := url.Parse(c.Proxy); err != nil || u.Host == "" {
			bad("slack.proxy: is no URL")
		}
	}
	switch c.Post {
	case "", "always", "changes", "problems":
	default:
		bad("slack.post: is %q, want always, changes or problems", c.Post)
	}
	first := map[string]int{}
	for i, r := range c.Routes {
		at := fmt.Sprintf("slack.routes[%d]", i)
		if j, twice := first[r.target()]; twice {
			bad("%s: sends the same as slack.routes[%d] to the same channel; leave one of both out", at, j)
		} else {
			first[r.target()] = i
		}
		if r.Channel == "" {
			bad("%s.channel: is missing", at)
		}
		if hooks > 0 {
			bad("%s: a webhook has one channel and no routes", at)
		}
		if r.MinSeverity != "" && r.MinSeverity.Rank() > 2 {
			bad("%s.minSeverity: is %q, want critical, warning or info", at, r.MinSeverity)
		}
		for _, p := range r.Clusters {
			if _, err := path.Match(p, ""); err != nil {
				bad("%s.clusters: %q is no pattern", at, p)
			} else if len(clusters) > 0 && !slices.ContainsFunc(clusters, func(name string) bool { ok, _ := path.Match(p, name); return ok }) {
				bad("%s.clusters: %q is none of the clusters, which are %s", at, p, strings.Join(clusters, ", "))
			}
		}
		for _, id := range r.Checks {
			if !slices.Contains(checks, id) {
				bad("%s.checks: there is no check %q; they are %s", at, id, strings.Join(checks, ", "))
			}
		}
	}
	return out
}

func count(values ...string) int {
	n := 0
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}

// Resolve reads the secret that the configuration names.
func (c *Config) Resolve(readFile func(string) ([]byte, error), getenv func(string) string) error {
	read := func(value *string, file, env, what string) error {
		switch {
		case file != "":
			body, err := readFile(file)
			if err != nil {
				return fmt.Errorf("slack.%sFile: %w", what, err)
			}
			*value = strings.TrimSpace(string(body))
		case env != "":
			*value = strings.TrimSpace(getenv(env))
		default:
			return nil
		}
		if *value == "" {
			return fmt.Errorf("slack.%s: the file or environment variable that is to hold it is empty", what)
		}
		return nil
	}
	if err := read(&c.Token, c.TokenFile, c.TokenEnv, "token"); err != nil {
		return err
	}
	return read(&c.Webhook, c.WebhookFile, c.WebhookEnv, "webhook")
}

// Target is a channel and what of the report goes there.
type Target struct {
	Name    string // stable: names the route's parts in a slot
	Channel string
	Route   digest.Route
}

// target names what a route sends where.
func (r *Route) target() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", r.Channel, r.Clusters, r.Checks, r.MinSeverity))
	return "route-" + hex.EncodeToString(sum[:5])
}

// Targets lists the main channel and the routes. A route's name comes from what
// it is, so that it keeps what it was told when routes change their order.
func (c *Config) Targets() []Target {
	out := []Target{{Name: "main", Channel: c.Channel}}
	for _, r := range c.Routes {
		out = append(out, Target{Name: r.target(), Channel: r.Channel,
			Route: digest.Route{Name: r.Channel, Clusters: r.Clusters, Checks: r.Checks, MinSeverity: r.MinSeverity, Mention: r.Mention}})
	}
	return out
}

// Wanted is false for a digest that the setting post leaves out.
func (c *Config) Wanted(d *digest.Digest) bool {
	switch c.Post {
	case "changes":
		return d.Changed || len(d.Missed) > 0
	case "problems":
		return d.Problems
	}
	return true
}
