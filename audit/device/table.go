// Package device knows device resources: which names are devices, in what unit
// they count, what of them a node has, has given away and has free. Cards and
// slots are never in one sum, and the same silicon under two names counts once.
package device

import (
	"path"
	"strings"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/settings"
)

// Role of a resource name.
type Role string

// A Device is counted. A View is another name for devices that are counted
// elsewhere. Monitoring gives access to all devices at once and is none. None
// is no accelerator. Unknown is listed and never added to anything.
const (
	Counted    Role = "device"
	View       Role = "view"
	Monitoring Role = "monitoring"
	None       Role = "none"
	Unknown    Role = "unknown"
)

// Units that a resource counts in.
const (
	Card   = "card"
	Slot   = "slot"
	Slice  = "slice"
	Memory = "memory"
	Cores  = "cores"
	Other  = "device"
)

// Row says what a resource name means.
type Row struct {
	Pattern string
	Vendor  string
	Unit    string
	// PerCard is how many units one card gives, 0 when that depends.
	PerCard int64
	Role    Role
	// CardOf are the names under which the same silicon is counted, first wins.
	CardOf []string
}

// rows are tried in order; the first whose pattern matches counts. Sources: the
// documentation of each vendor's device plugin.
var rows = []Row{
	{"nvidia.com/gpu", "NVIDIA", Card, 1, Counted, nil},
	{"nvidia.com/gpu.shared", "NVIDIA", Slot, 0, Counted, nil},
	{"nvidia.com/mig-*.shared", "NVIDIA", Slot, 0, Counted, nil},
	{"nvidia.com/mig-*", "NVIDIA", Slice, 0, Counted, nil},
	{"nvidia.com/gpumem", "NVIDIA (HAMi)", Memory, 0, View, []string{"nvidia.com/gpu"}},
	{"nvidia.com/gpumem-percentage", "NVIDIA (HAMi)", Memory, 0, View, []string{"nvidia.com/gpu"}},
	{"nvidia.com/gpucores", "NVIDIA (HAMi)", Cores, 0, View, []string{"nvidia.com/gpu"}},
	{"nvidia.com/vgpu", "NVIDIA", Slot, 0, Counted, nil},
	{"nvidia.com/pgpu", "NVIDIA (pass-through)", Card, 1, Counted, nil},
	{"nvidia.com/priority", "NVIDIA (HAMi)", Other, 0, None, nil},
	{"nvidia.com/hostdev*", "NVIDIA", Other, 0, None, nil},
	{"volcano.sh/gpu-number", "NVIDIA (Volcano)", Card, 1, View, []string{"nvidia.com/gpu"}},
	{"volcano.sh/gpu-memory", "NVIDIA (Volcano)", Memory, 0, View, []string{"volcano.sh/gpu-number", "nvidia.com/gpu"}},
	{"volcano.sh/vgpu-number", "NVIDIA (Volcano)", Slot, 0, Counted, nil},
	{"volcano.sh/vgpu-memory", "NVIDIA (Volcano)", Memory, 0, View, []string{"volcano.sh/vgpu-number"}},
	{"volcano.sh/vgpu-cores", "NVIDIA (Volcano)", Cores, 100, View, []string{"volcano.sh/vgpu-number"}},
	{"aliyun.com/gpu-count", "NVIDIA (gpushare)", Card, 1, View, []string{"nvidia.com/gpu", "aliyun.com/gpu-mem"}},
	{"aliyun.com/gpu-mem", "NVIDIA (gpushare)", Memory, 0, View, []string{"nvidia.com/gpu"}},
	{"aliyun.com/gpu-core.percentage", "NVIDIA (gpushare)", Cores, 100, View, []string{"aliyun.com/gpu-mem", "nvidia.com/gpu"}},
	{"koordinator.sh/gpu", "NVIDIA (Koordinator)", Cores, 100, View, []string{"nvidia.com/gpu"}},
	{"koordinator.sh/gpu-core", "NVIDIA (Koordinator)", Cores, 100, View, []string{"nvidia.com/gpu", "koordinator.sh/gpu"}},
	{"koordinator.sh/gpu-memory*", "NVIDIA (Koordinator)", Memory, 0, View, []string{"nvidia.com/gpu", "koordinator.sh/gpu", "koordinator.sh/gpu-core"}},
	{"koordinator.sh/gpu.shared", "NVIDIA (Koordinator)", Slot, 0, View, []string{"nvidia.com/gpu"}},
	{"koordinator.sh/rdma", "Koordinator", Other, 0, None, nil},
	{"tencent.com/vcuda-core", "NVIDIA (vcuda)", Cores, 100, Counted, nil},
	{"tencent.com/vcuda-memory", "NVIDIA (vcuda)", Memory, 0, View, []string{"tencent.com/vcuda-core"}},
	{"tke.cloud.tencent.com/qgpu-core", "NVIDIA (qGPU)", Cores, 100, Counted, nil},
	{"tke.cloud.tencent.com/qgpu-memory", "NVIDIA (qGPU)", Memory, 0, View, []string{"tke.cloud.tencent.com/qgpu-core"}},
	{"amd.com/gpu", "AMD", Card, 1, Counted, nil},
	{"amd.com/gpu_*", "AMD", Slice, 0, Counted, nil},
	{"amd.com/*px*", "AMD", Slice, 0, Counted, nil},
	{"gpu.intel.com/*_monitoring", "Intel", Other, 0, Monitoring, nil},
	{"gpu.intel.com/i915", "Intel", Slot, 0, Counted, nil},
	{"gpu.intel.com/xe", "Intel", Slot, 0, Counted, nil},
	{"gpu.intel.com/*", "Intel", Other, 0, View, []string{"gpu.intel.com/i915", "gpu.intel.com/xe"}},
	{"habana.ai/*", "Intel Gaudi", Card, 1, Counted, nil},
	{"huawei.com/Ascend*-memory", "Huawei", Memory, 0, View, []string{"huawei.com/Ascend910", "huawei.com/Ascend310", "huawei.com/Ascend310P"}},
	{"huawei.com/Ascend*-*", "Huawei", Slice, 0, Counted, nil},
	{"huawei.com/Ascend*", "Huawei", Card, 1, Counted, nil},
	{"huawei.com/npu-core", "Huawei", Cores, 0, View, []string{"huawei.com/Ascend910", "huawei.com/Ascend310P"}},
	{"huawei.com/npu*", "Huawei", Card, 1, Counted, nil},
	{"aws.amazon.com/neuron", "AWS Neuron", Card, 1, Counted, nil},
	{"aws.amazon.com/neurondevice", "AWS Neuron", Card, 1, View, []string{"aws.amazon.com/neuron"}},
	{"aws.amazon.com/neuroncore", "AWS Neuron", Cores, 0, View, []string{"aws.amazon.com/neuron", "aws.amazon.com/neurondevice"}},
	{"cambricon.com/*mem*", "Cambricon", Memory, 0, View, []string{"cambricon.com/mlu", "cambricon.com/vmlu"}},
	{"cambricon.com/*core*", "Cambricon", Cores, 0, View, []string{"cambricon.com/mlu", "cambricon.com/vmlu"}},
	{"cambricon.com/mlu.share", "Cambricon", Slot, 0, Counted, nil},
	{"cambricon.com/*", "Cambricon", Card, 1, Counted, nil},
	{"metax-tech.com/gpu", "MetaX", Card, 1, Counted, nil},
	{"metax-tech.com/sgpu", "MetaX", Slot, 0, Counted, nil},
	{"metax-tech.com/v*", "MetaX", Other, 0, View, []string{"metax-tech.com/sgpu"}},
	{"hygon.com/dcunum", "Hygon", Slot, 0, Counted, nil},
	{"hygon.com/dcumem", "Hygon", Memory, 0, View, []string{"hygon.com/dcunum", "hygon.com/dcu"}},
	{"hygon.com/dcucores", "Hygon", Cores, 0, View, []string{"hygon.com/dcunum", "hygon.com/dcu"}},
	{"hygon.com/*", "Hygon", Card, 1, Counted, nil},
	{"mthreads.com/vgpu", "Moore Threads", Slot, 0, Counted, nil},
	{"mthreads.com/sgpu-*", "Moore Threads", Other, 0, View, []string{"mthreads.com/vgpu", "mthreads.com/gpu"}},
	{"mthreads.com/gpu", "Moore Threads", Card, 1, Counted, nil},
	{"iluvatar.*/*gpu", "Iluvatar", Card, 1, Counted, nil},
	{"iluvatar.*/*", "Iluvatar", Other, 0, View, []string{"iluvatar.ai/gpu", "iluvatar.ai/vgpu", "iluvatar.com/gpu"}},
	{"enflame.com/shared-gcu", "Enflame", Slot, 0, Counted, nil},
	{"enflame.com/vgcu*", "Enflame", Slot, 0, Counted, nil},
	{"enflame.com/gcu", "Enflame", Card, 1, Counted, nil},
	{"kunlunxin.com/xpu", "Kunlunxin", Card, 1, Counted, nil},
	{"kunlunxin.com/*", "Kunlunxin", Slot, 0, Counted, nil},
	{"baidu.com/xpu", "Kunlunxin", Card, 1, Counted, nil},
	{"birentech.com/gpu", "Biren", Card, 1, Counted, nil},
	{"google.com/tpu", "Google", Card, 1, Counted, nil},
	{"cloud-tpus.google.com/*", "Google", Card, 1, Counted, nil},
	{"qualcomm.com/qaic*", "Qualcomm", Card, 1, Counted, nil},
	{"xilinx.com/fpga-*", "AMD Xilinx", Card, 1, Counted, nil},
	{"intel.com/fpga*", "Intel", Card, 1, Counted, nil},
	{"rebellions.ai/*", "Rebellions", Card, 1, Counted, nil},
	{"furiosa.ai/*", "FuriosaAI", Card, 1, Counted, nil},
	{"tenstorrent.com/*", "Tenstorrent", Card, 1, Counted, nil},
	{"smarter-devices/*", "", Other, 0, None, nil},
	{"devices.kubevirt.io/*", "", Other, 0, None, nil},
	{"bridge.network.kubevirt.io/*", "", Other, 0, None, nil},
	{"rdma/*", "", Other, 0, None, nil},
	{"*/rdma*", "", Other, 0, None, nil},
	{"*/hca*", "", Other, 0, None, nil},
	{"*/*sriov*", "", Other, 0, None, nil},
	{"openshift.io/*", "", Other, 0, None, nil},
	{"mellanox.com/*", "", Other, 0, None, nil},
	{"intel.com/*", "Intel", Other, 0, None, nil},
	{"qat.intel.com/*", "Intel", Other, 0, None, nil},
	{"vpc.amazonaws.com/*", "", Other, 0, None, nil},
	{"*.amazonaws.com/*", "", Other, 0, None, nil},
	{"hugepages-*", "", Other, 0, None, nil},
	{"*/eni*", "", Other, 0, None, nil},
	{"*/eip*", "", Other, 0, None, nil},
	{"*/fuse*", "", Other, 0, None, nil},
	{"*/kvm*", "", Other, 0, None, nil},
	{"*/tun*", "", Other, 0, None, nil},
	{"*/vfio*", "", Other, 0, None, nil},
	{"*/batch-cpu", "", Other, 0, None, nil},
	{"*/batch-memory", "", Other, 0, None, nil},
	{"*/mid-cpu", "", Other, 0, None, nil},
	{"*/mid-memory", "", Other, 0, None, nil},
	{"*/member-*", "", Other, 0, None, nil},
}

