package outline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/sample"
)

func TestWaterfall(t *testing.T) {
	c := &report.Cluster{Devices: []report.Device{{Resource: "r", Unit: "card"}, {Resource: "s", Unit: "slot"}, {Resource: "m", Unit: "memory"}}}
	lost := []report.Lost{{Reason: report.LostNotReady, Devices: 7}, {Reason: report.LostLabelMissing, Devices: 5}}
	cases := []struct {
		class report.Class
		want  string
	}{
		{report.Class{Name: "prod", Resource: "r", ApparentFree: 12, Lost: lost}, "12 free cards, 0 for class prod: 7 notReady + 5 labelMissing"},
		{report.Class{Name: "prod", Resource: "r", ApparentFree: 13, Schedulable: 1, Lost: lost, UpperBound: true},
			"≤13 free cards, ≤1 for class prod: 7 notReady + 5 labelMissing"},
		{report.Class{Name: "x", Resource: "s", ApparentFree: 1, Schedulable: 1}, "1 free slot, all usable by class x"},
		{report.Class{Name: "x", Resource: "m"}, "0 free memory for class x"},
		{report.Class{Name: "x", Resource: "unknown"}, "0 free devices for class x"},
	}
	for _, k := range cases {
		if got := Waterfall(c, &k.class); got != k.want {
			t.Errorf("got %q, want %q", got, k.want)
		}
	}
}

func TestLossesOfWhatWasNotSeen(t *testing.T) {
	for _, c := range sample.Partial().Clusters {
		want := map[string]string{
			"lost-site": "unknown: the cluster could not be read", "no-leases": "0 free cards for class prod",
			"no-pods": "32 cards (nvidia.com/gpu), free unknown: pods were not seen",
		}[c.Name]
		if got := Losses(&c, 2); got[0] != want {
			t.Errorf("%s: %q, want %q", c.Name, got, want)
		}
	}
	if got := Losses(&report.Cluster{Status: report.Partial}, 2); got[0] != "unknown: nodes were not seen" {
		t.Errorf("without nodes: %q", got)
	}
	none := 3
	if got := Losses(&report.Cluster{Status: report.Complete, Baseline: report.Baseline{Nodes: &none}}, 2); got[0] != "no devices on its nodes" {
		t.Errorf("without devices: %q", got)
	}
	dra := report.Device{Resource: "gpu.example.com", Source: "dra", Unit: "device", Allocatable: 8}
	for note, want := range map[string]string{
		"resource claims were not seen: how many of these devices are held is unknown": "resource claims were not seen",
		"not all slices of a pool are there: how many devices it has is unknown":       "not all slices of a pool are there",
		"some note of another kind": "not everything that is charged was seen",
	} {
		dra.Notes = []string{note}
		got := Losses(&report.Cluster{Status: report.Complete, Devices: []report.Device{dra}, Baseline: report.Baseline{Nodes: &none}}, 2)
		if got[0] != "8 devices (gpu.example.com), free unknown: "+want {
			t.Errorf("%s: %q", note, got)
		}
	}
	if got := ByLoss(sample.Incident())[0].Name; got != "C" {
		t.Errorf("the first cluster is %q, want C", got)
	}
}

