package table

import (
	"fmt"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// wideEnough is the width from which one table holds all of a cluster's figures.
const wideEnough = 140

// clusters writes the clusters side by side: one table when it fits, else one
// of capacity and one of what is measured.
func (p *printer) clusters(r *report.Report) {
	if len(r.Clusters) == 0 {
		return
	}
	p.section("CLUSTERS")
	name := column{title: "CLUSTER", min: 8}
	capacity := []column{
		{title: "READY", right: true}, {title: "CORDONED", right: true}, {title: "DEVICES", min: 7},
		{title: "TOTAL", right: true}, {title: "REQUESTED", right: true}, {title: "FREE", right: true}, {title: "USABLE", right: true},
	}
	measured := []column{
		{title: "STATUS"}, {title: "CPU USE", right: true}, {title: "MEMORY", right: true}, {title: "KUBECTL TOP", min: 7, wrap: true},
		{title: "DEVICE METRICS", min: 8, wrap: true}, {title: "WAITING", right: true}, {title: "GAPS", right: true},
	}
	var left, right, all [][]cell
	for i := range r.Clusters {
		c := &r.Clusters[i]
		b := measuredCells(c)
		right = append(right, append(cells(c.Name), b...))
		for j, a := range capacityRows(c) {
			who, rest := c.Name, b
			if j > 0 {
				who, rest = "", cells("", "", "", "", "", "", "")
			}
			left = append(left, append(cells(who), a...))
			all = append(all, append(append(cells(who), a...), rest...))
		}
	}
	if p.width >= wideEnough {
		p.grid(append(append([]column{name}, capacity...), measured...), all)
	} else {
		p.grid(append([]column{name}, capacity...), left)
		p.raw("")
		p.grid(append([]column{name}, measured...), right)
	}
	p.text("  ", "USABLE: what the most urgent class of workload can get. REQUESTED is not real use.", dim)
	if accepted(r) {
		p.text("  ", "GAPS (+n): n more that the configuration accepts.", dim)
	}
	if upperBound(r) {
		p.text("  ", "≤: at most; a virtual cluster or a shared card hides what others use.", dim)
	}
}

func accepted(r *report.Report) bool {
	for i := range r.Clusters {
		for j := range r.Clusters[i].Gaps {
			if r.Clusters[i].Gaps[j].Accepted {
				return true
			}
		}
	}
	return false
}

func upperBound(r *report.Report) bool {
	for i := range r.Clusters {
		for j := range r.Clusters[i].Devices {
			if r.Clusters[i].Devices[j].UpperBound {
				return true
			}
		}
	}
	return false
}

func statusCell(s report.Status) cell {
	switch s {
	case report.Unreachable:
		return cell{"UNREACHABLE", red}
	case report.Partial:
		return cell{"PARTIAL", yellow}
	}
	return cell{text: string(s)}
}

// capacityRows are one row for each device resource of a cluster.
func capacityRows(c *report.Cluster) [][]cell {
	ready := plain.Number(c.Baseline.ReadyNodes) + "/" + plain.Number(c.Baseline.Nodes)
	if c.Baseline.Nodes == nil {
		ready = plain.Unknown
	}
	readyCell := cell{text: ready}
	if c.Baseline.ReadyNodes != nil && c.Baseline.Nodes != nil && *c.Baseline.ReadyNodes < *c.Baseline.Nodes {
		readyCell.colour = yellow
	}
	first := []cell{readyCell, {text: plain.Number(c.Baseline.CordonedNodes)}}
	var rows [][]cell
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.AliasOf != "" {
			continue
		}
		if len(rows) > 0 {
			first = cells("", "")
		}
		free := plain.Number(d.Free)
		if d.Free != nil {
			free = outline.AtMost(d.UpperBound) + free
		}
		row := append([]cell{}, first...)
		row = append(row, cells(d.Resource, fmt.Sprint(d.Allocatable), plain.Number(d.Requested), free)...)
		rows = append(rows, append(row, usableCell(c, d)))
	}
	if len(rows) == 0 {
		device, none := "none", "0"
		if c.Status == report.Unreachable || c.Baseline.Nodes == nil {
			device, none = plain.Unknown, plain.Unknown
		}
		return [][]cell{append(first, cells(device, none, none, none, none)...)}
	}
	return rows
}

// usableCell is what the most urgent class of a resource can get of its free devices.
func usableCell(c *report.Cluster, d *report.Device) cell {
	for _, k := range outline.Classes(c) {
		if k.Resource != d.Resource {
			continue
		}
		out := cell{text: fmt.Sprintf("%s%d %s", outline.AtMost(k.UpperBound && k.Schedulable > 0), k.Schedulable, plain.CutMiddle(plain.Line(k.Name), 12))}
		if k.Schedulable == 0 && k.ApparentFree > 0 {
			out.colour = red
		}
		return out
	}
	return cell{text: plain.Unknown}
}

func measuredCells(c *report.Cluster) []cell {
	b := &c.Baseline
	rest := cells(outline.Use(b.CPUUtilization), outline.Use(b.MemoryUtilization), outline.TopWord(b.MetricsAPI), outline.Words(b.DeviceMetrics),
		plain.Number(b.PendingPods), outline.Gaps(c))
	return append([]cell{statusCell(c.Status)}, rest...)
}
