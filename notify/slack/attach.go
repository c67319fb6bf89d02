package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"
)

// File is a file to attach to a thread.
type File struct {
	Name, Title string
	Body        []byte
}

// ErrMayNotAttach: the token lacks the scope files:write, or the workspace
// forbids files.
var ErrMayNotAttach = errors.New("the token may not attach files: give it the scope files:write, or set slack.attachReports to false")

// Attach puts a file into a thread. Errors: ErrMayNotAttach; *UnknownError when
// the file may have been taken; anything else was not attached.
func (p *Poster) Attach(ctx context.Context, channel, thread string, f File) error {
	_, err := p.client.UploadFileContext(ctx, slack.UploadFileParameters{Reader: bytes.NewReader(f.Body), FileSize: len(f.Body), Filename: f.Name, Title: f.Title, Channel: channel, ThreadTimestamp: thread})
	if err == nil {
		return nil
	}
	var limited *slack.RateLimitedError
	var refused slack.SlackErrorResponse
	switch {
	case errors.As(err, &limited):
		return p.redact(errors.New("slack answers that there were too many requests; the file is not attached"))
	case errors.As(err, &refused):
		switch refused.Err {
		case "missing_scope", "not_allowed_token_type", "file_uploads_disabled", "file_uploads_except_images_disabled", "method_not_supported_for_channel_type":
			return ErrMayNotAttach
		}
		return p.redact(fmt.Errorf("slack answers %q to file %q", refused.Err, f.Name))
	}
	// Only the last of three requests puts the file anywhere.
	if strings.HasPrefix(err.Error(), "GetUploadURLExternal") || strings.HasPrefix(err.Error(), "UploadToURL") {
		return p.redact(fmt.Errorf("upload file %q: %w", f.Name, err))
	}
	return p.redact(fate(err))
}
