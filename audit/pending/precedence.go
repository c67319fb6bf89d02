package pending

import (
	"slices"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/quota"
	"gpuaudit/audit/report"
)

// cause chooses one, by the precedence that reports promise: terminating,
// gated, quota, queue, preempting, deviceMissing, then what our own simulation
// over the nodes leaves of the reasons given.
func (ctx *Context) cause(p *inventory.Pod, w words, v *report.Pending) string {
	if p.Deletion != nil || w.deleting {
		return Terminating
	}
	queueGates, foreign := gates(p.Gates)
	if len(foreign) > 0 {
		return Gated
	}
	if ctx.heldByQuota(p, w, v) {
		return Quota
	}
	if p.Node != "" {
		return ctx.boundCause(p, w)
	}
	if len(queueGates) > 0 || ctx.inQueue(p, w) {
		return Queue
	}
	if w.has(Gated) {
		return Gated
	}
	if p.Nominated != "" {
		return Preempting
	}
	return ctx.placement(p, w, v)
}

// heldByQuota is true when a quota holds the pod back, its workload's or its own.
func (ctx *Context) heldByQuota(p *inventory.Pod, w words, v *report.Pending) bool {
	if item := ctx.item(p); item != nil && p.Node == "" {
		q := item.Quota
		if read, ok := quotaOf(item.Message); ok && read.Mode != "" {
			q.Mode = read.Mode // of several flavors, one that is merely in use may free up
		}
		v.Quota, v.Message = &q, firstOf(cut(item.Message), v.Message)
		return true
	}
	said, ok := w.quota()
	if !ok {
		return false
	}
	if said != nil {
		q := *said
		if q.Reporter == "" && q.Source == "scheduler" {
			q.Reporter = v.ReportedBy
		}
		v.Quota = &q
	}
	return true
}

// item finds a queue's word about the pod's workload, owner or pod group.
func (ctx *Context) item(p *inventory.Pod) *quota.Item {
	for _, key := range []string{
		p.Owner.Kind + "/" + p.Namespace + "/" + p.Owner.Name,
		"PodGroup/" + p.Namespace + "/" + p.Gang,
		"Workload/" + p.Namespace + "/" + p.Gang,
		"Pod/" + p.Namespace + "/" + p.Name,
	} {
		if i := ctx.queued[key]; i != nil {
			return i
		}
	}
	return nil
}

func quotaOf(message string) (report.Quota, bool) {
	q := quotaIn("", cut(message))
	if q == nil || q.Source != "scheduler" {
		return report.Quota{}, false
	}
	return *q, true
}

// inQueue is true for a pod whose pod group or suspended job waits for a queue
// that has not said why.
func (ctx *Context) inQueue(p *inventory.Pod, w words) bool {
	if w.has(Queue) && !w.explainedBeyond(Queue) {
		return true
	}
	if w.observed {
		return false
	}
	if phase, ok := ctx.groups[p.Namespace+"/"+p.Gang]; ok && p.Gang != "" && (phase == "Pending" || phase == "") {
		return true
	}
	owner := ctx.Cluster.Workload(p.Owner.Kind, p.Namespace, p.Owner.Name)
	return owner != nil && owner.Kind == "Job" && owner.Suspended
}

func (w *words) explainedBeyond(cause string) bool {
	for i := range w.readings {
		for _, c := range w.readings[i].Causes {
			if c != cause && c != Gang {
				return true
			}
		}
	}
	return false
}

// gates tells a queue's own gates from others.
func gates(names []string) (queues, foreign []string) {
	for _, g := range names {
		switch {
		case strings.HasPrefix(g, "kueue.x-k8s.io/"), strings.HasPrefix(g, "scheduling.volcano.sh/"), strings.Contains(g, "queue-admission"):
			queues = append(queues, g)
		default:
			foreign = append(foreign, g)
		}
	}
	return queues, foreign
}

// boundCause is about a pod that a node has and that does not start.
func (ctx *Context) boundCause(p *inventory.Pod, w words) string {
	if slices.ContainsFunc(w.node, volumeReason) && creating(p) {
		return Volume
	}
	if taken(p) {
		return Unclassified
	}
	if ctx.judge(p, p.Node).Missing != "" {
		return DeviceMissing
	}
	return Unobserved
}

func volumeReason(reason string) bool {
	switch reason {
	case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
		return true
	}
	return false
}

// creating is false once a container waits for something that comes after its
// volumes: an image, a crash's back-off.
func creating(p *inventory.Pod) bool {
	for _, c := range p.Waiting {
		if c.Reason != "" && c.Reason != "ContainerCreating" && c.Reason != "PodInitializing" {
			return false
		}
	}
	return true
}

// placement is about a pod that no node has: our own simulation decides what
// the counts in messages cannot.
func (ctx *Context) placement(p *inventory.Pod, w words, v *report.Pending) string {
	sim := ctx.judge(p, p.TargetNode)
	switch {
	case ctx.targetGone(p):
		return Selector // made for a node that is no more
	case sim.Nodes == 0:
	case sim.Missing != "":
		return DeviceMissing
	case sim.Matching == 0:
		return Selector
	case sim.Open == 0:
		return Taint
	}
	if cause := remaining(w, sim); cause != "" {
		return cause
	}
	if w.observed {
		if v.Message == "" && sim.Lacking {
			return Capacity
		}
		return Unclassified
	}
	// Upstream gang scheduling holds pods of an incomplete gang before the
	// queue and says nothing; a pod group past its queue waits for its members.
	if _, ok := ctx.groups[p.Namespace+"/"+p.Gang]; p.NativeGang || (ok && p.Gang != "") {
		return Gang
	}
	return Unobserved
}

// targetGone is true when all nodes were seen and the one that a DaemonSet's
// pod is for is not among them.
func (ctx *Context) targetGone(p *inventory.Pod) bool {
	return p.TargetNode != "" && ctx.Cluster.Extent(inventory.Nodes) == inventory.SeenWhole && len(ctx.Cluster.Nodes) > 0 && ctx.Cluster.Node(p.TargetNode) == nil
}

// remaining picks, among the reasons that were given, the one that holds on
// nodes which match and are open: others are noise of other nodes.
func remaining(w words, sim Simulation) string {
	if sim.Nodes > 0 && sim.Lacking && w.has(Capacity) {
		return Capacity
	}
	if sim.Nodes > 0 && sim.Ports && w.has(Ports) {
		return Ports
	}
	for _, cause := range []string{Volume, Topology, Ports, Capacity} {
		if w.has(cause) {
			return cause
		}
	}
	if w.has(DeviceMissing) {
		if sim.Nodes > 0 {
			return Capacity // some node does advertise it: not the ones that were open
		}
		return DeviceMissing
	}
	if w.has(Gang) {
		return Gang
	}
	if sim.Nodes > 0 {
		if sim.Lacking && (w.has(Taint) || w.has(Selector)) {
			return Capacity // the nodes that are neither lack a resource, by our own count
		}
		return ""
	}
	// Without nodes the message stands alone.
	for _, cause := range []string{Taint, Selector} {
		if w.has(cause) {
			return cause
		}
	}
	return ""
}
