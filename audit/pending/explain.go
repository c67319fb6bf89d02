package pending

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/quota"
	"gpuaudit/audit/report"
)

// Simulation is our own verdict on a pod over all nodes.
type Simulation struct {
	// Nodes is how many there are; 0 means nothing can be concluded.
	Nodes int
	// Matching match selector and affinity; Open of these are neither cordoned
	// nor tainted against the pod; Fitting of these have room.
	Matching, Open, Fitting int
	// Lacking is true when every open node lacks a resource, Ports when every
	// open node that has the resources has a wanted host port taken.
	Lacking, Ports bool
	// Missing names a device that no node advertises, "" for none.
	Missing string
}

// Simulator judges a pod's shape over the nodes; target narrows it to one node.
type Simulator interface {
	Judge(shape *inventory.Shape, target string) Simulation
}

// Context is what surrounds the pods of a cluster.
type Context struct {
	Cluster   *inventory.Cluster
	Simulator Simulator // nil when nodes were not seen
	Now       time.Time
	// Fresh is how long an event speaks about the present.
	Fresh time.Duration

	events map[string][]*inventory.Event // by namespace/name of a pod
	queued map[string]*quota.Item        // by kind/namespace/name
	groups map[string]string             // PodGroup namespace/name -> phase
}

// NewContext indexes a cluster's events and queues.
func NewContext(c *inventory.Cluster, s Simulator, now time.Time, fresh time.Duration) *Context {
	ctx := &Context{Cluster: c, Simulator: s, Now: now, Fresh: fresh, events: map[string][]*inventory.Event{}, queued: map[string]*quota.Item{}, groups: map[string]string{}}
	for _, e := range c.Events {
		if e.Kind == "Pod" {
			key := e.RefNamespace + "/" + e.Name
			ctx.events[key] = append(ctx.events[key], e)
		}
	}
	items := quota.Queued(c)
	for i := range items {
		ctx.queued[items[i].Kind+"/"+items[i].Namespace+"/"+items[i].Name] = &items[i]
	}
	for _, list := range [][]*inventory.Custom{c.Custom[quota.VolcanoPodGroups], c.Custom[quota.SigsPodGroups]} {
		for _, g := range list {
			phase, _ := g.Nested("status", "phase").(string)
			ctx.groups[g.Namespace+"/"+g.Name] = phase
		}
	}
	return ctx
}

// Explain says why a Pending pod does not run.
func (ctx *Context) Explain(p *inventory.Pod) report.Pending {
	v := report.Pending{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, SchedulerName: p.SchedulerName, Requests: p.Shape.Requests.Quantities(),
		Bound: p.Node != "", Owner: p.Owner.String(), Gates: p.Gates, Since: pointer(p.Created),
	}
	v.TargetNode = firstOf(p.Node, p.Nominated, p.TargetNode)
	words := ctx.listen(p, &v)
	v.Cause = ctx.cause(p, words, &v)
	for _, r := range words.readings {
		for _, reason := range r.Reasons {
			if len(v.Reasons) < 16 && !slices.Contains(v.Reasons, reason) {
				v.Reasons = append(v.Reasons, reason)
			}
		}
	}
	if v.Cause != Quota {
		v.Quota = nil
	}
	for _, c := range p.Waiting {
		if c.Reason != "" && v.Bound && !slices.Contains(v.Reasons, c.Reason) {
			v.Reasons = append(v.Reasons, c.Reason)
		}
	}
	return v
}

func pointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// words are what was said about a pod by those who place it.
type words struct {
	readings []Reading
	observed bool
}

func (w *words) has(cause string) bool {
	for i := range w.readings {
		if w.readings[i].Has(cause) {
			return true
		}
	}
	return false
}

// listen collects the PodScheduled condition, which is the authority, and the
// events, which add who reported, how often and since when.
func (ctx *Context) listen(p *inventory.Pod, v *report.Pending) words {
	var w words
	var newest *inventory.Event
	var events []*inventory.Event
	for _, e := range ctx.events[p.Ref()] {
		if e.RefUID != "" && p.UID != "" && e.RefUID != p.UID {
			continue // about an earlier pod of the same name
		}
		if IsAutoscaler(e.Reporter) {
			v.Opinions = append(v.Opinions, fmt.Sprintf("%s: %s", e.Reporter, e.Message))
			continue
		}
		if !placesPods(e) {
			continue
		}
		events = append(events, e)
		v.Attempts += e.Count
		if newest == nil || e.Last.After(newest.Last) {
			newest = e
		}
	}
	if newest != nil {
		v.ReportedBy = newest.Reporter
		w.observed = true
	}
	if s := p.Scheduled; s != nil && s.Status != "True" {
		w.observed = true
		v.Message = s.Message
		reporter := ""
		if newest != nil {
			reporter = newest.Reporter
		}
		if s.Message != "" || s.Reason != "" {
			w.readings = append(w.readings, Parse(reporter, s.Reason, s.Message))
		}
	}
	for _, e := range events {
		fresh := ctx.Fresh <= 0 || ctx.Now.Sub(e.Last) <= ctx.Fresh
		// Without a condition an old event is still the last that was said.
		if fresh || p.Scheduled == nil || p.Node != "" {
			w.readings = append(w.readings, Parse(e.Reporter, e.Reason, e.Message))
		}
	}
	if v.Message == "" && newest != nil {
		v.Message = newest.Message
	}
	return w
}

