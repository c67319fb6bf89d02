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
	"net/http/httptrace"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"gpuaudit/audit/mask"
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
	p := &Poster{config: c, http: &http.Client{Transport: witness{transport}, Timeout: 30 * time.Second}, maxWait: 2 * time.Minute}
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
	var posted Posted
	err := p.patiently(ctx, func() (err error) {
		posted, err = p.once(ctx, channel, thread, m, slot)
		return err
	})
	return posted, p.redact(err)
}

// limitedError is a rate limit with the time after which to try again.
type limitedError struct {
	wait time.Duration
	err  error
}

func (e *limitedError) Error() string { return e.err.Error() }
func (e *limitedError) Unwrap() error { return e.err }

// patiently waits for a rate limit as long as Slack says, within a bound, and tries again.
func (p *Poster) patiently(ctx context.Context, send func() error) error {
	for try := 0; ; try++ {
		err := send()
		var wait time.Duration
		var ours *limitedError
		var theirs *slack.RateLimitedError
		switch {
		case errors.As(err, &ours):
			wait = ours.wait
		case errors.As(err, &theirs):
			wait = theirs.RetryAfter
		default:
			return err
		}
		wait = max(wait, time.Second)
		if try == maxRetries || wait > p.maxWait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

func (p *Poster) once(ctx context.Context, channel, thread string, m Message, slot string) (Posted, error) {
	if p.client == nil {
		return Posted{Channel: "webhook"}, p.webhook(ctx, m)
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
		return Posted{Channel: at, TS: ts}, nil
	}
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return Posted{}, err
	}
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) {
		switch refused.Err {
		case "internal_error", "fatal_error", "request_timeout", "service_unavailable":
			// Slack failed on its side: it may have taken the message before.
			return Posted{}, &UnknownError{fmt.Errorf("slack answers %q", refused.Err)}
		}
		return Posted{}, fmt.Errorf("slack answers %q for channel %s%s", refused.Err, channel, hint(refused.Err))
	}
	return Posted{}, fate(err)
}

// proxyError: the proxy refused to connect to Slack, so nothing was sent.
type proxyError struct{ code int }

func (e *proxyError) Error() string {
	if e.code == http.StatusProxyAuthRequired {
		return "the proxy wants other credentials (HTTP 407): put user and password into slack.proxy, or let the proxy pass this host"
	}
	return fmt.Sprintf("the proxy refuses to connect to Slack (HTTP %d)", e.code)
}

// notSentError: the connection failed before the request was written.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// witness is a transport that tells whether a failed request was ever written.
type witness struct{ next http.RoundTripper }

func (w witness) RoundTrip(r *http.Request) (*http.Response, error) {
	var written atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }}
	response, err := w.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil && !written.Load() {
		return nil, &notSentError{err}
	}
	return response, err
}

// fate tells a failure before anything was sent from one whose outcome nobody knows.
func fate(err error) error {
	var proxy *proxyError
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unsent *notSentError
	switch {
	case errors.As(err, &proxy):
		return proxy
	case errors.As(err, &dns):
		return fmt.Errorf("cannot reach Slack: %w", dns)
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return fmt.Errorf("cannot reach Slack: %w; is a proxy needed (slack.proxy)?", op.Err)
	// A certificate is looked at before the first byte of a request is sent.
	case errors.As(err, &certificate):
		return fmt.Errorf("cannot reach Slack: its certificate does not verify: %w; does a proxy put its own in its place?", certificate.Err)
	case errors.As(err, &record):
		return errors.New("cannot reach Slack: what answers does not speak TLS; is slack.proxy right?")
	case errors.As(err, &unsent):
		return fmt.Errorf("cannot reach Slack, nothing was sent: %w", unsent.err)
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
func (p *Poster) webhook(ctx context.Context, m Message) error {
	body, err := json.Marshal(map[string]any{"text": m.Text, "blocks": m.Blocks, "unfurl_links": false, "unfurl_media": false})
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.Webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("slack.webhook: is no URL")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.http.Do(request)
	if err != nil {
		return fate(err)
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
		return &limitedError{time.Duration(seconds) * time.Second, errors.New("slack answers that there were too many messages (HTTP 429)")}
	case response.StatusCode >= 500:
		return &UnknownError{fmt.Errorf("slack answers HTTP %d", response.StatusCode)}
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("slack's webhook answers %q (HTTP %d)%s", text, response.StatusCode, hint(text))
	case err != nil || text != "ok":
		return &UnknownError{fmt.Errorf("slack's webhook answers HTTP 200 and %q", text)}
	}
	return nil
}

// redact takes the secrets out of an error's text.
func (p *Poster) redact(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrMayNotAttach) {
		return err
	}
	text := p.clean(err.Error())
	var unknown *UnknownError
	if errors.As(err, &unknown) {
		return &UnknownError{errors.New(p.clean(unknown.Err.Error()))}
	}
	return errors.New(text)
}

func (p *Poster) clean(s string) string {
	var secrets mask.Words
	secrets.Add(p.config.Token, p.config.Webhook)
	secrets.AddURL(p.config.Webhook)
	secrets.AddURL(p.config.Proxy)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		secrets.AddURL(os.Getenv(name))
	}
	if u, err := url.Parse(p.config.Webhook); err == nil && len(u.Path) > 1 {
		s = strings.ReplaceAll(s, u.Path, "/"+mask.Redacted)
		secrets.Add(path.Base(u.Path)) // the part that nobody may know, wherever it stands
	}
	return secrets.Text(s)
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
