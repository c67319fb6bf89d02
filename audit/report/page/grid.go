package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuaudit/audit/report"
	"gpuaudit/audit/report/outline"
	"gpuaudit/audit/report/plain"
)

// maxCells is up to how many devices of a node are drawn one by one; more, and
// amounts such as memory, are drawn as a bar.
const maxCells = 32

// grid is the picture of a cluster's nodes: one cell a device.
type grid struct {
	// Seen says as whose pods the free devices are judged, by resource.
	Seen          []string
	Legend        []legend
	Boxes         []nodeBox
	Groups        []nodeBox
	LeftOut       int
	WithoutDevice int
}

type legend struct{ Letter, Class, Words string }

type nodeBox struct {
	Name  string
	Facts []string
	Bad   bool
	Rows  []cellRow
	// Count and Names are for a group of nodes that look the same.
	Count int
	Names string
}

type cellRow struct {
	Resource string
	Cells    []cell
	Bar      []segment
	Alt      string
}

type cell struct{ Letter, Class string }

// part is a number of devices of one node in one state.
type part struct {
	n      int64
	letter string
	class  string
	words  string
}

// nodeLoss is why a node's free devices are lost to the class that the picture is for.
type nodeLoss struct {
	reason string
	// devices is how many, -1 when the report tells only the sum over several nodes.
	devices int64
}

type losses struct {
	class  string
	known  bool
	byNode map[string][]nodeLoss
}

func (b *builder) grid(c *report.Cluster) *grid {
	if len(c.Nodes) == 0 {
		return nil
	}
	g := &grid{}
	aliases := map[string]bool{}
	judged := map[string]losses{}
	for i := range c.Devices {
		d := &c.Devices[i]
		aliases[d.Resource] = d.AliasOf != ""
		if d.AliasOf != "" {
			continue
		}
		l := lossesOf(c, d.Resource)
		judged[d.Resource] = l
		if l.known {
			g.Seen = append(g.Seen, fmt.Sprintf("%s as %s pods see them", d.Resource, l.class))
		}
	}
	used := map[string]legend{}
	boxes := b.boxes(c, g, aliases, judged, used)
	if len(boxes) == 0 {
		return nil
	}
	g.divide(boxes, len(c.Nodes))
	for _, key := range slices.SortedFunc(keysOf(used), func(a, b string) int { return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), strings.Compare(a, b)) }) {
		g.Legend = append(g.Legend, used[key])
	}
	return g
}

func (b *builder) boxes(c *report.Cluster, g *grid, aliases map[string]bool, judged map[string]losses, used map[string]legend) []nodeBox {
	troubled := outline.TroubledNodes(c)
	first := map[string]bool{}
	for _, n := range troubled {
		first[n.Name] = true
	}
	order := troubled
	for _, n := range c.Nodes {
		if !first[n.Name] {
			order = append(order, n)
		}
	}
	var out []nodeBox
	for i := range order {
		n := &order[i]
		box := nodeBox{Name: n.Name, Bad: first[n.Name], Count: 1}
		if words, bad := readyText(n, b.now); bad {
			box.Facts = append(box.Facts, words)
		}
		if n.Cordoned {
			box.Facts = append(box.Facts, "cordoned")
		}
		for _, resource := range sortedKeys(n.Devices) {
			d := n.Devices[resource]
			if aliases[resource] || d.Capacity == 0 && d.Allocatable == 0 {
				continue
			}
			row := drawn(d, judged[resource], n.Name, used)
			if len(n.Devices) > 1 {
				row.Resource = resource
			}
			box.Rows = append(box.Rows, row)
		}
		if len(box.Rows) == 0 {
			g.WithoutDevice++
			continue
		}
		out = append(out, box)
	}
	return out
}

// divide shows the nodes one by one when they are few; of many, those in
// trouble one by one and the rest in groups that look the same.
func (g *grid) divide(boxes []nodeBox, nodes int) {
	if nodes <= maxNodeBoxes {
		g.Boxes = boxes
		return
	}
	groups := map[string]*nodeBox{}
	var order []*nodeBox
	members := map[*nodeBox][]string{}
	for i := range boxes {
		box := boxes[i]
		if box.Bad && len(g.Boxes) < maxNodeBoxes {
			g.Boxes = append(g.Boxes, box)
			continue
		}
		key := signature(&box)
		group := groups[key]
		if group == nil {
			group = &nodeBox{Facts: box.Facts, Bad: box.Bad, Rows: box.Rows}
			groups[key] = group
			order = append(order, group)
		}
		group.Count++
		members[group] = append(members[group], box.Name)
	}
	slices.SortStableFunc(order, func(a, b *nodeBox) int { return cmp.Compare(b.Count, a.Count) })
	for i, group := range order {
		if i == maxNodeGroups {
			for _, left := range order[i:] {
				g.LeftOut += left.Count
			}
			break
		}
		group.Names = names(members[group], maxGroupNames)
		g.Groups = append(g.Groups, *group)
	}
}