// placesPods is true for events of schedulers and queues. Any type and reason
// counts; what kubelets and controllers say about pods does not.
func placesPods(e *inventory.Event) bool {
	name := strings.ToLower(e.Reporter)
	switch {
	case name == "kubelet", strings.HasPrefix(name, "kubelet"), strings.HasSuffix(name, "-controller"), strings.HasSuffix(name, "_controller"),
		strings.Contains(name, "descheduler"), strings.Contains(name, "multus"), strings.Contains(name, "kubeflow"), strings.Contains(name, "istio"), strings.Contains(name, "node-problem"):
		return false
	case name == "kube-controller-manager", name == "taint-manager", name == "attachdetach-controller":
		return false
	}
	switch e.Reason {
	case "Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing", "FailedMount", "FailedAttachVolume", "BackOff", "Failed", "SuccessfulAttachVolume", "TaintManagerEviction", "Evicted", "NodeNotReady", "TriggeredScaleUp", "NotTriggerScaleUp", "Nominated":
		return false
	}
	return true
}

// cause chooses one, by the precedence that the contract sets.
func (ctx *Context) cause(p *inventory.Pod, w words, v *report.Pending) string {
	if p.Deletion != nil || w.has(Terminating) {
		return Terminating
	}
	queueGates, foreign := gates(p.Gates)
	if len(foreign) > 0 {
		return Gated
	}
	if item := ctx.item(p); item != nil {
		q := item.Quota
		v.Quota, v.Message = &q, firstOf(item.Message, v.Message)
		return Quota
	}
	for i := range w.readings {
		if w.readings[i].Has(Quota) {
			v.Quota = w.readings[i].Quota
			if v.Quota != nil && v.Quota.Reporter == "" && v.Quota.Source == "scheduler" {
				q := *v.Quota
				q.Reporter = v.ReportedBy
				v.Quota = &q
			}
			return Quota
		}
	}
	if len(queueGates) > 0 {
		return Queue
	}
	if w.has(Gated) {
		return Gated
	}
	if p.Node != "" {
		return boundCause(ctx, p)
	}
	if p.Nominated != "" {
		return Preempting
	}
	return ctx.placement(p, w, v)
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

// boundCause is about a pod that a node has and that does not start.
func boundCause(ctx *Context, p *inventory.Pod) string {
	for _, e := range ctx.events[p.Ref()] {
		if (e.RefUID == "" || p.UID == "" || e.RefUID == p.UID) && (e.Reason == "FailedMount" || e.Reason == "FailedAttachVolume") {
			return Volume
		}
	}
	if p.StartTime == nil && !p.HasContainerStatuses && !p.HasInitStatuses {
		return Unobserved
	}
	return Unclassified
}

// placement is about a pod that no node has: our own simulation decides what
// the counts in messages cannot.
func (ctx *Context) placement(p *inventory.Pod, w words, v *report.Pending) string {
	var sim Simulation
	if ctx.Simulator != nil {
		sim = ctx.Simulator.Judge(p.Shape, p.TargetNode)
	}
	if sim.Nodes > 0 {
		switch {
		case sim.Missing != "":
			return DeviceMissing
		case sim.Matching == 0:
			return Selector
		case sim.Open == 0:
			return Taint
		}
	}
	if cause := ctx.remaining(w, sim); cause != "" {
		return cause
	}
	if phase, ok := ctx.groups[p.Namespace+"/"+p.Gang]; ok && p.Gang != "" && !w.observed {
		if phase == "Pending" || phase == "" {
			return Queue
		}
		return Gang
	}
	if !w.observed {
		if p.NativeGang {
			return Gang // upstream gang scheduling holds such pods before the queue and says nothing
		}
		return Unobserved
	}
	if v.Message == "" && sim.Lacking {
		return Capacity
	}
	return Unclassified
}

// remaining picks, among the reasons that were given, the one that holds on
// nodes which match and are open: others are noise of other nodes.
func (ctx *Context) remaining(w words, sim Simulation) string {
	if sim.Nodes > 0 && sim.Lacking && w.has(Capacity) {
		return Capacity
	}
	if sim.Nodes > 0 && sim.Ports && w.has(Ports) {
		return Ports
	}
	for _, cause := range []string{Volume, Topology, Ports, Capacity, Gang} {
		if w.has(cause) {
			return cause
		}
	}
	if sim.Nodes == 0 {
		for _, cause := range []string{Taint, Selector} {
			if w.has(cause) {
				return cause
			}
		}
	}
	return ""
}
