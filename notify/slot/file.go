package slot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"gpuaudit/notify/slack"
	"gpuaudit/store/archive"
)

// file attaches one file to a target's thread unless that was done. Files carry
// no metadata to look them up by, so one whose fate is unknown stays so. A
// token that may not attach keeps nothing else from being delivered.
func (s *Slots) file(ctx context.Context, at *archive.Slot, r *Record, d Delivery, f slack.File, head Part) (*Part, error) {
	name := d.Target + "/file-" + f.Name
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Name == name })
	if i >= 0 {
		switch p := &r.Parts[i]; p.State {
		case Posted, Skipped:
			return p, nil
		case Intent, Unknown:
			if p.State == Intent && s.Now().Sub(p.At) < lease {
				return nil, fmt.Errorf("slot %q: part %s was begun a moment ago and another process may be at it; try again after %s", r.Slot, name, lease)
			}
			p.State, p.Error = Skipped, "whether it was attached is not known; it is not attached again"
			slog.Warn("attachment", "slot", r.Slot, "part", name, "error", p.Error)
			return p, s.save(ctx, at, r, "lookup of "+name)
		}
	} else {
		r.Parts = append(r.Parts, Part{Name: name, Channel: head.Channel})
		i = len(r.Parts) - 1
	}
	p := &r.Parts[i]
	p.State, p.At, p.Error = Intent, s.Now().UTC(), ""
	if err := s.save(ctx, at, r, "intent of "+name); err != nil {
		return nil, err
	}
	if err := s.step("attach " + name); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, postWithin)
	defer cancel()
	err := s.Poster.Attach(within, head.Channel, head.TS, f)
	if stop := s.step("attached " + name); stop != nil {
		return nil, stop
	}
	var unknown *slack.UnknownError
	switch {
	case err == nil:
		p.State = Posted
	case errors.Is(err, slack.ErrMayNotAttach), errors.As(err, &unknown):
		p.State, p.Error = Skipped, err.Error()
		slog.Warn("attachment", "slot", r.Slot, "part", name, "error", err)
		err = nil
	default:
		p.State, p.Error = Failed, err.Error()
	}
	if saved := s.save(ctx, at, r, "result of "+name); saved != nil {
		return nil, errors.Join(err, saved)
	}
	return p, err
}
