// Package report holds what an audit says: the report type that other programs
// parse, the identity of findings and their life cycle over runs, and the
// renderings for a terminal, for Markdown, for JSON and for a browser.
//
// Every list in a report is sorted, every key is present, and what is unknown
// is null or an explicit word: the same input gives the same bytes.
package report

import "time"

// SchemaVersion names the shape of the JSON below. Keys may be added within
// one version; none is renamed or removed.
const SchemaVersion = "1"

// Report is one run over all its clusters.
type Report struct {
	SchemaVersion string    `json:"schemaVersion"`
	RunID         string    `json:"runID"`
	GeneratedAt   time.Time `json:"generatedAt"`
	Tool          Tool      `json:"tool"`
	Summary       Summary   `json:"summary"`
	Clusters      []Cluster `json:"clusters"`
}

// Tool is the program that wrote a report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Summary counts clusters by status and findings by severity and state.
// Severity counts cover open findings (new, ongoing, unverified);
// acknowledged and resolved ones are counted apart.
type Summary struct {
	Clusters     int `json:"clusters"`
	Complete     int `json:"complete"`
	Partial      int `json:"partial"`
	Unreachable  int `json:"unreachable"`
	Critical     int `json:"critical"`
	Warning      int `json:"warning"`
	Info         int `json:"info"`
	New          int `json:"new"`
	Ongoing      int `json:"ongoing"`
	Resolved     int `json:"resolved"`
	Acknowledged int `json:"acknowledged"`
	Unverified   int `json:"unverified"`
}

// Status of a cluster in a run.
type Status string

// Complete: every check could be judged. Partial: at least one check was not
// evaluated. Unreachable: nothing was read.
const (
	Complete    Status = "complete"
	Partial     Status = "partial"
	Unreachable Status = "unreachable"
)

// Cluster is one cluster's part of a report.
type Cluster struct {
	Name          string     `json:"name"`
	UID           string     `json:"uid"`
	ServerVersion string     `json:"serverVersion"`
	Vendor        string     `json:"vendor"`
	Status        Status     `json:"status"`
	CollectedAt   *time.Time `json:"collectedAt"`
	// Error says why nothing was read; empty otherwise.
	Error            string       `json:"error"`
	PreviousSnapshot *SnapshotRef `json:"previousSnapshot"`
	// Comparison says in words why nothing was compared, empty when it was.
	Comparison string          `json:"comparison"`
	Gaps       []Gap           `json:"gaps"`
	Checks     []CheckOutcome  `json:"checks"`
	Baseline   Baseline        `json:"baseline"`
	Churn      Churn           `json:"churn"`
	Devices    []Device        `json:"devices"`
	Unknown    []UnknownDevice `json:"unknownDevices"`
	Classes    []Class         `json:"classes"`
	Nodes      []Node          `json:"nodes"`
	Pending    []Pending       `json:"pending"`
	Findings   []Finding       `json:"findings"`
	Repairs    []Repair        `json:"repairs"`
	Platform   Platform        `json:"platform"`
	ChainHead  string          `json:"chainHead"`
	Notes      []string        `json:"notes"`
}

// SnapshotRef points to the stored snapshot that a cluster was compared with.
type SnapshotRef struct {
	Key         string    `json:"key"`
	CollectedAt time.Time `json:"collectedAt"`
}

// Gap is something that could not be seen.
type Gap struct {
	Resource string `json:"resource"`
	// Namespace is set when the gap is one namespace's alone.
	Namespace string `json:"namespace"`
	// Reason is forbidden, unreachable, timeout, credentials, expired,
	// notCollected or error.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Checks are the ids of the checks that miss this input.
	Checks []string `json:"checks"`
	// Accepted is true when the configuration accepts this gap for good: shown, not failing.
	Accepted       bool   `json:"accepted"`
	AcceptedReason string `json:"acceptedReason"`
}

// CheckOutcome says how far one check could be judged.
type CheckOutcome struct {
	ID      string  `json:"id"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason"`
}

// Outcome of a check on one cluster.
type Outcome string

// Findings: something was found. Clean: all inputs were seen and nothing was
// found. Limited: an optional input was missing, a wider rule was used.
// NotEvaluated: a required input was missing.
const (
	OutcomeFindings     Outcome = "findings"
	OutcomeClean        Outcome = "clean"
	OutcomeLimited      Outcome = "limited"
	OutcomeNotEvaluated Outcome = "notEvaluated"
)

