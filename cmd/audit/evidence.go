package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/markdown"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/snapshot"
	"gpuaudit/cmd/audit/config"
	"gpuaudit/cmd/audit/evidence"
	"gpuaudit/cmd/audit/pipeline"
	"gpuaudit/store"
	"gpuaudit/store/archive"
)

// evidenceFlags say what goes into a bundle.
type evidenceFlags struct {
	place
	cluster, run, out string
	findings, nodes   []string
	redact            bool
}

func evidenceCommand() *cobra.Command {
	f := &evidenceFlags{}
	cmd := &cobra.Command{
		Use: "evidence --cluster NAME --out FILE.zip", Short: "make a bundle for a vendor: what was seen, when, and that nothing was changed since", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.make(cmd) },
	}
	f.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.cluster, "cluster", "", "the cluster's `NAME` (required)")
	fl.StringVar(&f.run, "run", "latest", "the report's `RUN`, or latest")
	fl.StringArrayVar(&f.findings, "finding", nil, "only this finding, by `ID`; may be repeated")
	fl.StringArrayVar(&f.nodes, "node", nil, "only findings of this `NODE`; may be repeated")
	fl.BoolVar(&f.redact, "redact", false, "replace namespaces, workloads, pods, images, internal hosts and redaction.patterns by pseudonyms")
	fl.StringVar(&f.out, "out", "", "the zip `FILE` to write (required)")
	return cmd
}

func (f *evidenceFlags) make(cmd *cobra.Command) error {
	if f.cluster == "" || f.out == "" {
		return usage(errors.New("--cluster and --out are required"))
	}
	if err := checkOut(f.out); err != nil {
		return err
	}
	if info, err := os.Stat(f.out); f.redact && (f.out == "-" || (err == nil && !info.Mode().IsRegular())) {
		return usage(fmt.Errorf("--out %q is no regular file; --redact writes the pseudonyms beside the bundle, so name one", f.out))
	}
	file, err := f.load()
	if err != nil {
		return err
	}
	a, err := f.existing(cmd.Context(), file)
	if err != nil {
		return err
	}
	r, err := loadReport(cmd, a, f.run)
	if err != nil {
		return err
	}
	if r, err = report.Only(r, f.cluster); err != nil {
		return usage(err)
	}
	if err := f.restrict(&r.Clusters[0]); err != nil {
		return err
	}
	body, names, err := f.bundle(cmd.Context(), a, file, r)
	if err != nil {
		return incomplete(err)
	}
	if err := write(cmd, f.out, body); err != nil {
		return err
	}
	if f.redact {
		raw, err := json.MarshalIndent(names, "", "  ")
		if err != nil {
			return incomplete(err)
		}
		if err := write(cmd, f.out+".names.json", append(raw, '\n')); err != nil {
			return err
		}
		fprint(cmd.ErrOrStderr(), "the pseudonyms are in %s.names.json: it stays with you\n", clean(f.out))
	}
	if f.out != "-" {
		fprint(cmd.OutOrStdout(), "%s\n", clean(f.out))
	}
	return nil
}

// restrict keeps what was asked for of a cluster's findings.
func (f *evidenceFlags) restrict(c *report.Cluster) error {
	if len(f.findings) == 0 && len(f.nodes) == 0 {
		return nil
	}
	for _, id := range f.findings {
		if !slices.ContainsFunc(c.Findings, func(x report.Finding) bool { return x.ID == id }) {
			return usage(fmt.Errorf("--finding %q is not in run %s of cluster %q; it has %s", id, f.run, f.cluster, known(findingIDs(c))))
		}
	}
	nodes := nodeNames(c)
	for _, name := range f.nodes {
		if !slices.Contains(nodes, name) {
			return usage(fmt.Errorf("--node %q is not in run %s of cluster %q; it has %s", name, f.run, f.cluster, known(nodes)))
		}
	}
	wanted := func(x *report.Finding) bool {
		return slices.Contains(f.findings, x.ID) || (x.Node != "" && slices.Contains(f.nodes, x.Node))
	}
	c.Findings = slices.DeleteFunc(c.Findings, func(x report.Finding) bool { return !wanted(&x) })
	c.Repairs = slices.DeleteFunc(c.Repairs, func(x report.Repair) bool {
		return !slices.ContainsFunc(c.Findings, func(y report.Finding) bool { return y.ID == x.Finding })
	})
	return nil
}

