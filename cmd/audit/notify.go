package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	kjson "sigs.k8s.io/json"

	"gpuaudit/audit"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/notify/digest"
	"gpuaudit/notify/slack"
	"gpuaudit/notify/slot"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// slackConfig reads the slack block, which was checked with the rest of the
// configuration; nil when there is none.
func slackConfig(file *config.File) (*slack.Config, error) {
	if file == nil {
		return nil, nil
	}
	c, problems := readSlack(file)
	if len(problems) > 0 {
		return nil, usage(fmt.Errorf("config: %s", strings.Join(problems, "\n  ")))
	}
	return c, nil
}

// readSlack reads the slack block and lists everything that is wrong with it.
func readSlack(file *config.File) (*slack.Config, []string) {
	if len(file.Slack) == 0 || string(file.Slack) == "null" {
		return nil, nil
	}
	var c slack.Config
	strict, err := kjson.UnmarshalStrict(file.Slack, &c)
	var problems []string
	if err != nil {
		problems = config.Mismatches(file.Slack, &c, "slack")
		if len(problems) == 0 {
			problems = append(problems, "slack: "+strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	for _, e := range strict {
		problems = append(problems, "slack: "+e.Error())
	}
	if err == nil {
		problems = append(problems, c.Check(clusterNames(file), audit.Checks())...)
		c.TokenFile, c.WebhookFile = file.Path(c.TokenFile), file.Path(c.WebhookFile)
	}
	return &c, problems
}

func clusterNames(file *config.File) []string {
	var out []string
	for i := range file.Clusters {
		out = append(out, file.Clusters[i].Name)
	}
	return out
}

// slackProblems is readSlack for config.Load, so that all problems come at once.
func slackProblems(file *config.File) []string {
	_, problems := readSlack(file)
	return problems
}

// outlet is everything that a digest needs beside the report.
type outlet struct {
	config  *slack.Config
	file    *config.File
	archive *archive.Archive
	kept    *archive.ReportRef
}

// build makes the digest of every target that wants one.
func (o *outlet) build(ctx context.Context, r *report.Report, slotName string) ([]slot.Delivery, []*digest.Digest, error) {
	targets := []slack.Target{{Name: "main"}}
	if o.config != nil {
		targets = o.config.Targets()
	}
	var deliveries []slot.Delivery
	var digests []*digest.Digest
	reportURL, until := o.url(ctx, "report.html")
	checklistURL, _ := o.url(ctx, "checklist.html")
	heads, resolved := o.past(ctx, r)
	for _, t := range targets {
		in := digest.Input{Report: r, Route: t.Route, ReportURL: reportURL, ReportUntil: until, ChecklistURL: checklistURL, Heads: map[string]string{}}
		if o.archive != nil {
			past, err := slot.Past(ctx, o.archive, t.Name, slotName, time.Now())
			if err != nil {
				return nil, nil, err
			}
			in.Last, in.Told, in.Missed = past.Last, past.Told, past.Missed
			unfinished, err := unfinishedShares(ctx, o.archive, in.Last, slotName, time.Now())
			if err != nil {
				return nil, nil, err
			}
			in.Missed = append(in.Missed, unfinished...)
			in.Heads, in.Resolved = heads, resolved
		}
		d := digest.Build(in)
		digests = append(digests, d)
		if o.config == nil || o.config.Wanted(d) {
			files := o.files(ctx, d, r, checklistURL)
			deliveries = append(deliveries, slot.Delivery{Target: t.Name, Channel: t.Channel, Messages: slack.Messages(d, o.threads()), Files: files, Told: d.Told})
		}
	}
	return deliveries, digests, nil
}

// threads is false for a webhook, which posts one message.
func (o *outlet) threads() bool {
	return o.config == nil || (o.config.Webhook == "" && o.config.WebhookFile == "" && o.config.WebhookEnv == "")
}

// past reads what the store knows of the clusters: the heads of their chains,
// and what was resolved in runs that may have posted nothing.
func (o *outlet) past(ctx context.Context, r *report.Report) (heads map[string]string, resolved map[string][]report.Finding) {
	heads, resolved = map[string]string{}, map[string][]report.Finding{}
	if o.archive == nil {
		return heads, resolved
	}
	for i := range r.Clusters {
		name := r.Clusters[i].Name
		head, err := o.archive.Head(ctx, name)
		switch {
		case err == nil:
			heads[name] = head.SHA256()
		case !errors.Is(err, store.ErrNotFound):
			slog.Warn("digest: the chain's head cannot be read", "cluster", name, "error", clean(err.Error()))
		}
		kept, err := o.archive.LatestSnapshot(ctx, name)
		if err == nil {
			var s *snapshot.Snapshot
			if s, err = snapshot.Decode(kept.Body); err == nil {
				resolved[name] = s.Resolved
			}
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			slog.Warn("digest: the last snapshot cannot be read, so what was resolved before this run is not told", "cluster", name, "error", clean(err.Error()))
		}
	}
	return heads, resolved
}

// mostFiles bounds the reports that are attached to one digest.
const mostFiles = 20

// files are the clusters' own reports, each naming no other cluster, for the
// thread of a digest.
func (o *outlet) files(ctx context.Context, d *digest.Digest, r *report.Report, checklistURL string) []slack.File {
	if o.kept == nil || o.archive == nil || !o.threads() || (o.config != nil && o.config.AttachReports != nil && !*o.config.AttachReports) {
		return nil
	}
	var out []slack.File
	if n := len(d.Attach); n > mostFiles {
		d.Notes = append(d.Notes, fmt.Sprintf("the reports of %d clusters are attached, those of %d more are in the store", mostFiles, n-mostFiles))
	}
	for _, name := range d.Attach[:min(mostFiles, len(d.Attach))] {
		segment := store.Segment(name)
		body, err := o.archive.LoadFile(ctx, *o.kept, segment+"/report.html")
		if err != nil {
			slog.Warn("attachment", "cluster", name, "error", err)
			d.Notes = append(d.Notes, fmt.Sprintf("the report of %s could not be read from the store and is not attached", name))
			continue
		}
		body = linked(body, checklistURL)
		out = append(out, slack.File{Name: fmt.Sprintf("gpu-audit-%s-%s.html", segment, r.GeneratedAt.UTC().Format("2006-01-02")), Title: "GPU audit of " + name, Body: body})
	}
	return out
}

// linked makes a page's links to the checklist beside it lead there from where a
// reader of Slack saves it.
func linked(page []byte, checklistURL string) []byte {
	if !digest.Linkable(checklistURL) {
		return page
	}
	return bytes.ReplaceAll(page, []byte(`"../checklist.html`), []byte(`"`+html.EscapeString(checklistURL)))
}

// url links to a file of the kept report: by the configured base, else presigned,
// else the store's own. A presigned link lives as long as the configuration
// says, and no longer than the credentials that sign it; until is then set.
func (o *outlet) url(ctx context.Context, name string) (link string, until time.Time) {
	if o.kept == nil || o.archive == nil {
		return "", time.Time{}
	}
	if o.file != nil && o.file.Reports.BaseURL != "" {
		return strings.TrimSuffix(o.file.Reports.BaseURL, "/") + "/" + strings.TrimPrefix(o.kept.Key(name), "reports/"), time.Time{}
	}
	if signer, ok := o.archive.Store().(store.Presigner); ok && o.file != nil && o.file.Reports.Presign != "" {
		if link, until, err := signer.Presign(ctx, o.kept.Key(name), o.file.Reports.Presign.Or(0)); err == nil {
			return link, until
		}
	}
	return o.archive.FileURL(*o.kept, name), time.Time{}
}

// deliver posts a report's digest in a slot. The slot is begun before anything
// that may fail, so that the next digest knows of it.
func (o *outlet) deliver(ctx context.Context, r *report.Report, slotName string) error {
	s := &slot.Slots{Archive: o.archive, Now: time.Now}
	if err := s.Begin(ctx, slotName, r.RunID, r.GeneratedAt); err != nil {
		return err
	}
	if err := o.config.Resolve(os.ReadFile, os.Getenv); err != nil {
		return err
	}
	poster, err := slack.New(*o.config)
	if err != nil {
		return err
	}
	s.Poster = poster
	deliveries, _, err := o.build(ctx, r, slotName)
	if err != nil {
		return err
	}
	_, err = s.Deliver(ctx, slotName, r.RunID, r.GeneratedAt, deliveries)
	return err
}

// notifies tells whether this run is to post, and in which slot: the flag's,
// else the Job's name in a CronJob, which is the same for its retries, else
// one of its own.
func (f *runFlags) notifies(run string) (string, bool) {
	if f.slot == "" && f.notify {
		f.slot = os.Getenv("AUDIT_SLOT")
	}
	switch {
	case f.slot != "":
		return f.slot, true
	case f.notify:
		return "run-" + run, true
	}
	return "", false
}

// begin records a slot before the audit, so that the next digest tells of one
// whose audit died. Shares record what they finished themselves.
func (f *runFlags) begin(ctx context.Context, a *archive.Archive, part *share) {
	name, wanted := f.notifies("")
	if !wanted || f.slot == "" || f.dryRun || a == nil || part != nil {
		return
	}
	beginSlot(ctx, a, name)
}

// beginSlot records that a slot is to be delivered when its audit is over.
func beginSlot(ctx context.Context, a *archive.Archive, name string) {
	s := &slot.Slots{Archive: a, Now: time.Now}
	if err := s.Begin(ctx, name, "", time.Time{}); err != nil {
		// What is read and judged is of use without it; the digest itself will fail if this goes on.
		slog.Warn("digest: that this slot was begun could not be recorded", "slot", name, "error", clean(err.Error()))
	}
}

// canPost checks, before anything is read, the slack block and that a run which
// is to post has one.
func (f *runFlags) canPost(file *config.File) error {
	c, err := slackConfig(file)
	if err != nil {
		return err
	}
	if _, wanted := f.notifies(""); wanted && c == nil && !f.dryRun {
		return usage(errors.New("there is no slack block in the configuration to post with"))
	}
	return nil
}

// post delivers the digest of a run, or shows it with --dry-run.
func (f *runFlags) post(cmd *cobra.Command, file *config.File, a *archive.Archive, r *report.Report, kept *archive.ReportRef) error {
	slotName, wanted := f.notifies(r.RunID)
	if !wanted {
		return nil
	}
	c, err := slackConfig(file)
	if err != nil {
		return err
	}
	if c == nil && !f.dryRun {
		return usage(errors.New("there is no slack block in the configuration to post with"))
	}
	o := &outlet{config: c, file: file, archive: a, kept: kept}
	if f.dryRun {
		_, digests, err := o.build(cmd.Context(), r, slotName)
		if err != nil {
			return incomplete(err)
		}
		for _, d := range digests {
			fprint(cmd.ErrOrStderr(), "would be posted:\n%s", digest.Text(d))
		}
		return nil
	}
	if a == nil {
		return usage(errors.New("--notify needs a store: it holds what was posted, so that nothing is posted twice"))
	}
	if err := o.deliver(cmd.Context(), r, slotName); err != nil {
		return incomplete(fmt.Errorf("digest: %w", err))
	}
	return nil
}

func digestCommand() *cobra.Command {
	var p place
	var run, form string
	cmd := &cobra.Command{
		Use: "digest", Short: "show what would be posted about a kept report, without posting", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", form, "text", "blocks", "html"); err != nil {
				return err
			}
			file, err := p.load()
			if err != nil {
				return err
			}
			c, err := slackConfig(file)
			if err != nil {
				return err
			}
			a, err := p.existing(cmd.Context(), file)
			if err != nil {
				return err
			}
			r, err := loadReport(cmd, a, run)
			if err != nil {
				return err
			}
			ref, err := a.FindReport(cmd.Context(), run)
			if err != nil {
				return usage(err)
			}
			o := &outlet{config: c, file: file, archive: a, kept: &ref}
			deliveries, digests, err := o.build(cmd.Context(), r, "")
			if err != nil {
				return incomplete(err)
			}
			if form == "text" {
				for _, d := range digests {
					fprint(cmd.OutOrStdout(), "%s", digest.Text(d))
				}
				return nil
			}
			messages := []slack.Message{}
			for _, d := range deliveries {
				messages = append(messages, d.Messages...)
			}
			encode := slack.EncodeMessages
			if form == "html" {
				encode = slack.Preview
			}
			body, err := encode(messages)
			if err != nil {
				return incomplete(err)
			}
			return write(cmd, "", body)
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&run, "run", "latest", "the report's `RUN`, or latest")
	cmd.Flags().StringVarP(&form, "output", "o", "text", "text; blocks: a JSON list of Slack messages; html: about as Slack shows them")
	return cmd
}
