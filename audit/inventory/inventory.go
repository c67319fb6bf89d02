// Package inventory holds what was seen of one cluster, and what could not be
// seen. It is the only input of the evaluation: a live read and a folder of
// files give the same type with the same gaps.
//
// Pods are reduced while they stream past (see PodPass): a pod that simply runs
// is added to its node's Load and forgotten, so that memory does not grow with
// the number of pods; pods that somebody may have to act on are kept.
package inventory

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Resource names what is read, as `plural` for built-in kinds of the core and
// apps groups and `plural.group` for others: "pods", "workloads.kueue.x-k8s.io".
type Resource string

// The built-in kinds that an audit reads.
const (
	Nodes          Resource = "nodes"
	Pods           Resource = "pods"
	Leases         Resource = "leases"
	DaemonSets     Resource = "daemonsets"
	Deployments    Resource = "deployments"
	ReplicaSets    Resource = "replicasets"
	StatefulSets   Resource = "statefulsets"
	Jobs           Resource = "jobs"
	CronJobs       Resource = "cronjobs"
	Events         Resource = "events"
	ResourceQuotas Resource = "resourcequotas"
	RuntimeClasses Resource = "runtimeclasses"
	Services       Resource = "services"
	EndpointSlices Resource = "endpointslices"
	Namespaces     Resource = "namespaces"
	NodeMetrics    Resource = "nodes.metrics.k8s.io"
	ResourceSlices Resource = "resourceslices.resource.k8s.io"
	ResourceClaims Resource = "resourceclaims.resource.k8s.io"
	DeviceClasses  Resource = "deviceclasses.resource.k8s.io"
	Discovery      Resource = "discovery"
)

// GapReason says why something could not be seen.
type GapReason string

// The reasons of a gap, as reports print them.
const (
	GapForbidden    GapReason = "forbidden"
	GapUnreachable  GapReason = "unreachable"
	GapTimeout      GapReason = "timeout"
	GapCredentials  GapReason = "credentials"
	GapExpired      GapReason = "expired"
	GapNotCollected GapReason = "notCollected"
	GapError        GapReason = "error"
)

// Gap is a read that did not give the whole answer. Namespace is set when only
// that namespace's part is missing.
type Gap struct {
	Resource  Resource
	Namespace string
	Reason    GapReason
	Message   string
}

// Extent says how much of a resource was seen.
type Extent int

// NotSeen: no read of it succeeded. SeenSome: some namespaces were read and
// others failed or are not covered (there is a Gap). SeenListed: all the
// namespaces that the configuration lists were read, the others not asked for.
// SeenWhole: everything. NotInstalled: the server does not have the kind.
const (
	NotSeen Extent = iota
	SeenSome
	SeenListed
	SeenWhole
	NotInstalled
)

// Source of an inventory.
type Source string

// Live is an API read, Dump a folder of files.
const (
	Live Source = "live"
	Dump Source = "dump"
)

// Cluster is what was seen of one cluster.
type Cluster struct {
	Name          string
	UID           string // of namespace kube-system; "" when not seen
	ServerVersion string
	Source        Source
	// CollectedAt is the API server's time when the read began (its Date
	// header), or a dump's now.
	CollectedAt time.Time
	// ClientSkew is the local clock minus the API server's, for the report.
	ClientSkew time.Duration
	// Err is set when nothing at all could be read; Gaps then has one entry
	// per resource with the same reason.
	Err *Gap

	// Notes are what a reader of the report must know of how this was read.
	Notes []string

	Extents map[Resource]Extent
	Gaps    []Gap
	// ListedNamespaces are the configured ones when only these are read.
	ListedNamespaces []string

	Nodes []*Node // sorted by name
	// Pods are the kept ones (see PodPass), sorted by namespace and name.
	Pods []*Pod
	// PodCount counts all pods; PendingCount those in phase Pending.
	PodCount, PendingCount int
	// Unplaced is the load of bound pods whose node does not exist.
	Unplaced Load
	// RunningShapes counts running pods by workload, for observed classes.
	RunningShapes []RunningShape
	// SelectedLabels are the label keys that some pod, template or spread
	// constraint selects nodes by, with who does ("Pod/ns/name" or owner).
	SelectedLabels map[string]*LabelUse
	// DaemonNodes lists, by "namespace/name" of a DaemonSet, the nodes on which
	// it has a pod that is not terminating and not finished.
	DaemonNodes map[string]map[string]bool
	// ExporterNodes lists, by owner "Kind/ns/name", the nodes on which a pod
	// that looks like a device metrics exporter runs and is ready.
	ExporterNodes map[string]map[string]bool

	Workloads      []*Workload
	Events         []*Event
	Quotas         []*ResourceQuota
	RuntimeClasses map[string]*RuntimeClass
	Services       []*Service
	Endpoints      []*EndpointSlice
	Namespaces     []string
	Slices         []*DeviceSlice
	Claims         []*DeviceClaim
	DeviceClasses  []*DeviceClass
	// Usage is real use by node name, from metrics.k8s.io; nil when not seen.
	Usage map[string]Usage
	// MetricsServed says whether discovery names metrics.k8s.io.
	MetricsServed Tri
	// Custom holds objects of other kinds, by Resource ("queues.scheduling.volcano.sh").
	Custom map[Resource][]*Custom
	// APIKinds is what discovery (or an APIResourceList in a dump) named.
	APIKinds []APIKind

	// NodesWithManagers and PodsWithManagers count objects that carry
	// managedFields: zero of many on an API read means stripped.
	NodesWithManagers, PodsWithManagers int
}

