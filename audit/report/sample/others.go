package sample

import (
	"fmt"
	"time"

	"gpuaudit/audit/report"
)

// Partial has a cluster that could not be reached, one whose pods may not be
// listed, so that nothing about use is known, and one that misses one input.
func Partial() *report.Report {
	return build("20260601T010000Z-77d0", unreachable("lost-site"), blind("no-pods"), limited("no-leases"))
}

func unreachable(name string) report.Cluster {
	c := report.Cluster{
		Name: name, Vendor: "vendor-L", Status: report.Unreachable,
		Error: "get https://10.0.0.1:6443: dial tcp 10.0.0.1:6443: i/o timeout; check the route and the firewall",
		PreviousSnapshot: &report.SnapshotRef{
			Key: "clusters/" + name + "/snapshots/20260530T010000Z-91aa.json.gz", CollectedAt: Now.Add(-2 * day),
		},
		Baseline: report.Baseline{MetricsAPI: "unknown", DeviceMetrics: "unknown", ManagedFields: "unknown"},
		Findings: []report.Finding{finding(name, report.Finding{
			Check: "node-not-ready", Severity: report.Critical, State: report.StateUnverified,
			Subject: report.Subject{Kind: "Node", Name: "gpu-7"}, Node: "gpu-7",
			Title: "Node gpu-7 was not ready when last seen: 8 cards stranded", Detail: "Carried forward: nothing was read in this run.",
			Since: ago(3 * day), FirstSeen: ago(3 * day), Devices: 8, Impact: report.Impact{Devices: 8},
		})},
	}
	c.Findings[0].LastSeen = ago(2 * day)
	limits := map[string]report.CheckOutcome{}
	for _, check := range checkSteps {
		limits[check.id] = report.CheckOutcome{Outcome: report.OutcomeNotEvaluated, Reason: "the cluster was unreachable"}
	}
	for _, resource := range []string{"nodes", "pods", "events"} {
		c.Gaps = append(c.Gaps, report.Gap{
			Resource: resource, Reason: "unreachable", Message: "dial tcp 10.0.0.1:6443: i/o timeout", Checks: []string{"node-not-ready"},
		})
	}
	return finish(c, limits)
}

// blind has nodes but no pods: every number that needs pods is null.
func blind(name string) report.Cluster {
	c := healthyCluster(name, 4, 8)
	c.Status = report.Partial
	c.Comparison = "the kube-system namespace has another UID than in the snapshot before: another cluster under the same name"
	c.PreviousSnapshot = nil
	needPods := []string{"pending-unschedulable", "ghost-hold", "stuck-starting", "terminating-hold", "dead-node-hold", "orphan-pod"}
	c.Gaps = []report.Gap{{
		Resource: "pods", Reason: "forbidden", Checks: needPods,
		Message: `pods is forbidden: User "audit" cannot list resource "pods" in API group "" at the cluster scope`,
	}}
	for i := range c.Nodes {
		d := c.Nodes[i].Devices[GPU]
		d.Requested, d.Free = nil, nil
		c.Nodes[i].Devices[GPU] = d
	}
	c.Nodes[3].Ready, c.Nodes[3].Reason, c.Nodes[3].Since = "unknown", "NodeStatusUnknown", ago(50*time.Minute)
	c.Devices = []report.Device{{
		Resource: GPU, Source: "plugin", Unit: "card", Vendor: "NVIDIA", Capacity: 32, Allocatable: 32, PhysicalNote: "no label counts the cards",
	}}
	c.Classes, c.Baseline.Pods, c.Baseline.PendingPods = nil, nil, nil
	c.Baseline.ReadyNodes = ptr(3)
	c.Baseline.MetricsAPI, c.Baseline.DeviceMetrics = "unknown", "unknown"
	c.Findings = []report.Finding{finding(name, report.Finding{
		Check: "node-not-ready", Severity: report.Critical, State: report.StateNew,
		Subject: report.Subject{Kind: "Node", Name: c.Nodes[3].Name}, Node: c.Nodes[3].Name,
		Title: "Node " + c.Nodes[3].Name + " is not ready since 50m: 8 cards stranded", Detail: "Ready is Unknown.",
		Since: ago(50 * time.Minute), Devices: 8, Impact: report.Impact{Devices: 8},
		Commands: []string{"kubectl --context " + name + " describe node " + c.Nodes[3].Name},
	})}
	limits := map[string]report.CheckOutcome{}
	for _, id := range needPods {
		limits[id] = report.CheckOutcome{Outcome: report.OutcomeNotEvaluated, Reason: "pods: forbidden"}
	}
	return finish(c, limits)
}