func TestActions(t *testing.T) {
	got := Actions(sample.Incident())
	want := []Action{
		{"C", "have the vendor repair or remove node 52ew76fke2", "+7 cards for prod, 3 waiting pods would start", 1,
			got[0].Finding, "kubectl --context C describe node 52ew76fke2"},
		{"C", "restore node_env=prod on node ujx4guefbh", "+5 cards for prod, 3 waiting pods would start", 6,
			got[1].Finding, "kubectl --context C get node ujx4guefbh --show-labels"},
		{"C", "DaemonSet kube-system/loongcollector lacks 1 pod for 14h: quota of x-scheduler", "", 5,
			got[2].Finding, "kubectl --context C -n kube-system describe pod loongcollector-7xk2p"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// A repair of something resolved or acknowledged, or that gives nothing, is no action.
func TestActionsLeaveOutWhatIsClosed(t *testing.T) {
	r := sample.Incident()
	c := &r.Clusters[2]
	c.Findings[0].State = report.StateAcknowledged
	c.Repairs[1].Devices, c.Repairs[1].PendingPodsUnblocked = 0, 0
	for _, a := range Actions(r) {
		if strings.Contains(a.Text, "52ew76fke2 is not ready") || strings.HasPrefix(a.Text, "restore") || strings.HasPrefix(a.Text, "have the vendor") {
			t.Errorf("action %q", a.Text)
		}
	}
}

func TestFindingsStandUnderTheirCause(t *testing.T) {
	f := func(id, cause string, state report.State) report.Finding {
		return report.Finding{ID: id, CausedBy: cause, State: state, Severity: report.Warning}
	}
	c := &report.Cluster{Findings: []report.Finding{
		f("a", "", report.StateNew), f("b", "a", report.StateNew), f("c", "b", report.StateOngoing), // a chain
		f("d", "e", report.StateNew), f("e", "d", report.StateNew), // a circle
		f("g", "gone", report.StateNew), f("h", "r", report.StateNew), f("r", "", report.StateResolved), f("k", "", report.StateAcknowledged),
	}}
	got := Findings(c)
	var open []string
	for _, item := range got.Open {
		id := item.Finding.ID
		for _, e := range item.Effects {
			id += ">" + e.ID
		}
		open = append(open, id)
	}
	if want := []string{"a>b>c", "d", "e", "g", "h"}; !slices.Equal(open, want) {
		t.Errorf("open findings %q, want %q", open, want)
	}
	if len(got.Resolved) != 1 || len(got.Acknowledged) != 1 {
		t.Errorf("%d resolved and %d acknowledged, want 1 and 1", len(got.Resolved), len(got.Acknowledged))
	}
}

// Whatever a report holds, each finding is written exactly once.
func TestNoFindingIsLost(t *testing.T) {
	for _, r := range []*report.Report{sample.Incident(), sample.Partial(), sample.Hostile(), sample.Many(2, 50)} {
		for _, c := range r.Clusters {
			s := Findings(&c)
			n := len(s.Resolved) + len(s.Acknowledged)
			for _, item := range s.Open {
				n += 1 + len(item.Effects)
			}
			if n != len(c.Findings) {
				t.Errorf("%q: %d findings of %d", c.Name, n, len(c.Findings))
			}
		}
	}
}

func TestWaitingPodsAreRolledUp(t *testing.T) {
	groups := Waiting(&sample.Incident().Clusters[2])
	if len(groups) != 6 || len(groups[0].Pods) != 3 || groups[0].Owner != "Deployment/prod/inference" || groups[0].Cause != "capacity" {
		t.Errorf("got %d groups, the first %+v", len(groups), groups[0])
	}
	for _, g := range groups {
		if g.Bound != (g.TargetNode == "52ew76fke2") {
			t.Errorf("group of %s: bound %v to %q", g.Owner, g.Bound, g.TargetNode)
		}
	}
	early, late := sample.Now.Add(-time.Hour), sample.Now
	c := &report.Cluster{Pending: []report.Pending{
		{Namespace: "n", Name: "a", Owner: "Job/x", Since: &late, TargetNode: "1", Attempts: 5}, {Namespace: "n", Name: "b", Owner: "Job/x", Since: &early, TargetNode: "2"},
		{Namespace: "n", Name: "c"},
	}}
	got := Waiting(c)
	if len(got) != 2 || !got[0].Oldest.Equal(early) || got[0].TargetNode != "" || got[0].Attempts != 5 || got[1].Owner != "Pod/c" || got[1].Oldest != nil {
		t.Errorf("got %+v", got)
	}
	if OwnerText(&got[0]) != "Job/n/x" {
		t.Errorf("owner %q", OwnerText(&got[0]))
	}
}

func TestTroubledNodes(t *testing.T) {
	var names []string
	for _, n := range TroubledNodes(&sample.Incident().Clusters[2]) {
		names = append(names, n.Name)
	}
	if want := []string{"52ew76fke2", "ujx4guefbh", "ulvq4g3iqi"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	seven, nine := int64(7), int64(9)
	c := &report.Cluster{
		Nodes: []report.Node{
			{Name: "fine", Ready: true, Devices: map[string]report.NodeDevice{"r": {Capacity: 8, Allocatable: 8, Requested: &seven}}},
			{Name: "small", Ready: true}, {Name: "lost", Ready: true}, {Name: "over", Ready: true, Devices: map[string]report.NodeDevice{"r": {Capacity: 8, Allocatable: 8, Requested: &nine}}},
			{Name: "silent", Ready: true, Silent: true}, {Name: "unknown", Ready: "unknown"}, {Name: "resolved", Ready: true},
		},
		Classes: []report.Class{{Lost: []report.Lost{
			{Reason: report.LostTooSmall, Nodes: []string{"small"}}, {Reason: report.LostTaint, Nodes: []string{"lost"}},
		}}},
		Findings: []report.Finding{{Node: "resolved", State: report.StateResolved}},
	}
	names = nil
	for _, n := range TroubledNodes(c) {
		names = append(names, n.Name)
	}
	if want := []string{"unknown", "silent", "over", "lost"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestWords(t *testing.T) {
	if got := Words("serviceWithoutPods") + "/" + Words("") + "/" + TopWord("") + "/" + Use(nil); got != "service without pods/unknown/unknown/?" {
		t.Errorf("got %q", got)
	}
	c := &report.Cluster{Devices: []report.Device{{Unit: "card"}, {Unit: "slot"}}}
	if MainUnit(c) != "device" || MainUnit(&report.Cluster{}) != "device" || MainUnit(&report.Cluster{Devices: c.Devices[:1]}) != "card" {
		t.Error("the unit of mixed devices is wrong")
	}
}
