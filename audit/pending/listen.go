package pending

import (
	"fmt"
	"slices"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
)

// words are what was said about a pod.
type words struct {
	// readings of those who place pods: of the PodScheduled condition, which is
	// the authority, or where it says nothing, of events.
	readings []Reading
	// observed is true when somebody who places pods has reported.
	observed bool
	// deleting is true when a scheduler passed the pod over as being deleted.
	deleting bool
	// node are the reasons of events from the bound pod's node.
	node []string
}

func (w *words) has(cause string) bool {
	for i := range w.readings {
		if w.readings[i].Has(cause) {
			return true
		}
	}
	return false
}

// quota gives the first quota that is spoken of, and whether any is.
func (w *words) quota() (*report.Quota, bool) {
	for i := range w.readings {
		if w.readings[i].Has(Quota) {
			return w.readings[i].Quota, true
		}
	}
	return nil, false
}

// explained is true when the readings name a cause beyond "the group waits",
// which only says that the reason is another member's.
func (w *words) explained() bool {
	for i := range w.readings {
		for _, c := range w.readings[i].Causes {
			if c != Gang {
				return true
			}
		}
	}
	return false
}

// listen collects what the PodScheduled condition and events say. Events add
// who reported, how often, and the autoscalers' opinions; their words decide
// only where the condition has none that is understood.
func (ctx *Context) listen(p *inventory.Pod, v *report.Pending) words {
	var w words
	events := ctx.eventsOf(p, v, &w)
	var speaker *inventory.Event
	if s := p.Scheduled; s != nil && s.Status != "True" {
		w.observed = true
		v.Message = firstOf(cut(s.Message), v.Message)
		speaker = speakerOf(events, s.Message)
		if s.Message != "" || s.Reason != "" {
			w.readings = append(w.readings, ctx.read(reporterOf(speaker), s.Reason, s.Message))
		}
	}
	if len(events) > 0 {
		w.observed = true
		if speaker == nil {
			speaker = events[0]
		}
		v.ReportedBy = speaker.Reporter
		if v.Message == "" {
			v.Message = cut(events[0].Message)
		}
	}
	if p.Gang != "" && p.Node == "" {
		// Last of all what is said of its whole pod group.
		group := slices.Clone(ctx.events["PodGroup/"+p.Namespace+"/"+p.Gang])
		slices.SortStableFunc(group, newestFirst)
		events = append(events, group...)
	}
	for _, e := range events {
		r := ctx.read(e.Reporter, e.Reason, e.Message)
		w.deleting = w.deleting || r.Has(Terminating)
		if !w.explained() && ctx.speaksNow(e, p) {
			w.readings = append(w.readings, r)
			v.Message = firstOf(v.Message, cut(e.Message))
		}
	}
	return w
}

// eventsOf gives the events of those who place pods, newest first, and files
// the others: autoscalers' as opinions, the node's as its reasons.
func (ctx *Context) eventsOf(p *inventory.Pod, v *report.Pending, w *words) []*inventory.Event {
	var out, node []*inventory.Event
	for _, e := range ctx.events["Pod/"+p.Ref()] {
		switch {
		case e.RefUID != "" && p.UID != "" && e.RefUID != p.UID:
			continue // about an earlier pod of the same name
		case IsAutoscaler(e.Reporter) || e.Reason == "NotTriggerScaleUp" || e.Reason == "TriggeredScaleUp":
			if ctx.fresh(e) {
				v.Opinions = append(v.Opinions, fmt.Sprintf("%s: %s", firstOf(e.Reporter, "autoscaler"), cut(e.Message)))
			}
		case placesPods(e) && ctx.ofPlacing(e, p):
			out = append(out, e)
			v.Attempts += e.Count
		case e.Type != "Normal" && ctx.fresh(e):
			node = append(node, e)
		}
	}
	slices.Sort(v.Opinions)
	v.Opinions = slices.Compact(v.Opinions)
	v.Opinions = v.Opinions[:min(len(v.Opinions), 8)]
	if p.Node != "" {
		slices.SortStableFunc(node, newestFirst)
		for _, e := range node {
			w.node = append(w.node, e.Reason)
		}
		if len(node) > 0 {
			v.Message = cut(node[0].Message)
		}
	}
	slices.SortStableFunc(out, newestFirst)
	return out
}

