// Package demo tells the recorded incident: three GPU clusters at three
// vendors over four days, as the Kubernetes objects that a dump of them holds.
// Names are shortened; numbers, messages and their order are the real ones.
package demo

import (
	"fmt"
	"time"
)

// Days of the story.
const Days = 4

// Start is the moment of the first day's audit.
var Start = time.Date(2026, 5, 28, 1, 0, 0, 0, time.UTC)

// At is the moment of a day's audit, from 1 to Days.
func At(day int) time.Time { return Start.AddDate(0, 0, day-1) }

// prodNodes are the eleven full nodes of cluster C.
var prodNodes = []string{"uihaekjigl", "uitkiiydfe", "ujlwuw7exp", "uk4xh2k2ji", "ukd7tcmmdk", "ukqaky3d6f", "uljewrj4ah", "525rgh6geb", "52rjchz3vu", "53kgjtadmb", "53w6m3besu"}

const (
	recreated = "ujx4guefbh" // loses its label when its Node object is made again
	dead      = "52ew76fke2"
	scheduler = "x-scheduler"
)

// clusterA has the vendor's own exporter and works.
func clusterA(now time.Time) *scene {
	return healthy("A", now, 18, "gpu-monitor", "vendor-gpu-exporter", "registry.vendor-a.example/gpu-metrics-exporter:2.4", 0.039, 0.07, 0.22)
}

// clusterB has NVIDIA's exporter on every node.
func clusterB(now time.Time) *scene {
	s := healthy("B", now, 36, "monitoring", "dcgm-exporter", "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.5", 0.05, 0.10, 0.20)
	s.service("monitoring", "dcgm-exporter", 9400, names(s))
	return s
}

func names(s *scene) []string {
	out := make([]string, 0, len(s.nodes))
	for i := range s.nodes {
		out = append(out, s.nodes[i].Name)
	}
	return out
}

func healthy(cluster string, now time.Time, count int, namespace, exporter, image string, maxCPU, minMemory, maxMemory float64) *scene {
	s := &scene{cluster: cluster, now: now, namespaces: []string{"default", "kube-system", "prod", namespace}}
	built := Start.AddDate(0, -7, 0)
	for i := range count {
		name := fmt.Sprintf("%s-gpu-%02d", map[string]string{"A": "a", "B": "b"}[cluster], i+1)
		s.node(name, "prod", built, 1)
		share := float64(i) / float64(count-1)
		s.use(name, 0.01+(maxCPU-0.011)*share, minMemory+(maxMemory-minMemory)*share)
		gpus := 8
		if i == count-1 {
			gpus = 4
		}
		p := s.pod(podSpec{namespace: "prod", name: fmt.Sprintf("train-%02d", i), kind: "StatefulSet", owner: "train", node: name, gpus: gpus,
			cpu: "32", memory: "256Gi", selector: map[string]string{"node_env": "prod"}, created: built.AddDate(0, 0, 3)})
		runs(p, built.AddDate(0, 0, 3))
	}
	s.daemonSet(namespace, exporter, image, int32(count), int32(count), built)
	s.cover(namespace, exporter, names(s), built.Add(time.Hour))
	return s
}

// clusterC is the hosted virtual cluster on one of the four days.
func clusterC(now time.Time, day int) *scene {
	s := &scene{cluster: "C", now: now, noMetrics: true, namespaces: []string{"default", "kube-system", "observability", "prod", "shared", "test"}}
	built := Start.AddDate(0, -8, 0)
	began := At(2).Add(-14 * time.Hour) // when the node came back without its label
	s.node("ui7rqebujn", "test", built, 1)
	s.work("test", "ui7rqebujn", 8, map[string]string{"node_env": "test"}, "32", built)
	for i, name := range prodNodes {
		s.node(name, "prod", built, 1)
		cpu := "96"
		if i < 3 {
			cpu = "122" // less than a small pod's cpu is left beside the full cards
		}
		s.work("prod", name, 8, map[string]string{"node_env": "prod"}, cpu, built)
	}
	s.node("ulvq4g3iqi", "test", built, 1)
	s.work("test", "ulvq4g3iqi", 7, map[string]string{"node_env": "test"}, "32", built)
	s.repaired(day, built, began)
	if day < 4 {
		s.die(s.node(dead, "prod", built, 1), At(2).AddDate(0, 0, -155))
	}
	s.daemons(day, built, began)
	if day >= 2 {
		s.waiting(day, began)
	}
	s.service("kube-system", "dcgm-exporter", 9400, nil)
	return s
}

