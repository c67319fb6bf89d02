package health

import (
	"strings"

	"gpuaudit/audit/inventory"
)

// kindOf tells what a node stands for, and collects virtual-cluster marks.
// Labels alone prove little: a platform may call real nodes "fake"; content
// decides. Source of the marks: vcluster's node syncers, virtual-kubelet's
// label and taint conventions, k3k.
func kindOf(n *inventory.Node, marks map[string]bool) Kind {
	collectMarks(n, marks)
	if n.Labels["type"] == "virtual-kubelet" || strings.HasPrefix(n.ProviderID, "virtual-kubelet") || hasVirtualKubeletTaint(n) ||
		n.Labels["kubernetes.azure.com/role"] == "virtual-node" || n.Labels["node.kubernetes.io/virtual-kubelet"] == "true" {
		return Elastic
	}
	if n.Labels["vcluster.loft.sh/fake-node"] == "true" && fakeContent(n) {
		return Fake
	}
	return Physical
}

func collectMarks(n *inventory.Node, marks map[string]bool) {
	for key := range n.Labels {
		if mark := virtualMark(key); mark != "" {
			marks["label "+mark] = true
		}
	}
	for key := range n.Annotations {
		if mark := virtualMark(key); mark != "" {
			marks["annotation "+mark] = true
		}
	}
	if strings.Contains(n.Kernel, "-fake") || strings.Contains(strings.ToLower(n.OSImage), "fake kubernetes image") {
		marks["node image or kernel marked fake"] = true
	}
}

func virtualMark(key string) string {
	for _, domain := range []string{"vcluster.loft.sh", "k3k.io", "virtualcluster.io", "tenancy.x-k8s.io"} {
		if prefix, _, ok := strings.Cut(key, "/"); ok && (prefix == domain || strings.HasSuffix(prefix, "."+domain)) {
			return domain
		}
	}
	return ""
}

func hasVirtualKubeletTaint(n *inventory.Node) bool {
	for i := range n.Taints {
		if strings.HasPrefix(n.Taints[i].Key, "virtual-kubelet.io/") {
			return true
		}
	}
	return false
}

// fakeContent is true when nothing on the node is its own: no devices, no
// labels beside the syncer's and Kubernetes' own.
func fakeContent(n *inventory.Node) bool {
	for name, amount := range n.Capacity {
		if amount > 0 && !inventory.IsPlain(name) {
			return false
		}
	}
	for name, amount := range n.Allocatable {
		if amount > 0 && !inventory.IsPlain(name) {
			return false
		}
	}
	for key := range n.Labels {
		switch key {
		case "vcluster.loft.sh/fake-node", "kubernetes.io/arch", "kubernetes.io/os", "kubernetes.io/hostname",
			"beta.kubernetes.io/arch", "beta.kubernetes.io/os":
			continue
		}
		return false
	}
	return n.ProviderID == ""
}
