package capacity

import (
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/pending"
)

// Judge simulates a waiting pod over all nodes, or over the one node that a
// DaemonSet's pod is for. It answers what messages cannot: which nodes match,
// which of them are open, and what those lack.
func (m *Model) Judge(shape *inventory.Shape, target string) pending.Simulation {
	var s pending.Simulation
	lacking, ports := 0, 0
	advertised := map[string]bool{}
	for _, n := range m.nodes {
		for name := range m.survey.Asked(shape) {
			if n.Allocatable[name] > 0 || n.Capacity[name] > 0 {
				advertised[name] = true
			}
		}
		if target != "" && n.Name != target {
			continue
		}
		s.Nodes++
		if !n.matches(shape) {
			continue
		}
		s.Matching++
		f := n.filters(shape)
		if len(f[0])+len(f[1]) > 0 {
			continue
		}
		s.Open++
		switch {
		case len(f[4]) > 0:
			lacking++
		case len(f[3]) > 0:
			ports++
		default:
			s.Fitting++
		}
	}
	s.Lacking = s.Open > 0 && lacking == s.Open
	s.Ports = s.Open > 0 && ports > 0 && lacking+ports == s.Open
	for name, n := range m.survey.Asked(shape) {
		if n > 0 && !advertised[name] && !m.survey.MayBeServed(name) && (s.Missing == "" || name < s.Missing) {
			s.Missing = name
		}
	}
	return s
}
