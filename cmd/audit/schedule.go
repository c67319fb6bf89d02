package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/spf13/cobra"

	"gpuaudit/cmd/audit/config"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/notify/slot"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// catchUp bounds how long after its time a missed slot is still caught up.
const catchUp = 6 * time.Hour

// maxRun bounds one scheduled run, beside the clusters' own deadlines.
const maxRun = time.Hour

func scheduleCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "schedule", Short: "audit and post on the configured schedule until stopped", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := p.load()
			if err != nil {
				return err
			}
			if file == nil || len(file.Schedule) == 0 {
				return usage(errors.New("schedule needs a configuration with a schedule; name it with -c FILE"))
			}
			if _, err := slackConfig(file); err != nil {
				return err
			}
			a, err := p.archive(cmd.Context(), file)
			if err != nil {
				return err
			}
			return newLoop(file, a).run(cmd.Context())
		},
	}
	p.flags(cmd)
	return cmd
}

// loop runs the entries of a schedule, one run at a time.
type loop struct {
	file    *config.File
	archive *archive.Archive
	gauges  *gauges
	busy    sync.Mutex
	runs    sync.WaitGroup
}

func newLoop(file *config.File, a *archive.Archive) *loop {
	return &loop{file: file, archive: a, gauges: newGauges()}
}

// run serves health and metrics and runs the entries until the context ends;
// a run that is under way is finished first.
func (l *loop) run(ctx context.Context) error {
	server, err := l.listen()
	if err != nil {
		return usage(err)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			slog.Warn("the health server did not stop in time", "error", err)
		}
	}()
	l.gauges.ready()
	l.missed(ctx, time.Now())
	for {
		next, entries := l.next(time.Now())
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			slog.Info("stopping: waiting for the run under way")
			l.runs.Wait()
			return nil
		case <-timer.C:
		}
		for _, e := range entries {
			l.start(ctx, e, next)
		}
	}
}

// missed catches up, once, the newest posting entry that fell into a downtime:
// its slot has no record although its time is past, or was begun and cut off.
func (l *loop) missed(ctx context.Context, now time.Time) {
	var entry config.Entry
	var at time.Time
	for _, e := range l.file.Schedule {
		if e.Post != nil && !*e.Post {
			continue
		}
		for t := nextOf(e, now.Add(-catchUp)); t.Before(now); t = nextOf(e, t) {
			if t.After(at) {
				entry, at = e, t
			}
		}
	}
	if c, err := slackConfig(l.file); at.IsZero() || err != nil || c == nil {
		return
	}
	if !l.unfinished(ctx, slotName(entry, at)) {
		return
	}
	slog.Info("catching up a slot that was missed", "entry", name(entry), "time", at.UTC().Format(time.RFC3339))
	l.start(ctx, entry, at)
}

// unfinished is true for a slot without a record, and for one that was begun and
// cut off: the record knows what of it was posted.
func (l *loop) unfinished(ctx context.Context, name string) bool {
	kept, err := l.archive.ReadSlot(ctx, name)
	if err != nil {
		return errors.Is(err, store.ErrNotFound)
	}
	var r slot.Record
	return json.Unmarshal(kept.Body, &r) == nil && !r.Done
}

// next is the next moment of the schedule and the entries that are due then.
func (l *loop) next(after time.Time) (time.Time, []config.Entry) {
	var at time.Time
	var due []config.Entry
	for _, e := range l.file.Schedule {
		t := nextOf(e, after)
		switch {
		case at.IsZero() || t.Before(at):
			at, due = t, []config.Entry{e}
		case t.Equal(at):
			due = append(due, e)
		}
	}
	return at, due
}

// nextOf gives an entry's next moment. Cron and time zone were checked before.
func nextOf(e config.Entry, after time.Time) time.Time {
	zone, err := time.LoadLocation(e.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	s, err := cron.ParseStandard(e.Cron)
	if err != nil {
		return after.Add(24 * time.Hour)
	}
	return s.Next(after.In(zone))
}

// start runs an entry unless a run is under way: then it is skipped, and said.
func (l *loop) start(ctx context.Context, e config.Entry, at time.Time) {
	if !l.busy.TryLock() {
		slog.Warn("skipped: the run before is still under way", "entry", name(e), "time", at.UTC().Format(time.RFC3339))
		l.gauges.skipped()
		return
	}
	l.runs.Go(func() {
		defer l.busy.Unlock()
		l.once(context.WithoutCancel(ctx), e, at)
	})
}

func name(e config.Entry) string {
	if e.Name != "" {
		return e.Name
	}
	return e.Cron
}

// slotName is the scheduled time, so that two replicas mean the same slot.
func slotName(e config.Entry, at time.Time) string {
	return strings.NewReplacer(" ", "_", "/", "-", "*", "x").Replace(name(e)) + "-" + at.UTC().Format("20060102T150405Z")
}

func (l *loop) once(ctx context.Context, e config.Entry, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	begun := time.Now()
	if c, err := slackConfig(l.file); err == nil && c != nil && (e.Post == nil || *e.Post) {
		beginSlot(ctx, l.archive, slotName(e, at))
	}
	list, err := targets(l.file, nil)
	if err == nil {
		clusters, now := readAll(ctx, list, l.file)
		var outcome *pipeline.Outcome
		outcome, err = pipeline.Run(ctx, clusters, pipeline.Options{Now: now, Version: version, Archive: l.archive, Save: true, Settings: settingsOf(l.file)})
		if err == nil {
			l.gauges.ran(outcome, time.Since(begun))
			err = errors.Join(outcome.Err(), l.post(ctx, e, at, outcome))
			if outcome.Incomplete {
				slog.Warn("incomplete: a cluster or a check could not be judged", "run", outcome.Report.RunID)
			}
		}
	}
	if err != nil {
		l.gauges.failed()
		slog.Error("run", "entry", name(e), "error", clean(err.Error()))
		return
	}
	slog.Info("run", "entry", name(e), "seconds", int(time.Since(begun).Seconds()))
	if keep := time.Duration(l.file.Store.Keep); keep > 0 {
		if _, err := l.archive.Prune(ctx, keep); err != nil {
			slog.Warn("prune", "error", clean(err.Error()))
		}
	}
}

func (l *loop) post(ctx context.Context, e config.Entry, at time.Time, o *pipeline.Outcome) error {
	if e.Post != nil && !*e.Post {
		return nil
	}
	c, err := slackConfig(l.file)
	if err != nil || c == nil {
		return err
	}
	out := &outlet{config: c, file: l.file, archive: l.archive, kept: o.Kept}
	err = out.deliver(ctx, o.Report, slotName(e, at))
	if errors.Is(err, slot.ErrElsewhere) {
		slog.Info("digest: another process delivers this slot", "slot", slotName(e, at))
		return nil
	}
	if err != nil {
		l.gauges.delivery(false)
		return fmt.Errorf("digest: %w", err)
	}
	l.gauges.delivery(true)
	return nil
}

// listen serves /healthz, /readyz and /metrics.
func (l *loop) listen() (*http.Server, error) {
	address := l.file.Listen
	if address == "" {
		address = ":8080"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address", err)
	}
	server := &http.Server{Handler: l.gauges.handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			slog.Error("health server", "error", err)
		}
	}()
	return server, nil
}
