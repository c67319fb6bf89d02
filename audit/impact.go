package audit

import (
	"gpuaudit/audit/report"
)

// owners are the checks whose node findings own a node's devices, in order: a
// dead node keeps everything from use, so what else is wrong there is caused by it.
var owners = []string{"node-not-ready", "node-cordoned", "admission-failures", "node-recreated", "label-drift", "label-missing"}

// holds keep a part of a node from use.
var holds = map[string]bool{"ghost-hold": true, "stuck-starting": true, "terminating-hold": true, "dead-node-hold": true}

// attribute lets every device count in the impact of one finding only: each
// finding whose devices another one already counts points to that one.
func attribute(findings []report.Finding) {
	byNode := map[string]map[string][]int{} // node, check -> findings
	for i := range findings {
		f := &findings[i]
		if f.Node == "" || f.Devices == 0 {
			continue
		}
		if byNode[f.Node] == nil {
			byNode[f.Node] = map[string][]int{}
		}
		byNode[f.Node][f.Check] = append(byNode[f.Node][f.Check], i)
	}
	for _, checks := range byNode {
		owner := -1
		whole := -1 // an owner that counts charged devices as well, not only free ones
		for rank, name := range owners {
			for _, i := range checks[name] {
				f := &findings[i]
				switch {
				case owner < 0:
					owner = i
				case f.CausedBy == "":
					f.CausedBy = findings[owner].ID
				}
				if rank < 2 && whole < 0 {
					whole = i
				}
			}
		}
		for name, list := range checks {
			if !holds[name] || whole < 0 {
				continue
			}
			for _, i := range list {
				if findings[i].CausedBy == "" {
					findings[i].CausedBy = findings[whole].ID
				}
			}
		}
	}
	present := map[string]bool{}
	for i := range findings {
		present[findings[i].ID] = true
	}
	for i := range findings {
		f := &findings[i]
		if f.CausedBy != "" && !present[f.CausedBy] {
			f.CausedBy = "" // its cause is not among the findings
		}
		f.Impact.Devices = f.Devices
		if f.CausedBy != "" {
			f.Impact.Devices = 0
		}
	}
}
