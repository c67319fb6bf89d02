package inventory

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Workload is a controller that makes pods.
type Workload struct {
	Kind, Namespace, Name, UID string
	Created                    time.Time
	Owner                      Owner
	Shape                      *Shape // of the pod template
	PriorityClass              string
	SchedulerName              string
	Selector                   map[string]string // matchLabels
	// Desired, Current, Ready: spec.replicas/status.replicas/readyReplicas, or a
	// DaemonSet's desired/current/ready numbers, or a Job's parallelism/active/ready.
	Desired, Current, Ready int32
	Misscheduled            int32
	ObservedGeneration      int64
	Generation              int64
	Suspended               bool
	Deleting                bool
	Queue                   string
	Gang                    string
	Conditions              []Condition
	Annotations             map[string]string
	Images                  []string // of containers, for exporter detection; never env or args
	HostNetwork             bool
	// Overhead is what its runtime class adds to each pod's requests; Shape lacks it.
	Overhead    Resources
	ownOverhead bool // the template states it itself: it is in Shape
	// Finished is true for a Job that completed or failed.
	Finished bool
	selects  [][2]string
}

// Ref gives Kind/namespace/name.
func (w *Workload) Ref() string { return w.Kind + "/" + w.Namespace + "/" + w.Name }

// Event is all events of one object, reporter, reason and text form, added up.
type Event struct {
	Namespace                string
	Kind, RefNamespace, Name string // what it is about
	RefUID                   string
	Type, Reason, Message    string
	Reporter                 string
	Count                    int64 // at least
	First, Last              time.Time
}

// ResourceQuota is a native quota, as read.
type ResourceQuota struct {
	Namespace, Name, UID string
	Created              time.Time
	SpecHard             corev1.ResourceList
	Hard, Used           corev1.ResourceList // status
	Scopes               []corev1.ResourceQuotaScope
	ScopeSelector        *corev1.ScopeSelector
}

// RuntimeClass is what a runtime class adds to its pods.
type RuntimeClass struct {
	Name         string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	Overhead     Resources
}

// Service is a Service that may stand before a metrics exporter.
type Service struct {
	Namespace, Name string
	Selector        map[string]string
	Ports           []int32
	Headless        bool
	External        string // spec.externalName
}

// EndpointSlice counts a service's endpoints.
type EndpointSlice struct {
	Namespace, Service string
	Ready, NotReady    int
	Nodes              []string // of ready endpoints
}

// Usage is real use of a node.
type Usage struct {
	MilliCPU, Memory int64
	At               time.Time
}

// DeviceSlice is a ResourceSlice (resource.k8s.io), reduced.
type DeviceSlice struct {
	Name, Driver, Pool string
	Generation         int64
	PoolSlices         int64 // resourceSliceCount
	Node               string
	AllNodes           bool
	NodeSelector       *corev1.NodeSelector
	Devices            []SliceDevice
	SharedCounters     bool
}

// SliceDevice is one device of a slice.
type SliceDevice struct {
	Name string
	Node string // when the slice is per device
	// Counters is true when the device consumes shared counters.
	Counters bool
	// MultiAlloc is allowMultipleAllocations.
	MultiAlloc bool
	Taints     []string // effects NoSchedule/NoExecute, as key=value:effect
	Attributes map[string]string
}

// DeviceClaim is a ResourceClaim, reduced.
type DeviceClaim struct {
	Namespace, Name, UID string
	Created              time.Time
	Allocated            bool
	Results              []ClaimResult
	// ReservedFor are names of pods in the same namespace.
	ReservedFor []string
	Deleting    bool
	// ExtendedResource is set for claims made by the scheduler for extended
	// resources served by DRA.
	ExtendedResource bool
	Requests         []ClaimRequest
}

// DeviceClass is a DeviceClass (resource.k8s.io); ExtendedResource is the
// extended resource name under which pods may ask for it, "" for none.
type DeviceClass struct {
	Name, ExtendedResource string
}

// ClaimResult is one allocated device.
type ClaimResult struct {
	Driver, Pool, Device, Request string
	AdminAccess                   bool
}

// ClaimRequest is one request of a claim.
type ClaimRequest struct {
	Name, DeviceClass string
	Count             int64
	All               bool
	AdminAccess       bool
}

// Custom is an object of another kind; Object holds metadata, spec and status as read.
type Custom struct {
	Resource             Resource
	Kind                 string
	Namespace, Name, UID string
	Created              time.Time
	Object               map[string]any
}

// APIKind is one kind that the server serves.
type APIKind struct {
	Group, Version, Kind, Plural string
	Namespaced                   bool
}
