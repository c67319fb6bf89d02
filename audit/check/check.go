// Package check holds the checks: one file a check, each a pure function from
// what is known of a cluster to findings. All lists them; nothing registers
// itself.
package check

import (
	"sort"
	"strings"
	"time"

	"gpuaudit/audit/device"
	"gpuaudit/audit/drift"
	"gpuaudit/audit/health"
	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
	"gpuaudit/audit/snapshot"
)

// Input is all that a check may look at.
type Input struct {
	Now      time.Time
	Cluster  *inventory.Cluster
	Previous *snapshot.Snapshot // nil when there is nothing to compare with
	Settings *settings.Settings
	Health   *health.Verdict
	Holds    []hold.Hold
	Survey   *device.Survey
	Drift    *drift.Result
	// Waiting are the Pending pods with the cause that each waits for.
	Waiting []Waiting
	// Daemons is the judgement of every DaemonSet's coverage.
	Daemons []Coverage
	// Reasons gives, for a waiting pod and a node, the scheduler's own reasons
	// against that node by our simulation.
	Reasons func(*inventory.Pod, *inventory.Node) []string
	// Baseline words that a report prints.
	MetricsAPI, DeviceMetrics, ManagedFields string
	// QuotaKinds are API kinds that look like quota, queue or pod group.
	QuotaKinds []string
}

// Waiting is a Pending pod as reported, with its own record.
type Waiting struct {
	Pod *inventory.Pod
	report.Pending
}

// Check is one question asked of every cluster.
type Check struct {
	ID string
	// Step of the checklist that covers its findings.
	Step int
	// Title says in a few words what the check looks for.
	Title string
	// Required inputs: without one of them the check is not evaluated.
	Required []inventory.Resource
	// Optional inputs: without one of them the check works by a wider rule.
	Optional []inventory.Resource
	// Wider says what that wider rule is, WiderWithout what it is without one of
	// the optional inputs alone.
	Wider        string
	WiderWithout map[inventory.Resource]string
	// Gap inputs leave the check unevaluated by a gap when Ready says no and one
	// of them has a gap.
	Gap []inventory.Resource
	// Ready tells why the check cannot be judged although every input was
	// read (nothing to compare with, say); "" when it can.
	Ready func(*Input) string
	Run   func(*Input) []report.Finding
}

// finding begins a finding of a check. Devices may be nil.
func (in *Input) finding(check string, severity report.Severity, subject report.Subject, extra ...string) report.Finding {
	return report.Finding{
		ID: report.FindingID(in.Cluster.Name, check, subject, extra...), Check: check, Severity: severity, Subject: subject,
	}
}

// withDevices notes what the finding keeps from use.
func withDevices(f *report.Finding, devices map[string]int64) {
	f.DevicesByResource = map[string]int64{}
	f.Devices = 0
	for name, n := range devices {
		if n > 0 {
			f.DevicesByResource[name] = n
			f.Devices += n
		}
	}
	f.Impact.Devices = f.Devices
}

// severe gives critical where devices are kept from use, else warning.
func severe(devices map[string]int64) report.Severity {
	for _, n := range devices {
		if n > 0 {
			return report.Critical
		}
	}
	return report.Warning
}

func nodeSubject(name string) report.Subject { return report.Subject{Kind: "Node", Name: name} }

func podSubject(p *inventory.Pod) report.Subject {
	return report.Subject{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
}

func (in *Input) clusterSubject() report.Subject {
	return report.Subject{Kind: "Cluster", Name: in.Cluster.Name}
}

func timePointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

// sum adds amounts up.
func sum(devices map[string]int64) int64 {
	var total int64
	for _, n := range devices {
		total += n
	}
	return total
}

// earlierFinding gives a finding of the previous snapshot by id.
func (in *Input) earlierFinding(id string) *report.Finding {
	if in.Previous == nil {
		return nil
	}
	for i := range in.Previous.Findings {
		if in.Previous.Findings[i].ID == id {
			return &in.Previous.Findings[i]
		}
	}
	return nil
}

// firstSighting sets Since to our own first sighting, "at least", where no field tells.
func (in *Input) firstSighting(f *report.Finding) {
	if f.Since != nil {
		return
	}
	f.SinceAtLeast = true
	if old := in.earlierFinding(f.ID); old != nil {
		if old.Since != nil {
			f.Since = old.Since
			return
		}
		f.Since = old.FirstSeen
	}
	if f.Since == nil {
		now := in.Now
		f.Since = &now
	}
}

// describeDevices gives "8 nvidia.com/gpu", several joined by " + ".
func describeDevices(devices map[string]int64) string {
	var parts []string
	for name, n := range devices {
		if n > 0 {
			parts = append(parts, count(n, "")+" "+name)
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, " + ")
}