// Tri is yes, no or unknown.
type Tri int

// The three answers.
const (
	Unknown Tri = iota
	No
	Yes
)

// Extent tells how much of r was seen.
func (c *Cluster) Extent(r Resource) Extent { return c.Extents[r] }

// Seen is true when nothing that was asked for of r is missing.
func (c *Cluster) Seen(r Resource) bool {
	switch c.Extents[r] {
	case SeenWhole, SeenListed, NotInstalled:
		return true
	}
	return false
}

// AnySeen is true when at least a part of r was seen.
func (c *Cluster) AnySeen(r Resource) bool { return c.Extents[r] != NotSeen }

// GapsOf gives the gaps of r.
func (c *Cluster) GapsOf(r Resource) []Gap {
	var out []Gap
	for _, g := range c.Gaps {
		if g.Resource == r {
			out = append(out, g)
		}
	}
	return out
}

// Node gives a node by name, nil when there is none.
func (c *Cluster) Node(name string) *Node {
	i, ok := slices.BinarySearchFunc(c.Nodes, name, func(n *Node, s string) int {
		switch {
		case n.Name < s:
			return -1
		case n.Name > s:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return c.Nodes[i]
}

// LabelUse says who selects on a label key.
type LabelUse struct {
	Key string
	// Values are the values selected for, sorted, at most 32.
	Values []string
	// Users are workloads ("Deployment/prod/inference") or pods, sorted, at most 32.
	Users []string
	// Total counts the pods and templates that select on the key.
	Total int
}

// Node is one Node object and the load that its pods put on it.
type Node struct {
	Name, UID   string
	Created     time.Time
	Labels      map[string]string
	Annotations map[string]string // only the named ones (see NodeAnnotations)
	Taints      []corev1.Taint
	Cordoned    bool // spec.unschedulable
	Conditions  []Condition
	Capacity    Resources
	Allocatable Resources
	ProviderID  string
	OSImage     string
	Kernel      string
	Kubelet     string
	Deleting    *time.Time
	Lease       *Lease // nil when none or not seen
	// LabelManagers tell who set a label last, by key; nil without managedFields.
	LabelManagers map[string]Manager
	// CordonManager tells who set spec.unschedulable, nil when unknown.
	CordonManager *Manager
	HasManagers   bool
	Load          Load
}

// Condition is a condition of a node or pod; zero times are unknown.
type Condition struct {
	Type, Status, Reason, Message string
	Heartbeat, Transition         time.Time
}

// Condition gives the node's condition of that type, nil when absent.
func (n *Node) Condition(kind string) *Condition {
	for i := range n.Conditions {
		if n.Conditions[i].Type == kind {
			return &n.Conditions[i]
		}
	}
	return nil
}

// Lease is a kubelet's lease in kube-node-lease.
type Lease struct {
	Renewed  time.Time
	Acquired time.Time
	Duration time.Duration
}

// Manager is an entry of managedFields.
type Manager struct {
	Name, Operation string
	Time            time.Time
}

// Load is what pods put on a node.
type Load struct {
	// Pods counts charged pods: bound, neither Succeeded nor Failed.
	Pods int
	// Requested is the sum that the scheduler charges.
	Requested Resources
	// Naive is the sum over app containers of every bound pod in any phase.
	Naive Resources
	// Running is charged to pods that are Running and not being deleted.
	Running Resources
	// Reclaimable is charged to Running pods of negative priority (placeholders).
	Reclaimable Resources
	HostPorts   []HostPort
	// Rejected are pods that the kubelet refused at admission, newest first, at
	// most RejectedKept of RejectedTotal.
	Rejected      []Rejection
	RejectedTotal int
}

// Rejection is a pod that failed at a kubelet's admission.
type Rejection struct {
	Namespace, Name, Owner, Reason, Message string
	At                                      time.Time
}

// HostPort is a port of a node that a pod takes.
type HostPort struct {
	IP, Protocol string
	Port         int32
}

// Owner is the top controller of a pod: Deployment rather than ReplicaSet,
// CronJob rather than Job, when it can be told.
type Owner struct {
	APIVersion, Kind, Name, UID string
}

// String gives Kind/name, or "" for none.
func (o Owner) String() string {
	if o.Kind == "" {
		return ""
	}
	return o.Kind + "/" + o.Name
}

// Shape is everything of a pod or template that decides where it can go.
// Shapes are interned: pods of one workload share one.
type Shape struct {
	Requests     Resources
	NodeSelector map[string]string
	Affinity     *corev1.NodeSelector // required node affinity
	Tolerations  []corev1.Toleration
	HostPorts    []HostPort
	RuntimeClass string
	// ClaimCount counts spec.resourceClaims.
	ClaimCount int
	// NotModelled names what of the spec the simulation leaves out:
	// podAffinity, podAntiAffinity, topologySpread, volumes, resourceClaims.
	NotModelled []string
	// Annotations that device-sharing schedulers read (see PodAnnotations).
	Annotations map[string]string
	key         string
}

// Key identifies a shape: equal keys are equal shapes.
func (s *Shape) Key() string { return s.key }

// Pod is a pod that somebody may have to act on.
type Pod struct {
	Namespace, Name, UID string
	Created              time.Time
	Node                 string // spec.nodeName
	Phase, Reason        string
	Message              string
	Shape                *Shape
	// Naive are the app containers' requests alone.
	Naive         Resources
	Owner         Owner
	SchedulerName string
	Priority      int32
	PriorityClass string
	StartTime     *time.Time
	Deletion      *time.Time // metadata.deletionTimestamp: already contains the grace period
	Scheduled     *Condition // PodScheduled
	Ready         *Condition
	// HasContainerStatuses: status.containerStatuses is not empty; likewise init.
	HasContainerStatuses, HasInitStatuses bool
	// Containers that are not plainly running or done, with the reason they wait.
	Waiting []ContainerState
	// InitRunningSince is when the init container now running began.
	InitRunningSince *time.Time
	Nominated        string
	Gates            []string
	// TargetNode is the one node that a DaemonSet's affinity names.
	TargetNode string
	// Gang and Queue are the pod group and queue that labels, annotations or
	// spec fields name; empty when none.
	Gang, Queue string
	// ClaimNames are ResourceClaims the pod uses, where the status names them.
	ClaimNames []string
	// NeverBound is true for a pod of a gang that upstream gang scheduling
	// holds before the queue (spec.workloadRef or spec.schedulingGroup).
	NativeGang bool
}

// Charged is true when the scheduler charges the pod to its node: bound and
// neither Succeeded nor Failed; terminating ones included.
func (p *Pod) Charged() bool {
	return p.Node != "" && p.Phase != string(corev1.PodSucceeded) && p.Phase != string(corev1.PodFailed)
}

// Ref gives namespace/name.
func (p *Pod) Ref() string { return p.Namespace + "/" + p.Name }

// ContainerState is a container that waits or was terminated.
type ContainerState struct {
	Name    string
	Init    bool
	Reason  string // waiting reason, such as ImagePullBackOff
	Message string
}

// RunningShape counts running pods of one shape that want devices.
type RunningShape struct {
	Shape *Shape
	Count int
	// Owners are "Kind/namespace/name", the first 32 in order.
	Owners []string
}
