// Package settings holds what the judgement of a cluster depends on beside what
// was seen of it: thresholds, severities, configured workloads, devices and
// what to ignore. It is data; the configuration file fills it, and the
// defaults stand here, in one place.
package settings

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// Settings of one cluster's audit.
type Settings struct {
	Thresholds Thresholds
	// Severities override a check's own severity by check id.
	Severities map[string]report.Severity
	// Off are checks that are not wanted, by id: they are not run and say so.
	Off        map[string]bool
	Ignore     Ignore
	Workloads  []Workload
	Devices    []Device
	AcceptGaps []AcceptedGap
	// ChecklistURL is the base URL of checklist links; empty means the page beside the report.
	ChecklistURL string
	Vendor       string
}

// Thresholds decide from when on something is a finding.
type Thresholds struct {
	// NotReady: how long Ready is not True before node-not-ready speaks.
	NotReady time.Duration
	// Silent: how old the youngest sign of life of a Ready node may be.
	Silent time.Duration
	// SilentWithoutLease replaces Silent where leases were not seen: the Ready
	// condition alone is refreshed about every five minutes.
	SilentWithoutLease time.Duration
	Cordoned           time.Duration
	// Ghost: how long a bound pod may stay untouched by its kubelet.
	Ghost         time.Duration
	StuckStarting time.Duration
	// Terminating: how long after its deletion time (grace included) a pod is overdue.
	Terminating time.Duration
	Pending     time.Duration
	// Initialising: a younger node without devices is not a loss.
	Initialising time.Duration
	// AdmissionFailures within AdmissionWindow make a node's free devices unusable.
	AdmissionFailures int
	AdmissionWindow   time.Duration
	// PeersWithLabel is the share of a node's peers that carry a label from which its absence is a finding.
	PeersWithLabel float64
	// ChurnWithLabel are further label keys that mark nodes as autoscaled: such a node may go without a finding.
	ChurnWithLabel []string
	// EventsFresh: how long an event speaks about the present.
	EventsFresh time.Duration
}

// DefaultThresholds are the values of a configuration that names none.
func DefaultThresholds() Thresholds {
	return Thresholds{
		NotReady: 5 * time.Minute, Silent: 10 * time.Minute, SilentWithoutLease: 15 * time.Minute, Cordoned: time.Hour,
		Ghost: 10 * time.Minute, StuckStarting: 30 * time.Minute, Terminating: 10 * time.Minute, Pending: 10 * time.Minute,
		Initialising: 20 * time.Minute, AdmissionFailures: 5, AdmissionWindow: 2 * time.Hour,
		PeersWithLabel: 0.8, EventsFresh: 2 * time.Hour,
	}
}

// Default are the settings of a run without a configuration.
func Default() Settings { return Settings{Thresholds: DefaultThresholds()} }

// Ignore lists what is left out of findings; names are globs as in path.Match.
type Ignore struct{ Nodes, Namespaces, Labels []string }

// Workload is a configured class of workload.
type Workload struct {
	Name         string
	Requests     inventory.Resources
	NodeSelector map[string]string
	Affinity     *corev1.NodeSelector
	Tolerations  []corev1.Toleration
}

// Device overrides or adds a row of the device table.
type Device struct {
	Resource string // a name, or a pattern with *
	Unit     string // card, slot, slice, memory, cores, device
	PerCard  int64  // units per card, 0 when unknown
	Role     string // device, view (of another), monitoring, none
}

// AcceptedGap is a gap that will never close and that somebody accepted.
type AcceptedGap struct {
	Resource string
	Reason   string // why it is accepted, in the owner's words
}

// Accepts gives the words with which a gap of that resource is accepted.
func (s *Settings) Accepts(resource string) (reason string, ok bool) {
	for _, a := range s.AcceptGaps {
		if a.Resource == resource {
			return a.Reason, true
		}
	}
	return "", false
}