// Baseline is the cluster at a glance. Counts are null when not seen.
type Baseline struct {
	Nodes             *int         `json:"nodes"`
	ReadyNodes        *int         `json:"readyNodes"`
	CordonedNodes     *int         `json:"cordonedNodes"`
	Pods              *int         `json:"pods"`
	PendingPods       *int         `json:"pendingPods"`
	CPUUtilization    *Utilization `json:"cpuUtilization"`
	MemoryUtilization *Utilization `json:"memoryUtilization"`
	MetricsAPI        string       `json:"metricsAPI"`
	DeviceMetrics     string       `json:"deviceMetrics"`
	ManagedFields     string       `json:"managedFields"`
}

// Utilization is real use over allocatable, per node, from 0 to 1.
type Utilization struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Churn are nodes that an autoscaler or a virtual cluster came and went with.
type Churn struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}

// Device is one device resource of a cluster. Numbers are in Unit, except Physical (cards).
// Pointers are null when pods or nodes were not seen.
type Device struct {
	Resource string `json:"resource"`
	Source   string `json:"source"` // plugin or dra
	Unit     string `json:"unit"`   // card, slot, slice, memory, cores, device
	Vendor   string `json:"vendor"`
	Physical *int64 `json:"physical"`
	// PhysicalHealthy are the cards behind Allocatable, null when not derivable.
	PhysicalHealthy *int64 `json:"physicalHealthy"`
	// PhysicalNote says why Physical is null or uncertain.
	PhysicalNote string `json:"physicalNote"`
	Capacity     int64  `json:"capacity"`
	Allocatable  int64  `json:"allocatable"`
	Requested    *int64 `json:"requested"`
	Free         *int64 `json:"free"`
	// Occupancy is requested over allocatable; it is not real use.
	Occupancy        *float64 `json:"occupancy"`
	Overcommitted    *int64   `json:"overcommitted"`
	MaxFreeOnOneNode *int64   `json:"maxFreeOnOneNode"`
	Held             *Held    `json:"held"`
	Reclaimable      *int64   `json:"reclaimable"`
	Nominated        *int64   `json:"nominated"`
	Naive            Naive    `json:"naive"`
	UpperBound       bool     `json:"upperBound"`
	// AliasOf names the resource under which the same silicon is counted; empty when counted here.
	AliasOf string   `json:"aliasOf"`
	Notes   []string `json:"notes"`
}

// Held are devices charged to pods that do no work.
type Held struct {
	Ghost         int64 `json:"ghost"`
	StuckStarting int64 `json:"stuckStarting"`
	Terminating   int64 `json:"terminating"`
	DeadNode      int64 `json:"deadNode"`
}

// Naive is what the usual sum over `kubectl get pods -o json` gives: app
// containers only, finished pods included, free never clamped.
type Naive struct {
	Requested *int64 `json:"requested"`
	Free      *int64 `json:"free"`
}

// UnknownDevice is an extended resource that no table row knows: listed, not added up.
type UnknownDevice struct {
	Resource    string `json:"resource"`
	Nodes       int    `json:"nodes"`
	Capacity    int64  `json:"capacity"`
	Allocatable int64  `json:"allocatable"`
	Requested   *int64 `json:"requested"`
	Note        string `json:"note"`
}

// Class is one kind of workload, and what of the free devices it can get.
// ApparentFree = Schedulable + the sum of Lost devices, exactly.
type Class struct {
	Name            string            `json:"name"`
	Source          string            `json:"source"` // configured or observed
	Resource        string            `json:"resource"`
	Requests        map[string]string `json:"requests"`
	NodeSelector    map[string]string `json:"nodeSelector"`
	Affinity        any               `json:"affinity"`
	Tolerations     any               `json:"tolerations"`
	HostPorts       []string          `json:"hostPorts"`
	RuntimeClass    string            `json:"runtimeClass"`
	Owners          []string          `json:"owners"`
	NotModelled     []string          `json:"notModelled"`
	NotOffered      []string          `json:"notOffered"` // resources that it asks for and no node has
	PendingPods     *int              `json:"pendingPods"`
	RunningPods     *int              `json:"runningPods"`
	EligibleNodes   int               `json:"eligibleNodes"`
	ApparentFree    int64             `json:"apparentFree"`
	Schedulable     int64             `json:"schedulable"`
	Replicas        int64             `json:"replicas"`
	MaxReplicasNode int64             `json:"maxReplicasOnOneNode"`
	Reclaimable     int64             `json:"reclaimable"`
	Nominated       int64             `json:"nominated"`
	UpperBound      bool              `json:"upperBound"`
	Lost            []Lost            `json:"lost"`
}

// Lost are free devices that a class cannot get, for one reason.
type Lost struct {
	Reason  string   `json:"reason"`
	Devices int64    `json:"devices"`
	Nodes   []string `json:"nodes"`
	// DevicesByNode divides Devices over the nodes.
	DevicesByNode map[string]int64 `json:"devicesByNode"`
	Step          int              `json:"step"`
	// Detail says what exactly is missing ("node_env absent"), for people.
	Detail string `json:"detail"`
}

