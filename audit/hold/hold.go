// Package hold finds pods that keep devices from use: bound, charged by the
// scheduler, and doing no work. A pod is in one hold only.
package hold

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/settings"
)

// Kind of a hold.
type Kind string

// The kinds, in order of precedence.
const (
	Orphan        Kind = "orphan-pod"
	Terminating   Kind = "terminating-hold"
	Ghost         Kind = "ghost-hold"
	StuckStarting Kind = "stuck-starting"
	DeadNode      Kind = "dead-node-hold"
	None          Kind = ""
)

// Hold is one pod that holds what it does not use.
type Hold struct {
	Pod  *inventory.Pod
	Kind Kind
	// Since is when the hold began; zero when nothing tells.
	Since time.Time
	// Reason says in a few words what keeps the pod from working.
	Reason string
	// ForeignBinding is true when PodScheduled is not True on a bound pod:
	// somebody other than a normal scheduler bound it.
	ForeignBinding bool
	// OnDeadNode is true when the pod's node is not ready or silent.
	OnDeadNode bool
}

// Find classifies every kept pod. nodes may be nil when nodes were not seen:
// then orphans and dead nodes cannot be told and are not guessed.
func Find(c *inventory.Cluster, nodes *health.Verdict, t settings.Thresholds) []Hold {
	var out []Hold
	for _, p := range c.Pods {
		if h := classify(c, nodes, t, p); h.Kind != None {
			out = append(out, h)
		}
	}
	return out
}

func classify(c *inventory.Cluster, nodes *health.Verdict, t settings.Thresholds, p *inventory.Pod) Hold {
	if !p.Charged() {
		return Hold{}
	}
	now := c.CollectedAt
	h := Hold{Pod: p, ForeignBinding: p.Scheduled == nil || p.Scheduled.Status != string(corev1.ConditionTrue)}
	var node *health.Node
	nodesSeen := nodes != nil && c.Seen(inventory.Nodes)
	if nodesSeen {
		node = nodes.Node(p.Node)
		h.OnDeadNode = node != nil && node.Dead() && !nodes.AllSilent
	}
	if nodesSeen && node == nil && now.Sub(boundSince(p)) > orphanAge {
		h.Kind, h.Since, h.Reason = Orphan, boundSince(p), "node does not exist"
		return h
	}
	if p.Deletion != nil {
		// metadata.deletionTimestamp already contains the grace period.
		if now.Sub(*p.Deletion) > t.Terminating {
			h.Kind, h.Since, h.Reason = Terminating, *p.Deletion, "deletion overdue"
		}
		return h
	}
	if p.Phase == string(corev1.PodPending) {
		return pendingHold(h, now, t)
	}
	if p.Phase == string(corev1.PodRunning) && h.OnDeadNode {
		h.Kind, h.Since = DeadNode, deadSince(node)
		h.Reason = "running on paper only: its node is not alive"
	}
	return h
}

// orphanAge is the least age of a binding before a missing node makes an
// orphan: pods and nodes are two lists of two moments.
const orphanAge = time.Minute

func pendingHold(h Hold, now time.Time, t settings.Thresholds) Hold {
	p := h.Pod
	untouched := p.StartTime == nil && !p.HasContainerStatuses && !p.HasInitStatuses
	if untouched {
		since := boundSince(p)
		if h.OnDeadNode || now.Sub(since) > t.Ghost {
			h.Kind, h.Since, h.Reason = Ghost, since, "the kubelet never took the pod"
		}
		return h
	}
	since := p.Created
	if p.StartTime != nil {
		since = *p.StartTime
	}
	reason, working := startReason(p)
	// An init container that has run for a day is no start any more.
	working = working && now.Sub(*p.InitRunningSince) < 24*time.Hour
	if h.OnDeadNode {
		h.Kind, h.Since, h.Reason = StuckStarting, since, "its node is not alive; last seen: "+reason
		return h
	}
	if working || now.Sub(since) <= t.StuckStarting {
		return h
	}
	h.Kind, h.Since, h.Reason = StuckStarting, since, reason
	return h
}

// startReason gives the first waiting reason; working is true while an init
// container runs, which may rightly take long (models are fetched in them).
func startReason(p *inventory.Pod) (reason string, working bool) {
	for _, c := range p.Waiting {
		// PodInitializing only says that init containers are not done.
		if c.Reason != "" && c.Reason != "PodInitializing" {
			return c.Reason, false
		}
	}
	if p.InitRunningSince != nil {
		return "init container running", true
	}
	if len(p.Waiting) > 0 && p.Waiting[0].Reason != "" {
		return p.Waiting[0].Reason, false
	}
	return "no container has started", false
}

// boundSince is when the pod was bound: the PodScheduled transition where it
// is True, else the pod's creation, which can only be earlier.
func boundSince(p *inventory.Pod) time.Time {
	if p.Scheduled != nil && p.Scheduled.Status == string(corev1.ConditionTrue) && !p.Scheduled.Transition.IsZero() {
		return p.Scheduled.Transition
	}
	return p.Created
}

func deadSince(n *health.Node) time.Time {
	if n.Silent {
		return n.LastHeartbeat
	}
	return n.NotReadySince
}
