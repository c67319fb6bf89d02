package outline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/plain"
)

// Wants writes what a class asks for: devices and node labels.
func Wants(k *report.Class) string {
	parts := []string{}
	if q := k.Requests[k.Resource]; q != "" {
		parts = append(parts, q+" "+k.Resource)
	}
	for _, name := range k.NotOffered {
		if name != k.Resource {
			parts = append(parts, k.Requests[name]+" "+name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.NodeSelector)) {
		parts = append(parts, key+"="+k.NodeSelector[key])
	}
	return strings.Join(parts, ", ")
}

// LostDetail writes each loss with its nodes: "7 notReady (52ew76fke2)", or what no node has.
func LostDetail(k *report.Class) string {
	parts := make([]string, len(k.Lost))
	for i, l := range k.Lost {
		parts[i] = fmt.Sprintf("%d %s", l.Devices, l.Reason)
		switch n := len(l.Nodes); {
		case n > 3:
			parts[i] += fmt.Sprintf(" (%s and %d more)", strings.Join(l.Nodes[:2], ", "), n-2)
		case n > 0:
			parts[i] += " (" + strings.Join(l.Nodes, ", ") + ")"
		}
	}
	lost := strings.Join(parts, " + ")
	if none := NotOffered(k); none != "" {
		return strings.TrimSuffix(none+": "+lost, ": ")
	}
	return lost
}

// NotOffered words what the class asks for and no node has, "" for nothing.
func NotOffered(k *report.Class) string {
	if len(k.NotOffered) == 0 {
		return ""
	}
	return "no node has " + strings.Join(k.NotOffered, ", ")
}

// NodeDevices writes used of allocatable for each resource: "1/8, 1 held".
func NodeDevices(n *report.Node) string {
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(n.Devices)) {
		d := n.Devices[resource]
		part := fmt.Sprintf("%s/%d", plain.Number(d.Requested), d.Allocatable)
		if d.Capacity > d.Allocatable {
			part += fmt.Sprintf(" of %d", d.Capacity)
		}
		if d.Held > 0 {
			part += fmt.Sprintf(", %d held idle", d.Held)
		}
		if len(n.Devices) > 1 {
			part += " " + resource
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

// Labels writes a map in the order of its keys: "a=1, b=2".
func Labels(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, key+"="+m[key])
	}
	return strings.Join(parts, ", ")
}

// OwnerText names an owner with its namespace once.
func OwnerText(g *Group) string {
	if strings.Count(g.Owner, "/") > 1 || g.Namespace == "" {
		return g.Owner
	}
	kind, name, ok := strings.Cut(g.Owner, "/")
	if !ok {
		return g.Namespace + "/" + g.Owner
	}
	return kind + "/" + g.Namespace + "/" + name
}

// Use writes the range over nodes: "1.0-5.0%".
func Use(u *report.Utilization) string {
	if u == nil {
		return plain.Unknown
	}
	return strings.TrimSuffix(plain.Percent(u.Min), "%") + "-" + plain.Percent(u.Max)
}

// TopWord says whether kubectl top works on the cluster.
func TopWord(metricsAPI string) string {
	switch metricsAPI {
	case "available":
		return "works"
	case "unavailable":
		return "absent"
	}
	return "unknown"
}

// Words writes an enum of the report: "service without pods". A missing one is unknown.
func Words(enum string) string {
	if enum == "" {
		return "unknown"
	}
	var b strings.Builder
	for _, r := range enum {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// AckText writes why, by whom and until when a finding is accepted.
func AckText(a *report.Ack) string {
	if a == nil {
		return ""
	}
	text := " (" + a.Reason
	if a.By != "" {
		text += ", by " + a.By
	}
	if a.Until != nil {
		text += ", until " + a.Until.UTC().Format("2006-01-02")
	}
	return text + ")"
}
