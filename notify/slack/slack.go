package slack

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Posted says where a message went.
type Posted struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// UnknownError: the message may have been taken and may not; it is not sent again.
type UnknownError struct{ Err error }

func (e *UnknownError) Error() string {
	return "whether Slack took the message is not known: " + e.Err.Error()
}
func (e *UnknownError) Unwrap() error { return e.Err }

// Poster posts to Slack by token or webhook.
type Poster struct {
	config  Config
	client  *slack.Client
	http    *http.Client
	maxWait time.Duration
}

// maxRetries bounds how often a rate limit is waited for.
const maxRetries = 3

// New makes a poster; the secret was resolved before.
func New(c Config) (*Poster, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil {
			return nil, errors.New("slack.proxy: is no URL")
		}
		transport.Proxy = http.ProxyURL(u)
	}
	transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return &proxyError{response.StatusCode}
		}
		return nil
	}
	p := &Poster{config: c, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}, maxWait: 2 * time.Minute}
	if c.Token != "" {
		options := []slack.Option{slack.OptionHTTPClient(p.http)}
		if c.APIURL != "" {
			options = append(options, slack.OptionAPIURL(strings.TrimSuffix(c.APIURL, "/")+"/"))
		}
		p.client = slack.New(c.Token, options...)
	}
	return p, nil
}

// Threads is false for a webhook, which posts one message and no more.
func (p *Poster) Threads() bool { return p.client != nil }

// Post sends one message, to a thread when thread is set. A rate limit is
// waited for as long as Slack says, within a bound. Errors: *UnknownError when
// the message may have been taken; anything else was not posted.
func (p *Poster) Post(ctx context.Context, channel, thread string, m Message, slot string) (Posted, error) {
	for try := 0; ; try++ {
		posted, wait, err := p.once(ctx, channel, thread, m, slot)
		if err == nil || wait == 0 || try == maxRetries || wait > p.maxWait {
			return posted, p.redact(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return Posted{}, p.redact(err)
		case <-timer.C:
		}
	}
}

func (p *Poster) once(ctx context.Context, channel, thread string, m Message, slot string) (Posted, time.Duration, error) {
	if p.client == nil {
		wait, err := p.webhook(ctx, m)
		return Posted{Channel: "webhook"}, wait, err
	}
	options := []slack.MsgOption{
		slack.MsgOptionBlocks(m.Blocks...), slack.MsgOptionText(m.Text, false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "gpu_audit", EventPayload: map[string]any{"slot": slot, "part": m.Part}}),
	}
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	at, ts, err := p.client.PostMessageContext(ctx, channel, options...)
	if err == nil {
		return Posted{Channel: at, TS: ts}, 0, nil
	}
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return Posted{}, max(limited.RetryAfter, time.Second), err
	}
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) {
		switch refused.Err {
		case "internal_error", "fatal_error", "request_timeout", "service_unavailable":
			// Slack failed on its side: it may have taken the message before.
			return Posted{}, 0, &UnknownError{fmt.Errorf("slack answers %q", refused.Err)}
		}
		return Posted{}, 0, fmt.Errorf("slack answers %q for channel %s%s", refused.Err, channel, hint(refused.Err))
	}
	return Posted{}, 0, fate(err)
}

// proxyError: the proxy refused to connect to Slack, so nothing was sent.
type proxyError struct{ code int }

func (e *proxyError) Error() string {
	if e.code == http.StatusProxyAuthRequired {
		return "the proxy wants other credentials (HTTP 407): put user and password into slack.proxy, or let the proxy pass this host"
	}
	return fmt.Sprintf("the proxy refuses to connect to Slack (HTTP %d)", e.code)
}

// fate tells a failure before anything was sent from one whose outcome nobody knows.
func fate(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") {
		return fmt.Errorf("cannot reach Slack: %w; is a proxy needed (slack.proxy)?", op.Err)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Errorf("cannot reach Slack: %w", dns)
	}
	var proxy *proxyError
	if errors.As(err, &proxy) {
		return proxy
	}
	// A certificate is looked at before the first byte of a request is sent.
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("cannot reach Slack: its certificate does not verify: %w; does a proxy put its own in its place?", certificate.Err)
	}
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return errors.New("cannot reach Slack: what answers does not speak TLS; is slack.proxy right?")
	}
	return &UnknownError{err}
}

