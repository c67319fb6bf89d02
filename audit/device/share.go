package device

import (
	"encoding/json"
	"strconv"
	"strings"

	"gpuaudit/audit/inventory"
)

// sharing is how a node divides its cards.
type sharing struct {
	// unit replaces the table's where the node shares its cards.
	unit string
	// cards is the number of physical cards, -1 when not known.
	cards int64
	// perCard is how many units one card gives, 0 when not known.
	perCard int64
	note    string
}

// shared tells how a node's resource relates to cards, by what device plugins
// write on the node: registered devices, replicas, counts.
func shared(n *inventory.Node, resource string, row Row) sharing {
	capacity := n.Capacity[resource]
	if cards, slots, ok := registered(n); ok && resource == "nvidia.com/gpu" {
		s := sharing{unit: Slot, cards: cards, note: "cards are split into slots; two slots may be the same card"}
		if cards > 0 && slots > 0 && slots%cards == 0 {
			s.perCard = slots / cards
		} else if cards > 0 && capacity%cards == 0 {
			s.perCard = capacity / cards
		}
		return s
	}
	if resource == "nvidia.com/gpu" || resource == "nvidia.com/gpu.shared" {
		if s, ok := timeSliced(n, resource, capacity); ok {
			return s
		}
	}
	s := sharing{unit: row.Unit, cards: -1, perCard: row.PerCard}
	switch {
	case row.PerCard > 0 && capacity%row.PerCard == 0:
		s.cards = capacity / row.PerCard
	case row.Unit == Slot:
		s.note = "how many cards are behind these slots is uncertain; two slots may be the same card"
	case row.Unit == Slice:
		s.note = "slices of cards; how many cards are behind them is not advertised"
	}
	return s
}

func timeSliced(n *inventory.Node, resource string, capacity int64) (sharing, bool) {
	count, hasCount := labelNumber(n, "nvidia.com/gpu.count")
	replicas, hasReplicas := labelNumber(n, "nvidia.com/gpu.replicas")
	product := n.Labels["nvidia.com/gpu.product"]
	extender, hasExtender := n.Capacity["aliyun.com/gpu-count"]
	switch {
	case hasReplicas && replicas > 1 && hasCount && count*replicas == capacity:
		return sharing{unit: Slot, cards: count, perCard: replicas, note: "time-sliced: two slots may be the same card"}, true
	case hasReplicas && replicas > 1:
		return sharing{unit: Slot, cards: -1, note: "uncertain: the labels for count and replicas contradict what is advertised"}, true
	case strings.HasSuffix(product, "-SHARED") || resource == "nvidia.com/gpu.shared":
		s := sharing{unit: Slot, cards: -1, note: "shared: two slots may be the same card; how many cards there are is uncertain"}
		if hasCount && count > 0 && capacity%count == 0 {
			s.cards, s.perCard = count, capacity/count
		}
		return s, true
	case hasExtender && extender > 0 && capacity > extender && capacity%extender == 0:
		return sharing{unit: Slot, cards: extender, perCard: capacity / extender, note: "cards are split into slots; two slots may be the same card"}, true
	case hasCount && count > 0 && capacity > count && len(migNames(n)) == 0:
		return sharing{unit: Slot, cards: -1, note: "uncertain: more is advertised than the node's own label counts cards"}, true
	}
	return sharing{}, false
}

// registered reads the cards that HAMi's device plugin (and its predecessors)
// register in an annotation: JSON, or fields joined by commas and colons.
func registered(n *inventory.Node) (cards, slots int64, ok bool) {
	for _, key := range []string{"hami.io/node-nvidia-register", "4pd.io/node-nvidia-register", "volcano.sh/node-vgpu-register"} {
		text := strings.TrimSpace(n.Annotations[key])
		if text == "" {
			continue
		}
		if strings.HasPrefix(text, "[") {
			var list []struct {
				Count int64 `json:"count"`
			}
			if json.Unmarshal([]byte(text), &list) != nil {
				continue
			}
			for _, d := range list {
				cards++
				slots += d.Count
			}
			return cards, slots, cards > 0
		}
		for _, part := range strings.Split(text, ":") {
			fields := strings.Split(part, ",")
			if len(fields) < 2 || fields[0] == "" {
				continue
			}
			cards++
			if v, err := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 64); err == nil {
				slots += v
			}
		}
		if cards > 0 {
			return cards, slots, true
		}
	}
	return 0, 0, false
}

