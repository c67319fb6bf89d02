package pending

import (
	"slices"
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

// Context is what surrounds the pods of a cluster. It is not for use by
// several goroutines at once.
type Context struct {
	Cluster   *inventory.Cluster
	Simulator Simulator // nil when nodes were not seen
	Now       time.Time
	// Fresh is how long an event speaks about the present; 0 for ever.
	Fresh time.Duration

	events   map[string][]*inventory.Event // by kind/namespace/name of a Pod or PodGroup
	queued   map[string]*quota.Item        // by kind/namespace/name
	groups   map[string]string             // PodGroup namespace/name -> phase
	readings map[said]Reading              // the pods of a job say the same
	judged   map[judgment]Simulation       // and have the same shape
}

type said struct{ reporter, reason, message string }

type judgment struct{ shape, target string }

// remembered bounds the readings and judgments kept.
const remembered = 4096

// NewContext indexes a cluster's events and queues.
func NewContext(c *inventory.Cluster, s Simulator, now time.Time, fresh time.Duration) *Context {
	ctx := &Context{Cluster: c, Simulator: s, Now: now, Fresh: fresh, events: map[string][]*inventory.Event{}, queued: map[string]*quota.Item{}, groups: map[string]string{},
		readings: map[said]Reading{}, judged: map[judgment]Simulation{}}
	for _, e := range c.Events {
		if e.Kind == "Pod" || e.Kind == "PodGroup" {
			key := e.Kind + "/" + e.RefNamespace + "/" + e.Name
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

// read parses a message, or gives the earlier reading of the same words.
func (ctx *Context) read(reporter, reason, message string) Reading {
	key := said{reporter, reason, cut(message)}
	if r, ok := ctx.readings[key]; ok {
		return r
	}
	r := Parse(reporter, reason, key.message)
	if len(ctx.readings) < remembered {
		ctx.readings[key] = r
	}
	return r
}

// judge simulates the pod over the nodes; a zero Simulation concludes nothing.
func (ctx *Context) judge(p *inventory.Pod, target string) Simulation {
	if ctx.Simulator == nil || p.Shape == nil {
		return Simulation{}
	}
	key := judgment{p.Shape.Key(), target}
	if s, ok := ctx.judged[key]; ok && key.shape != "" {
		return s
	}
	s := ctx.Simulator.Judge(p.Shape, target)
	if len(ctx.judged) < remembered {
		ctx.judged[key] = s
	}
	return s
}

// Explain says why a Pending pod does not run.
func (ctx *Context) Explain(p *inventory.Pod) report.Pending {
	v := report.Pending{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, SchedulerName: p.SchedulerName,
		Bound: p.Node != "", Owner: p.Owner.String(), Gates: p.Gates, Since: since(p),
	}
	if p.Shape != nil {
		v.Requests = p.Shape.Requests.Quantities()
	}
	v.TargetNode = firstOf(p.Node, p.Nominated, p.TargetNode)
	w := ctx.listen(p, &v)
	v.Cause = ctx.cause(p, w, &v)
	for _, r := range w.readings {
		addReasons(&v, r.Reasons...)
	}
	addReasons(&v, w.node...)
	for _, c := range p.Waiting {
		if v.Bound && c.Reason != "" {
			addReasons(&v, c.Reason)
		}
	}
	if v.Cause != Quota {
		v.Quota = nil
	}
	return v
}

// maxShown bounds the reasons of one pod in a report.
const maxShown = 16

func addReasons(v *report.Pending, reasons ...string) {
	for _, r := range reasons {
		if len(v.Reasons) < maxShown && !slices.Contains(v.Reasons, r) {
			v.Reasons = append(v.Reasons, r)
		}
	}
}

// since is when the pod was created: it has waited all its life.
func since(p *inventory.Pod) *time.Time {
	if p.Created.IsZero() {
		return nil
	}
	t := p.Created
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