// limited has a resolved and an acknowledged finding and works without leases.
func limited(name string) report.Cluster {
	c := healthyCluster(name, 6, 8)
	c.Gaps = []report.Gap{{Resource: "leases", Namespace: "kube-node-lease", Reason: "notCollected", Message: "no leases.json", Checks: []string{"node-not-ready"}}}
	gone := report.Subject{Kind: "Node", Name: "gpu-old-1"}
	c.Findings = []report.Finding{
		finding(name, report.Finding{
			Check: "audit-trail", Severity: report.Info, State: report.StateAcknowledged, Subject: report.Subject{Kind: "Cluster", Name: name},
			Title: "managedFields are stripped: nobody can tell who changed a label", Since: ago(9 * day), SinceAtLeast: true, FirstSeen: ago(9 * day),
			Ack: &report.Ack{Reason: "the vendor's gateway drops them", By: "ops", At: Now.Add(-8 * day), Until: ptr(Now.Add(30 * day))},
		}),
		finding(name, report.Finding{
			Check: "node-not-ready", Severity: report.Critical, State: report.StateResolved, Subject: gone, Node: gone.Name,
			Title: "Node gpu-old-1 is not ready: 8 cards stranded", Since: ago(5 * day), FirstSeen: ago(4 * day),
			ResolvedAt: ptr(Now), Resolution: "node removed", Devices: 8,
		}),
	}
	c.Churn = report.Churn{Added: []string{}, Removed: []string{"gpu-old-1"}}
	return finish(c, map[string]report.CheckOutcome{
		"node-not-ready": {Outcome: report.OutcomeLimited, Reason: "leases were not seen: silence is judged by the Ready condition alone"},
	})
}

// HostileTexts are values that a cluster's objects may hold and that must stay
// text in every medium: markup, links, mentions, shell, terminal and bidi
// control, invalid UTF-8, and much of it.
var HostileTexts = []string{
	"<script>alert(1)</script>",
	"a|b|c\n# heading\n* item",
	"```\nfence\n````",
	"[click](javascript:alert(1)) <http://evil.example|here> <!channel> @channel @here",
	"\x1b[31mred\x1b]0;title\x07\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
	"abc\u202egnp.exe\u2066x\u2069\u200f",
	"'; rm -rf / #$(reboot)`reboot`",
	"-o yaml --kubeconfig=/tmp/x",
	"bad\xff\xfeutf8\x00nul",
	"\"><img src=x onerror=alert(1)>&amp;{{.}}${x}",
	"\u200b\ufeff\u00ad zero\u2028width\u2029lines\u0085",
	"zalgo: e\u0301\u0302\u0303\u0304\u0305 \U0001F468\u200d\U0001F469\u200d\U0001F467 \U0001F1E9\U0001F1EA",
}

// Hostile has hostile text wherever a report carries text from a cluster.
func Hostile() *report.Report { return Saying(HostileTexts...) }

