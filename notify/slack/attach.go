package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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

// Upload gives Slack a file that nobody sees yet, and its id. Whatever its error
// is, nothing was attached.
func (p *Poster) Upload(ctx context.Context, f File) (id string, err error) {
	err = p.patiently(ctx, func() error {
		to, err := p.client.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: f.Name, FileSize: len(f.Body)})
		if err != nil {
			return err
		}
		id = to.FileID
		return p.client.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: to.UploadURL, Reader: bytes.NewReader(f.Body), Filename: f.Name})
	})
	if err != nil {
		return "", p.refused(f.Name, err, func(err error) error { return fmt.Errorf("upload file %q: %w", f.Name, err) })
	}
	return id, nil
}

// Share puts an uploaded file into a thread. Errors: ErrMayNotAttach;
// *UnknownError when it may be there; anything else was not attached.
func (p *Poster) Share(ctx context.Context, channel, thread, id, title string) error {
	err := p.patiently(ctx, func() error {
		_, err := p.client.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
			Files: []slack.FileSummary{{ID: id, Title: title}}, Channel: channel, ThreadTimestamp: thread})
		return err
	})
	if err != nil {
		return p.refused(title, err, fate)
	}
	return nil
}

// refused words what Slack answers; other errors are worded by other.
func (p *Poster) refused(file string, err error, other func(error) error) error {
	var limited *slack.RateLimitedError
	var answer slack.SlackErrorResponse
	switch {
	case errors.As(err, &limited):
		return p.redact(errors.New("slack answers that there were too many requests; the file is not attached"))
	case errors.As(err, &answer):
		switch answer.Err {
		case "missing_scope", "not_allowed_token_type", "file_uploads_disabled", "file_uploads_except_images_disabled", "method_not_supported_for_channel_type":
			return ErrMayNotAttach
		case "internal_error", "fatal_error", "request_timeout", "service_unavailable":
			return p.redact(other(fmt.Errorf("slack answers %q to file %q", answer.Err, file)))
		}
		return p.redact(fmt.Errorf("slack answers %q to file %q", answer.Err, file))
	}
	return p.redact(other(err))
}

// FindFile looks a file whose fate is unknown up in its thread. known is false
// where the token may not read the thread, and where there is more than was read.
func (p *Poster) FindFile(ctx context.Context, channel, thread, id string) (found, known bool) {
	list, more, err := p.read(ctx, channel, thread, "")
	if err != nil {
		return false, false
	}
	for _, m := range list {
		for _, f := range m.Files {
			if f.ID == id {
				return true, true
			}
		}
	}
	return false, !more
}
