package oracle

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
)

// build puts nodes and pods into an inventory in the given order.
func build(nodes []*corev1.Node, pods []*corev1.Pod) *inventory.Cluster {
	c := &inventory.Cluster{Name: "c", Source: inventory.Live, CollectedAt: time.Unix(1780000000, 0).UTC()}
	for _, r := range []inventory.Resource{inventory.Nodes, inventory.Pods, inventory.Leases, inventory.Events, inventory.DaemonSets, inventory.Services, inventory.EndpointSlices, inventory.ResourceQuotas, inventory.Namespaces} {
		c.SetExtent(r, inventory.SeenWhole)
	}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, inventory.NodeOf(n))
	}
	c.SortNodes(nil)
	pass := inventory.NewPodPass(c, inventory.NewShapes())
	for _, p := range pods {
		pass.Add(p)
	}
	pass.Commit()
	c.Finish()
	return c
}

func evaluated(t *testing.T, c *inventory.Cluster) (report.Cluster, string) {
	t.Helper()
	result := audit.Evaluate(audit.Input{Current: c, Settings: settings.Default(), Run: "r"})
	body, err := report.Encode(&report.Report{SchemaVersion: report.SchemaVersion, Clusters: []report.Cluster{result.Report}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Report, string(body)
}

// TestSumsAndOrder: over random clusters, apparent free is exactly schedulable
// plus lost, free is the sum over the nodes and never negative, and the order
// of reading changes not a byte.
func TestSumsAndOrder(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	classes := 0
	for i := range *clusters {
		w := &world{rand.New(rand.NewPCG(seed, uint64(i)))}
		var nodes []*corev1.Node
		for n := range 8 {
			nodes = append(nodes, w.node(n))
		}
		var pods []*corev1.Pod
		for p := range 14 {
			node := nodes[w.r.IntN(len(nodes))].Name
			if w.chance(40) {
				node = ""
			}
			pods = append(pods, w.pod(p, node))
		}
		r, first := evaluated(t, build(nodes, pods))
		w.r.Shuffle(len(nodes), func(a, b int) { nodes[a], nodes[b] = nodes[b], nodes[a] })
		w.r.Shuffle(len(pods), func(a, b int) { pods[a], pods[b] = pods[b], pods[a] })
		if _, second := evaluated(t, build(nodes, pods)); first != second {
			t.Fatalf("cluster %d of seed %d: another order gives another report", i, seed)
		}
		free := map[string]int64{}
		for _, n := range r.Nodes {
			for name, d := range n.Devices {
				if *d.Free < 0 || *d.Free > d.Allocatable {
					t.Errorf("cluster %d of seed %d: node %s has %d of %d free", i, seed, n.Name, *d.Free, d.Allocatable)
				}
				free[name] += *d.Free
			}
		}
		for _, k := range r.Classes {
			classes++
			sum := k.Schedulable
			for _, l := range k.Lost {
				if l.Devices <= 0 {
					t.Errorf("cluster %d of seed %d: class %s loses %d for %s", i, seed, k.Name, l.Devices, l.Reason)
				}
				sum += l.Devices
			}
			if sum != k.ApparentFree || k.ApparentFree != free[k.Resource] {
				t.Errorf("cluster %d of seed %d: class %s: %d apparent, %d in all parts, %d free on the nodes", i, seed, k.Name, k.ApparentFree, sum, free[k.Resource])
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d clusters, %d classes", *clusters, classes)
}
