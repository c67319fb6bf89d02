package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/collect"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/notify/slack"
	"gpuaudit/store"
)

func doctorCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "doctor", Short: "check configuration, clusters, store and Slack; nothing is posted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return examine(cmd, &p) },
	}
	p.flags(cmd)
	return cmd
}

// examination prints a line a matter: ok, or what is wrong and the one thing to do.
type examination struct {
	cmd *cobra.Command
	bad int
}

func (e *examination) ok(what, format string, args ...any) {
	fprint(e.cmd.OutOrStdout(), "ok     %-28s %s\n", clean(what), clean(fmt.Sprintf(format, args...)))
}

func (e *examination) wrong(what, format string, args ...any) {
	e.bad++
	fprint(e.cmd.OutOrStdout(), "WRONG  %-28s %s\n", clean(what), clean(fmt.Sprintf(format, args...)))
}

func examine(cmd *cobra.Command, p *place) error {
	e := &examination{cmd: cmd}
	file, err := p.load()
	if err != nil {
		e.wrong("configuration", "%v", err)
		return &codeError{code: exitUsage, quiet: true}
	}
	if file != nil {
		e.ok("configuration", "%s: %d clusters, %d schedule entries", p.config, len(file.Clusters), len(file.Schedule))
	} else {
		e.ok("configuration", "none: the current kubeconfig context is audited")
	}
	ctx := cmd.Context()
	list, err := targets(file, nil)
	if err != nil {
		e.wrong("clusters", "%v", err)
	}
	for _, t := range list {
		e.cluster(ctx, t)
	}
	e.store(ctx, p, file)
	e.slack(ctx, file)
	e.checklist(ctx, file)
	if e.bad > 0 {
		return &codeError{code: exitIncomplete, quiet: true}
	}
	return nil
}

func (e *examination) cluster(ctx context.Context, t collect.Target) {
	what := "cluster " + t.Name
	h := collect.Examine(ctx, t)
	if h.Err != "" {
		e.wrong(what, "%s", h.Err)
		return
	}
	e.ok(what, "reached: Kubernetes %s, server time %s, local clock %s ahead", h.ServerVersion, h.ServerTime.Format(time.RFC3339), h.Skew.Round(time.Second))
	if h.Skew.Abs() > time.Minute {
		e.wrong(what+" clock", "local and server clocks differ by %s: set this machine's clock", h.Skew.Round(time.Second))
	}
	for _, r := range h.Missing {
		e.wrong(what+" rights", "%s: grant it with the role in deploy/rbac.yaml, or accept the gap in the configuration", r)
	}
	if len(h.Missing) == 0 {
		e.ok(what+" rights", "every needed list is allowed")
	}
	if h.Platform != "" {
		e.ok(what+" platform", "%s", h.Platform)
	}
}

func (e *examination) store(ctx context.Context, p *place, file *config.File) {
	a, err := p.archive(ctx, file)
	if err != nil {
		e.wrong("store", "%v", err)
		return
	}
	found, err := store.Probe(ctx, a.Store(), store.NewRun(time.Now()))
	if err != nil {
		e.wrong("store", "%v", err)
		return
	}
	if found.CreateHonoured && found.ReplaceHonoured {
		e.ok("store", "written, read and removed; it honours conditions, so several writers are safe")
		return
	}
	e.wrong("store conditions", "it does not honour conditions (create %v, replace %v): set store.conditions to off, and let one process write each cluster", found.CreateHonoured, found.ReplaceHonoured)
}

func (e *examination) slack(ctx context.Context, file *config.File) {
	c, err := slackConfig(file)
	if err != nil {
		e.wrong("slack", "%v", err)
		return
	}
	if c == nil {
		e.ok("slack", "not configured: nothing is posted")
		return
	}
	if err := c.Resolve(os.ReadFile, os.Getenv); err != nil {
		e.wrong("slack", "%v", err)
		return
	}
	poster, err := slack.New(*c)
	if err != nil {
		e.wrong("slack", "%v", err)
		return
	}
	var channels []string
	for _, t := range c.Targets() {
		if !slices.Contains(channels, t.Channel) {
			channels = append(channels, t.Channel)
		}
	}
	for _, found := range poster.Probe(ctx, channels) {
		if found.OK {
			e.ok(found.What, "%s", found.Words)
		} else {
			e.wrong(found.What, "%s", found.Words)
		}
	}
}

// checklist asks for the published checklist, if there is one.
func (e *examination) checklist(ctx context.Context, file *config.File) {
	if file == nil || file.Checklist.BaseURL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, file.Checklist.BaseURL, nil)
	if err != nil {
		e.wrong("checklist", "%v", err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e.wrong("checklist", "%s cannot be reached: publish docs/checklist.md there, or leave baseURL out", file.Checklist.BaseURL)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode >= 400 {
		e.wrong("checklist", "%s answers HTTP %d: publish docs/checklist.md there", file.Checklist.BaseURL, response.StatusCode)
		return
	}
	e.ok("checklist", "%s answers", file.Checklist.BaseURL)
}
