package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronProblem says what is wrong with an entry's cron expression, "" for nothing.
func (e *Entry) cronProblem() string {
	text := strings.TrimSpace(e.Cron)
	every, isEvery := strings.CutPrefix(text, "@every ")
	switch {
	case text == "":
		return `is missing; want five fields (minute hour day month weekday), such as "0 8 * * 1-5"`
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		// The parser takes these too, and fails hard where no field follows.
		return fmt.Sprintf("%q has a time zone in it; put that into timeZone", e.Cron)
	case isEvery:
		d, err := time.ParseDuration(strings.TrimSpace(every))
		if err != nil || d < time.Second || d%time.Second != 0 {
			return fmt.Sprintf("%q: want @every with whole seconds, such as @every 30m", e.Cron)
		}
		if e.Post == nil || *e.Post {
			// Counted from the start of the program, it names other slots after each restart.
			return fmt.Sprintf("%q begins anew with each start, so a digest could come twice; want five fields, or post: false", e.Cron)
		}
	}
	s, err := cron.ParseStandard(text)
	if err != nil {
		return fmt.Sprintf(`%q is no cron expression (%v); want five fields (minute hour day month weekday), such as "0 8 * * 1-5"`, e.Cron, err)
	}
	// The parser looks five years ahead, so that a leap day is found from anywhere.
	if s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return fmt.Sprintf("%q never comes: no such day is in any month", e.Cron)
	}
	return ""
}
