package check

import (
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
)

// Coverage is where a DaemonSet should have pods and has none.
type Coverage struct {
	Workload *inventory.Workload
	// Wanted are the nodes that match, sorted; Missing those without a pod.
	Wanted, Missing []string
}

// youngNode is how long a node may be without its DaemonSets' pods.
const youngNode = 5 * time.Minute

// Cover compares every DaemonSet with our own count of matching nodes: its
// status may be all zeros when its controller could never sync. It needs whole
// lists of nodes and pods, since it concludes from absence.
func Cover(c *inventory.Cluster, nodes *health.Verdict, now time.Time) []Coverage {
	if !c.Seen(inventory.Nodes) || c.Extent(inventory.Pods) != inventory.SeenWhole {
		return nil
	}
	var out []Coverage
	for _, w := range c.Workloads {
		if w.Kind != "DaemonSet" || w.Deleting {
			continue
		}
		cover := Coverage{Workload: w}
		has := c.DaemonNodes[w.Namespace+"/"+w.Name]
		for _, n := range nodes.Nodes {
			if n.Kind != health.Physical || now.Sub(n.Created) < youngNode || !Desired(w, n.Node) {
				continue
			}
			cover.Wanted = append(cover.Wanted, n.Name)
			if !has[n.Name] {
				cover.Missing = append(cover.Missing, n.Name)
			}
		}
		sort.Strings(cover.Wanted)
		sort.Strings(cover.Missing)
		out = append(out, cover)
	}
	return out
}

// daemonTolerations are added to every DaemonSet pod by its controller.
// Source: kubernetes pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
func daemonTolerations(hostNetwork bool) []corev1.Toleration {
	out := []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	if hostNetwork {
		out = append(out, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}

// Desired is whether the DaemonSet controller wants a pod on the node: the
// template's node selector and affinity match, and no NoSchedule or NoExecute
// taint is left untolerated. Source: kubernetes pkg/controller/daemon
// (NodeShouldRunDaemonPod, predicates).
func Desired(w *inventory.Workload, n *inventory.Node) bool {
	node := &corev1.Node{}
	node.Name, node.Labels = n.Name, n.Labels
	pod := &corev1.Pod{}
	pod.Spec.NodeSelector = w.Shape.NodeSelector
	if w.Shape.Affinity != nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: w.Shape.Affinity}}
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !match {
		return false
	}
	tolerations := append(daemonTolerations(w.HostNetwork), w.Shape.Tolerations...)
	_, untolerated := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), n.Taints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	return !untolerated
}
