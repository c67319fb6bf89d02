package report

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Severity follows impact: critical when devices are lost or a system
// DaemonSet is blocked, warning when something will become that, info otherwise.
type Severity string

// The severities, most severe first.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Rank orders severities: 0 is the most severe.
func (s Severity) Rank() int {
	switch s {
	case Critical:
		return 0
	case Warning:
		return 1
	case Info:
		return 2
	}
	return 3
}

// State of a finding against earlier runs.
type State string

// New: not in the snapshot before. Ongoing: seen before and still so.
// Resolved: seen before, its inputs were seen now, and it is gone.
// Acknowledged: still so and accepted by somebody. Unverified: seen before and
// its inputs were not seen now.
const (
	StateNew          State = "new"
	StateOngoing      State = "ongoing"
	StateResolved     State = "resolved"
	StateAcknowledged State = "acknowledged"
	StateUnverified   State = "unverified"
)

// Subject is the object that a finding is about.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String gives kind/name or kind/namespace/name.
func (s Subject) String() string {
	if s.Namespace == "" {
		return s.Kind + "/" + s.Name
	}
	return s.Kind + "/" + s.Namespace + "/" + s.Name
}

// Finding is one fact that somebody should act on.
type Finding struct {
	ID       string   `json:"id"`
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	State    State    `json:"state"`
	Subject  Subject  `json:"subject"`
	// Node is the node concerned, empty when there is none.
	Node string `json:"node"`
	// Label is the label key of label findings, empty otherwise.
	Label  string `json:"label"`
	Step   int    `json:"step"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Since is when the fact itself began, null when nothing tells.
	Since *time.Time `json:"since"`
	// SinceAtLeast is true when Since is only our first sighting.
	SinceAtLeast bool       `json:"sinceAtLeast"`
	FirstSeen    *time.Time `json:"firstSeen"`
	LastSeen     *time.Time `json:"lastSeen"`
	ResolvedAt   *time.Time `json:"resolvedAt"`
	Resolution   string     `json:"resolution"`
	Ack          *Ack       `json:"ack"`
	Quota        *Quota     `json:"quota"`
	CausedBy     string     `json:"causedBy"`
	// Devices are kept from use by this fact, in the resource's own unit.
	Devices int64 `json:"devices"`
	// DevicesByResource splits Devices by resource name.
	DevicesByResource map[string]int64 `json:"devicesByResource"`
	Impact            Impact           `json:"impact"`
	Evidence          []Evidence       `json:"evidence"`
	Commands          []string         `json:"commands"`
	Link              string           `json:"link"`
	// Objects lists further subjects of an aggregated finding (nodes or pods).
	Objects []string `json:"objects"`
}

// Impact of a finding: a device counts in one finding only (see CausedBy).
type Impact struct {
	Devices              int64 `json:"devices"`
	PendingPodsUnblocked int   `json:"pendingPodsUnblocked"`
}

// Evidence is one value as read, with the place it was read from.
type Evidence struct {
	Object string `json:"object"` // Kind/name or Kind/namespace/name
	Path   string `json:"path"`   // field path, such as status.conditions[Ready].lastTransitionTime
	Value  string `json:"value"`
}

// Ack is somebody's word that a finding is accepted.
type Ack struct {
	Reason string     `json:"reason"`
	By     string     `json:"by"`
	At     time.Time  `json:"at"`
	Until  *time.Time `json:"until"`
}

// FindingID gives the stable id of a finding: from cluster, check and the
// subject's names (never UIDs) and, for labels, the key. It is a check id and
// 12 hex digits, unique enough for a fleet (2^48) and safe in shells and URLs.
func FindingID(cluster, check string, subject Subject, extra ...string) string {
	h := sha256.New()
	for _, part := range append([]string{cluster, check, subject.Kind, subject.Namespace, subject.Name}, extra...) {
		// The length prefix keeps ("a","bc") and ("ab","c") apart.
		h.Write([]byte{byte(len(part) >> 16), byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	return strings.ToLower(check) + "-" + hex.EncodeToString(h.Sum(nil)[:6])
}
