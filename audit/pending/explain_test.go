package pending

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/quota"
	"gpuaudit/audit/report"
)

var now = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// fixed is a simulation whose answer is given.
type fixed struct {
	s       Simulation
	targets []string
}

func (f *fixed) Judge(_ *inventory.Shape, target string) Simulation {
	f.targets = append(f.targets, target)
	return f.s
}

// open is a cluster of three nodes that match, are open and have room.
func open(change func(*Simulation)) *fixed {
	s := Simulation{Nodes: 3, Matching: 3, Open: 3, Fitting: 3}
	if change != nil {
		change(&s)
	}
	return &fixed{s: s}
}

var full = open(func(s *Simulation) { s.Fitting, s.Lacking = 0, true })

func pod(change ...func(*inventory.Pod)) *inventory.Pod {
	p := &inventory.Pod{Namespace: "prod", Name: "w-0", UID: "u0", Created: ago(3 * time.Hour), Phase: "Pending", SchedulerName: "default-scheduler",
		Shape: inventory.NewShapes().Intern(&inventory.Shape{Requests: inventory.Resources{"nvidia.com/gpu": 1}})}
	for _, c := range change {
		c(p)
	}
	return p
}

func says(reason, message string) func(*inventory.Pod) {
	return func(p *inventory.Pod) {
		p.Scheduled = &inventory.Condition{Type: "PodScheduled", Status: "False", Reason: reason, Message: message, Transition: ago(time.Hour)}
	}
}

func bound(node string) func(*inventory.Pod) {
	return func(p *inventory.Pod) {
		p.Node = node
		p.Scheduled = &inventory.Condition{Type: "PodScheduled", Status: "True", Transition: ago(2 * time.Hour)}
	}
}

func started(waiting string) func(*inventory.Pod) {
	return func(p *inventory.Pod) {
		at := ago(time.Hour)
		p.StartTime, p.HasContainerStatuses = &at, true
		p.Waiting = []inventory.ContainerState{{Name: "c", Reason: waiting}}
	}
}

func event(reporter, reason, message string, change ...func(*inventory.Event)) *inventory.Event {
	e := &inventory.Event{Namespace: "prod", Kind: "Pod", RefNamespace: "prod", Name: "w-0", RefUID: "u0", Type: "Warning", Reason: reason, Message: message, Reporter: reporter,
		Count: 1, First: ago(time.Hour), Last: ago(time.Minute)}
	for _, c := range change {
		c(e)
	}
	return e
}

func last(d time.Duration) func(*inventory.Event) {
	return func(e *inventory.Event) { e.Last = ago(d) }
}

func about(kind, name string) func(*inventory.Event) {
	return func(e *inventory.Event) { e.Kind, e.Name, e.RefUID = kind, name, "" }
}

const (
	gpus   = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
	taints = "0/3 nodes are available: 3 node(s) had untolerated taint {team: a}."
	mixed  = "0/15 nodes are available: 1 node(s) were unschedulable, 11 Insufficient nvidia.com/gpu, 3 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector."
	noFit  = "pod group is not ready, 1 Pending, 1 minAvailable, 108 Running, 4 Releasing; Pending: 1 InsufficientQuota"
	ports  = "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 2 node(s) didn't match Pod's node affinity/selector."
)

func gate(names ...string) func(*inventory.Pod) {
	return func(p *inventory.Pod) { p.Gates = names }
}

func target(node string) func(*inventory.Pod) {
	return func(p *inventory.Pod) {
		p.TargetNode, p.Owner = node, inventory.Owner{Kind: "DaemonSet", Name: "agent"}
	}
}

func gang(name string) func(*inventory.Pod) { return func(p *inventory.Pod) { p.Gang = name } }

func deleting(p *inventory.Pod) { at := ago(time.Minute); p.Deletion = &at }

func nominated(p *inventory.Pod) { p.Nominated = "node-a" }

// explainCase is one situation; sim nil means that nodes were not seen.
type explainCase struct {
	what   string
	pod    *inventory.Pod
	events []*inventory.Event
	sim    *fixed
	change func(*inventory.Cluster)
	want   string
	check  func(*testing.T, report.Pending)
}