// repaired is the node that was sent to repair and came back as a new object.
func (s *scene) repaired(day int, built, began time.Time) {
	switch day {
	case 1:
		s.node(recreated, "prod", built, 1)
		s.work("prod", recreated, 8, map[string]string{"node_env": "prod"}, "96", built)
	case 2:
		s.node(recreated, "", began, 2)
		for i := range 3 {
			p := s.pod(podSpec{namespace: "shared", name: fmt.Sprintf("notebook-%d", i), kind: "StatefulSet", owner: "notebook", node: recreated, gpus: 1, created: began.Add(time.Hour)})
			runs(p, began.Add(time.Hour))
		}
	case 3:
		s.node(recreated, "", began, 2)
	case 4:
		s.node(recreated, "prod", began, 2)
	}
}

// work runs one large pod on a node.
func (s *scene) work(env, node string, gpus int, selector map[string]string, cpu string, built time.Time) {
	p := s.pod(podSpec{namespace: env, name: "train-" + node, kind: "StatefulSet", owner: "train", node: node, gpus: gpus, cpu: cpu, memory: "512Gi", selector: selector, created: built.AddDate(0, 0, 2)})
	runs(p, built.AddDate(0, 0, 2))
}

// daemons are two DaemonSets; from day 2 on the quota keeps their pods off the
// node that came back.
func (s *scene) daemons(day int, built, began time.Time) {
	var alive []string
	for i := range s.nodes {
		if n := s.nodes[i].Name; n != dead && (n != recreated || day == 1) {
			alive = append(alive, n)
		}
	}
	wanted := int32(len(alive))
	if day > 1 {
		wanted++
	}
	for _, d := range []struct{ namespace, name, image string }{
		{"kube-system", "loongcollector", "registry.example.com/loongcollector:3.1"},
		{"observability", "promtail", "grafana/promtail:2.9.8"},
	} {
		s.daemonSet(d.namespace, d.name, d.image, wanted, int32(len(alive)), built)
		s.cover(d.namespace, d.name, alive, built.Add(time.Hour))
		if day > 1 {
			p := s.pod(podSpec{namespace: d.namespace, name: d.name + "-7zk2p", kind: "DaemonSet", owner: d.name, cpu: "100m", memory: "256Mi", target: recreated, created: began})
			s.event(p, scheduler, "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 QuotaNotSelected", began, 23191)
		}
	}
}

const (
	taskMessage   = "pod group is not ready, 1 Pending, 1 minAvailable, 108 Running, 4 Releasing; Pending: 1 InsufficientQuota"
	clientMessage = "pod group is not ready, 1 minAvailable, 106 Running, 2 Pending, 5 Releasing; Pending: 2 InsufficientQuota"
	nodesMessage  = "0/15 nodes are available: 1 node(s) were unschedulable, 11 Insufficient nvidia.com/gpu, 3 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector."
)

// waiting are the business pods: some held by the scheduler's own quota, one
// of them bound to the dead node, and three that no node takes.
func (s *scene) waiting(day int, began time.Time) {
	for _, w := range []struct{ owner, message string }{{"task-monitor", taskMessage}, {"edit-client", clientMessage}} {
		p := s.pod(podSpec{namespace: "prod", name: w.owner + "-68f9c-xk2lp", kind: "ReplicaSet", owner: w.owner, hash: "68f9c", cpu: "2", memory: "4Gi", created: began})
		s.event(p, scheduler, w.message, began, 23191)
	}
	prod := map[string]string{"node_env": "prod"}
	if day < 4 {
		ghost := s.pod(podSpec{namespace: "prod", name: "inference-5d7b8-xq4vn", kind: "ReplicaSet", owner: "inference", hash: "5d7b8", node: dead, gpus: 1, selector: prod, created: began})
		s.event(ghost, scheduler, taskMessage, began, 23191)
	}
	since := At(2).Add(-6 * time.Minute)
	for i, suffix := range []string{"yd2kf", "yh8rt", "yp5wn"} {
		p := s.pod(podSpec{namespace: "prod", name: "inference-5d7b8-" + suffix, kind: "ReplicaSet", owner: "inference", hash: "5d7b8", gpus: 1, selector: prod, created: since})
		if day == 4 {
			p.Spec.NodeName = recreated
			runs(p, At(4).Add(-5*time.Hour))
			continue
		}
		s.waits(p, scheduler, nodesMessage, since, int32(4+i))
	}
}