func hint(code string) string {
	switch code {
	case "not_in_channel":
		return ": invite the bot to the channel"
	case "channel_not_found":
		return ": name the channel by its id, and invite the bot to a private one"
	case "invalid_auth", "not_authed", "token_revoked", "account_inactive", "token_expired":
		return ": the token is not valid any more; make a new one"
	case "missing_scope":
		return ": the token needs the scopes chat:write and files:write"
	}
	return ""
}

// webhook posts one message to an incoming webhook. The body of an error is
// what tells what is wrong (invalid_blocks).
func (p *Poster) webhook(ctx context.Context, m Message) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{"text": m.Text, "blocks": m.Blocks, "unfurl_links": false, "unfurl_media": false})
	if err != nil {
		return 0, fmt.Errorf("encode message: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.Webhook, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("slack.webhook: is no URL")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.http.Do(request)
	if err != nil {
		return 0, fate(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	text := strings.TrimSpace(string(answer))
	switch {
	case response.StatusCode == http.StatusTooManyRequests:
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil || seconds < 1 {
			seconds = 1
		}
		return time.Duration(seconds) * time.Second, errors.New("slack answers that there were too many messages (HTTP 429)")
	case response.StatusCode >= 500:
		return 0, &UnknownError{fmt.Errorf("slack answers HTTP %d", response.StatusCode)}
	case response.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("slack's webhook answers %q (HTTP %d)%s", text, response.StatusCode, hint(text))
	case err != nil || text != "ok":
		return 0, &UnknownError{fmt.Errorf("slack's webhook answers HTTP 200 and %q", text)}
	}
	return 0, nil
}

// redact takes the secrets out of an error's text.
func (p *Poster) redact(err error) error {
	if err == nil {
		return nil
	}
	text := p.clean(err.Error())
	var unknown *UnknownError
	if errors.As(err, &unknown) {
		return &UnknownError{errors.New(p.clean(unknown.Err.Error()))}
	}
	return errors.New(text)
}

func (p *Poster) clean(s string) string {
	for _, secret := range []string{p.config.Token, p.config.Webhook} {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	if u, err := url.Parse(p.config.Proxy); err == nil && u.User != nil {
		s = strings.ReplaceAll(s, u.User.String()+"@", "[redacted]@")
		if password, ok := u.User.Password(); ok && len(password) > 2 {
			s = strings.ReplaceAll(s, password, "[redacted]")
		}
	}
	if u, err := url.Parse(p.config.Webhook); err == nil && len(u.Path) > 1 {
		s = strings.ReplaceAll(s, u.Path, "/[redacted]")
	}
	return s
}

// Find looks a message up whose fate is unknown, by its metadata: in the
// channel, or among the replies when thread is set, since a channel's history
// holds no replies. known is false where the token may not read the channel,
// and where there is more to read than was read.
func (p *Poster) Find(ctx context.Context, channel, thread, slot, part string, since time.Time) (posted Posted, found, known bool) {
	if p.client == nil {
		return Posted{}, false, false
	}
	list, more, err := p.read(ctx, channel, thread, fmt.Sprintf("%d.000000", since.Add(-5*time.Minute).Unix()))
	if err != nil {
		return Posted{}, false, false
	}
	for _, m := range list {
		if m.Metadata.EventType == "gpu_audit" && m.Metadata.EventPayload["slot"] == slot && m.Metadata.EventPayload["part"] == part {
			return Posted{Channel: channel, TS: m.Timestamp}, true, true
		}
	}
	return Posted{}, false, !more
}

func (p *Poster) read(ctx context.Context, channel, thread, oldest string) (list []slack.Message, more bool, err error) {
	const most = 200
	if thread != "" {
		list, more, _, err = p.client.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: thread, Limit: most, IncludeAllMetadata: true})
		return list, more, err
	}
	answer, err := p.client.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: channel, Limit: most, IncludeAllMetadata: true, Oldest: oldest})
	if err != nil {
		return nil, false, err
	}
	return answer.Messages, answer.HasMore, nil
}
