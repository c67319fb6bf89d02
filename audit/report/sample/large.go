package sample

import (
	"fmt"
	"time"

	"gpuaudit/audit/report"
)

// Large is one cluster of many nodes, most of them full, with the given number
// of findings on nodes that are dead, cordoned, short of devices or without a
// label, and one waiting pod for every third of them.
func Large(nodes, findings int) *report.Report {
	c := healthyCluster("large", nodes, 8)
	lost := map[string][]string{}
	sums := map[string]int64{}
	kinds := []struct{ check, reason, title string }{
		{"node-not-ready", report.LostNotReady, "is not ready"}, {"node-cordoned", report.LostCordoned, "is cordoned"},
		{"label-missing", report.LostLabelMissing, "lacks label node_env"}, {"device-loss", "", "shows fewer devices than it has"},
	}
	for j := range findings {
		n := &c.Nodes[j*nodes/findings]
		kind := kinds[j%len(kinds)]
		d := n.Devices[GPU]
		used := int64(j % 8)
		d.Requested, d.Free = ptr(used), ptr(8-used)
		switch kind.check {
		case "node-not-ready":
			n.Ready, n.Reason, n.Since, d.Held = false, "KubeletNotReady", ago(time.Duration(j+1)*time.Hour), min(used, 1)
		case "node-cordoned":
			n.Cordoned, n.CordonedSince = true, ago(time.Duration(j+1)*time.Hour)
		case "label-missing":
			n.Labels = map[string]string{}
		case "device-loss":
			d.Allocatable, d.Requested, d.Free = 7, ptr(int64(7)), ptr(int64(0))
		}
		n.Devices[GPU] = d
		if kind.reason != "" {
			lost[kind.reason] = append(lost[kind.reason], n.Name)
			sums[kind.reason] += *d.Free
		}
		c.Findings = append(c.Findings, finding(c.Name, report.Finding{
			Check: kind.check, Severity: report.Critical, State: report.StateOngoing, Subject: report.Subject{Kind: "Node", Name: n.Name}, Node: n.Name,
			Title: fmt.Sprintf("Node %s %s: %d cards kept from use", n.Name, kind.title, *d.Free), Detail: "It has been so for longer than the threshold.",
			Since: ago(time.Duration(j+1) * time.Hour), FirstSeen: ago(time.Duration(j) * time.Hour), Devices: *d.Free, Impact: report.Impact{Devices: *d.Free},
			Evidence: []report.Evidence{
				{Object: "Node/" + n.Name, Path: "status.conditions[Ready].status", Value: fmt.Sprint(n.Ready)},
				{Object: "Node/" + n.Name, Path: "status.allocatable[nvidia.com/gpu]", Value: fmt.Sprint(d.Allocatable)},
			},
			Commands: []string{"kubectl --context large describe node " + n.Name, "kubectl --context large get node " + n.Name + " -o yaml --show-managed-fields"},
		}))
		if j%3 == 0 {
			c.Pending = append(c.Pending, report.Pending{
				Namespace: "prod", Name: fmt.Sprintf("train-%04d", j), Since: ago(time.Duration(j) * time.Minute), SchedulerName: "default-scheduler",
				ReportedBy: "default-scheduler", Cause: "capacity", Message: "0/2000 nodes are available: 2000 Insufficient nvidia.com/gpu.", Attempts: int64(j),
				Owner: fmt.Sprintf("Job/prod/train-%d", j/30), Class: "prod", Requests: map[string]string{GPU: "8"},
			})
		}
	}
	c.Devices = []report.Device{device(c.Nodes)}
	k := &c.Classes[0]
	k.ApparentFree, k.PendingPods = *c.Devices[0].Free, ptr(len(c.Pending))
	for _, kind := range kinds {
		if sums[kind.reason] > 0 {
			k.Lost = append(k.Lost, report.Lost{Reason: kind.reason, Devices: sums[kind.reason], Nodes: lost[kind.reason], Step: stepOf(kind.check)})
		}
	}
	k.Schedulable, k.Replicas, k.MaxReplicasNode = k.ApparentFree, 0, 0
	for _, l := range k.Lost {
		k.Schedulable -= l.Devices
	}
	c.Baseline.PendingPods = ptr(len(c.Pending))
	c.Baseline.ReadyNodes = ptr(nodes - len(lost[report.LostNotReady]))
	c.Baseline.CordonedNodes = ptr(len(lost[report.LostCordoned]))
	return build("20260601T010000Z-1a49", finish(c, nil))
}
