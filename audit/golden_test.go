package audit_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gpuaudit/audit"
	"gpuaudit/audit/dump"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
	"gpuaudit/audit/snapshot"
)

// caseHead is the first document of a case.yaml.
type caseHead struct {
	// What the situation is and what the right answer says.
	What string `json:"what"`
	// Omit are resources that were not collected; all other expected ones are
	// there, empty where no object is given.
	Omit []string `json:"omit"`
	// Refused are resources for which the API server answered 403.
	Refused []string `json:"refused"`
	// Live judges as an API read does, not as a dump.
	Live bool `json:"live"`
	// Workloads are configured classes.
	Workloads []struct {
		Name         string                       `json:"name"`
		Requests     map[string]inventory.Written `json:"requests"`
		NodeSelector map[string]string            `json:"nodeSelector"`
	} `json:"workloads"`
	// Want are lines that the answer must hold, whatever want.txt says.
	Want []string `json:"want"`
	// Never are texts that the answer must not hold.
	Never []string `json:"never"`
}

var expected = []string{"nodes", "pods", "leases", "daemonsets", "events", "resourcequotas", "services", "endpointslices", "namespaces"}

// TestCases runs every folder under testdata/cases: case.yaml holds the
// situation, want.txt the answer. UPDATE_GOLDEN=1 writes want.txt.
func TestCases(t *testing.T) {
	found := 0
	err := filepath.WalkDir("testdata/cases", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "case.yaml" {
			return err
		}
		found++
		dir := filepath.Dir(path)
		name, _ := filepath.Rel("testdata/cases", dir)
		t.Run(name, func(t *testing.T) { runCase(t, dir) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("testdata/cases holds no case")
	}
}

func runCase(t *testing.T, dir string) {
	body, err := os.ReadFile(filepath.Join(dir, "case.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	docs := bytes.Split(append([]byte("\n"), body...), []byte("\n---"))
	var head caseHead
	if err := yaml.UnmarshalStrict(docs[0], &head); err != nil {
		t.Fatalf("first document: %v", err)
	}
	var got strings.Builder
	var previous *snapshot.Snapshot
	for _, step := range steps(t, docs[1:]) {
		c := readStep(t, head, step)
		result := audit.Evaluate(audit.Input{Current: c, Previous: previous, Settings: settingsOf(head), Run: "run"})
		if result.Snapshot != nil {
			raw, err := snapshot.Encode(result.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			if previous, err = snapshot.Decode(raw); err != nil {
				t.Fatal(err)
			}
		}
		describe(&got, &result.Report)
	}
	for _, want := range head.Want {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the answer does not say %q", want)
		}
	}
	for _, never := range head.Never {
		if strings.Contains(got.String(), never) {
			t.Errorf("the answer says %q", never)
		}
	}
	golden := filepath.Join(dir, "want.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; write it with UPDATE_GOLDEN=1 and read it", err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s\n%s", diff, got.String())
	}
}

type step struct {
	now  time.Time
	docs [][]byte
}

// steps splits the documents at those that say {now: ...}.
func steps(t *testing.T, docs [][]byte) []step {
	var out []step
	for _, d := range docs {
		var mark struct {
			Now *time.Time `json:"now"`
		}
		if yaml.Unmarshal(d, &mark) == nil && mark.Now != nil {
			out = append(out, step{now: *mark.Now})
			continue
		}
		if len(bytes.TrimSpace(d)) == 0 {
			continue
		}
		if len(out) == 0 {
			t.Fatal("the second document has to be {now: ...}")
		}
		out[len(out)-1].docs = append(out[len(out)-1].docs, d)
	}
	if len(out) == 0 {
		t.Fatal("the case has no step")
	}
	return out
}

func readStep(t *testing.T, head caseHead, s step) *inventory.Cluster {
	dir := filepath.Join(t.TempDir(), "cluster")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if len(s.docs) > 0 {
		write(t, filepath.Join(dir, "objects.yaml"), append([]byte("---"), bytes.Join(s.docs, []byte("\n---"))...))
	}
	for _, name := range expected {
		if !slices.Contains(head.Omit, name) {
			write(t, filepath.Join(dir, name+".json"), []byte(`{"apiVersion":"v1","kind":"List","items":[]}`))
		}
	}
	for _, name := range head.Refused {
		write(t, filepath.Join(dir, name+".json"), []byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"may not list"}`))
	}
	clusters, _, err := dump.Read(dir, dump.Options{Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	c := clusters[0]
	if head.Live {
		c.Source = inventory.Live
	}
	return c
}

func write(t *testing.T, file string, body []byte) {
	t.Helper()
	if err := os.WriteFile(file, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

func settingsOf(h caseHead) settings.Settings {
	s := settings.Default()
	for _, w := range h.Workloads {
		requests := inventory.Resources{}
		for name, q := range w.Requests {
			requests[name] = q.Of(name)
		}
		s.Workloads = append(s.Workloads, settings.Workload{Name: w.Name, Requests: requests, NodeSelector: w.NodeSelector})
	}
	return s
}

// describe writes what a report says in lines that a person can check.
func describe(b *strings.Builder, c *report.Cluster) {
	fmt.Fprintf(b, "at %s: %s\n", c.CollectedAt.Format(time.RFC3339), c.Status)
	if c.Comparison != "" && !strings.HasPrefix(c.Comparison, "first run") {
		fmt.Fprintf(b, "  not compared: %s\n", c.Comparison)
	}
	for _, g := range c.Gaps {
		fmt.Fprintf(b, "  gap %s %s\n", g.Resource, g.Reason)
	}
	fmt.Fprintf(b, "  metricsAPI %s, deviceMetrics %s, managedFields %s\n", c.Baseline.MetricsAPI, c.Baseline.DeviceMetrics, c.Baseline.ManagedFields)
	if len(c.Churn.Added)+len(c.Churn.Removed) > 0 {
		fmt.Fprintf(b, "  churn -%d +%d\n", len(c.Churn.Removed), len(c.Churn.Added))
	}
	for _, d := range c.Devices {
		describeDevice(b, &d)
	}
	for _, u := range c.Unknown {
		fmt.Fprintf(b, "  unknown %s nodes %d capacity %d requested %s: %s\n", u.Resource, u.Nodes, u.Capacity, number(u.Requested), u.Note)
	}
	for _, k := range c.Classes {
		fmt.Fprintf(b, "  class %q of %s: free %d, usable %d, replicas %d (most on a node %d), waiting %d", k.Name, k.Resource, k.ApparentFree, k.Schedulable, k.Replicas, k.MaxReplicasNode, *k.PendingPods)
		for _, l := range k.Lost {
			fmt.Fprintf(b, "; lost %d %s on %s", l.Devices, l.Reason, strings.Join(l.Nodes, ","))
			if l.Detail != "" {
				fmt.Fprintf(b, " (%s)", l.Detail)
			}
		}
		if len(k.NotModelled) > 0 {
			fmt.Fprintf(b, "; not modelled %v", k.NotModelled)
		}
		fmt.Fprintln(b)
	}
	for _, n := range c.Nodes {
		if n.Kind != "physical" || n.Initialising {
			fmt.Fprintf(b, "  node %s %s initialising=%v\n", n.Name, n.Kind, n.Initialising)
		}
	}
	for _, p := range c.Pending {
		fmt.Fprintf(b, "  pending %s/%s bound=%v target=%q cause=%s by=%q attempts=%d reasons=%q", p.Namespace, p.Name, p.Bound, p.TargetNode, p.Cause, p.ReportedBy, p.Attempts, p.Reasons)
		if q := p.Quota; q != nil {
			fmt.Fprintf(b, " quota=%s/%s/%s/%s", q.Source, q.Name, q.Resource, q.Mode)
		}
		fmt.Fprintln(b)
	}
	for _, f := range c.Findings {
		fmt.Fprintf(b, "  %s %s %s %s", f.Severity, f.Check, f.State, f.Subject)
		if f.Label != "" {
			fmt.Fprintf(b, " label %s", f.Label)
		}
		if f.Devices > 0 {
			fmt.Fprintf(b, " devices %d impact %d", f.Devices, f.Impact.Devices)
		}
		if f.Impact.PendingPodsUnblocked > 0 {
			fmt.Fprintf(b, " unblocks %d", f.Impact.PendingPodsUnblocked)
		}
		if f.CausedBy != "" {
			fmt.Fprintf(b, " caused by %s", f.CausedBy[:strings.LastIndex(f.CausedBy, "-")])
		}
		if q := f.Quota; q != nil {
			fmt.Fprintf(b, " quota %s/%s/%s/%s", q.Source, q.Name, q.Resource, q.Mode)
		}
		if f.Resolution != "" {
			fmt.Fprintf(b, " (%s)", f.Resolution)
		}
		fmt.Fprintf(b, "\n    %s\n", f.Title)
	}
	for _, r := range c.Repairs {
		fmt.Fprintf(b, "  repair %d: %s:", r.Order, r.Action)
		for _, g := range r.Gains {
			fmt.Fprintf(b, " +%d %q", g.Devices, g.Class)
		}
		fmt.Fprintf(b, " starts %d\n", r.PendingPodsUnblocked)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
	for _, o := range c.Checks {
		if o.Outcome == report.OutcomeLimited || (o.Outcome == report.OutcomeNotEvaluated && !strings.HasPrefix(o.Reason, "first run") && o.ID != "metrics-api" && o.ID != "audit-trail") {
			fmt.Fprintf(b, "  check %s %s: %s\n", o.ID, o.Outcome, o.Reason)
		}
	}
}

func describeDevice(b *strings.Builder, d *report.Device) {
	if d.AliasOf != "" {
		fmt.Fprintf(b, "  device %s is counted as %s\n", d.Resource, d.AliasOf)
		return
	}
	fmt.Fprintf(b, "  device %s %s/%s capacity %d allocatable %d requested %s free %s over %s most %s physical %s healthy %s", d.Resource, d.Source, d.Unit, d.Capacity, d.Allocatable,
		number(d.Requested), number(d.Free), number(d.Overcommitted), number(d.MaxFreeOnOneNode), number(d.Physical), number(d.PhysicalHealthy))
	if d.PhysicalNote != "" {
		fmt.Fprintf(b, " (%s)", d.PhysicalNote)
	}
	fmt.Fprintf(b, " naive %s/%s", number(d.Naive.Requested), number(d.Naive.Free))
	if h := d.Held; h != nil && *h != (report.Held{}) {
		fmt.Fprintf(b, " held ghost %d stuck %d terminating %d dead %d", h.Ghost, h.StuckStarting, h.Terminating, h.DeadNode)
	}
	if d.Reclaimable != nil && *d.Reclaimable > 0 {
		fmt.Fprintf(b, " reclaimable %d", *d.Reclaimable)
	}
	if d.Nominated != nil && *d.Nominated > 0 {
		fmt.Fprintf(b, " nominated %d", *d.Nominated)
	}
	if d.UpperBound {
		b.WriteString(" upper bound")
	}
	for _, n := range d.Notes {
		fmt.Fprintf(b, "; %s", n)
	}
	fmt.Fprintln(b)
}

func number(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
