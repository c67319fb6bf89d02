package device_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"gpuaudit/audit/device"
	"gpuaudit/audit/health"
	"gpuaudit/audit/hold"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
)

var now = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func node(name string, pairs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(now.Add(-90 * 24 * time.Hour))}}
	n.Status.Capacity = list(pairs...)
	n.Status.Allocatable = list(pairs...)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}
	return n
}

func pod(name, node string, pairs ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-3 * time.Hour))}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}}
	p.Status.Phase = corev1.PodRunning
	return p
}

// seen builds a cluster of which pods were seen to the given extent.
func seen(extent inventory.Extent, nodes []*corev1.Node, pods []*corev1.Pod) *inventory.Cluster {
	c := &inventory.Cluster{Name: "c", Source: inventory.Live, CollectedAt: now}
	c.SetExtent(inventory.Nodes, inventory.SeenWhole)
	c.SetExtent(inventory.Leases, inventory.SeenWhole)
	c.SetExtent(inventory.Pods, extent)
	for _, r := range []inventory.Resource{inventory.ResourceSlices, inventory.ResourceClaims, inventory.DeviceClasses} {
		c.SetExtent(r, inventory.NotInstalled)
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

func take(c *inventory.Cluster) *device.Survey {
	t := settings.Default().Thresholds
	h := health.Judge(c, t)
	return device.Take(device.Input{Cluster: c, Health: h, Holds: hold.Find(c, h, t), Table: device.NewTable(nil), Young: t.Initialising})
}

func survey(nodes []*corev1.Node, pods ...*corev1.Pod) *device.Survey {
	return take(seen(inventory.SeenWhole, nodes, pods))
}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// words gives a device's totals in one line.
func words(s *device.Survey, resource string) string {
	for _, d := range s.Devices {
		if d.Resource != resource {
			continue
		}
		mark := ""
		if d.UpperBound {
			mark = " at most"
		}
		if d.AliasOf != "" {
			return fmt.Sprintf("as %s, %d, requested %s%s", d.AliasOf, d.Allocatable, number(d.Requested), mark)
		}
		return fmt.Sprintf("%s %d, requested %s, free%s %s, over %s, cards %s/%s", d.Unit, d.Allocatable, number(d.Requested), mark, number(d.Free), number(d.Overcommitted), number(d.PhysicalHealthy), number(d.Physical))
	}
	return "not there"
}

func TestTable(t *testing.T) {
	table := device.NewTable([]settings.Device{{Resource: "acme.example/npu"}, {Resource: "nvidia.com/gpu", Unit: device.Slot, PerCard: 4}})
	for name, want := range map[string]string{
		"nvidia.com/mig-1g.10gb": "slice device 0", "nvidia.com/mig-1g.10gb.shared": "slot device 0", "nvidia.com/gpu.shared": "slot device 0",
		"nvidia.com/gpumem": "memory view 0", "nvidia.com/gpumem-percentage": "memory view 0", "nvidia.com/gpucores": "cores view 0",
		"nvidia.com/GP107_GEFORCE": "card device 1", "nvidia.com/pgpu": "card device 1", "nvidia.com/NVIDIA_A10-24Q": "slot device 0", "nvidia.com/GRID_T4-1B": "slot device 0",
		"nvidia.com/GH100_H100_NVSWITCH": "device none 0", "nvidia.com/hostdev": "device none 0",
		"aliyun.com/gpu-mem": "memory view 0", "tencent.com/vcuda-core": "cores device 100", "tencent.com/vcuda-memory": "memory view 0",
		"amd.com/gpu": "card device 1", "gpu.intel.com/i915": "slot device 0", "gpu.intel.com/xe": "slot device 0",
		"gpu.intel.com/i915_monitoring": "device monitoring 0", "gpu.intel.com/xe_monitoring": "device monitoring 0",
		"habana.ai/gaudi": "card device 1", "huawei.com/Ascend910": "card device 1", "huawei.com/Ascend310P": "card device 1", "huawei.com/Ascend910-16c": "slice device 0",
		"huawei.com/Ascend310P-vnpu-memory": "memory view 0", "aws.amazon.com/neuron": "card device 1", "aws.amazon.com/neuroncore": "cores view 0",
		"cambricon.com/mlu": "card device 1", "metax-tech.com/gpu": "card device 1", "hygon.com/dcu": "card device 1", "mthreads.com/vgpu": "slot device 0",
		"iluvatar.ai/gpu": "card device 1", "enflame.com/gcu": "card device 1", "kunlunxin.com/xpu": "card device 1", "google.com/tpu": "card device 1",
		"qualcomm.com/qaic": "card device 1", "xilinx.com/fpga-xilinx_u250": "card device 1",
		"rdma/hca_shared_devices_a": "device none 0", "nvidia.com/rdma_shared": "device none 0", "intel.com/intel_sriov_netdevice": "device none 0",
		"devices.kubevirt.io/kvm": "device none 0", "vendor.example/warp": "device unknown 0",
		"acme.example/npu": "card device 1", "nvidia.com/gpu": "slot device 4",
	} {
		if row := table.Row(name); fmt.Sprintf("%s %s %d", row.Unit, row.Role, row.PerCard) != want {
			t.Errorf("%s is %s %s %d, want %s", name, row.Unit, row.Role, row.PerCard, want)
		}
	}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage", "pods", "hugepages-1Gi"} {
		if role := table.Row(name).Role; role != device.None {
			t.Errorf("%s has role %s", name, role)
		}
	}
}

// TestTotals: nodes, what runs there, and the totals of one resource.
func TestTotals(t *testing.T) {
	unhealthy := node("a", "nvidia.com/gpu", "8")
	unhealthy.Status.Allocatable = list("nvidia.com/gpu", "6")
	sliced := node("a", "nvidia.com/gpu", "12")
	sliced.Labels["nvidia.com/gpu.count"], sliced.Labels["nvidia.com/gpu.replicas"] = "1", "12"
	elastic := node("v", "nvidia.com/gpu", "100")
	elastic.Labels["type"] = "virtual-kubelet"
	finished := pod("f", "a", "nvidia.com/gpu", "4")
	finished.Status.Phase = corev1.PodSucceeded
	for _, c := range []struct {
		name, resource string
		nodes          []*corev1.Node
		pods           []*corev1.Pod
		want           string
	}{
		{"plain", "nvidia.com/gpu", []*corev1.Node{node("a", "nvidia.com/gpu", "8")}, []*corev1.Pod{pod("p", "a", "nvidia.com/gpu", "3"), finished}, "card 8, requested 3, free 5, over 0, cards 8/8"},
		{"over-commit stays on its node", "nvidia.com/gpu", []*corev1.Node{unhealthy, node("b", "nvidia.com/gpu", "8")}, []*corev1.Pod{pod("p", "a", "nvidia.com/gpu", "8")}, "card 14, requested 8, free 8, over 2, cards 14/16"},
		{"time slices", "nvidia.com/gpu", []*corev1.Node{sliced}, nil, "slot 12, requested 0, free 12, over 0, cards 1/1"},
		{"elastic nodes are no cards", "nvidia.com/gpu", []*corev1.Node{elastic, node("b", "nvidia.com/gpu", "8")}, []*corev1.Pod{pod("p", "v", "nvidia.com/gpu", "50")}, "card 8, requested 0, free 8, over 0, cards 8/8"},
		{"stale zero", "nvidia.com/mig-1g.5gb", []*corev1.Node{node("a", "nvidia.com/mig-1g.5gb", "0")}, nil, "not there"},
		{"hundredths of cards", "tencent.com/vcuda-core", []*corev1.Node{node("a", "tencent.com/vcuda-core", "400", "tencent.com/vcuda-memory", "64")},
			[]*corev1.Pod{pod("p", "a", "tencent.com/vcuda-core", "50", "tencent.com/vcuda-memory", "64")}, "cores 400, requested 50, free 350, over 0, cards 4/4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := words(survey(c.nodes, c.pods...), c.resource); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestTwoNamesForTheSameCards: what is taken under one name is not free under the other.
func TestTwoNamesForTheSameCards(t *testing.T) {
	const card, core = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
	nodes := func() []*corev1.Node { return []*corev1.Node{node("a", card, "16", core, "32")} }
	for _, c := range []struct {
		cards, cores              string
		want, wantCore, coresLeft string
	}{
		{"0", "0", "card 16, requested 0, free 16, over 0, cards 16/16", "as " + card + ", 32, requested 0", "32"},
		{"3", "0", "card 16, requested 3, free 13, over 0, cards 16/16", "as " + card + ", 32, requested 0", "26"},
		{"0", "32", "card 16, requested 16, free at most 0, over 0, cards 16/16", "as " + card + ", 32, requested 32 at most", "0"},
		{"0", "3", "card 16, requested 2, free at most 14, over 0, cards 16/16", "as " + card + ", 32, requested 3 at most", "29"},
		{"4", "3", "card 16, requested 4, free at most 12, over 0, cards 16/16", "as " + card + ", 32, requested 3 at most", "24"},
	} {
		s := survey(nodes(), pod("p", "a", card, c.cards), pod("q", "a", core, c.cores))
		if got := words(s, card); got != c.want {
			t.Errorf("%s cards, %s cores: %s, want %s", c.cards, c.cores, got, c.want)
		}
		if got := words(s, core); got != c.wantCore {
			t.Errorf("%s cards, %s cores: %s, want %s", c.cards, c.cores, got, c.wantCore)
		}
		if got := fmt.Sprint(s.Alternatives("a")[core].Free); got != c.coresLeft {
			t.Errorf("%s cards, %s cores: %s cores left, want %s", c.cards, c.cores, got, c.coresLeft)
		}
	}
	ghost := pod("g", "a", core, "3")
	ghost.Status = corev1.PodStatus{Phase: corev1.PodPending}
	c := seen(inventory.SeenWhole, nodes(), []*corev1.Pod{ghost})
	if got := take(c).Held(c.Pods[0]); got[card] != 2 || len(got) != 1 {
		t.Errorf("a ghost of 3 cores holds %v, want 2 cards", got)
	}
}

// TestUnseenPods: without pods nothing is requested, free or held that anybody knows of.
func TestUnseenPods(t *testing.T) {
	dead := node("b", "nvidia.com/gpu", "8")
	dead.Status.Conditions[0].Status = corev1.ConditionUnknown
	s := take(seen(inventory.NotSeen, []*corev1.Node{node("a", "nvidia.com/gpu", "8"), dead}, nil))
	d := s.Devices[0]
	if d.Requested != nil || d.Free != nil || d.Held != nil || d.Naive.Requested != nil || d.Occupancy != nil || d.Reclaimable != nil {
		t.Errorf("unknown amounts are given: %+v", d)
	}
	if d.Capacity != 16 || *d.Physical != 16 {
		t.Errorf("what nodes say is missing: %+v", d)
	}
	if got := s.KeptFromUse("b")["nvidia.com/gpu"]; got != 8 {
		t.Errorf("a dead node keeps %d from use, want 8", got)
	}
	if got, ok := s.KeptFromUse("a")["nvidia.com/gpu"]; ok {
		t.Errorf("a live node keeps %d from use, unseen", got)
	}
	if s := take(seen(inventory.SeenSome, []*corev1.Node{node("a", "nvidia.com/gpu", "8")}, nil)); !s.Devices[0].UpperBound {
		t.Error("pods of some namespaces only, and free is no upper bound")
	}
}

// TestInitialising: young, promised and without devices.
func TestInitialising(t *testing.T) {
	young := node("a")
	young.Labels["nvidia.com/gpu.count"] = "8"
	young.CreationTimestamp = metav1.NewTime(now.Add(-4 * time.Minute))
	old := young.DeepCopy()
	old.Name, old.CreationTimestamp = "b", metav1.NewTime(now.Add(-time.Hour))
	plain := young.DeepCopy()
	plain.Name, plain.Labels = "c", nil
	done := young.DeepCopy()
	done.Name, done.Status.Allocatable = "d", list("nvidia.com/gpu", "8")
	s := survey([]*corev1.Node{young, old, plain, done})
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false} {
		if got := s.Initialising(name); got != want {
			t.Errorf("node %s initialising: %v", name, got)
		}
	}
}

// TestDynamic: devices of drivers count once, by the newest whole pool; those
// on no one node are listed and not added.
func TestDynamic(t *testing.T) {
	c := seen(inventory.SeenWhole, []*corev1.Node{node("a")}, nil)
	for _, r := range []inventory.Resource{inventory.ResourceSlices, inventory.ResourceClaims} {
		c.SetExtent(r, inventory.SeenWhole)
	}
	devices := func(n int) (out []inventory.SliceDevice) {
		for i := range n {
			out = append(out, inventory.SliceDevice{Name: fmt.Sprint("d", i)})
		}
		return out
	}
	c.Slices = []*inventory.DeviceSlice{
		{Name: "old", Driver: "gpu.example.com", Pool: "a", Generation: 1, PoolSlices: 1, Node: "a", Devices: devices(8)},
		{Name: "new", Driver: "gpu.example.com", Pool: "a", Generation: 2, PoolSlices: 1, Node: "a", Devices: devices(4)},
		{Name: "net", Driver: "net.example.com", Pool: "net", Generation: 1, PoolSlices: 1, AllNodes: true, Devices: devices(3)},
	}
	result := inventory.ClaimResult{Driver: "gpu.example.com", Pool: "a", Device: "d0"}
	looking := inventory.ClaimResult{Driver: "gpu.example.com", Pool: "a", Device: "d1", AdminAccess: true}
	c.Claims = []*inventory.DeviceClaim{
		{Namespace: "ns", Name: "shared", Allocated: true, Results: []inventory.ClaimResult{result}, ReservedFor: []string{"p", "q"}},
		{Namespace: "ns", Name: "watch", Allocated: true, Results: []inventory.ClaimResult{looking}, ReservedFor: []string{"r"}},
	}
	s := take(c)
	if got := words(s, "gpu.example.com"); got != "device 4, requested 1, free 3, over 0, cards ?/?" {
		t.Error(got)
	}
	if len(s.Unknown) != 1 || s.Unknown[0].Resource != "net.example.com" || s.Unknown[0].Capacity != 3 || !strings.Contains(s.Unknown[0].Note, "no one node") {
		t.Errorf("devices on no one node: %+v", s.Unknown)
	}
	for _, r := range []inventory.Resource{inventory.ResourceSlices, inventory.ResourceClaims} {
		c.SetExtent(r, inventory.NotSeen)
		s := take(c)
		if got := words(s, "gpu.example.com"); got != "device 4, requested ?, free ?, over ?, cards ?/?" || len(s.Free("a")) != 0 {
			t.Errorf("without %s: %s, free %v", r, got, s.Free("a"))
		}
		c.SetExtent(r, inventory.SeenWhole)
	}
	c.Slices[1].PoolSlices = 2
	if got := words(take(c), "gpu.example.com"); got != "device 4, requested ?, free ?, over ?, cards ?/?" {
		t.Errorf("a pool that is not whole: %s", got)
	}
}

// TestServed: what pods ask for on a node that does not advertise it is
// over-commit, a driver's affair where a device class says so, and unknown
// where device classes were not seen.
func TestServed(t *testing.T) {
	busy := pod("p", "bare", "nvidia.com/gpu", "2")
	c := seen(inventory.SeenWhole, []*corev1.Node{node("plugin", "nvidia.com/gpu", "8"), node("bare")}, []*corev1.Pod{busy})
	for _, k := range []struct {
		extent  inventory.Extent
		classes []*inventory.DeviceClass
		want    string
		may     bool
	}{
		{inventory.NotInstalled, nil, "card 8, requested 2, free 8, over 2, cards 8/8", false},
		{inventory.SeenWhole, []*inventory.DeviceClass{{Name: "gpu", ExtendedResource: "nvidia.com/gpu"}}, "card 8, requested 0, free 8, over 0, cards 8/8", true},
		{inventory.SeenWhole, []*inventory.DeviceClass{{Name: "gpu"}}, "card 8, requested 2, free 8, over 2, cards 8/8", false},
		{inventory.NotSeen, nil, "card 8, requested ?, free ?, over ?, cards 8/8", true},
	} {
		c.SetExtent(inventory.DeviceClasses, k.extent)
		c.DeviceClasses = k.classes
		s := take(c)
		if got := words(s, "nvidia.com/gpu"); got != k.want || s.MayBeServed("nvidia.com/gpu") != k.may || s.MayBeServed("cpu") {
			t.Errorf("classes %v, seen %v: %s, may be served %v", k.classes, k.extent, got, s.MayBeServed("nvidia.com/gpu"))
		}
	}
}

// TestRandom: on random clusters free is never negative, totals are the sums
// over the nodes, and no order of reading changes them.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	names := []string{"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "aliyun.com/gpu-mem", "vendor.example/x"}
	amounts := func(most int) []string {
		var out []string
		for _, name := range names {
			if r.IntN(3) == 0 {
				out = append(out, name, fmt.Sprint(r.IntN(most)))
			}
		}
		return out
	}
	for range 300 {
		var nodes []*corev1.Node
		var pods []*corev1.Pod
		for i := range 6 {
			n := node(fmt.Sprint("n", i), amounts(20)...)
			n.Status.Allocatable = list(amounts(20)...)
			nodes = append(nodes, n)
		}
		for i := range 15 {
			pods = append(pods, pod(fmt.Sprint("p", i), fmt.Sprint("n", r.IntN(7)), amounts(6)...))
		}
		s := survey(nodes, pods...)
		checkSums(t, s, nodes)
		want := append([]report.Device(nil), s.Devices...)
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, survey(nodes, pods...).Devices); diff != "" {
			t.Fatal(diff)
		}
	}
}

func checkSums(t *testing.T, s *device.Survey, nodes []*corev1.Node) {
	t.Helper()
	free := map[string]int64{}
	for _, n := range nodes {
		for name, u := range s.Node(n.Name) {
			if u.Free < 0 || u.Overcommit < 0 || u.Free > u.Allocatable || u.Free-u.Overcommit != u.Allocatable-u.Requested {
				t.Fatalf("node %s %s: %+v", n.Name, name, u)
			}
			free[name+" "+u.Unit] += u.Free
		}
	}
	for _, d := range s.Devices {
		if d.AliasOf == "" && *d.Free != free[d.Resource+" "+d.Unit] {
			t.Fatalf("%s: total %d, over the nodes %d", d.Resource, *d.Free, free[d.Resource+" "+d.Unit])
		}
	}
}
