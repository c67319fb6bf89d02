// Package config reads the configuration file: strictly, with every problem at
// once and the path of each.
package config

import (
	"encoding/json"

	"gpuaudit/audit/report"
	"gpuaudit/store"
)

// APIVersion is the only one that is read.
const APIVersion = "audit/v1"

// File is the configuration file. Every field, its default, its unit and its
// reason stand in config.example.yaml.
type File struct {
	APIVersion  string              `json:"apiVersion"`
	Clusters    []Cluster           `json:"clusters"`
	Store       store.Options       `json:"store"`
	Workloads   []Workload          `json:"workloads"`
	Devices     []Device            `json:"devices"`
	Thresholds  Thresholds          `json:"thresholds"`
	Severities  map[string]Severity `json:"severities"`
	Checklist   Checklist           `json:"checklist"`
	Reports     Reports             `json:"reports"`
	Slack       json.RawMessage     `json:"slack"`
	Schedule    []Entry             `json:"schedule"`
	Listen      string              `json:"listen"`
	Parallelism *int                `json:"parallelism"`
	Signing     Signing             `json:"signing"`
	Redaction   Redaction           `json:"redaction"`

	dir string // the file's own folder
}

// Cluster is one audited cluster.
type Cluster struct {
	Name       string        `json:"name"`
	Kubeconfig string        `json:"kubeconfig"`
	Context    string        `json:"context"`
	InCluster  bool          `json:"inCluster"`
	Timeout    Duration      `json:"timeout"`
	Namespaces []string      `json:"namespaces"`
	AcceptGaps []AcceptedGap `json:"acceptGaps"`
	Vendor     Vendor        `json:"vendor"`
	Ignore     Ignore        `json:"ignore"`
}

// AcceptedGap is a gap that will never close.
type AcceptedGap struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// Vendor is who runs a cluster and how to reach them.
type Vendor struct {
	Name      string `json:"name"`
	Contact   string `json:"contact"`
	TicketURL string `json:"ticketURL"`
}

// Ignore lists what is left out of a cluster's findings.
type Ignore struct {
	Nodes      []string `json:"nodes"`
	Namespaces []string `json:"namespaces"`
	Labels     []string `json:"labels"`
}

// Workload is a class of workload whose share of the free devices is reported.
type Workload struct {
	Name         string            `json:"name"`
	Requests     map[string]Amount `json:"requests"`
	NodeSelector map[string]string `json:"nodeSelector"`
	Affinity     json.RawMessage   `json:"affinity"`
	Tolerations  json.RawMessage   `json:"tolerations"`
}

// Amount is a Kubernetes quantity, written as a string or a number.
type Amount string

// UnmarshalJSON takes numbers too: YAML reads an unquoted 8 as one.
func (a *Amount) UnmarshalJSON(raw []byte) error {
	*a = Amount(text(raw))
	return nil
}

// Device overrides or adds a row of the device table.
type Device struct {
	Resource string `json:"resource"`
	Unit     string `json:"unit"`
	PerCard  int64  `json:"perCard"`
	Role     string `json:"role"`
}

// Thresholds decide from when on something is a finding.
type Thresholds struct {
	NotReady          Duration `json:"notReady"`
	Silent            Duration `json:"silent"`
	Cordoned          Duration `json:"cordoned"`
	Ghost             Duration `json:"ghost"`
	StuckStarting     Duration `json:"stuckStarting"`
	Terminating       Duration `json:"terminating"`
	Pending           Duration `json:"pending"`
	Initialising      Duration `json:"initialising"`
	AdmissionFailures *int     `json:"admissionFailures"`
	AdmissionWindow   Duration `json:"admissionWindow"`
	PeersWithLabel    *float64 `json:"peersWithLabel"`
	ChurnWithLabel    Strings  `json:"churnWithLabel"`
}

// Strings is a list of strings, or one string.
type Strings []string

// UnmarshalJSON takes one string for a list of one.
func (s *Strings) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*s = Strings{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(s))
}

// Severity of a check, or off.
type Severity string

// Off switches a check off.
const Off Severity = "off"

// UnmarshalJSON takes false for off: YAML reads an unquoted off as a boolean.
func (s *Severity) UnmarshalJSON(raw []byte) error {
	switch v := text(raw); v {
	case "false":
		*s = Off
	default:
		*s = Severity(v)
	}
	return nil
}

func (s Severity) known() bool {
	switch report.Severity(s) {
	case report.Critical, report.Warning, report.Info:
		return true
	}
	return s == Off
}

// Checklist says where the checklist's page is published.
type Checklist struct {
	BaseURL string `json:"baseURL"`
}

// Reports says how stored reports are linked.
type Reports struct {
	BaseURL string   `json:"baseURL"`
	Presign Duration `json:"presign"`
}

// Entry is one line of the schedule.
type Entry struct {
	Cron     string `json:"cron"`
	TimeZone string `json:"timeZone"`
	Post     *bool  `json:"post"`
	Name     string `json:"name"`
}

// Signing names the key that evidence is signed with.
type Signing struct {
	KeyFile string `json:"keyFile"`
}

// Redaction adds patterns that redacted evidence replaces, beside names.
type Redaction struct {
	Patterns []string `json:"patterns"`
}

// Duration keeps what was written, so that a wrong one is reported with all
// other problems and not alone.
type Duration string

// UnmarshalJSON takes numbers too, to say later that they lack a unit.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	*d = Duration(text(raw))
	return nil
}

func text(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}