// Table finds rows by resource name; configured ones come first.
type Table struct {
	rows  []Row
	known map[string]Row
}

// NewTable puts configured rows before the built-in ones. A configured row that
// names a built-in resource takes from that what it leaves out.
func NewTable(overrides []settings.Device) *Table {
	t := &Table{known: map[string]Row{}}
	for _, o := range overrides {
		base, _ := match(rows, o.Resource)
		row := Row{Pattern: o.Resource, Vendor: base.Vendor, Unit: o.Unit, PerCard: o.PerCard, Role: Role(o.Role), CardOf: base.CardOf}
		if row.Unit == "" {
			row.Unit = base.Unit
		}
		if row.Unit == "" {
			row.Unit = Card
		}
		if row.PerCard == 0 {
			row.PerCard = base.PerCard
		}
		if row.PerCard == 0 && row.Unit == Card {
			row.PerCard = 1
		}
		if row.Role == "" {
			row.Role = Counted
		}
		t.rows = append(t.rows, row)
	}
	t.rows = append(t.rows, rows...)
	return t
}

// Row says what a resource name means. Plain resources have role none.
func (t *Table) Row(resource string) Row {
	if row, ok := t.known[resource]; ok {
		return row
	}
	row := t.find(resource)
	t.known[resource] = row
	return row
}

