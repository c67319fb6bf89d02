package collect

import "gpuaudit/audit/inventory"

// scrub takes out of an object what no check reads and what may carry secrets:
// annotations but the named ones, wherever they stand; of pods and templates
// everything of containers but what decides about devices and placement, what
// volumes hold, and what containers wrote when they ended. managedFields of
// nodes and pods stay: they tell who set a label.
func scrub(item map[string]any, k resource) {
	if meta, ok := item["metadata"].(map[string]any); ok && k.name != inventory.Nodes && k.name != inventory.Pods {
		delete(meta, "managedFields")
	}
	scrubValue(item)
}

// What is kept of parts of a pod; keys that are not known here are left out.
// They are allow-lists since new fields that may carry secrets come with
// every version of Kubernetes.
var (
	keptOfContainer = keys("name", "image", "ports", "resources", "resizePolicy", "restartPolicy")
	keptOfVolume    = keys("name", "persistentVolumeClaim", "ephemeral", "csi")
	keptOfDriver    = keys("driver")
	keptOfState     = keys("reason", "exitCode", "signal", "startedAt", "finishedAt")
)

// lostOfPodSpec are the parts of a pod's spec that nothing is kept of.
var lostOfPodSpec = []string{"ephemeralContainers", "hostAliases", "dnsConfig", "imagePullSecrets", "securityContext"}

func keys(list ...string) map[string]bool {
	out := map[string]bool{}
	for _, key := range list {
		out[key] = true
	}
	return out
}

// scrubValue walks a value. What a map is, is told by its shape and not by
// where it stands, since templates stand in other places in every kind: a map
// that lists containers is a pod's spec. Maps of text, such as labels and node
// selectors, may have any key and are left alone.
func scrubValue(v any) {
	switch x := v.(type) {
	case map[string]any:
		if _, ok := x["containers"].([]any); ok {
			scrubPodSpec(x)
		}
		for _, key := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
			scrubStatuses(x[key])
		}
		for key, child := range x {
			if meta, ok := child.(map[string]any); ok && key == "metadata" {
				keepAnnotations(meta)
			}
			scrubValue(child)
		}
	case []any:
		for _, child := range x {
			scrubValue(child)
		}
	}
}

func scrubPodSpec(spec map[string]any) {
	for _, key := range lostOfPodSpec {
		delete(spec, key)
	}
	keepOnly(spec["containers"], keptOfContainer)
	keepOnly(spec["initContainers"], keptOfContainer)
	keepOnly(spec["volumes"], keptOfVolume)
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		if volume, ok := v.(map[string]any); ok {
			keepKeys(volume["csi"], keptOfDriver)
		}
	}
}

// keepOnly leaves of every map of a list the keys that are kept.
func keepOnly(list any, kept map[string]bool) {
	items, _ := list.([]any)
	for _, item := range items {
		keepKeys(item, kept)
	}
}

func keepKeys(v any, kept map[string]bool) {
	m, _ := v.(map[string]any)
	for key := range m {
		if !kept[key] {
			delete(m, key)
		}
	}
}

// scrubStatuses takes out what a container wrote when it ended: it may be the
// end of its log.
func scrubStatuses(list any) {
	items, _ := list.([]any)
	for _, item := range items {
		status, _ := item.(map[string]any)
		for _, which := range []string{"state", "lastState"} {
			state, _ := status[which].(map[string]any)
			keepKeys(state["terminated"], keptOfState)
		}
	}
}

func keepAnnotations(meta map[string]any) {
	annotations, _ := meta["annotations"].(map[string]any)
	for key := range annotations {
		if !inventory.KeptAnnotation(key) {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}
