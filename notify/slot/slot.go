// Package slot makes a scheduled digest happen once: what is about to be
// posted is recorded before, where it went after. A rerun of the same slot
// finishes what is missing; a part whose fate is unknown is looked up, else
// left, said, and not posted again.
package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/notify/slack"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// States of a part.
const (
	Intent  = "intent"
	Posted  = "posted"
	Unknown = "unknown"
	Failed  = "failed"
	Skipped = "skipped"
)

// Record is slots/<slot>.json.
type Record struct {
	SchemaVersion int       `json:"schemaVersion"`
	Slot          string    `json:"slot"`
	Run           string    `json:"run"`
	Begun         time.Time `json:"begun"`
	// Reported is the time of the report that the digest is about.
	Reported time.Time `json:"reported"`
	Parts    []Part    `json:"parts"`
	// Targets are those that were due a digest; nil until that is known.
	Targets []string `json:"targets,omitempty"`
	// Done is true when nothing is left to do in this slot.
	Done bool `json:"done"`
}

// Part is one message of one target.
type Part struct {
	Name    string    `json:"name"` // target/part
	Channel string    `json:"channel"`
	State   string    `json:"state"`
	TS      string    `json:"ts"`
	At      time.Time `json:"at"`
	Error   string    `json:"error"`
	// File is Slack's id of an uploaded file.
	File string `json:"file,omitempty"`
	// Told are the open findings that a digest told its target of, by cluster and
	// id, with the severity that they had.
	Told map[string]report.Severity `json:"told,omitempty"`
}

// ErrElsewhere says that another process is delivering this slot: nothing is
// wrong, and nothing is left to do here.
var ErrElsewhere = errors.New("another process is at it")

func (s *Slots) elsewhere(r *Record, p *Part) error {
	ago := s.Now().Sub(p.At).Round(time.Second)
	return fmt.Errorf("slot %q: part %s was begun %s ago and %w; try again after %s", r.Slot, p.Name, ago, ErrElsewhere, lease)
}

// Poster posts and looks up messages.
type Poster interface {
	Post(ctx context.Context, channel, thread string, m slack.Message, slot string) (slack.Posted, error)
	Find(ctx context.Context, channel, thread, slot, part string, since time.Time) (posted slack.Posted, found, known bool)
	Upload(ctx context.Context, f slack.File) (id string, err error)
	Share(ctx context.Context, channel, thread, id, title string) error
	FindFile(ctx context.Context, channel, thread, id string) (found, known bool)
	Threads() bool
}

// Delivery is what one target gets.
type Delivery struct {
	Target   string
	Channel  string
	Messages []slack.Message
	// Files are attached to the thread.
	Files []slack.File
	// Told is kept with the first message once it is posted.
	Told map[string]report.Severity
}

// A post takes at most postWithin, its waits for rate limits included, so an
// intent older than the lease is of a process that is no longer at it.
const (
	postWithin = 2 * time.Minute
	lease      = 3 * time.Minute
	// An audit that is to post takes at most so long, its digest included.
	underWay = 2 * time.Hour
)

// Slots delivers digests under the store's records.
type Slots struct {
	Archive *archive.Archive
	Poster  Poster
	Now     func() time.Time
	// Fail is called before each step with its name, for tests that stop there.
	Fail func(step string) error
}

func (s *Slots) step(name string) error {
	if s.Fail == nil {
		return nil
	}
	return s.Fail(name)
}

// Begin records that a slot is to be delivered, before anything that may fail:
// a later digest then says that this one is missing. Before the audit there is
// no run yet: it is empty then, and reported is zero.
func (s *Slots) Begin(ctx context.Context, slot, run string, reported time.Time) error {
	_, _, err := s.claim(ctx, slot, run, reported)
	return err
}

// Deliver posts what the slot still lacks. reported is the report's time. It
// gives the record and an error when something could not be posted or its fate
// is unknown.
func (s *Slots) Deliver(ctx context.Context, slot, run string, reported time.Time, deliveries []Delivery) (*Record, error) {
	record, at, err := s.claim(ctx, slot, run, reported)
	if err != nil {
		return nil, err
	}
	if record.Done {
		return record, nil
	}
	if len(record.Parts) == 0 {
		record.Run, record.Reported = run, reported.UTC() // of the try that posts, not of one that died before
	}
	for _, d := range deliveries {
		if !slices.Contains(record.Targets, d.Target) {
			record.Targets = append(record.Targets, d.Target)
		}
	}
	var failed []error
	for _, d := range deliveries {
		errs, stop := s.target(ctx, &at, record, d)
		failed = append(failed, errs...)
		if stop {
			return record, errors.Join(failed...)
		}
	}
	if len(failed) == 0 {
		record.Done = true
		if err := s.save(ctx, &at, record, "done"); err != nil {
			return record, err
		}
	}
	return record, errors.Join(failed...)
}

// target posts what one target still lacks: its first message, then into that
// one's thread the others and the files. stop means that this process is not
// the one to go on.
func (s *Slots) target(ctx context.Context, at *archive.Slot, r *Record, d Delivery) (failed []error, stop bool) {
	head := Part{}
	for i, m := range d.Messages {
		if i > 0 && (!s.Poster.Threads() || head.TS == "") {
			break // a webhook has no thread, and there is none without its head
		}
		part, err := s.part(ctx, at, r, d, m, head.TS)
		if err != nil {
			failed = append(failed, err)
		}
		if part == nil || errors.Is(err, ErrElsewhere) {
			return failed, true
		}
		if i == 0 {
			head = *part
		}
	}
	for _, f := range d.Files {
		if !s.Poster.Threads() || head.TS == "" {
			break
		}
		part, err := s.file(ctx, at, r, d, f, head)
		if err != nil {
			failed = append(failed, err)
		}
		if part == nil || errors.Is(err, ErrElsewhere) {
			return failed, true
		}
		if part.State == Skipped && part.Error == slack.ErrMayNotAttach.Error() {
			// The thread's readers miss the reports: it says why, and the other files are not tried.
			part, err := s.part(ctx, at, r, d, slack.Note("not-attached", "the clusters' reports are not attached: "+part.Error), head.TS)
			if err != nil {
				failed = append(failed, err)
			}
			return failed, part == nil || errors.Is(err, ErrElsewhere)
		}
	}
	return failed, false
}