func (t *Table) find(resource string) Row {
	if inventory.IsPlain(resource) {
		return Row{Pattern: resource, Role: None}
	}
	if row, ok := match(t.rows, resource); ok {
		return row
	}
	if passThrough(resource) {
		switch {
		case strings.Contains(resource, "NVSWITCH"):
			return Row{Pattern: resource, Vendor: "NVIDIA (pass-through)", Unit: Other, Role: None}
		case virtualProfile(resource):
			return Row{Pattern: resource, Vendor: "NVIDIA (vGPU)", Unit: Slot, Role: Counted}
		}
		return Row{Pattern: resource, Vendor: "NVIDIA (pass-through)", Unit: Card, PerCard: 1, Role: Counted}
	}
	return Row{Pattern: resource, Unit: Other, Role: Unknown}
}

func match(rows []Row, resource string) (Row, bool) {
	for _, row := range rows {
		if row.Pattern == resource {
			return row, true
		}
	}
	for _, row := range rows {
		if strings.Contains(row.Pattern, "*") {
			if ok, err := path.Match(row.Pattern, resource); err == nil && ok {
				return row, true
			}
		}
	}
	return Row{}, false
}

// passThrough recognises whole cards given to virtual machines: the KubeVirt
// device plugin names them after the card, in capitals (nvidia.com/GP107_GEFORCE).
func passThrough(resource string) bool {
	model, ok := strings.CutPrefix(resource, "nvidia.com/")
	if !ok || len(model) < 3 {
		return false
	}
	return model == strings.ToUpper(model) && strings.ContainsAny(model, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// virtualProfile recognises parts of cards given to virtual machines: their
// names end in the memory's gigabytes and the licence's letter (NVIDIA_A10-24Q).
func virtualProfile(resource string) bool {
	i := strings.LastIndexByte(resource, '-')
	profile := strings.TrimRight(resource[i+1:], "ABCQ")
	if i < 0 || profile == "" || len(profile) != len(resource)-i-2 {
		return false
	}
	return strings.Trim(profile, "0123456789") == ""
}
