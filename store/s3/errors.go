package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"gpuaudit/audit/mask"
	"gpuaudit/store"
)

// Error is a request that failed: what, on which object, what the server said, and which setting may help.
type Error struct {
	// Op is get, head, create, put, replace, delete, list or presign.
	Op string
	// Bucket and Key as the server knows them, with the store's prefix.
	Bucket, Key string
	// Status is the HTTP code, 0 if no answer came. Code and Message are the server's; RequestID is for its operator.
	Status                   int
	Code, Message, RequestID string
	// coded: Code is the server's own, not made of the status.
	coded bool
	// Hint says what to do.
	Hint string
	// Kind is store.ErrNotFound, ErrExists, ErrChanged, or nil.
	Kind error
	// Cause is what the network or the SDK said, if no server did.
	Cause error
	// secrets of the connection, which a server may repeat.
	secrets *mask.Words
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s s3://%s/%s: ", e.Op, e.Bucket, e.Key)
	switch {
	case e.Kind != nil && e.Status == 0:
		b.WriteString(e.Kind.Error())
	case e.Status/100 == 2:
		fmt.Fprintf(&b, "HTTP %d, but not the answer of an S3 server: %s", e.Status, plain(fmt.Sprint(e.Cause), maxCause))
	case e.Status != 0:
		fmt.Fprintf(&b, "HTTP %d %s", e.Status, e.Code)
		if e.Message != "" {
			fmt.Fprintf(&b, ": %s", e.Message)
		}
		if e.Kind != nil {
			fmt.Fprintf(&b, " (%v)", e.Kind)
		}
		if e.RequestID != "" {
			fmt.Fprintf(&b, " [request %s]", e.RequestID)
		}
	default:
		b.WriteString(plain(fmt.Sprint(e.Cause), maxCause))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	if e.secrets != nil {
		return e.secrets.Text(b.String())
	}
	return b.String()
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var out []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// undecided says that the server met another request for the same name and decided neither; it may be sent again.
func (e *Error) undecided() bool {
	return e.Status == http.StatusConflict && (e.Code == "ConditionalRequestConflict" || e.Code == "OperationAborted")
}

// maxMessage and maxCause bound what of a server's and of the SDK's words is repeated, in bytes. The SDK's have the reason at
// their end.
const (
	maxMessage = 300
	maxCause   = 1000
)

// explain turns an error of the SDK into ours; nil stays nil. tries is how often the request was sent, 0 if not counted.
func (s *Store) explain(ctx context.Context, op, key string, tries int, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Bucket: s.bucket, Key: s.prefix + key}
	if noCredentials(err) {
		e.Cause, e.Hint = cause(ctx, err), credentialsHint
		return e
	}
	e.secrets = s.secrets(ctx)
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Message = plain(api.ErrorCode(), maxMessage), plain(api.ErrorMessage(), maxMessage)
	}
	var response *smithyhttp.ResponseError
	header := http.Header{}
	if errors.As(err, &response) && response.Response != nil && response.Response.Response != nil {
		e.Status, header = response.HTTPStatusCode(), response.Response.Header
		e.RequestID = plain(header.Get("X-Amz-Request-Id"), maxMessage)
	}
	if e.Status == 0 || e.Status/100 == 2 {
		e.Cause = cause(ctx, err)
	}
	// The SDK makes a code of the status too, where the body had none.
	if e.coded = e.Code != "" && e.Code != strings.ReplaceAll(http.StatusText(e.Status), " ", ""); e.Code == "" {
		e.Code = http.StatusText(e.Status)
	}
	e.Kind = e.kind()
	e.Hint = s.hint(e, header, tries, err)
	return e
}

// secrets are those that requests are signed with, and that are sent with them:
// a careless server may repeat what it was sent. A word that is too short for a
// key would be found in other words.
func (s *Store) secrets(ctx context.Context) *mask.Words {
	const shortest = 12
	out := &mask.Words{}
	// They are kept since the request was signed; without any, nothing was.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	creds, err := s.creds.Retrieve(ctx)
	if err != nil {
		return out
	}
	for _, secret := range []string{creds.SecretAccessKey, creds.SessionToken} {
		if len(secret) >= shortest {
			out.Add(secret)
		}
	}
	return out
}

// foreign is for an answer that says that all is well and is none of an S3 server's.
func (s *Store) foreign(op, key, why string) error {
	return &Error{Op: op, Bucket: s.bucket, Key: s.prefix + key, Status: http.StatusOK, Cause: errors.New(why), Hint: otherServer}
}

const credentialsHint = "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or store.profile, or see the pod's role (web identity)"

// noCredentials tells a request that never left for want of credentials. What is inside such an error came from another
// server, the one that gives credentials.
func noCredentials(err error) bool {
	text := err.Error()
	return strings.Contains(text, "get identity:") || strings.Contains(text, "get credentials:") || strings.Contains(text, "refresh cached credentials")
}

// missing says that the server said that this very object is not there. Only the protocol's own word counts: a missing
// bucket, an unknown user on some servers and the page of whatever else answers under the address are 404 too, and an
// empty store would be seen where none is.
func (e *Error) missing() bool { return e.Status == http.StatusNotFound && e.Code == "NoSuchKey" }

// kind maps what the server said to what callers act on.
func (e *Error) kind() error {
	switch {
	case e.Op == "create" && e.Status == http.StatusPreconditionFailed:
		return store.ErrExists
	case e.Op == "create" && e.undecided():
		return store.ErrChanged
	case e.Op == "replace" && (e.Status == http.StatusPreconditionFailed || e.missing() || e.undecided()):
		return store.ErrChanged
	case e.missing() && (e.Op == "get" || e.Op == "delete"):
		return store.ErrNotFound
	}
	return nil
}

// cause is the error without the SDK's wrapping, which repeats the operation, and with the reason of a deadline that
// was ours and not the caller's.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if reason := context.Cause(ctx); errors.Is(reason, errSlow) {
			return fmt.Errorf("%w: %w", reason, ctx.Err())
		}
		return ctx.Err()
	}
	var op *smithy.OperationError
	if errors.As(err, &op) {
		err = op.Err
	}
	var send *smithyhttp.RequestSendError
	if errors.As(err, &send) {
		err = send.Err
	}
	return err
}

// plain makes a server's words fit for a message of one line: no control characters, not endless.
func plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strings.TrimSpace(text)
}
