package inventory

import (
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RejectedKept bounds the pods refused at admission that a node keeps.
const RejectedKept = 20

// suspiciousAfter is the age of the youngest sign of life from which a node's
// device pods are kept in full. It is well under every sensible threshold of
// silence, so that no check misses a pod; keeping too many costs memory only.
const suspiciousAfter = 2 * time.Minute

// PodPass reduces one complete list of pods. Nodes and leases have to be in the
// cluster before it begins, since they decide which pods are kept in full:
// pods that are Pending or being deleted, and those bound to a node that is
// missing, not ready or quiet. All others are added up and forgotten. A pass
// that fails half way is dropped; nothing of it is in the cluster before Commit.
type PodPass struct {
	cluster    *Cluster
	shapes     *Shapes
	suspicious map[string]bool
	known      map[string]*Load // by node name, of nodes that exist
	unplaced   Load
	pods       []*Pod
	counted    int
	pending    int
	managers   int
	running    map[string]*RunningShape
	uses       labelUses
	daemon     map[string]map[string]bool
	exporters  map[string]map[string]bool
	nodesSeen  bool
}

// NewPodPass begins a list of pods.
func NewPodPass(c *Cluster, shapes *Shapes) *PodPass {
	p := &PodPass{
		cluster: c, shapes: shapes, suspicious: map[string]bool{}, known: make(map[string]*Load, len(c.Nodes)),
		running: map[string]*RunningShape{}, uses: labelUses{}, daemon: map[string]map[string]bool{},
		exporters: map[string]map[string]bool{}, nodesSeen: c.Seen(Nodes),
	}
	for _, n := range c.Nodes {
		p.known[n.Name] = newLoad()
		if suspicious(n, c.CollectedAt) {
			p.suspicious[n.Name] = true
		}
	}
	p.unplaced = *newLoad()
	return p
}

func newLoad() *Load {
	return &Load{Requested: Resources{}, Naive: Resources{}, Running: Resources{}, Reclaimable: Resources{}}
}

func suspicious(n *Node, now time.Time) bool {
	ready := n.Condition(string(corev1.NodeReady))
	if ready == nil || ready.Status != string(corev1.ConditionTrue) {
		return true
	}
	last := ready.Heartbeat
	if n.Lease != nil && n.Lease.Renewed.After(last) {
		last = n.Lease.Renewed
	}
	return now.Sub(last) > suspiciousAfter
}

// Add takes one pod in.
func (p *PodPass) Add(pod *corev1.Pod) {
	p.counted++
	if pod.Status.Phase == corev1.PodPending {
		p.pending++
	}
	if len(pod.ManagedFields) > 0 {
		p.managers++
	}
	requests := PodRequests(pod)
	owner := OwnerOf(pod)
	p.load(pod, requests, owner)
	p.use(pod, owner)
	p.daemons(pod, owner)
	done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if !done && p.keep(pod, requests) {
		p.pods = append(p.pods, p.reduce(pod, requests, owner))
	}
	wants := requests.WantsDevices() || len(pod.Spec.ResourceClaims) > 0
	if wants && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && owner.Kind != "DaemonSet" {
		shape := p.shapes.Of(&pod.Spec, requests, pod.Annotations)
		known := p.running[shape.Key()]
		if known == nil {
			known = &RunningShape{Shape: shape}
			p.running[shape.Key()] = known
		}
		known.Count++
		(*smallest)(&known.Owners).add(podUser(pod, owner))
	}
}

func (p *PodPass) keep(pod *corev1.Pod, requests Resources) bool {
	if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "" || pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
		return true
	}
	if p.known[pod.Spec.NodeName] == nil {
		return p.nodesSeen // an orphan
	}
	return p.suspicious[pod.Spec.NodeName] && (requests.WantsDevices() || len(pod.Spec.ResourceClaims) > 0)
}

// load charges the pod to its node as the scheduler does, and beside it as the usual sum does.
func (p *PodPass) load(pod *corev1.Pod, requests Resources, owner Owner) {
	if pod.Spec.NodeName == "" {
		return
	}
	l := p.known[pod.Spec.NodeName]
	if l == nil {
		l = &p.unplaced
	}
	l.Naive.Add(NaiveRequests(pod))
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return
	case corev1.PodFailed:
		if rejectedAtAdmission(pod) {
			l.reject(pod, owner)
		}
		return
	}
	l.Pods++
	l.Requested.Add(requests)
	l.HostPorts = append(l.HostPorts, hostPorts(&pod.Spec)...)
	if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		l.Running.Add(requests)
		if pod.Spec.Priority != nil && *pod.Spec.Priority < 0 {
			l.Reclaimable.Add(requests)
		}
	}
}