// newestFirst orders events by time; the inventory has them in an order that
// does not depend on reading, which stays among events of the same moment.
func newestFirst(a, b *inventory.Event) int { return b.Last.Compare(a.Last) }

func reporterOf(e *inventory.Event) string {
	if e == nil {
		return ""
	}
	return e.Reporter
}

// speakerOf finds the event with the condition's own words, whose reporter then
// wrote the condition; else the newest, nil for none.
func speakerOf(events []*inventory.Event, message string) *inventory.Event {
	for _, e := range events {
		if e.Message == message {
			return e
		}
	}
	if len(events) > 0 {
		return events[0]
	}
	return nil
}

func (ctx *Context) fresh(e *inventory.Event) bool {
	return ctx.Fresh <= 0 || ctx.Now.Sub(e.Last) <= ctx.Fresh
}

// speaksNow is false for an event whose words are of the past: of before the
// pod was bound, or older than events speak. Without a condition even an old
// event is still the last that was said.
func (ctx *Context) speaksNow(e *inventory.Event, p *inventory.Pod) bool {
	if p.Node == "" {
		return ctx.fresh(e) || p.Scheduled == nil
	}
	if taken(p) {
		return false // the kubelet has the pod: schedulers have no say in it
	}
	s := p.Scheduled
	return s == nil || s.Status != "True" || s.Transition.IsZero() || e.Last.After(s.Transition)
}

// taken is true when a kubelet has taken the pod.
func taken(p *inventory.Pod) bool {
	return p.StartTime != nil || p.HasContainerStatuses || p.HasInitStatuses
}

// ofPlacing is true when an event's reporter, reason or words are about placing
// the pod. Operators, injectors and the like write events about pods too.
func (ctx *Context) ofPlacing(e *inventory.Event, p *inventory.Pod) bool {
	name := strings.ToLower(e.Reporter)
	if strings.Contains(name, "sched") || e.Reporter == p.SchedulerName || strings.Contains(strings.ToLower(e.Reason), "schedul") {
		return true
	}
	r := ctx.read(e.Reporter, e.Reason, e.Message)
	return r.Dialect != UnknownDialect || len(r.Causes) > 0
}

// placesPods is false for events of kubelets and controllers, whose words may
// sound like a scheduler's. Any type and any other reason counts.
func placesPods(e *inventory.Event) bool {
	name := strings.ToLower(e.Reporter)
	switch {
	case strings.HasPrefix(name, "kubelet"), strings.HasSuffix(name, "-controller"), strings.HasSuffix(name, "_controller"),
		strings.Contains(name, "descheduler"), strings.Contains(name, "multus"), strings.Contains(name, "kubeflow"), strings.Contains(name, "istio"), strings.Contains(name, "node-problem"),
		strings.Contains(name, "device-plugin"):
		return false
	case name == "kube-controller-manager", name == "taint-manager", name == "attachdetach-controller":
		return false
	}
	switch e.Reason {
	case "Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing", "FailedMount", "FailedAttachVolume", "FailedMapVolume", "BackOff", "Failed", "SuccessfulAttachVolume",
		"FailedCreatePodSandBox", "FailedPrepareDynamicResources", "FailedKillPod", "SandboxChanged", "Unhealthy", "NetworkNotReady", "InspectFailed", "ErrImageNeverPull",
		"TaintManagerEviction", "Evicted", "NodeNotReady", "TriggeredScaleUp", "NotTriggerScaleUp", "Nominated", "FilteringSucceed", "BindingSucceed":
		return false
	}
	return true
}
