package inventory

import (
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SliceOf reduces a ResourceSlice of any version of resource.k8s.io: up to
// v1beta1 a device's content stands under "basic", from v1beta2 on directly.
func SliceOf(in *unstructured.Unstructured) *DeviceSlice {
	spec := object(in.Object["spec"])
	pool := object(spec["pool"])
	out := &DeviceSlice{
		Name: in.GetName(), Driver: text(spec["driver"]), Pool: text(pool["name"]),
		Generation: number(pool["generation"]), PoolSlices: number(pool["resourceSliceCount"]),
		Node: text(spec["nodeName"]), AllNodes: truth(spec["allNodes"]),
		NodeSelector:   nodeSelector(spec["nodeSelector"]),
		SharedCounters: len(list(spec["sharedCounters"])) > 0,
	}
	for _, item := range list(spec["devices"]) {
		d := object(item)
		body := d
		if basic, ok := d["basic"].(map[string]any); ok {
			body = basic
		}
		dev := SliceDevice{Name: text(d["name"]), Node: text(body["nodeName"]),
			Counters: len(list(body["consumesCounters"])) > 0, MultiAlloc: truth(body["allowMultipleAllocations"]), Attributes: map[string]string{}}
		for _, t := range list(body["taints"]) {
			taint := object(t)
			if effect := text(taint["effect"]); effect == "NoSchedule" || effect == "NoExecute" {
				dev.Taints = append(dev.Taints, text(taint["key"])+"="+text(taint["value"])+":"+effect)
			}
		}
		for name, value := range object(body["attributes"]) {
			for _, v := range object(value) {
				dev.Attributes[name] = fmt.Sprint(v)
			}
		}
		out.Devices = append(out.Devices, dev)
	}
	sort.Slice(out.Devices, func(i, j int) bool { return out.Devices[i].Name < out.Devices[j].Name })
	return out
}

// ClaimOf reduces a ResourceClaim of any version.
func ClaimOf(in *unstructured.Unstructured) *DeviceClaim {
	out := &DeviceClaim{Namespace: in.GetNamespace(), Name: in.GetName(), UID: string(in.GetUID()), Deleting: in.GetDeletionTimestamp() != nil}
	if t := in.GetCreationTimestamp(); !t.IsZero() {
		out.Created = t.UTC()
	}
	out.ExtendedResource = in.GetAnnotations()["resource.kubernetes.io/extended-resource-claim"] != ""
	status := object(in.Object["status"])
	if allocation, ok := status["allocation"].(map[string]any); ok {
		out.Allocated = true
		for _, item := range list(object(allocation["devices"])["results"]) {
			r := object(item)
			out.Results = append(out.Results, ClaimResult{Driver: text(r["driver"]), Pool: text(r["pool"]), Device: text(r["device"]), Request: text(r["request"]), AdminAccess: truth(r["adminAccess"])})
		}
	}
	for _, item := range list(status["reservedFor"]) {
		ref := object(item)
		if text(ref["resource"]) == "pods" {
			out.ReservedFor = append(out.ReservedFor, text(ref["name"]))
		}
	}
	sort.Strings(out.ReservedFor)
	for _, item := range list(object(object(in.Object["spec"])["devices"])["requests"]) {
		out.Requests = append(out.Requests, claimRequest(object(item)))
	}
	return out
}

func claimRequest(r map[string]any) ClaimRequest {
	body := r
	if exactly, ok := r["exactly"].(map[string]any); ok {
		body = exactly
	} else if first := list(r["firstAvailable"]); len(first) > 0 {
		body = object(first[0])
	}
	out := ClaimRequest{Name: text(r["name"]), DeviceClass: text(body["deviceClassName"]), Count: number(body["count"]),
		All: text(body["allocationMode"]) == "All", AdminAccess: truth(body["adminAccess"])}
	if out.Count == 0 && !out.All {
		out.Count = 1 // the API's default for ExactCount
	}
	return out
}

// DeviceClassOf reduces a DeviceClass.
func DeviceClassOf(in *unstructured.Unstructured) *DeviceClass {
	return &DeviceClass{Name: in.GetName(), ExtendedResource: text(object(in.Object["spec"])["extendedResourceName"])}
}

func nodeSelector(v any) *corev1.NodeSelector {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var out corev1.NodeSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &out) != nil {
		return nil
	}
	return &out
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string           { s, _ := v.(string); return s }
func truth(v any) bool            { b, _ := v.(bool); return b }

func number(v any) int64 {
	switch x := v.(type) {
	case int64:
		return x
	case float64:
		return int64(x)
	}
	return 0
}
