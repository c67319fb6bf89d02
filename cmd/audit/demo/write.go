package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write writes a day's dump of the three clusters into a folder.
func Write(dir string, day int) error {
	if day < 1 || day > Days {
		return fmt.Errorf("the story has days 1 to %d, not %d", Days, day)
	}
	now := At(day)
	for _, s := range []*scene{clusterA(now), clusterB(now), clusterC(now, day)} {
		if err := s.write(filepath.Join(dir, s.cluster)); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the story: %w", err)
	}
	var spaces []corev1.Namespace
	for _, name := range s.namespaces {
		spaces = append(spaces, corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid(s.cluster, "namespace", name), CreationTimestamp: at(Start.AddDate(-1, 0, 0))}})
	}
	files := map[string]any{
		"nodes": s.nodes, "leases": s.leases, "pods": s.pods, "daemonsets": s.sets, "events": s.events, "services": s.services,
		"endpointslices": s.slices, "namespaces": spaces, "resourcequotas": []corev1.ResourceQuota{}, "nodes.metrics.k8s.io": s.metrics,
	}
	for name, items := range files {
		if err := writeList(filepath.Join(dir, name+".json"), items); err != nil {
			return err
		}
	}
	return nil
}

// writeList writes a List as kubectl get -o json does.
func writeList(file string, items any) error {
	raw, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("write the story: %w", err)
	}
	if string(raw) == "null" {
		raw = []byte("[]")
	}
	body, err := json.MarshalIndent(struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Items      json.RawMessage `json:"items"`
	}{"v1", "List", raw}, "", " ")
	if err != nil {
		return fmt.Errorf("write the story: %w", err)
	}
	if err := os.WriteFile(file, append(body, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the story: %w", err)
	}
	return nil
}

// Objects are the objects of one cluster on one day, for tests that put them
// on a real API server.
type Objects struct {
	Nodes  []corev1.Node
	Pods   []corev1.Pod
	Events []corev1.Event
}

// ClusterC gives the hosted virtual cluster's objects on a day.
func ClusterC(day int) Objects {
	s := clusterC(At(day), day)
	return Objects{Nodes: s.nodes, Pods: s.pods, Events: s.events}
}