// Saying has the given texts, one at least, wherever a report carries text from
// a cluster.
func Saying(texts ...string) *report.Report {
	c := clusterC()
	c.Name = "C<b>|`x`"
	text := func(i int) string { return texts[i%len(texts)] }
	c.Vendor, c.ServerVersion, c.Comparison = text(0), text(1), text(4)
	c.Notes = append([]string{}, texts...)
	for i := range c.Gaps {
		c.Gaps[i].Message, c.Gaps[i].Accepted = text(i+4), false
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Name, n.Reason, n.Taints = text(i), text(i+1), []string{text(i + 2)}
		n.Labels = map[string]string{text(i + 3): text(i + 4)}
	}
	for i := range c.Pending {
		p := &c.Pending[i]
		p.Namespace, p.Name, p.Owner, p.Message = text(i), text(i+1), "Deployment/"+text(i+5), text(i+3)
		p.Reasons, p.ReportedBy, p.TargetNode = []string{text(i + 6)}, text(i+7), text(i+8)
	}
	for i := range c.Classes {
		k := &c.Classes[i]
		k.Name, k.NodeSelector, k.Owners = text(i+4), map[string]string{text(i): text(i + 1)}, []string{text(i + 2)}
		for j := range k.Lost {
			k.Lost[j].Nodes, k.Lost[j].Detail = []string{text(j), text(j + 4)}, text(j+1)
		}
	}
	c.Findings = nil
	for i := range HostileTexts {
		t := text(i)
		c.Findings = append(c.Findings, finding(c.Name, report.Finding{
			Check: checkSteps[i].id, Severity: report.Critical, State: report.StateNew, Node: t, Label: t,
			Subject: report.Subject{Kind: "Pod", Namespace: text(i + 1), Name: t}, Title: "Pod " + t, Detail: text(i+2) + " " + t,
			Since: ago(time.Duration(i) * time.Hour), Devices: int64(i), Impact: report.Impact{Devices: int64(i)},
			Evidence: []report.Evidence{{Object: "Pod/" + t, Path: text(i + 3), Value: t}},
			Commands: []string{"kubectl get pod"}, Objects: []string{t, text(i + 4)}, Link: "javascript:alert(1)//" + t,
		}))
	}
	c.Repairs = []report.Repair{{Finding: c.Findings[11].ID, Action: text(4), Devices: 11, Order: 1, Gains: []report.Gain{{Class: text(4), Devices: 11}}}}
	c.Checks = nil
	c = finish(c, nil)
	lost := unreachable("lost\n\x1b[2J<!here>")
	lost.Error = text(4) + text(0)
	return build("20260601T010000Z-bad0", c, lost)
}

// Many has the given number of clusters and findings a cluster.
func Many(clusters, findings int) *report.Report {
	var all []report.Cluster
	for i := range clusters {
		name := fmt.Sprintf("site-%03d", i+1)
		c := healthyCluster(name, 12, 3)
		states := []report.State{report.StateNew, report.StateOngoing, report.StateOngoing, report.StateAcknowledged}
		severities := []report.Severity{report.Critical, report.Warning, report.Info}
		for j := range findings {
			n := fmt.Sprintf("gpu-%s-%03d", name, j+1)
			devices := int64((findings - j) % 9)
			c.Findings = append(c.Findings, finding(name, report.Finding{
				Check: "node-not-ready", Severity: severities[j*3/findings], State: states[j%len(states)],
				Subject: report.Subject{Kind: "Node", Name: n}, Node: n,
				Title: fmt.Sprintf("Node %s is not ready since %dh: %d cards stranded", n, j+1, devices), Detail: "Ready is Unknown.",
				Since: ago(time.Duration(j+1) * time.Hour), FirstSeen: ago(time.Duration(j) * time.Hour),
				Devices: devices, Impact: report.Impact{Devices: devices},
				Commands: []string{"kubectl --context " + name + " describe node " + n},
			}))
		}
		all = append(all, finish(c, nil))
	}
	return build("20260601T010000Z-many", all...)
}

// Chinese is the incident's cluster C with Chinese names and messages.
func Chinese() *report.Report {
	c := clusterC()
	c.Name, c.Vendor = "上海-推理集群", "某云厂商"
	c.Classes[1].Name = "生产环境"
	c.Classes[1].NodeSelector = map[string]string{"环境": "生产"}
	for i := range c.Repairs {
		for j := range c.Repairs[i].Gains {
			if c.Repairs[i].Gains[j].Class == "prod" {
				c.Repairs[i].Gains[j].Class = "生产环境"
			}
		}
	}
	c.Repairs[0].Action = "请厂商修复或移除节点 52ew76fke2"
	for i := range c.Pending {
		if c.Pending[i].Class != "" {
			c.Pending[i].Class = "生产环境"
		}
		if c.Pending[i].Cause == "quota" {
			c.Pending[i].Message = "配额不足：命名空间的资源配额已用尽，等待调度器释放配额"
		}
	}
	c.Findings[0].Title = "节点 52ew76fke2 未就绪已 155 天：8 张卡无法使用"
	c.Findings[0].Detail = "其中 7 张空闲，1 张被一个从未启动的 Pod 占用；该节点同时被封锁，新的业务 Pod 无法调度到这里。"
	c.Findings[1].Title = "节点 ujx4guefbh 被重建，丢失标签 node_env=prod：5 张空闲卡不可用"
	return build("20260601T010000Z-c4e1", c)
}
