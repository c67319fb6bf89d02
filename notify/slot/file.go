package slot

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"gpuaudit/notify/slack"
	"gpuaudit/store/archive"
)

// file attaches one file to a target's thread unless that was done. Slack gives
// an uploaded file its id before anybody sees it: the id is recorded before the
// file is shared, so that a later try can look it up. A token that may not
// attach keeps nothing else from being delivered.
func (s *Slots) file(ctx context.Context, at *archive.Slot, r *Record, d Delivery, f slack.File, head Part) (*Part, error) {
	name := d.Target + "/file-" + f.Name
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Name == name })
	if i >= 0 {
		switch p := &r.Parts[i]; p.State {
		case Posted, Skipped:
			return p, nil
		case Intent, Unknown:
			if done, err := s.lookupFile(ctx, at, r, p, head); done || err != nil {
				return p, err
			}
		}
	} else {
		r.Parts = append(r.Parts, Part{Name: name, Channel: head.Channel})
		i = len(r.Parts) - 1
	}
	p := &r.Parts[i]
	within, cancel := context.WithTimeout(ctx, postWithin)
	defer cancel()
	if p.File == "" {
		id, err := s.Poster.Upload(within, f)
		if err != nil {
			return s.filed(ctx, at, r, p, err)
		}
		p.File = id
	}
	p.State, p.At, p.Error = Intent, s.Now().UTC(), ""
	if err := s.save(ctx, at, r, "intent of "+name); err != nil {
		return nil, err
	}
	if err := s.step("attach " + name); err != nil {
		return nil, err
	}
	err := s.Poster.Share(within, head.Channel, head.TS, p.File, f.Title)
	if stop := s.step("attached " + name); stop != nil {
		return nil, stop
	}
	return s.filed(ctx, at, r, p, err)
}

// filed records how attaching a file ended.
func (s *Slots) filed(ctx context.Context, at *archive.Slot, r *Record, p *Part, err error) (*Part, error) {
	var unknown *slack.UnknownError
	switch {
	case err == nil:
		p.State = Posted
	case errors.Is(err, slack.ErrMayNotAttach):
		p.State, p.Error = Skipped, err.Error()
		slog.Warn("attachment", "slot", r.Slot, "part", p.Name, "error", err)
		err = nil
	case errors.As(err, &unknown):
		p.State, p.Error = Unknown, err.Error()
	default:
		p.State, p.Error, p.File = Failed, err.Error(), ""
	}
	if saved := s.save(ctx, at, r, "result of "+p.Name); saved != nil {
		return nil, errors.Join(err, saved)
	}
	return p, err
}

// lookupFile finds out what became of a file that an earlier try meant to share.
// done is false when the thread was read and the file is not in it. Where that
// cannot be told it is left out: the report itself is kept and linked.
func (s *Slots) lookupFile(ctx context.Context, at *archive.Slot, r *Record, p *Part, head Part) (done bool, err error) {
	found, known := s.Poster.FindFile(ctx, head.Channel, head.TS, p.File)
	switch {
	case found:
		p.State, p.Error = Posted, ""
	case s.Now().Sub(p.At) < lease:
		return true, s.elsewhere(r, p)
	case known:
		return false, nil
	default:
		p.State, p.Error = Skipped, "whether it was attached is not known; it is not attached again"
		slog.Warn("attachment", "slot", r.Slot, "part", p.Name, "error", p.Error)
	}
	return true, s.save(ctx, at, r, "lookup of "+p.Name)
}
