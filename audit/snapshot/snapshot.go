// Package snapshot holds what one run keeps of a cluster for the next ones to
// compare with: the nodes as read, what was lost and is not back yet, the open
// findings. Snapshots are written once and never changed.
package snapshot

import (
	"time"

	"gpuaudit/audit/report"
)

// SchemaVersion names the shape below. A program refuses snapshots of a newer
// version and reads all older ones.
const SchemaVersion = 1

// Snapshot is one cluster at one moment.
type Snapshot struct {
	SchemaVersion int    `json:"schemaVersion"`
	Cluster       string `json:"cluster"`
	// UID of namespace kube-system; "" when it was not seen.
	UID           string    `json:"uid"`
	ServerVersion string    `json:"serverVersion"`
	Run           string    `json:"run"`
	CollectedAt   time.Time `json:"collectedAt"`

	// Nodes were read whole at NodesAt. A run that could not read them carries
	// the earlier section forward: then NodesAt is before CollectedAt.
	Nodes   []Node     `json:"nodes"`
	NodesAt *time.Time `json:"nodesAt"`
	// Gone are nodes that were there before and are not; they are remembered so
	// that one that comes back under its name can be compared.
	Gone []Gone `json:"gone"`
	// Losses are labels, taints, cordons and devices that a node had and has not.
	Losses []Loss `json:"losses"`
	// Findings are the open ones, acknowledged and unverified ones included.
	Findings []report.Finding `json:"findings"`
	// Resolved are findings resolved in the last days, for digests that are
	// posted more seldom than the cluster is audited.
	Resolved []report.Finding `json:"resolved"`
	// Whole lists the sections that this run read whole: "nodes", "findings/<check>".
	Whole []string `json:"whole"`
	// FoundLimited are ids of open findings that were confirmed last by a check
	// that lacked an optional input: a run with the same lack may resolve them.
	FoundLimited []string `json:"foundLimited"`
	// Figures are for the trend: by resource.
	Figures []Figure `json:"figures"`
}

// WholeNodes is true when this very run read all nodes.
func (s *Snapshot) WholeNodes() bool { return s.NodesAt != nil && s.NodesAt.Equal(s.CollectedAt) }

// Node is a node as it was read.
type Node struct {
	Name          string            `json:"name"`
	UID           string            `json:"uid"`
	Created       time.Time         `json:"created"`
	Kind          string            `json:"kind"`
	Labels        map[string]string `json:"labels"`
	Taints        []Taint           `json:"taints"`
	Cordoned      bool              `json:"cordoned"`
	CordonedSince *time.Time        `json:"cordonedSince"`
	Conditions    []Condition       `json:"conditions"`
	// Ready is True, False or Unknown, and empty when the condition is missing.
	Ready       string           `json:"ready"`
	Silent      bool             `json:"silent"`
	Capacity    map[string]int64 `json:"capacity"`
	Allocatable map[string]int64 `json:"allocatable"`
	// Requested are charged amounts of device resources; null when pods were not seen.
	Requested  map[string]int64 `json:"requested"`
	ProviderID string           `json:"providerID"`
	OSImage    string           `json:"osImage"`
	Kernel     string           `json:"kernel"`
	Kubelet    string           `json:"kubelet"`
	// SetBy tells, where managedFields did, who wrote a label last and when.
	SetBy map[string]SetBy `json:"setBy"`
}

// SetBy is a manager of managedFields. Time is the manager's last write of any
// field of the object, so the label was set at or before it.
type SetBy struct {
	Manager   string    `json:"manager"`
	Operation string    `json:"operation"`
	Time      time.Time `json:"time"`
}

// Taint of a node.
type Taint struct {
	Key    string     `json:"key"`
	Value  string     `json:"value"`
	Effect string     `json:"effect"`
	Added  *time.Time `json:"added"`
}

// String gives key=value:effect, or key:effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// Condition of a node; heartbeats are left out, since they change always.
type Condition struct {
	Type       string     `json:"type"`
	Status     string     `json:"status"`
	Reason     string     `json:"reason"`
	Message    string     `json:"message"`
	Transition *time.Time `json:"transition"`
}

// Gone is a node that was there at LastSeen and missing at FirstMissed.
type Gone struct {
	Node        Node      `json:"node"`
	LastSeen    time.Time `json:"lastSeen"`
	FirstMissed time.Time `json:"firstMissed"`
	// Churn is true when its going is an autoscaler's or a virtual cluster's
	// daily business; Removed when it was not ready and was taken away.
	Churn   bool `json:"churn"`
	Removed bool `json:"removed"`
}

// What of a node can be lost.
const (
	LostLabel  = "label"
	LostTaint  = "taint"
	LostCordon = "cordon"
	LostDevice = "device"
)

// Loss is something that a node had and has not: it stays until it is back or
// the node is gone, so that tomorrow's run does not forget it.
type Loss struct {
	Node  string `json:"node"`
	What  string `json:"what"`
	Key   string `json:"key"`
	Value string `json:"value"` // the value it had
	// Now is the value it has instead; "" with Absent.
	Now    string `json:"now"`
	Absent bool   `json:"absent"`
	// LastHad and FirstMissed are the runs between which it was lost.
	LastHad     time.Time `json:"lastHad"`
	FirstMissed time.Time `json:"firstMissed"`
	// Recreated is true when it went with the Node object; OldUID and NewUID tell which.
	Recreated bool   `json:"recreated"`
	OldUID    string `json:"oldUID"`
	NewUID    string `json:"newUID"`
	// RecreatedAt is the new object's creation.
	RecreatedAt *time.Time `json:"recreatedAt"`
}

// Figure is one device resource's numbers for the trend; null where not seen.
type Figure struct {
	Resource    string `json:"resource"`
	Capacity    int64  `json:"capacity"`
	Allocatable int64  `json:"allocatable"`
	Requested   *int64 `json:"requested"`
	Free        *int64 `json:"free"`
	// Schedulable is the largest share that any workload class could get.
	Schedulable *int64 `json:"schedulable"`
	// Classes has each class's share by its name; null in snapshots that did not keep it.
	Classes map[string]int64 `json:"classes"`
}