func findingIDs(c *report.Cluster) []string {
	var ids []string
	for i := range c.Findings {
		ids = append(ids, c.Findings[i].ID)
	}
	return ids
}

// nodeNames are the nodes that there are and those that findings still tell of.
func nodeNames(c *report.Cluster) []string {
	var names []string
	for i := range c.Nodes {
		names = append(names, c.Nodes[i].Name)
	}
	for i := range c.Findings {
		if c.Findings[i].Node != "" {
			names = append(names, c.Findings[i].Node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bundle puts the files together.
func (f *evidenceFlags) bundle(ctx context.Context, a *archive.Archive, file *config.File, r *report.Report) ([]byte, map[string]string, error) {
	c := &r.Clusters[0]
	since := earliest(c)
	h := history.Build(c.Name, snapshots(ctx, a, c.Name, since), history.Filter{})
	if len(f.nodes) > 0 {
		h.Changes = slices.DeleteFunc(h.Changes, func(x history.Change) bool { return !slices.Contains(f.nodes, x.Node) })
	}
	headers, err := a.Headers(ctx, c.Name, since)
	if err != nil {
		return nil, nil, err
	}
	if len(headers) == 0 {
		return nil, nil, fmt.Errorf("the chain of cluster %q is not in the store, so nothing would show when any of this was seen: latest.json and the headers below %q are gone; restore them", c.Name, store.ChainPrefix(c.Name))
	}
	nodes, err := nodesBeforeAfter(ctx, a, c, since)
	if err != nil {
		return nil, nil, err
	}
	var names map[string]string
	trend := figures(ctx, a, c)
	if f.redact {
		var patterns []string
		if file != nil {
			patterns = file.Redaction.Patterns
		}
		redaction, err := evidence.NewRedaction(c, patterns)
		if err != nil {
			return nil, nil, err
		}
		if r, err = redaction.Report(r); err != nil {
			return nil, nil, err
		}
		c, names = &r.Clusters[0], redaction.Names
		renameClasses(trend, redaction.Text)
	}
	files, err := evidenceFiles(r, h, nodes, trend)
	if err != nil {
		return nil, nil, err
	}
	var vendor config.Vendor
	if file != nil && file.Cluster(f.cluster) != nil {
		vendor = file.Cluster(f.cluster).Vendor
	}
	files["ticket.md"] = ticket(r, c, vendor)
	m := evidence.Manifest{SchemaVersion: 1, Cluster: c.Name, Run: r.RunID, CreatedAt: r.GeneratedAt, Tool: "audit " + version, Redacted: f.redact}
	var key *minisign.PrivateKey
	if file != nil && file.Signing.KeyFile != "" {
		k, err := minisign.PrivateKeyFromFile(os.Getenv("AUDIT_KEY_PASSWORD"), file.Signing.KeyFile)
		if err != nil {
			return nil, nil, fmt.Errorf("signing key %q cannot be read: %w; its password is taken from AUDIT_KEY_PASSWORD", file.Signing.KeyFile, err)
		}
		key = &k
	}
	body, err := evidence.Pack(m, files, headers, key)
	return body, names, err
}

// earliest is when the oldest of the findings was first seen, a day before it
// to show the state before.
func earliest(c *report.Cluster) time.Time {
	var t time.Time
	for _, f := range c.Findings {
		if f.FirstSeen != nil && (t.IsZero() || f.FirstSeen.Before(t)) {
			t = *f.FirstSeen
		}
	}
	return t
}

func snapshots(ctx context.Context, a *archive.Archive, cluster string, since time.Time) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		from := since
		if !from.IsZero() {
			from = from.AddDate(0, 0, -8)
		}
		for v, err := range pipeline.Versions(ctx, a, cluster, from, time.Time{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(v.Snapshot, v.Err) {
				return
			}
		}
	}
}

// nodesBeforeAfter gives the findings' nodes as the last snapshot before the
// change and the newest one kept them.
func nodesBeforeAfter(ctx context.Context, a *archive.Archive, c *report.Cluster, since time.Time) (any, error) {
	wanted := map[string]bool{}
	for _, f := range c.Findings {
		if f.Node != "" {
			wanted[f.Node] = true
		}
	}
	type view struct {
		At    time.Time       `json:"at"`
		Run   string          `json:"run"`
		Nodes []snapshot.Node `json:"nodes"`
	}
	var before, after *view
	for s, err := range snapshots(ctx, a, c.Name, since) {
		if err != nil {
			return nil, err
		}
		v := &view{At: s.CollectedAt, Run: s.Run}
		for _, n := range s.Nodes {
			if wanted[n.Name] {
				v.Nodes = append(v.Nodes, n)
			}
		}
		if before == nil || s.CollectedAt.Before(since) {
			before = v
		}
		after = v
	}
	return map[string]*view{"before": before, "after": after}, nil
}

func evidenceFiles(r *report.Report, h *history.History, nodes any, trend []page.TrendPoint) (map[string][]byte, error) {
	c := &r.Clusters[0]
	files := map[string][]byte{}
	for name, v := range map[string]any{"findings.json": c.Findings, "pods.json": c.Pending, "gaps.json": c.Gaps, "nodes.json": nodes} {
		body, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		files[name] = append(body, '\n')
	}
	var err error
	if files["history.json"], err = history.JSON(h); err != nil {
		return nil, err
	}
	if files["report.html"], err = page.Render(r, page.Options{History: map[string][]history.Change{c.Name: h.Changes}, Trend: map[string][]page.TrendPoint{c.Name: trend}}); err != nil {
		return nil, err
	}
	if files["report.json"], err = report.Encode(r); err != nil {
		return nil, err
	}
	files["report.md"] = markdown.Render(r)
	files["method.md"] = []byte(method)
	return files, nil
}

func verifyCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "verify FILE.zip", Short: "check an evidence bundle, offline",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("give one bundle"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := os.ReadFile(args[0])
			if err != nil {
				return usage(fmt.Errorf("bundle %q: %w", args[0], plainError(err)))
			}
			var want *minisign.PublicKey
			if key != "" {
				k, err := minisign.PublicKeyFromFile(key)
				if err != nil {
					return usage(fmt.Errorf("--public-key %q is no public key: %w", key, err))
				}
				want = &k
			}
			v, err := evidence.Verify(body, want)
			if err != nil {
				return &codeError{code: exitFinding, err: err}
			}
			fprint(cmd.OutOrStdout(), "cluster %s, run %s, %d files, chain of %d headers\n", clean(v.Manifest.Cluster), clean(v.Manifest.Run), len(v.Manifest.Files), v.Headers)
			fprint(cmd.OutOrStdout(), "chain head %s\n", cmp.Or(v.HeadSHA256, "none"))
			if !v.Covers {
				fprint(cmd.OutOrStdout(), "no header is of run %s: that run saw nothing of the cluster, or its header is missing\n", clean(v.Manifest.Run))
			}
			switch {
			case v.Signed != "":
				fprint(cmd.OutOrStdout(), "signed by %s\n", v.Signed)
			default:
				fprint(cmd.OutOrStdout(), "no valid signature\n")
			}
			if len(v.Problems) == 0 {
				fprint(cmd.OutOrStdout(), "everything verifies\n")
				return nil
			}
			for _, p := range v.Problems {
				fprint(cmd.OutOrStdout(), "WRONG: %s\n", clean(p))
			}
			return &codeError{code: exitFinding, quiet: true}
		},
	}
	cmd.Flags().StringVar(&key, "public-key", "", "the public key `FILE` that must have signed the bundle")
	return cmd
}

func keygenCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "keygen --out FILE", Short: "make a signing key for evidence", Args: cobra.NoArgs,
		Long: "Writes the private key to FILE, encrypted with the password in AUDIT_KEY_PASSWORD (empty: only as safe as the file), and the public key to FILE.pub.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage(errors.New("--out is missing"))
			}
			if _, err := os.Stat(out); err == nil {
				return usage(fmt.Errorf("--out %q exists; a key is never overwritten", out))
			}
			public, private, err := minisign.GenerateKey(rand.Reader)
			if err != nil {
				return incomplete(err)
			}
			body, err := minisign.EncryptKey(os.Getenv("AUDIT_KEY_PASSWORD"), private)
			if err != nil {
				return incomplete(err)
			}
			text, err := public.MarshalText()
			if err != nil {
				return incomplete(err)
			}
			if err := os.WriteFile(out, body, 0o600); err != nil {
				return usage(fmt.Errorf("key %q: %w", out, plainError(err)))
			}
			if err := os.WriteFile(out+".pub", append(text, '\n'), 0o644); err != nil {
				return usage(fmt.Errorf("key %q: %w", out+".pub", plainError(err)))
			}
			fprint(cmd.OutOrStdout(), "%s and %s.pub; give the public key %s to those who verify\n", clean(out), clean(out), public)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the key `FILE` to write")
	return cmd
}