// Reasons why free devices are lost to a class, in order of precedence.
const (
	LostNotReady         = "notReady"
	LostSilent           = "silent"
	LostCordoned         = "cordoned"
	LostAdmission        = "admissionFailures"
	LostTaint            = "taint"
	LostLabelMissing     = "labelMissing"
	LostLabelOtherValue  = "labelOtherValue"
	LostAffinity         = "affinity"
	LostReserved         = "reserved"
	LostTooSmall         = "tooSmall"
	LostPodSlots         = "podSlots"
	LostCPU              = "cpu"
	LostMemory           = "memory"
	LostEphemeralStorage = "ephemeralStorage"
	LostRemainder        = "remainder"
)

// Node is one node of a cluster.
type Node struct {
	Name    string     `json:"name"`
	UID     string     `json:"uid"`
	Kind    string     `json:"kind"` // physical, elastic, fake
	Created *time.Time `json:"created"`
	// Ready is true, false or the word "unknown".
	Ready            any                   `json:"ready"`
	Reason           string                `json:"reason"`
	Since            *time.Time            `json:"since"`
	LastHeartbeat    *time.Time            `json:"lastHeartbeat"`
	Silent           bool                  `json:"silent"`
	ClockSkewSeconds *int64                `json:"clockSkewSeconds"`
	Cordoned         bool                  `json:"cordoned"`
	CordonedSince    *time.Time            `json:"cordonedSince"`
	Initialising     bool                  `json:"initialising"`
	Devices          map[string]NodeDevice `json:"devices"`
	Labels           map[string]string     `json:"labels"`
	Taints           []string              `json:"taints"`
	ProviderID       string                `json:"providerID"`
}

// NodeDevice is one device resource of one node; Requested and Free are null when pods were not seen.
type NodeDevice struct {
	Capacity    int64  `json:"capacity"`
	Allocatable int64  `json:"allocatable"`
	Requested   *int64 `json:"requested"`
	Free        *int64 `json:"free"`
	// Held are devices on this node charged to pods that do no work.
	Held int64 `json:"held"`
}

// Pending is one waiting pod.
type Pending struct {
	Namespace     string            `json:"namespace"`
	Name          string            `json:"name"`
	UID           string            `json:"uid"`
	Since         *time.Time        `json:"since"`
	SchedulerName string            `json:"schedulerName"`
	ReportedBy    string            `json:"reportedBy"`
	Cause         string            `json:"cause"`
	Reasons       []string          `json:"reasons"`
	Message       string            `json:"message"`
	Attempts      int64             `json:"attempts"`
	Requests      map[string]string `json:"requests"`
	// TargetNode is the bound node, the nominated node, or the one node a DaemonSet's pod is for.
	TargetNode string `json:"targetNode"`
	// Bound is true for a pod that has a spec.nodeName and has not started.
	Bound bool     `json:"bound"`
	Owner string   `json:"owner"` // Kind/name of the top owner, empty when none
	Class string   `json:"class"`
	Quota *Quota   `json:"quota"`
	Gates []string `json:"gates"`
	// Opinions are what others than the scheduler said (autoscalers).
	Opinions []string `json:"opinions"`
}

// Quota is the quota that holds something back.
type Quota struct {
	Source   string `json:"source"` // native or scheduler
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Mode     string `json:"mode"` // exhausted, scope, misspecified, never
	Used     string `json:"used"`
	Hard     string `json:"hard"`
	Reporter string `json:"reporter"`
}

// Platform is what kind of cluster this looks like.
type Platform struct {
	// Virtual is true with any virtual-cluster marker.
	Virtual bool     `json:"virtual"`
	Markers []string `json:"markers"`
	// Schedulers are the names that report on pods.
	Schedulers []string `json:"schedulers"`
	// QuotaKinds are API kinds that look like quota, queue or pod group.
	QuotaKinds []string `json:"quotaKinds"`
}

// Repair is what mending one finding would give.
type Repair struct {
	Finding string `json:"finding"`
	Action  string `json:"action"`
	// Gains are schedulable devices won, by class name, sorted by name.
	Gains []Gain `json:"gains"`
	// Devices is the largest gain of any class.
	Devices int64 `json:"devices"`
	// PendingPodsUnblocked are waiting pods that would then be placed.
	PendingPodsUnblocked int `json:"pendingPodsUnblocked"`
	// Order ranks repairs, 1 gains most given those before it; 0 is unranked.
	Order int `json:"order"`
}

// Gain is one class's share of a repair.
type Gain struct {
	Class   string `json:"class"`
	Devices int64  `json:"devices"`
}
