package oracle

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"

	"gpuaudit/audit/capacity"
	"gpuaudit/audit/device"
	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/pending"
	"gpuaudit/audit/settings"
)

var (
	clusters = flag.Int("clusters", 300, "random clusters to compare")
	seedFlag = flag.Uint64("seed", 0, "seed of the first cluster; 0 takes the clock's")
)

var features = feature.Features{EnableInPlacePodVerticalScaling: true, EnablePodLevelResources: true}

// TestAgreesWithScheduler runs the scheduler's own filters in this process over
// random clusters: the full set of reasons of every pod against every node has
// to be ours, and what a node is charged with too.
func TestAgreesWithScheduler(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	filters := plugins(t)
	pairs, placed := 0, 0
	for i := range *clusters {
		w := &world{rand.New(rand.NewPCG(seed, uint64(i)))}
		p, ok := compare(t, w, filters)
		pairs += p
		placed += ok
		if t.Failed() {
			t.Fatalf("cluster %d of seed %d disagrees; repeat with -seed %d", i, seed, seed)
		}
	}
	t.Logf("%d clusters, %d pairs of pod and node, %d of them fit; no disagreement", *clusters, pairs, placed)
	if placed == 0 || placed == pairs {
		t.Errorf("%d of %d pairs fit: the generator is too one-sided to prove anything", placed, pairs)
	}
}

func plugins(t *testing.T) []fwk.FilterPlugin {
	t.Helper()
	ctx := context.Background()
	var out []fwk.FilterPlugin
	add := func(p fwk.Plugin, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.(fwk.FilterPlugin))
	}
	add(nodeunschedulable.New(ctx, nil, nil, features))
	add(tainttoleration.New(ctx, nil, nil, features))
	add(nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, nil, features))
	add(nodeports.New(ctx, nil, nil, features))
	add(noderesources.NewFit(ctx, &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}}}}, nil, features))
	return out
}

// compare sets one random cluster's verdicts against each other.
func compare(t *testing.T, w *world, filters []fwk.FilterPlugin) (pairs, fit int) {
	t.Helper()
	ctx := context.Background()
	c := &inventory.Cluster{CollectedAt: time.Unix(1780000000, 0)}
	c.SetExtent(inventory.Nodes, inventory.SeenWhole)
	c.SetExtent(inventory.Pods, inventory.SeenWhole)
	infos := map[string]*framework.NodeInfo{}
	var nodes []*corev1.Node
	for i := range 6 {
		n := w.node(i)
		nodes = append(nodes, n)
		c.Nodes = append(c.Nodes, inventory.NodeOf(n))
		infos[n.Name] = framework.NewNodeInfo()
		infos[n.Name].SetNode(n)
	}
	c.SortNodes(nil)
	pass := inventory.NewPodPass(c, inventory.NewShapes())
	for i := range 10 {
		n := nodes[w.r.IntN(len(nodes))].Name
		p := w.pod(i, n)
		infos[n].AddPod(p)
		pass.Add(p)
	}
	var waiting []*corev1.Pod
	for i := range 6 {
		p := w.pod(100+i, "")
		waiting = append(waiting, p)
		pass.Add(p)
	}
	pass.Commit()
	c.Finish()
	charged(t, c, infos)
	h := health.Judge(c, settings.DefaultThresholds())
	s := device.Take(device.Input{Cluster: c, Health: h, Table: device.NewTable(nil)})
	m := capacity.NewModel(c, h, s)
	for _, p := range waiting {
		shape := shapeOf(c, p.Name)
		state := framework.NewCycleState()
		skipped := prefilter(ctx, filters, state, p)
		for _, n := range nodes {
			pairs++
			theirs, first := reasons(ctx, filters, skipped, state, p, infos[n.Name])
			ours := normal(m.Reasons(shape, n.Name))
			if !slices.Equal(ours, theirs) {
				t.Errorf("pod %s on node %s: we say %q, the scheduler %q\npod %+v\nnode %+v", p.Name, n.Name, ours, theirs, p.Spec, n)
			}
			if got := normal(m.FirstReasons(shape, n.Name)); !slices.Equal(got, first) {
				t.Errorf("pod %s on node %s: our first filter says %q, the scheduler's %q", p.Name, n.Name, got, first)
			}
			if len(theirs) == 0 {
				fit++
			}
		}
	}
	return pairs, fit
}

func shapeOf(c *inventory.Cluster, name string) *inventory.Shape {
	for _, p := range c.Pods {
		if p.Name == name {
			return p.Shape
		}
	}
	panic("pod " + name + " was not kept")
}

// charged compares what nodes are charged with.
func charged(t *testing.T, c *inventory.Cluster, infos map[string]*framework.NodeInfo) {
	t.Helper()
	for _, n := range c.Nodes {
		want := infos[n.Name].Requested
		got := n.Load.Requested
		if got["cpu"] != want.MilliCPU || got["memory"] != want.Memory || got["ephemeral-storage"] != want.EphemeralStorage {
			t.Errorf("node %s: we charge %v, the scheduler %+v", n.Name, got, want)
		}
		for name, amount := range want.ScalarResources {
			if got[string(name)] != amount {
				t.Errorf("node %s: we charge %d %s, the scheduler %d", n.Name, got[string(name)], name, amount)
			}
		}
	}
}

func prefilter(ctx context.Context, filters []fwk.FilterPlugin, state fwk.CycleState, p *corev1.Pod) map[string]bool {
	skipped := map[string]bool{}
	for _, f := range filters {
		if pre, ok := f.(fwk.PreFilterPlugin); ok {
			if _, status := pre.PreFilter(ctx, state, p, nil); status.IsSkip() {
				skipped[f.Name()] = true
			}
		}
	}
	return skipped
}

func reasons(ctx context.Context, filters []fwk.FilterPlugin, skipped map[string]bool, state fwk.CycleState, p *corev1.Pod, n *framework.NodeInfo) (all, first []string) {
	for _, f := range filters {
		if skipped[f.Name()] {
			continue
		}
		if status := f.Filter(ctx, state, p, n); !status.IsSuccess() {
			all = append(all, status.Reasons()...)
			if first == nil {
				first = normal(status.Reasons())
			}
		}
	}
	return normal(all), first
}

func normal(list []string) []string {
	var out []string
	for _, r := range list {
		out = append(out, pending.NormalReason(r))
	}
	sort.Strings(out)
	return slices.Compact(out)
}
