// Package audit judges a cluster: Evaluate is a pure function from what was
// seen, what an earlier run kept, and the settings, to a report and what the
// next run needs. It does no I/O and reads no clock.
package audit

import (
	"fmt"

	"gpuaudit/audit/capacity"
	"gpuaudit/audit/check"
	"gpuaudit/audit/checklist"
	"gpuaudit/audit/device"
	"gpuaudit/audit/drift"
	"gpuaudit/audit/health"
	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/lifecycle"
	"gpuaudit/audit/pending"
	"gpuaudit/audit/quota"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
	"gpuaudit/audit/snapshot"
)

// Input of an evaluation.
type Input struct {
	Current *inventory.Cluster
	// Previous is the snapshot to compare with, nil when there is none.
	Previous *snapshot.Snapshot
	// PreviousRef names it in the report.
	PreviousRef *report.SnapshotRef
	// Unusable says why there is a snapshot that could not be read: then
	// nothing is compared, and the report says so.
	Unusable string
	Acks     lifecycle.Acks
	Settings settings.Settings
	Run      string
}

// Result of an evaluation.
type Result struct {
	Report report.Cluster
	// Snapshot is what to keep; nil when nothing of the cluster was seen, so
	// that the earlier one stays the one to compare with.
	Snapshot *snapshot.Snapshot
	// Incomplete is true when a gap that nobody accepted kept a check from
	// being evaluated, or the previous snapshot could not be read.
	Incomplete bool
}

// Evaluate judges one cluster at its own collection time.
func Evaluate(in Input) Result {
	c := in.Current
	checks := check.All()
	r := report.Cluster{Name: c.Name, UID: c.UID, ServerVersion: c.ServerVersion, Vendor: in.Settings.Vendor, PreviousSnapshot: in.PreviousRef}
	r.Gaps = gaps(c, &in.Settings, checks)
	if c.Err != nil {
		return unreachable(in, r, checks)
	}
	at := c.CollectedAt
	r.CollectedAt = &at
	e := evaluation{Input: in, checks: checks, report: &r, blocked: map[string]bool{}}
	e.derive()
	e.judge()
	e.figures()
	findings := e.lifecycle()
	s := e.snapshot(findings)
	return Result{Report: r, Snapshot: s, Incomplete: e.incomplete}
}

// evaluation carries what one evaluation derives on its way.
type evaluation struct {
	Input
	checks     []check.Check
	report     *report.Cluster
	in         *check.Input
	model      *capacity.Model
	classes    []*capacity.Class
	found      []report.Finding
	drift      *drift.Result
	incomplete bool
	blocked    map[string]bool // checks that a gap keeps from being evaluated
}

// derive works out everything that checks look at.
func (e *evaluation) derive() {
	c, s := e.Current, &e.Settings
	nodes := health.Judge(c, s.Thresholds)
	var judged *health.Verdict
	if c.Seen(inventory.Nodes) {
		judged = nodes
	}
	holds := hold.Find(c, judged, s.Thresholds)
	survey := device.Take(device.Input{Cluster: c, Health: nodes, Holds: holds, Table: device.NewTable(s.Devices),
		Young: s.Thresholds.Initialising, HadDevices: hadDevices(e.Previous)})
	e.drift = drift.Compare(drift.Input{Cluster: c, Health: nodes, Previous: e.Previous, Settings: s})
	if e.Unusable != "" {
		e.drift = &drift.Result{Why: e.Unusable}
		e.incomplete = true
	}
	e.model = capacity.NewModel(c, nodes, survey)
	var simulator pending.Simulator
	if c.Seen(inventory.Nodes) && c.Extent(inventory.Pods) == inventory.SeenWhole {
		simulator = e.model
	}
	e.in = &check.Input{Now: c.CollectedAt, Cluster: c, Previous: e.comparable(), Settings: s, Health: nodes, Holds: holds, Survey: survey, Drift: e.drift,
		MetricsAPI: metricsAPI(c), ManagedFields: managedFields(c), QuotaKinds: quota.Kinds(c)}
	e.in.DeviceMetrics = check.FindExporters(c, nodes, survey.DeviceNodes()).State
	e.in.Daemons = check.Cover(c, nodes, c.CollectedAt)
	if simulator != nil {
		e.in.Reasons = func(p *inventory.Pod, n *inventory.Node) []string {
			var out []string
			for _, reason := range e.model.FirstReasons(p.Shape, n.Name) {
				out = append(out, pending.NormalReason(reason))
			}
			return out
		}
	}
	e.wait(simulator)
}

// comparable gives the previous snapshot unless it is another cluster's.
func (e *evaluation) comparable() *snapshot.Snapshot {
	p := e.Previous
	if p != nil && p.UID != "" && e.Current.UID != "" && p.UID != e.Current.UID {
		return nil
	}
	return p
}

func hadDevices(p *snapshot.Snapshot) map[string]bool {
	out := map[string]bool{}
	if p == nil {
		return out
	}
	for _, n := range p.Nodes {
		if len(snapshot.Devices(n.Capacity)) > 0 {
			out[n.Name] = true
		}
	}
	for _, l := range p.Losses {
		if l.What == snapshot.LostDevice {
			out[l.Node] = true
		}
	}
	return out
}

// wait explains every Pending pod.
func (e *evaluation) wait(simulator pending.Simulator) {
	c := e.Current
	if !c.AnySeen(inventory.Pods) {
		return
	}
	ctx := pending.NewContext(c, simulator, c.CollectedAt, e.Settings.Thresholds.EventsFresh)
	for _, p := range c.Pods {
		if p.Phase == "Pending" {
			e.in.Waiting = append(e.in.Waiting, check.Waiting{Pod: p, Pending: ctx.Explain(p)})
		}
	}
}

