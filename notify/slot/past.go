package slot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gpuaudit/audit/report"
	"gpuaudit/store/archive"
)

// firstPart is the part that is the digest; the others are its thread's.
const firstPart = "digest"

// History is what the records tell of one target.
type History struct {
	// Last is the time of the report that its last delivered digest was about;
	// zero for none.
	Last time.Time
	// Told are the findings that this digest told it of, by cluster/id, with
	// their severity then; nil where the record does not say.
	Told map[string]report.Severity
	// Missed are the slots since that could not be delivered to it.
	Missed []string
}

// Past reads what a target was told, and what it missed, from the records of
// the last 30 days.
func Past(ctx context.Context, a *archive.Archive, target, except string, now time.Time) (h History, err error) {
	type miss struct {
		at   time.Time
		text string
	}
	var misses []miss
	for kept, err := range a.Slots(ctx, now.AddDate(0, 0, -30)) {
		if err != nil {
			return h, err
		}
		var r Record
		if json.Unmarshal(kept.Body, &r) != nil || r.Slot == except {
			continue
		}
		part, at := r.digestOf(target)
		switch {
		case part.State == Posted:
			if at.After(h.Last) {
				h.Last, h.Told = at, part.Told
			}
		case part.State == "" && (r.Done || now.Sub(r.Begun) < r.within() || (r.Targets != nil && !slices.Contains(r.Targets, target))):
			// not for this target, or under way
		case part.State == "":
			misses = append(misses, miss{at, r.Slot + " (begun, and nothing was posted)"})
		case part.State == Failed || part.State == Unknown || part.State == Intent:
			misses = append(misses, miss{at, fmt.Sprintf("%s (%s)", r.Slot, part.State)})
		}
	}
	for _, m := range misses {
		if m.at.After(h.Last) {
			h.Missed = append(h.Missed, m.text)
		}
	}
	slices.Sort(h.Missed)
	return h, nil
}

// within is how long a slot of which nothing was posted is taken to be under way.
func (r *Record) within() time.Duration {
	if r.Run == "" {
		return underWay
	}
	return lease
}

// digestOf gives a target's first message, the zero Part when there is none, and
// the time of the report.
func (r *Record) digestOf(target string) (Part, time.Time) {
	at := r.Reported
	if at.IsZero() {
		at = r.Begun
	}
	for _, p := range r.Parts {
		if p.Name == target+"/"+firstPart {
			return p, at
		}
	}
	return Part{}, at
}
