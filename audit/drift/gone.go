package drift

import (
	"sort"
	"strconv"
	"time"

	"gpuaudit/audit/health"
	"gpuaudit/audit/snapshot"
)

// youngPool is the age under which a node of a managed pool may go again
// without being missed.
const youngPool = 7 * 24 * time.Hour

// missing finds the nodes that are gone, and tells daily churn from a loss.
func (c *comparison) missing() {
	now := c.Cluster.CollectedAt
	grown := map[string]bool{}
	for _, name := range c.result.Added {
		if p := pool(c.Health.Node(name).Labels); p != "" {
			grown[p] = true
		}
	}
	for _, old := range c.Previous.Nodes {
		if c.Health.Node(old.Name) != nil {
			continue
		}
		c.result.Removed = append(c.result.Removed, old.Name)
		g := snapshot.Gone{Node: old, LastSeen: *c.Previous.NodesAt, FirstMissed: now,
			Churn: c.churn(old, grown, now), Removed: old.Ready != "True" || old.Silent}
		g.Node.Labels = c.withLost(old)
		c.result.Gone = append(c.result.Gone, g)
	}
	for _, g := range c.Previous.Gone {
		if c.Health.Node(g.Node.Name) == nil && now.Sub(g.FirstMissed) < rememberGone {
			c.result.Gone = append(c.result.Gone, g)
		}
	}
	sort.Slice(c.result.Gone, func(i, j int) bool { return c.result.Gone[i].Node.Name < c.result.Gone[j].Node.Name })
	sort.Strings(c.result.Added)
	sort.Strings(c.result.Removed)
	sort.Slice(c.result.Recreated, func(i, j int) bool { return c.result.Recreated[i].Node < c.result.Recreated[j].Node })
}

// withLost gives a going node's labels together with those that it had lost
// and never got back: they are expected of it when it returns.
func (c *comparison) withLost(n snapshot.Node) map[string]string {
	out := map[string]string{}
	for k, v := range n.Labels {
		out[k] = v
	}
	for _, l := range c.Previous.Losses {
		if l.Node == n.Name && l.What == snapshot.LostLabel {
			out[l.Key] = l.Value
		}
	}
	return out
}

func (c *comparison) churn(n snapshot.Node, grown map[string]bool, now time.Time) bool {
	if n.Kind == string(health.Fake) || n.Kind == string(health.Elastic) || autoscaled(n.Labels, c.Settings.Thresholds.ChurnWithLabel) {
		return true
	}
	if p := pool(n.Labels); p != "" {
		return grown[p] || now.Sub(n.Created) < youngPool
	}
	return false
}

func amount(n int64) string { return strconv.FormatInt(n, 10) }

func parseAmount(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
