package drift

import (
	"path"
	"strings"
)

// discoveryPrefixes are written by feature-discovery daemons, which take their
// labels away and bring them back when they restart.
var discoveryPrefixes = []string{
	"feature.node.kubernetes.io/", "nvidia.com/", "amd.com/", "beta.amd.com/", "gpu.intel.com/", "intel.feature.node.kubernetes.io/",
	"habana.ai/", "node.huawei.com/", "accelerator/", "nfd.node.kubernetes.io/",
}

// Discovered is true for label keys that a feature-discovery daemon writes.
func Discovered(key string) bool {
	for _, p := range discoveryPrefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// Volatile is true for labels whose values change by themselves: timestamps
// and versions of drivers, runtimes and kernels.
func Volatile(key string) bool {
	switch {
	case key == "nvidia.com/gfd.timestamp",
		strings.HasPrefix(key, "nvidia.com/cuda."),
		strings.HasPrefix(key, "nvidia.com/gpu-driver-upgrade"),
		strings.HasPrefix(key, "nvidia.com/cuda-driver"),
		strings.HasPrefix(key, "feature.node.kubernetes.io/kernel-version"),
		strings.HasPrefix(key, "feature.node.kubernetes.io/system-os_release"),
		strings.HasPrefix(key, "nfd.node.kubernetes.io/"):
		return true
	}
	lower := strings.ToLower(key)
	return strings.Contains(lower, "driver-version") || strings.Contains(lower, "driver.version") || strings.HasSuffix(lower, "timestamp")
}

// CountLabel is true for labels that state how many cards a node has: a lower
// value is a fact about hardware, never a flap.
func CountLabel(key string) bool {
	switch key {
	case "nvidia.com/gpu.count", "amd.com/gpu.count", "gpu.intel.com/device-count", "aliyun.accelerator/nvidia_count", "habana.ai/hpu.count":
		return true
	}
	return strings.HasSuffix(key, "/gpu.count") || strings.HasSuffix(key, "/gpu-count")
}

// ignored matches a name against the configured globs.
func ignored(name string, globs []string) bool {
	for _, g := range globs {
		if ok, err := path.Match(g, name); err == nil && ok {
			return true
		}
		if strings.HasSuffix(g, "*") && strings.HasPrefix(name, strings.TrimSuffix(g, "*")) {
			return true // label keys hold slashes, which path.Match stops at
		}
	}
	return false
}

// autoscalerLabels mark nodes that come and go by themselves.
var autoscalerLabels = []string{"karpenter.sh/nodepool", "karpenter.sh/provisioner-name", "karpenter.sh/capacity-type"}

// poolLabels name a managed pool; such pools may be scaled or fixed.
var poolLabels = []string{
	"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "agentpool",
	"alibabacloud.com/nodepool-id", "node.tke.cloud.tencent.com/machineset", "cloud.tencent.com/node-pool", "kops.k8s.io/instancegroup",
	"doks.digitalocean.com/node-pool", "oke.oraclecloud.com/pool.name", "lke.linode.com/pool-id", "machinepool", "cluster.x-k8s.io/deployment-name",
}

func autoscaled(labels map[string]string, more []string) bool {
	for _, key := range autoscalerLabels {
		if _, ok := labels[key]; ok {
			return true
		}
	}
	for _, key := range more {
		if _, ok := labels[key]; ok {
			return true
		}
	}
	for key := range labels {
		if strings.Contains(strings.ToLower(key), "autoscal") {
			return true
		}
	}
	return false
}

func pool(labels map[string]string) string {
	for _, key := range poolLabels {
		if v := labels[key]; v != "" {
			return key + "=" + v
		}
	}
	return ""
}