func run(t *testing.T, cases []explainCase) {
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			cluster := &inventory.Cluster{Events: c.events, Extents: map[inventory.Resource]inventory.Extent{}}
			if c.change != nil {
				c.change(cluster)
			}
			var sim Simulator
			if c.sim != nil {
				sim = c.sim
			}
			got := NewContext(cluster, sim, now, 2*time.Hour).Explain(c.pod)
			if got.Cause != c.want {
				t.Errorf("cause %q, want %q; reasons %q", got.Cause, c.want, got.Reasons)
			}
			if (got.Cause == Quota) != (got.Quota != nil) {
				t.Errorf("cause %q with quota %+v", got.Cause, got.Quota)
			}
			if c.check != nil {
				c.check(t, got)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	run(t, []explainCase{
		{what: "being deleted wins over all", pod: pod(deleting, gate("example.com/wait"), says("Unschedulable", gpus)), sim: full, want: Terminating},
		{what: "passed over as being deleted", pod: pod(says("Unschedulable", gpus)), events: []*inventory.Event{event("default-scheduler", "FailedScheduling", "skip schedule deleting pod: prod/w-0")}, sim: full, want: Terminating},
		{what: "a foreign gate", pod: pod(gate("example.com/wait"), says("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")), sim: full, want: Gated,
			check: func(t *testing.T, p report.Pending) {
				if !slices.Equal(p.Gates, []string{"example.com/wait"}) {
					t.Errorf("gates %q", p.Gates)
				}
			}},
		{what: "a foreign gate beside a queue's", pod: pod(gate("kueue.x-k8s.io/admission", "example.com/wait")), sim: full, want: Gated},
		{what: "a queue's gate, no reason known", pod: pod(gate("kueue.x-k8s.io/admission"), says("SchedulingGated", "Scheduling is blocked")), sim: full, want: Queue},
		{what: "gated, and the gates were not read", pod: pod(says("SchedulingGated", "Scheduling is blocked")), sim: full, want: Gated},
		{what: "quota before nomination", pod: pod(nominated, says("Unschedulable", noFit)), sim: full, want: Quota},
		{what: "nominated before capacity", pod: pod(nominated, says("Unschedulable", gpus)), sim: full, want: Preempting,
			check: func(t *testing.T, p report.Pending) {
				if p.TargetNode != "node-a" || p.Bound {
					t.Errorf("target %q, bound %v", p.TargetNode, p.Bound)
				}
			}},
		{what: "no node advertises the device", pod: pod(says("Unschedulable", gpus)), sim: open(func(s *Simulation) { s.Missing = "nvidia.com/gpu"; s.Lacking = true }), want: DeviceMissing},
		{what: "no node matches, whatever the message lists", pod: pod(says("Unschedulable", mixed)), sim: open(func(s *Simulation) { s.Matching, s.Open, s.Fitting = 0, 0, 0 }), want: Selector},
		{what: "every matching node is tainted", pod: pod(says("Unschedulable", mixed)), sim: open(func(s *Simulation) { s.Open, s.Fitting = 0, 0 }), want: Taint},
		{what: "counts are of other nodes", pod: pod(says("Unschedulable", mixed)), sim: full, want: Capacity},
		{what: "the volume where nodes have room", pod: pod(says("Unschedulable", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had volume node affinity conflict.")), sim: open(nil), want: Volume},
		{what: "topology where nodes have room", pod: pod(says("Unschedulable", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints.")), sim: open(nil), want: Topology},
		{what: "the resource where no node has room", pod: pod(says("Unschedulable", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints.")), sim: full, want: Capacity},
		{what: "tainted, says the message; open and full, say we", pod: pod(says("Unschedulable", taints)), sim: full, want: Capacity},
		{what: "tainted, says the message; open and free, say we", pod: pod(says("Unschedulable", taints)), sim: open(nil), want: Unclassified},
		{what: "without nodes the message stands alone", pod: pod(says("Unschedulable", taints)), want: Taint},
		{what: "without nodes, selector alone", pod: pod(says("Unschedulable", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.")), want: Selector},
		{what: "without nodes, a missing device", pod: pod(says("Unschedulable", "0/4 nodes are available: 4 node unregistered.")), want: DeviceMissing},
		{what: "unknown words", pod: pod(says("Unschedulable", "the stars are not aligned")), sim: full, want: Unclassified,
			check: func(t *testing.T, p report.Pending) {
				if p.Message != "the stars are not aligned" || !slices.Equal(p.Reasons, []string{p.Message}) {
					t.Errorf("message %q, reasons %q", p.Message, p.Reasons)
				}
			}},
		{what: "a condition without words, and no room", pod: pod(says("Unschedulable", "")), sim: full, want: Capacity},
	})
}

func TestSilence(t *testing.T) {
	podGroup := func(phase string) func(*inventory.Cluster) {
		return func(c *inventory.Cluster) {
			c.Custom = map[inventory.Resource][]*inventory.Custom{quota.VolcanoPodGroups: {{Kind: "PodGroup", Namespace: "prod", Name: "g",
				Object: map[string]any{"status": map[string]any{"phase": phase}}}}}
		}
	}
	run(t, []explainCase{
		{what: "nobody looks at it: not capacity", pod: pod(), sim: full, want: Unobserved},
		{what: "an autoscaler is no scheduler", pod: pod(), sim: full, want: Unobserved,
			events: []*inventory.Event{event("cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu")},
			check: func(t *testing.T, p report.Pending) {
				if len(p.Opinions) != 1 || p.ReportedBy != "" || p.Attempts != 0 {
					t.Errorf("opinions %q, by %q, %d attempts", p.Opinions, p.ReportedBy, p.Attempts)
				}
			}},
		{what: "an operator is no scheduler", pod: pod(), sim: full, want: Unobserved, events: []*inventory.Event{event("acme-operator", "Synced", "all is well")}},
		{what: "a native gang is silent by design", pod: pod(func(p *inventory.Pod) { p.NativeGang, p.Gang = true, "g" }), sim: full, want: Gang},
		{what: "its pod group waits in the queue", pod: pod(gang("g")), sim: full, change: podGroup("Pending"), want: Queue},
		{what: "its pod group is past the queue", pod: pod(gang("g")), sim: full, change: podGroup("Inqueue"), want: Gang},
		{what: "its pod group waits in the queue, and the scheduler tells why the pod does", pod: pod(gang("g"), says("Unschedulable", gpus)), sim: full, change: podGroup("Pending"), want: Capacity},
		{what: "its pod group's events tell", pod: pod(gang("g")), sim: full, change: podGroup("Inqueue"), want: Capacity,
			events: []*inventory.Event{event("volcano", "Unschedulable", "1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable", about("PodGroup", "g"))},
			check: func(t *testing.T, p report.Pending) {
				if !strings.HasPrefix(p.Message, "1/4 tasks") || p.Attempts != 0 {
					t.Errorf("message %q, %d attempts", p.Message, p.Attempts)
				}
			}},
		{what: "another pod group's do not", pod: pod(gang("g")), sim: full, change: podGroup("Inqueue"), want: Gang,
			events: []*inventory.Event{event("volcano", "Unschedulable", "queue resource quota insufficient", about("PodGroup", "h"))}},
		{what: "its job is suspended", pod: pod(func(p *inventory.Pod) { p.Owner = inventory.Owner{Kind: "Job", Name: "j"} }), sim: full, want: Queue,
			change: func(c *inventory.Cluster) {
				c.Workloads = []*inventory.Workload{{Kind: "Job", Namespace: "prod", Name: "j", Suspended: true}}
			}},
	})
}

func TestAuthority(t *testing.T) {
	run(t, []explainCase{
		{what: "the condition wins over an older word about quota", pod: pod(says("Unschedulable", gpus)), sim: full, want: Capacity,
			events: []*inventory.Event{event("default-scheduler", "FailedScheduling", gpus), event("x-scheduler", "FailedScheduling", noFit, last(50*time.Minute))}},
		{what: "and the condition's quota over events", pod: pod(says("Unschedulable", noFit)), sim: full, want: Quota,
			events: []*inventory.Event{event("default-scheduler", "FailedScheduling", gpus), event("x-scheduler", "FailedScheduling", noFit, last(time.Minute), func(e *inventory.Event) { e.Count = 23191 })},
			check: func(t *testing.T, p report.Pending) {
				if p.ReportedBy != "x-scheduler" || p.Attempts != 23192 || p.Quota.Reporter != "x-scheduler" {
					t.Errorf("by %q, %d attempts, quota %+v", p.ReportedBy, p.Attempts, p.Quota)
				}
			}},
		{what: "a condition that is not understood lets events speak", pod: pod(says("Unschedulable", "see events")), sim: full, want: Quota,
			events: []*inventory.Event{event("x-scheduler", "InsufficientQuota", "")}},
		{what: "a condition about the gang alone lets events speak", pod: pod(says("Unschedulable", "pod group is not ready, 4 Pending, 4 minAvailable")), sim: full, want: Capacity,
			events: []*inventory.Event{event("volcano", "FailedScheduling", gpus)}},
		{what: "not stale ones", pod: pod(says("Unschedulable", "see events")), sim: full, want: Unclassified,
			events: []*inventory.Event{event("x-scheduler", "InsufficientQuota", "", last(5*time.Hour))}},
		{what: "without a condition the last word counts, however old", pod: pod(), sim: full, want: Quota,
			events: []*inventory.Event{event("x-scheduler", "FailedScheduling", noFit, last(5*time.Hour))}},
		{what: "of several, the newest that explains", pod: pod(), sim: full, want: Capacity,
			events: []*inventory.Event{event("x-scheduler", "FailedScheduling", noFit, last(time.Hour)), event("default-scheduler", "FailedScheduling", gpus)}},
		{what: "an earlier pod of the same name", pod: pod(says("Unschedulable", gpus)), sim: full, want: Capacity,
			events: []*inventory.Event{event("x-scheduler", "FailedScheduling", noFit, func(e *inventory.Event) { e.RefUID = "other" })},
			check: func(t *testing.T, p report.Pending) {
				if p.ReportedBy != "" || p.Attempts != 0 {
					t.Errorf("by %q, %d attempts", p.ReportedBy, p.Attempts)
				}
			}},
		{what: "a Normal event of another reason", pod: pod(), sim: full, want: Capacity,
			events: []*inventory.Event{event("yunikorn", "PodUnschedulable", "Task prod/w-0 is pending for the requested resources become available", func(e *inventory.Event) { e.Type = "Normal" })}},
		{what: "a scheduler's reservation of the name changes nothing: yunikorn's queue", pod: pod(says("SchedulingSkipped", "Request 'a1' does not fit in queue 'root.team-a' (requested map[nvidia.com/gpu:2], available map[nvidia.com/gpu:0])")), sim: full, want: Quota,
			check: func(t *testing.T, p report.Pending) {
				if p.Quota.Name != "root.team-a" || p.Quota.Resource != "nvidia.com/gpu" {
					t.Errorf("quota %+v", p.Quota)
				}
			}},
		{what: "this pod could go, the gang could not", pod: pod(says("Schedulable", "3/4 tasks can possibly be assigned to node-a once minAvailable is satisfied")), sim: full, want: Gang},
	})
}

func TestQueuedWorkload(t *testing.T) {
	workload := func(messages string) func(*inventory.Cluster) {
		return func(c *inventory.Cluster) {
			c.Custom = map[inventory.Resource][]*inventory.Custom{quota.KueueWorkloads: {{Kind: "Workload", Namespace: "prod", Name: "job-j", Object: map[string]any{
				"metadata": map[string]any{"ownerReferences": []any{map[string]any{"kind": "Job", "name": "j", "controller": true}}},
				"status":   map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": messages}}},
			}}}}
		}
	}
	job := func(p *inventory.Pod) { p.Owner = inventory.Owner{Kind: "Job", Name: "j"} }
	mode := func(want string) func(*testing.T, report.Pending) {
		return func(t *testing.T, p report.Pending) {
			if p.Quota == nil || p.Quota.Mode != want {
				t.Errorf("quota %+v, want mode %s", p.Quota, want)
			}
		}
	}
	run(t, []explainCase{
		{what: "waits", pod: pod(job, gate("kueue.x-k8s.io/admission")), sim: full, want: Quota, check: mode("exhausted"),
			change: workload("couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor f1, 8 more needed")},
		{what: "can never fit", pod: pod(job, gate("kueue.x-k8s.io/admission")), sim: full, want: Quota, check: mode("never"),
			change: workload("couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor f2, request > maximum capacity (8 > 0)")},
		{what: "one flavor never, another in use", pod: pod(job, gate("kueue.x-k8s.io/admission")), sim: full, want: Quota, check: mode("exhausted"),
			change: workload("couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor f2, request > maximum capacity (8 > 0), insufficient unused quota for nvidia.com/gpu in flavor f1, 1 more needed")},
	})
}

func TestDaemonPods(t *testing.T) {
	nodes := func(names ...string) func(*inventory.Cluster) {
		return func(c *inventory.Cluster) {
			c.Extents[inventory.Nodes] = inventory.SeenWhole
			for _, n := range names {
				c.Nodes = append(c.Nodes, &inventory.Node{Name: n})
			}
		}
	}
	sim := open(func(s *Simulation) { s.Nodes, s.Matching, s.Open, s.Fitting, s.Ports = 1, 1, 1, 0, true })
	run(t, []explainCase{
		{what: "only its own node's reason counts", pod: pod(target("node-a"), says("Unschedulable", ports)), sim: sim, change: nodes("node-a", "node-b", "node-c"), want: Ports,
			check: func(t *testing.T, p report.Pending) {
				if p.TargetNode != "node-a" || p.Bound || !slices.Equal(sim.targets, []string{"node-a"}) {
					t.Errorf("target %q, bound %v, judged on %q", p.TargetNode, p.Bound, sim.targets)
				}
			}},
		{what: "also without our own simulation", pod: pod(target("node-a"), says("Unschedulable", ports)), want: Ports},
		{what: "its node is tainted", pod: pod(target("node-a"), says("Unschedulable", "0/3 nodes are available: 1 node(s) had untolerated taint {team: a}, 2 node(s) didn't match Pod's node affinity/selector.")), want: Taint},
		{what: "its node is gone, whatever the last message said", pod: pod(target("node-z"), says("Unschedulable", ports)),
			sim: &fixed{}, change: nodes("node-a", "node-b"), want: Selector},
	})
}

func TestBoundPods(t *testing.T) {
	mount := event("kubelet", "FailedMount", `MountVolume.SetUp failed for volume "data": not found`)
	run(t, []explainCase{
		{what: "bound, and its scheduler goes on about quota", pod: pod(bound("node-dead")), sim: full, want: Quota, events: []*inventory.Event{event("x-scheduler", "FailedScheduling", noFit)},
			check: func(t *testing.T, p report.Pending) {
				if !p.Bound || p.TargetNode != "node-dead" {
					t.Errorf("bound %v, target %q", p.Bound, p.TargetNode)
				}
			}},
		{what: "bound by somebody, PodScheduled is not True", pod: pod(bound("node-dead"), says("Unschedulable", noFit)), sim: full, want: Quota},
		{what: "quota was before it was bound", pod: pod(bound("node-a")), sim: full, want: Unobserved, events: []*inventory.Event{event("x-scheduler", "FailedScheduling", noFit, last(150*time.Minute))}},
		{what: "the kubelet has it: schedulers have no say", pod: pod(bound("node-a"), started("ImagePullBackOff")), sim: full, want: Unclassified, events: []*inventory.Event{event("x-scheduler", "FailedScheduling", noFit)},
			check: func(t *testing.T, p report.Pending) {
				if !slices.Contains(p.Reasons, "ImagePullBackOff") {
					t.Errorf("reasons %q", p.Reasons)
				}
			}},
		{what: "never taken by the kubelet", pod: pod(bound("node-a")), sim: full, want: Unobserved},
		{what: "its volume", pod: pod(bound("node-a"), started("ContainerCreating")), events: []*inventory.Event{mount}, sim: full, want: Volume,
			check: func(t *testing.T, p report.Pending) {
				if !slices.Contains(p.Reasons, "FailedMount") || !strings.Contains(p.Message, "MountVolume") || p.ReportedBy != "" {
					t.Errorf("reasons %q, message %q, by %q", p.Reasons, p.Message, p.ReportedBy)
				}
			}},
		{what: "its volume was mounted since", pod: pod(bound("node-a"), started("ImagePullBackOff")), events: []*inventory.Event{mount}, sim: full, want: Unclassified},
		{what: "a device that no node advertises", pod: pod(bound("node-a")), sim: open(func(s *Simulation) { s.Missing = "nvidia.com/gpu" }), want: DeviceMissing},
		{what: "its workload's queue has no say either", pod: pod(bound("node-a"), started("ContainerCreating"), gang("g")), sim: full, want: Unclassified,
			change: func(c *inventory.Cluster) {
				c.Custom = map[inventory.Resource][]*inventory.Custom{quota.VolcanoPodGroups: {{Kind: "PodGroup", Namespace: "prod", Name: "g", Object: map[string]any{
					"status": map[string]any{"phase": "Inqueue", "conditions": []any{map[string]any{"type": "Unschedulable", "status": "True", "message": "queue resource quota insufficient"}}}}}}}
			}},
	})
}

// TestSameInputSameAnswer: the order of events changes nothing, nor does a
// context that has explained other pods before.
func TestSameInputSameAnswer(t *testing.T) {
	events := []*inventory.Event{event("a-scheduler", "FailedScheduling", gpus), event("x-scheduler", "FailedScheduling", noFit), event("cluster-autoscaler", "NotTriggerScaleUp", "no"), event("cluster-autoscaler", "ScaleUp", "yes")}
	ctx := NewContext(&inventory.Cluster{Events: events}, full, now, 2*time.Hour)
	first := ctx.Explain(pod())
	for range 3 {
		if diff := cmp.Diff(first, ctx.Explain(pod())); diff != "" {
			t.Fatal(diff)
		}
	}
	if !slices.IsSorted(first.Opinions) || len(first.Opinions) != 2 {
		t.Errorf("opinions %q", first.Opinions)
	}
}

func TestExplainKeepsSharedReadingsApart(t *testing.T) {
	ctx := NewContext(&inventory.Cluster{}, full, now, 0)
	a := ctx.Explain(pod(says("Unschedulable", noFit)))
	a.Quota.Name = "changed"
	if b := ctx.Explain(pod(says("Unschedulable", noFit))); b.Quota.Name != "" {
		t.Error("one pod's quota is another's")
	}
}