// claim makes the slot's record, or reads that of an earlier try.
func (s *Slots) claim(ctx context.Context, slot, run string, reported time.Time) (*Record, archive.Slot, error) {
	if err := s.step("claim"); err != nil {
		return nil, archive.Slot{}, err
	}
	record := &Record{SchemaVersion: 1, Slot: slot, Run: run, Begun: s.Now().UTC(), Reported: reported.UTC()}
	body, err := encode(record)
	if err != nil {
		return nil, archive.Slot{}, err
	}
	kept, err := s.Archive.ClaimSlot(ctx, slot, body)
	if err == nil {
		return record, kept, nil
	}
	if !errors.Is(err, store.ErrExists) {
		return nil, archive.Slot{}, err
	}
	if kept, err = s.Archive.ReadSlot(ctx, slot); err != nil {
		return nil, archive.Slot{}, err
	}
	var old Record
	if err := json.Unmarshal(kept.Body, &old); err != nil {
		return nil, archive.Slot{}, fmt.Errorf("slot %q: its record %s is broken: %w; delete it to post again", slot, kept.Key, err)
	}
	if old.Run == "" && run != "" {
		// Begun before an audit that is now over: from here on nobody waits longer than the lease.
		old.Run, old.Reported, old.Begun = run, record.Reported, record.Begun
		if err := s.save(ctx, &kept, &old, "audited"); err != nil {
			return nil, archive.Slot{}, err
		}
	}
	return &old, kept, nil
}

func encode(r *Record) ([]byte, error) {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode slot: %w", err)
	}
	return append(body, '\n'), nil
}

func (s *Slots) save(ctx context.Context, at *archive.Slot, r *Record, step string) error {
	if err := s.step("save " + step); err != nil {
		return err
	}
	body, err := encode(r)
	if err != nil {
		return err
	}
	next, err := s.Archive.UpdateSlot(ctx, *at, body)
	if err != nil {
		if errors.Is(err, store.ErrChanged) {
			return fmt.Errorf("slot %q: its record was changed meanwhile: %w", r.Slot, ErrElsewhere)
		}
		return fmt.Errorf("slot %q: %w", r.Slot, err)
	}
	*at = next
	return nil
}

// part posts one message unless it was. A nil part means that this process has
// to stop: the record could not be written, or another one writes it.
func (s *Slots) part(ctx context.Context, at *archive.Slot, r *Record, d Delivery, m slack.Message, thread string) (*Part, error) {
	name := d.Target + "/" + m.Part
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Name == name })
	if i >= 0 {
		switch p := &r.Parts[i]; p.State {
		case Posted, Skipped:
			return p, nil
		case Intent, Unknown:
			if done, err := s.lookup(ctx, at, r, p, m, thread); done || err != nil {
				return p, err
			}
		}
	} else {
		r.Parts = append(r.Parts, Part{Name: name, Channel: d.Channel})
		i = len(r.Parts) - 1
	}
	p := &r.Parts[i]
	p.State, p.At, p.Error = Intent, s.Now().UTC(), ""
	if m.Part == firstPart {
		p.Told = d.Told
	}
	if err := s.save(ctx, at, r, "intent of "+name); err != nil {
		return nil, err
	}
	if err := s.step("post " + name); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, postWithin)
	defer cancel()
	posted, err := s.Poster.Post(within, d.Channel, thread, m, r.Slot)
	if stop := s.step("posted " + name); stop != nil {
		return nil, stop
	}
	var unknown *slack.UnknownError
	switch {
	case err == nil:
		p.State, p.Channel, p.TS = Posted, firstSet(posted.Channel, d.Channel), posted.TS
	case errors.As(err, &unknown):
		p.State, p.Error = Unknown, err.Error()
	default:
		p.State, p.Error = Failed, err.Error()
	}
	if saved := s.save(ctx, at, r, "result of "+name); saved != nil {
		return nil, errors.Join(err, saved)
	}
	return p, err
}

func firstSet(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// lookup finds out what became of a part that an earlier try meant to post.
// done is false when the channel was read and the message is not in it: then
// it may be posted.
func (s *Slots) lookup(ctx context.Context, at *archive.Slot, r *Record, p *Part, m slack.Message, thread string) (done bool, err error) {
	posted, found, known := s.Poster.Find(ctx, p.Channel, thread, r.Slot, m.Part, p.At)
	switch {
	case found:
		p.State, p.TS, p.Error = Posted, posted.TS, ""
		return true, s.save(ctx, at, r, "lookup of "+p.Name)
	case s.Now().Sub(p.At) < lease:
		return true, s.elsewhere(r, p)
	case known:
		return false, nil
	}
	p.State = Unknown
	result := fmt.Errorf("slot %q: whether part %s was posted is not known and cannot be looked up; it is not posted again", r.Slot, p.Name)
	return true, errors.Join(result, s.save(ctx, at, r, "lookup of "+p.Name))
}