func signature(box *nodeBox) string {
	parts := slices.Clone(box.Facts)
	for _, r := range box.Rows {
		parts = append(parts, r.Resource, r.Alt)
	}
	return strings.Join(parts, "\x00")
}

// lossesOf finds why nodes' free devices are lost to the most urgent class that wants the resource.
func lossesOf(c *report.Cluster, resource string) losses {
	for _, k := range outline.Classes(c) {
		if k.Resource != resource {
			continue
		}
		out := losses{class: k.Name, known: true, byNode: map[string][]nodeLoss{}}
		free := map[string]int64{}
		for i := range c.Nodes {
			if d, ok := c.Nodes[i].Devices[resource]; ok && d.Free != nil {
				free[c.Nodes[i].Name] = max(0, *d.Free)
			}
		}
		for _, l := range k.Lost {
			var sum int64
			for _, n := range l.Nodes {
				sum += free[n]
			}
			for _, n := range l.Nodes {
				devices := int64(-1)
				exact, known := l.DevicesByNode[n]
				switch {
				case known:
					devices = exact
				case sum == l.Devices:
					devices = free[n]
				case len(l.Nodes) == 1:
					devices = l.Devices
				case l.Reason == report.LostRemainder:
					devices = remainder(free[n], k.Requests[resource])
				}
				out.byNode[n] = append(out.byNode[n], nodeLoss{l.Reason, devices})
			}
		}
		return out
	}
	return losses{}
}

// remainder is what whole replicas leave over, -1 when the request is no plain number.
func remainder(free int64, request string) int64 {
	each, err := strconv.ParseInt(request, 10, 64)
	if err != nil || each < 1 {
		return -1
	}
	return free % each
}

// drawn divides a node's devices into parts and draws them.
func drawn(d report.NodeDevice, l losses, node string, used map[string]legend) cellRow {
	parts := partsOf(d, l, node)
	row := cellRow{}
	total := max(d.Capacity, d.Allocatable)
	words := make([]string, 0, len(parts))
	at := int64(0)
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%d %s", p.n, p.words))
		used[p.class+p.letter] = legend{p.letter, p.class, p.words}
		if total > maxCells {
			row.Bar = append(row.Bar, segment{percent(float64(at), float64(total)), percent(float64(p.n), float64(total)), p.class})
			at += p.n
			continue
		}
		for range p.n {
			row.Cells = append(row.Cells, cell{p.letter, p.class})
		}
	}
	if d.Requested != nil && *d.Requested > d.Allocatable {
		words = append(words, fmt.Sprintf("%d charged beyond what is allocatable", *d.Requested-d.Allocatable))
	}
	row.Alt = strings.Join(words, ", ")
	return row
}

func partsOf(d report.NodeDevice, l losses, node string) []part {
	var out []part
	add := func(n int64, letter, class, words string) int64 {
		if n > 0 {
			out = append(out, part{n, letter, class, words})
		}
		return max(n, 0)
	}
	if d.Requested == nil || d.Free == nil {
		add(d.Allocatable, plain.Unknown, "unknown", "use unknown")
	} else {
		held := min(d.Held, *d.Requested, d.Allocatable)
		add(min(*d.Requested, d.Allocatable)-held, "", "used", "in use")
		add(held, "H", "held", "held by pods that do no work")
		left := min(max(0, *d.Free), d.Allocatable)
		for _, loss := range l.byNode[node] {
			words, class := "free, lost: "+reasonText(loss.reason), "lost"
			n := min(loss.devices, left)
			if loss.devices < 0 {
				n, words, class = left, "free, lost in part: "+reasonText(loss.reason), "part"
			}
			left -= add(n, reasonLetter(loss.reason), class, words)
		}
		if l.known {
			add(left, "✓", "usable", "free and usable")
		} else {
			add(left, "f", "free", "free")
		}
	}
	add(d.Capacity-d.Allocatable, "×", "broken", "not allocatable")
	return out
}

// rankOf orders the legend.
func rankOf(key string) int {
	for i, prefix := range []string{"used", "held", "usable", "free", "lost", "part", "broken", "unknown"} {
		if strings.HasPrefix(key, prefix) {
			return i
		}
	}
	return 9
}
