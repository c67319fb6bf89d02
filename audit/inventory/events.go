package inventory

import (
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// EventPass adds the events of both APIs up. An object served by both counts
// once (same UID); events of one object, reporter and reason become one entry
// with the newest message. Counts are "at least", since events expire.
type EventPass struct {
	seen map[string]bool
	by   map[eventKey]*Event
}

type eventKey struct{ kind, namespace, name, uid, reporter, reason, eventType string }

// NewEventPass begins a read of events.
func NewEventPass() *EventPass {
	return &EventPass{seen: map[string]bool{}, by: map[eventKey]*Event{}}
}

// AddCore takes an event of core/v1. Last seen is series.lastObservedTime,
// lastTimestamp, eventTime, creationTimestamp, the first that is set.
func (p *EventPass) AddCore(in *corev1.Event) {
	e := Event{
		Namespace: in.Namespace, Kind: in.InvolvedObject.Kind, RefNamespace: in.InvolvedObject.Namespace, Name: in.InvolvedObject.Name,
		RefUID: string(in.InvolvedObject.UID), Type: in.Type, Reason: in.Reason, Message: Said(in.Message),
		Reporter: firstSet(in.ReportingController, in.Source.Component), Count: int64(in.Count),
		First: firstTime(in.FirstTimestamp.Time, in.EventTime.Time, in.CreationTimestamp.Time),
		Last:  firstTime(in.LastTimestamp.Time, in.EventTime.Time, in.CreationTimestamp.Time),
	}
	if in.Series != nil {
		e.Count = int64(in.Series.Count)
		e.Last = firstTime(in.Series.LastObservedTime.Time, e.Last)
	}
	p.add(string(in.UID), in.Namespace, in.Name, e)
}

// AddV1 takes an event of events.k8s.io/v1, deprecated fields included.
func (p *EventPass) AddV1(in *eventsv1.Event) {
	e := Event{
		Namespace: in.Namespace, Kind: in.Regarding.Kind, RefNamespace: in.Regarding.Namespace, Name: in.Regarding.Name,
		RefUID: string(in.Regarding.UID), Type: in.Type, Reason: in.Reason, Message: Said(in.Note),
		Reporter: firstSet(in.ReportingController, in.DeprecatedSource.Component), Count: int64(in.DeprecatedCount),
		First: firstTime(in.DeprecatedFirstTimestamp.Time, in.EventTime.Time, in.CreationTimestamp.Time),
		Last:  firstTime(in.DeprecatedLastTimestamp.Time, in.EventTime.Time, in.CreationTimestamp.Time),
	}
	if in.Series != nil {
		e.Count = int64(in.Series.Count)
		e.Last = firstTime(in.Series.LastObservedTime.Time, e.Last)
	}
	p.add(string(in.UID), in.Namespace, in.Name, e)
}

func firstSet(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() && t.Unix() > 0 {
			return t.UTC()
		}
	}
	return time.Time{}
}

func (p *EventPass) add(uid, namespace, name string, e Event) {
	if !KeptEvent(e.Kind, e.Reason) {
		return
	}
	id := uid
	if id == "" {
		id = namespace + "/" + name
	}
	if id != "/" {
		if p.seen[id] {
			return
		}
		p.seen[id] = true
	}
	if e.Count < 1 {
		e.Count = 1
	}
	key := eventKey{e.Kind, e.RefNamespace, e.Name, e.RefUID, e.Reporter, e.Reason, e.Type}
	known := p.by[key]
	if known == nil {
		p.by[key] = &e
		return
	}
	known.Count += e.Count
	if !e.First.IsZero() && (known.First.IsZero() || e.First.Before(known.First)) {
		known.First = e.First
	}
	// The newest message stands; of two at the same moment the greater text, so
	// that the order of reading changes nothing.
	if e.Last.After(known.Last) || (e.Last.Equal(known.Last) && e.Message > known.Message) {
		known.Last, known.Message = e.Last, e.Message
	}
}

// Commit adds the events to the cluster.
func (p *EventPass) Commit(c *Cluster) {
	for _, e := range p.by {
		c.Events = append(c.Events, e)
	}
	sortEvents(c.Events)
}

func sortEvents(list []*Event) {
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		for _, pair := range [][2]string{{a.RefNamespace, b.RefNamespace}, {a.Kind, b.Kind}, {a.Name, b.Name}, {a.RefUID, b.RefUID}, {a.Reporter, b.Reporter}, {a.Reason, b.Reason}, {a.Type, b.Type}, {a.Message, b.Message}} {
			if pair[0] != pair[1] {
				return pair[0] < pair[1]
			}
		}
		return a.Last.Before(b.Last)
	})
}

// KeptEvent is false for events that no check reads: the daily business of
// kubelets and controllers, which is most of all events.
func KeptEvent(kind, reason string) bool {
	switch kind {
	case "Pod", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "Deployment", "PodGroup", "Workload", "Node", "ReplicationController":
	default:
		return false
	}
	switch reason {
	case "Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing", "SuccessfulCreate", "SuccessfulDelete", "ScalingReplicaSet", "SuccessfulAttachVolume", "BackOff", "Unhealthy", "Completed":
		return false
	}
	return true
}
