package inventory

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// SortNodes orders the nodes, gives them their leases and counts managers.
// Call it before a PodPass begins.
func (c *Cluster) SortNodes(leases map[string]*Lease) {
	sort.Slice(c.Nodes, func(i, j int) bool { return c.Nodes[i].Name < c.Nodes[j].Name })
	c.NodesWithManagers = 0
	for _, n := range c.Nodes {
		n.Lease = leases[n.Name]
		if n.HasManagers {
			c.NodesWithManagers++
		}
	}
}

// SetExtent notes how much of r was seen.
func (c *Cluster) SetExtent(r Resource, e Extent) {
	if c.Extents == nil {
		c.Extents = map[Resource]Extent{}
	}
	c.Extents[r] = e
}

// AddGap notes something that could not be seen.
func (c *Cluster) AddGap(g Gap) { c.Gaps = append(c.Gaps, g) }

// Finish sorts everything and resolves owners; the cluster is not changed after it.
func (c *Cluster) Finish() {
	sort.SliceStable(c.Gaps, func(i, j int) bool {
		return cmp.Or(strings.Compare(string(c.Gaps[i].Resource), string(c.Gaps[j].Resource)), strings.Compare(c.Gaps[i].Namespace, c.Gaps[j].Namespace)) < 0
	})
	slices.SortFunc(c.Workloads, func(a, b *Workload) int { return strings.Compare(a.Ref(), b.Ref()) })
	c.addRuntimeClasses()
	c.resolveOwners()
	slices.SortFunc(c.Pods, func(a, b *Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	c.RunningShapes = sortRunning(c.RunningShapes)
	slices.SortFunc(c.Quotas, func(a, b *ResourceQuota) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.Services, func(a, b *Service) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.Endpoints, func(a, b *EndpointSlice) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Service, b.Service), a.Ready-b.Ready, a.NotReady-b.NotReady)
	})
	slices.SortFunc(c.Slices, func(a, b *DeviceSlice) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Claims, func(a, b *DeviceClaim) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.DeviceClasses, func(a, b *DeviceClass) int { return strings.Compare(a.Name, b.Name) })
	for _, list := range c.Custom {
		slices.SortFunc(list, func(a, b *Custom) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	slices.Sort(c.Namespaces)
	c.Namespaces = slices.Compact(c.Namespaces)
	slices.SortFunc(c.APIKinds, func(a, b APIKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Plural, b.Plural), strings.Compare(a.Version, b.Version))
	})
}

// addRuntimeClasses notes what the API server's admission will add to the pods
// of a template that names a runtime class: what it selects nodes by, and its
// overhead. A DaemonSet's own controller does not look at it.
// Source: kubernetes plugin/pkg/admission/runtimeclass.
func (c *Cluster) addRuntimeClasses() {
	uses := labelUses{}
	for _, w := range c.Workloads {
		class := c.RuntimeClasses[w.Shape.RuntimeClass]
		if class == nil {
			continue
		}
		for key, value := range class.NodeSelector {
			uses.add(key, value, w.Ref())
		}
		if !w.ownOverhead {
			w.Overhead = class.Overhead
		}
	}
	uses.mergeInto(c)
}

// resolveOwners lifts a pod's owner to the top controller that was read: a
// ReplicaSet to its Deployment, a Job to its CronJob.
func (c *Cluster) resolveOwners() {
	byRef := make(map[string]*Workload, len(c.Workloads))
	for _, w := range c.Workloads {
		byRef[w.Ref()] = w
	}
	for _, p := range c.Pods {
		for range 4 { // no real chain is longer
			w := byRef[p.Owner.Kind+"/"+p.Namespace+"/"+p.Owner.Name]
			if w == nil || w.Owner.Kind == "" {
				break
			}
			p.Owner = w.Owner
		}
	}
}

// Workload gives a controller by kind, namespace and name, nil when it was not read.
func (c *Cluster) Workload(kind, namespace, name string) *Workload {
	ref := kind + "/" + namespace + "/" + name
	i, ok := slices.BinarySearchFunc(c.Workloads, ref, func(w *Workload, s string) int { return strings.Compare(w.Ref(), s) })
	if !ok {
		return nil
	}
	return c.Workloads[i]
}