// rejectedAtAdmission tells a pod that the kubelet refused before it started
// anything. Source: kubernetes pkg/kubelet (rejectPod) and
// pkg/kubelet/lifecycle (admission reasons).
func rejectedAtAdmission(pod *corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) > 0 || len(pod.Status.InitContainerStatuses) > 0 {
		return false
	}
	reason := pod.Status.Reason
	if strings.HasPrefix(reason, "OutOf") {
		return true
	}
	switch reason {
	case "UnexpectedAdmissionError", "NodeAffinity", "NodeName", "NodePorts", "NodeUnschedulable", "TaintToleration", "PodToleratesNodeTaints",
		"TopologyAffinityError", "SMTAlignmentError", "UnexpectedPredicateFailureType", "InvalidNodeInfo", "InsufficientResource",
		"PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "PodFeatureUnsupported", "UnsupportedPodFeature", "SysctlForbidden", "ForbiddenSysctl", "AppArmor", "InitContainerRestartForbidden",
		"PodLevelResourcesNotSupported":
		return true
	}
	return false
}

func (l *Load) reject(pod *corev1.Pod, owner Owner) {
	at := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		at = pod.Status.StartTime.Time
	}
	l.RejectedTotal++
	l.Rejected = append(l.Rejected, Rejection{
		Namespace: pod.Namespace, Name: pod.Name, Owner: owner.String(), Reason: pod.Status.Reason, Message: Said(pod.Status.Message), At: at.UTC(),
	})
	sortRejected(l.Rejected)
	if len(l.Rejected) > RejectedKept {
		l.Rejected = l.Rejected[:RejectedKept]
	}
}

func sortRejected(r []Rejection) {
	sort.Slice(r, func(i, j int) bool {
		if !r[i].At.Equal(r[j].At) {
			return r[i].At.After(r[j].At)
		}
		if r[i].Namespace != r[j].Namespace {
			return r[i].Namespace < r[j].Namespace
		}
		return r[i].Name < r[j].Name
	})
}

// use notes the label keys that the pod selects nodes by. Finished pods select nothing any more.
func (p *PodPass) use(pod *corev1.Pod, owner Owner) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	SelectedKeys(&pod.Spec, func(key, value string) {
		p.uses.add(key, value, podUser(pod, owner))
	})
}

func podUser(pod *corev1.Pod, owner Owner) string {
	if owner.Kind == "" {
		return "Pod/" + pod.Namespace + "/" + pod.Name
	}
	return owner.Kind + "/" + pod.Namespace + "/" + owner.Name
}

// daemons notes on which nodes a DaemonSet has a pod, and where exporters run.
func (p *PodPass) daemons(pod *corev1.Pod, owner Owner) {
	done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
	if done {
		return
	}
	node := pod.Spec.NodeName
	if owner.Kind == "DaemonSet" {
		if node == "" && pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
			// Made for a node and not bound: the controller has done its part.
			node = TargetNode(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		mark(p.daemon, pod.Namespace+"/"+owner.Name, node)
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning || !isReady(pod) {
		return
	}
	for i := range pod.Spec.Containers {
		if LooksLikeExporter(owner.Name, pod.Spec.Containers[i].Image) {
			mark(p.exporters, podUser(pod, owner), pod.Spec.NodeName)
			return
		}
	}
}

func mark(m map[string]map[string]bool, key, node string) {
	if node == "" {
		return
	}
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][node] = true
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Commit puts a whole list into the cluster. Several passes may be committed,
// one a namespace, where only some namespaces can be read.
func (p *PodPass) Commit() {
	c := p.cluster
	c.PodCount += p.counted
	c.PendingCount += p.pending
	c.PodsWithManagers += p.managers
	c.Pods = append(c.Pods, p.pods...)
	for _, n := range c.Nodes {
		n.Load.merge(p.known[n.Name])
	}
	c.Unplaced.merge(&p.unplaced)
	for _, r := range p.running {
		c.RunningShapes = append(c.RunningShapes, *r)
	}
	p.uses.mergeInto(c)
	mergeMarks(&c.DaemonNodes, p.daemon)
	mergeMarks(&c.ExporterNodes, p.exporters)
}

func mergeMarks(into *map[string]map[string]bool, from map[string]map[string]bool) {
	if *into == nil {
		*into = map[string]map[string]bool{}
	}
	for key, nodes := range from {
		for node := range nodes {
			mark(*into, key, node)
		}
	}
}

func (l *Load) merge(o *Load) {
	if o == nil {
		return
	}
	l.Pods += o.Pods
	for _, pair := range []struct {
		to   *Resources
		from Resources
	}{{&l.Requested, o.Requested}, {&l.Naive, o.Naive}, {&l.Running, o.Running}, {&l.Reclaimable, o.Reclaimable}} {
		if *pair.to == nil {
			*pair.to = Resources{}
		}
		pair.to.Add(pair.from)
	}
	l.HostPorts = append(l.HostPorts, o.HostPorts...)
	slices.SortFunc(l.HostPorts, func(a, b HostPort) int {
		if a.Port != b.Port {
			return int(a.Port) - int(b.Port)
		}
		if c := strings.Compare(a.Protocol, b.Protocol); c != 0 {
			return c
		}
		return strings.Compare(a.IP, b.IP)
	})
	l.HostPorts = slices.Compact(l.HostPorts)
	l.RejectedTotal += o.RejectedTotal
	l.Rejected = append(l.Rejected, o.Rejected...)
	sortRejected(l.Rejected)
	if len(l.Rejected) > RejectedKept {
		l.Rejected = l.Rejected[:RejectedKept]
	}
}