// judge runs every check and settles whose finding a device counts in.
func (e *evaluation) judge() {
	for _, k := range e.checks {
		j := judge(e.in, k)
		e.report.Checks = append(e.report.Checks, j.outcome)
		e.blocked[k.ID] = j.gap
		if j.gap && !j.accepted {
			e.incomplete = true
		}
		for _, f := range j.findings {
			f.Step = k.Step
			f.Link = checklist.Link(e.Settings.ChecklistURL, k.Step)
			if severity, ok := e.Settings.Severities[k.ID]; ok {
				f.Severity = severity
			}
			e.found = append(e.found, f)
		}
	}
	attribute(e.found)
	e.report.Status = report.Complete
	for _, o := range e.report.Checks {
		if o.Outcome == report.OutcomeNotEvaluated && e.blocked[o.ID] {
			e.report.Status = report.Partial
		}
	}
}

// figures fills in everything of the report that is no finding, and the
// repairs' gains into the findings.
func (e *evaluation) figures() {
	r, c, in := e.report, e.Current, e.in
	r.Notes = append(r.Notes, c.Notes...)
	r.Baseline = baseline(c, in.Health, in)
	r.Devices, r.Unknown = in.Survey.Devices, in.Survey.Unknown
	r.Churn = report.Churn{Added: e.drift.Added, Removed: e.drift.Removed}
	if !e.drift.Compared {
		r.Comparison = e.drift.Why
	}
	left := 0
	e.classes, left = e.model.Classes(c, e.Settings.Workloads)
	for _, class := range e.classes {
		r.Classes = append(r.Classes, e.model.Report(class, true))
	}
	if left > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d more observed workload classes are not listed", left))
	}
	if waiting, running := e.model.ClaimsAlone(c); waiting+running > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d waiting and %d running pods ask for devices by resource claims alone and are in no class: which devices would serve a claim is not modelled", waiting, running))
	}
	if upper, why := in.Survey.UpperBound(); upper {
		r.Notes = append(r.Notes, "free devices are an upper bound here: "+joinWords(why))
	}
	if e.Unusable != "" {
		r.Notes = append(r.Notes, e.Unusable)
	}
	if !c.AnySeen(inventory.Pods) {
		r.Notes = append(r.Notes, "pods were not seen: what is requested, free or usable is not known, and is not 0")
	}
	r.Notes = append(r.Notes, driversNotSeen(c)...)
	r.Platform = platform(in)
	e.waiting()
	e.repairs()
	r.Nodes = e.nodes()
}

func (e *evaluation) waiting() {
	byShape := map[string]string{}
	for _, class := range e.classes {
		byShape[class.Shape.Key()] = class.Name
	}
	for _, w := range e.in.Waiting {
		p := w.Pending
		p.Class = byShape[w.Pod.Shape.Key()]
		e.report.Pending = append(e.report.Pending, p)
	}
}

// repairs simulates the repair of every finding that takes capacity.
func (e *evaluation) repairs() {
	var waiting []*inventory.Pod
	for _, w := range e.in.Waiting {
		if !w.Bound && w.Cause != pending.Gated && w.Cause != pending.Terminating && w.Cause != pending.Quota && w.Cause != pending.Queue {
			waiting = append(waiting, w.Pod)
		}
	}
	if e.in.Reasons == nil {
		return // without whole nodes and pods nothing can be simulated
	}
	e.report.Repairs = e.model.Repairs(e.faults(), e.classes, waiting)
	unblocked := map[string]int{}
	for _, r := range e.report.Repairs {
		unblocked[r.Finding] = r.PendingPodsUnblocked
	}
	for i := range e.found {
		e.found[i].Impact.PendingPodsUnblocked = unblocked[e.found[i].ID]
	}
}

// lifecycle places the findings in time.
func (e *evaluation) lifecycle() []report.Finding {
	rank := map[string]int{}
	for i, k := range e.checks {
		rank[k.ID] = i
	}
	findings := lifecycle.Merge(lifecycle.Input{
		Now: e.Current.CollectedAt, Current: e.found, Previous: e.comparable(), Outcomes: e.report.Checks, Off: e.Settings.Off, Acks: e.Acks, Rank: rank,
		NodeGone: func(name string) bool {
			return e.Current.Seen(inventory.Nodes) && e.in.Health.Node(name) == nil
		},
	})
	e.report.Findings = findings
	return findings
}

// unreachable reports a cluster of which nothing was seen: what was found
// before stays, unverified, and nothing is kept in its place.
func unreachable(in Input, r report.Cluster, checks []check.Check) Result {
	r.Status, r.Error = report.Unreachable, in.Current.Err.Message
	at := in.Current.CollectedAt
	for _, k := range checks {
		reason := fmt.Sprintf("cluster not read (%s)", in.Current.Err.Reason)
		if in.Settings.Off[k.ID] {
			reason = "switched off in the configuration"
		}
		r.Checks = append(r.Checks, report.CheckOutcome{ID: k.ID, Outcome: report.OutcomeNotEvaluated, Reason: reason})
	}
	r.Baseline = report.Baseline{MetricsAPI: "unknown", DeviceMetrics: "unknown", ManagedFields: "unknown"}
	r.Comparison = "the cluster was not read"
	rank := map[string]int{}
	for i, k := range checks {
		rank[k.ID] = i
	}
	r.Findings = lifecycle.Merge(lifecycle.Input{Now: at, Previous: in.Previous, Outcomes: r.Checks, Off: in.Settings.Off, Acks: in.Acks, Rank: rank})
	return Result{Report: r, Incomplete: true}
}

// Checks lists the ids of all checks in report order.
func Checks() []string {
	var out []string
	for _, k := range check.All() {
		out = append(out, k.ID)
	}
	return out
}