func labelNumber(n *inventory.Node, key string) (int64, bool) {
	v, err := strconv.ParseInt(strings.TrimSpace(n.Labels[key]), 10, 64)
	return v, err == nil && v >= 0
}

// LabelCount is how many units of a resource a node's own labels say it has,
// in that resource's unit. ok is false where no label says so, or where the
// cards are divided in a way that makes the label incomparable.
func LabelCount(n *inventory.Node) (resource string, count int64, ok bool) {
	if _, _, split := registered(n); split || len(migNames(n)) > 0 || passesThrough(n) {
		return "", 0, false
	}
	if strings.HasPrefix(n.Labels["nvidia.com/gpu.workload.config"], "vm-") {
		return "", 0, false
	}
	if cards, has := labelNumber(n, "nvidia.com/gpu.count"); has {
		replicas, hasReplicas := labelNumber(n, "nvidia.com/gpu.replicas")
		if !hasReplicas || replicas < 1 {
			replicas = 1
		}
		name := "nvidia.com/gpu"
		if n.Capacity["nvidia.com/gpu.shared"] > 0 {
			name = "nvidia.com/gpu.shared"
		}
		if replicas == 1 && n.Capacity[name] > cards {
			return "", 0, false
		}
		return name, cards * replicas, true
	}
	for label, name := range map[string]string{"amd.com/gpu.count": "amd.com/gpu", "habana.ai/hpu.count": "habana.ai/gaudi"} {
		if cards, has := labelNumber(n, label); has {
			return name, cards, true
		}
	}
	if cards, has := labelNumber(n, "aliyun.accelerator/nvidia_count"); has && n.Capacity["aliyun.com/gpu-mem"] == 0 {
		return "nvidia.com/gpu", cards, true
	}
	return "", 0, false
}

func passesThrough(n *inventory.Node) bool {
	for name, amount := range n.Capacity {
		if amount > 0 && passThrough(name) {
			return true
		}
	}
	return false
}

func migNames(n *inventory.Node) []string {
	var out []string
	for name, amount := range n.Capacity {
		if amount > 0 && strings.HasPrefix(name, "nvidia.com/mig-") {
			out = append(out, name)
		}
	}
	return out
}

// impossible tells a node whose whole cards and MIG slices together need more
// cards than its label counts: some of the entries are stale.
func impossible(n *inventory.Node) bool {
	count, ok := labelNumber(n, "nvidia.com/gpu.count")
	names := migNames(n)
	if !ok || count == 0 || len(names) == 0 {
		return false
	}
	sevenths := n.Capacity["nvidia.com/gpu"] * 7
	for _, name := range names {
		if strings.HasSuffix(name, ".shared") {
			return false
		}
		profile := strings.TrimPrefix(name, "nvidia.com/mig-")
		g, _, found := strings.Cut(profile, "g.")
		v, err := strconv.ParseInt(g, 10, 64)
		if !found || err != nil {
			return false
		}
		sevenths += v * n.Capacity[name]
	}
	return sevenths > count*7
}

// promisesDevices is true for labels with which clouds and discovery mark nodes that will have devices.
func promisesDevices(n *inventory.Node) bool {
	for _, key := range []string{
		"nvidia.com/gpu.count", "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
		"karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-gpu-name", "aliyun.accelerator/nvidia_name", "aliyun.accelerator/nvidia_count",
		"accelerator", "amd.com/gpu.count", "gpu.intel.com/product", "cloud.google.com/gke-tpu-accelerator", "node.kubernetes.io/gpu",
	} {
		if v, ok := n.Labels[key]; ok && v != "0" {
			return true
		}
	}
	return n.Labels["nvidia.com/gpu.present"] == "true" || n.Labels["feature.node.kubernetes.io/pci-10de.present"] == "true"
}
