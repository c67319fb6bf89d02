package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slack-go/slack"
)

// Finding of a probe: what is well, or what is wrong and the one thing to do.
type Probed struct {
	What  string
	Words string
	OK    bool
}

// Probe says, without posting, whether Slack can be spoken to: the token, its
// scopes, and every channel that is to be posted to.
func (p *Poster) Probe(ctx context.Context, channels []string) []Probed {
	if p.client == nil {
		return []Probed{p.webhookHost(ctx)}
	}
	who, scopes, err := p.auth(ctx)
	if err != nil {
		return []Probed{{"slack", p.redact(err).Error(), false}}
	}
	out := []Probed{{"slack token", who, true}}
	out = append(out, lacking(scopes, p.config.AttachReports == nil || *p.config.AttachReports)...)
	for _, channel := range channels {
		out = append(out, p.channel(ctx, channel, scopes)...)
	}
	return out
}

// webhookHost asks only whether the webhook's server answers: its path, the
// secret, is not sent, and nothing is posted.
func (p *Poster) webhookHost(ctx context.Context) Probed {
	hook, err := url.Parse(p.config.Webhook)
	if err != nil {
		return Probed{"slack webhook", "is no URL", false}
	}
	root := url.URL{Scheme: hook.Scheme, Host: hook.Host, Path: "/"}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, root.String(), nil)
	if err != nil {
		return Probed{"slack webhook", "is no URL", false}
	}
	response, err := p.http.Do(request)
	if err != nil {
		return Probed{"slack webhook", p.redact(fate(err)).Error(), false}
	}
	_ = response.Body.Close()
	return Probed{"slack webhook", fmt.Sprintf("%s answers; whether it takes this webhook is seen only by posting", hook.Host), true}
}

// auth asks who the token is, and what it may do: the scopes stand in a header
// that the library does not show.
func (p *Poster) auth(ctx context.Context) (who string, scopes []string, err error) {
	base := "https://slack.com/api"
	if p.config.APIURL != "" {
		base = strings.TrimSuffix(p.config.APIURL, "/")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/auth.test", strings.NewReader(url.Values{}.Encode()))
	if err != nil {
		return "", nil, errors.New("slack.apiURL: is no URL")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+p.config.Token)
	response, err := p.http.Do(request)
	if err != nil {
		return "", nil, fate(err)
	}
	defer response.Body.Close()
	var answer struct {
		OK         bool
		Error      string
		User, Team string
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer); err != nil {
		return "", nil, fmt.Errorf("slack auth.test: HTTP %d and no JSON: does a proxy answer in its place?", response.StatusCode)
	}
	if !answer.OK {
		return "", nil, fmt.Errorf("slack auth.test: %q%s", answer.Error, hint(answer.Error))
	}
	for s := range strings.SplitSeq(response.Header.Get("X-OAuth-Scopes"), ",") {
		if s = strings.TrimSpace(s); s != "" {
			scopes = append(scopes, s)
		}
	}
	return fmt.Sprintf("token of %s in workspace %s", answer.User, answer.Team), scopes, nil
}

// lacking lists the scopes that are missing, with what does not work without them.
func lacking(scopes []string, attaches bool) []Probed {
	if len(scopes) == 0 {
		return []Probed{{"slack scopes", "Slack does not say what the token may do; chat:write is needed, files:write and channels:history are of use", true}}
	}
	var out []Probed
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(scopes, s) })
	}
	if !has("chat:write", "chat:write:bot") {
		out = append(out, Probed{"slack scopes", "chat:write is missing: nothing can be posted. Add it to the app and install it again", false})
	}
	if attaches && !has("files:write", "files:write:user") {
		out = append(out, Probed{"slack scopes", "files:write is missing: the clusters' reports are not attached. Add it, or set slack.attachReports to false", false})
	}
	if len(out) == 0 {
		out = append(out, Probed{"slack scopes", strings.Join(scopes, ", "), true})
	}
	return out
}

// channel tells whether the bot can post to a channel, and look up there what
// became of a message; which scope that takes goes by the kind of channel.
func (p *Poster) channel(ctx context.Context, channel string, scopes []string) []Probed {
	what := "slack channel " + channel
	info, err := p.client.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
	var refused slack.SlackErrorResponse
	history := []string{"channels:history", "groups:history"}
	found := Probed{what, "", false}
	switch {
	case err == nil && info.IsArchived:
		found.Words = "is archived: name another one"
	case err == nil && !info.IsMember:
		found.Words = "the bot is not in it: invite it there"
	case err == nil:
		found.Words, found.OK = "the bot is in it", true
	case errors.As(err, &refused) && refused.Err == "missing_scope":
		found.Words, found.OK = "cannot be looked at without the scope channels:read (groups:read for a private one); posting does not need it", true
	case errors.As(err, &refused) && refused.Err == "channel_not_found":
		found.Words = "is not found: name it by its id (C…), and invite the bot to a private one"
	default:
		found.Words = p.redact(err).Error()
	}
	if err == nil && info.IsPrivate {
		history = history[1:]
	} else if err == nil {
		history = history[:1]
	}
	if len(scopes) == 0 || slices.ContainsFunc(history, func(s string) bool { return slices.Contains(scopes, s) }) {
		return []Probed{found}
	}
	lacks := Probed{what + " history", "the scope " + strings.Join(history, " or ") + " is missing: a message whose fate is unknown cannot be looked up, and is then left out. Add it", false}
	return []Probed{found, lacks}
}
