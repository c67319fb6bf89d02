package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"gpuaudit/audit/inventory"
)

// DefaultTimeout of one cluster's read.
const DefaultTimeout = 5 * time.Minute

// Progress is told what a read is doing; nil is told nothing. It may be called
// from several goroutines at once.
type Progress func(cluster, doing string)

// All reads clusters side by side, as many at once as parallelism says. The
// result has the targets' order; a dead cluster costs its own deadline only.
func All(ctx context.Context, targets []Target, parallelism int, progress Progress) []*inventory.Cluster {
	if parallelism < 1 {
		parallelism = 1
	}
	out := make([]*inventory.Cluster, len(targets))
	slots := make(chan struct{}, parallelism)
	var wg sync.WaitGroup
	for i, t := range targets {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i] = Cluster(ctx, t, progress)
		})
	}
	wg.Wait()
	return out
}

// Cluster reads one cluster under its own deadline. It never fails: what could
// not be read is a gap, and Err is set when nothing was.
func Cluster(ctx context.Context, t Target, progress Progress) *inventory.Cluster {
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	c := &inventory.Cluster{
		Name: t.Name, Source: inventory.Live, Custom: map[inventory.Resource][]*inventory.Custom{}, ListedNamespaces: t.Namespaces,
		RuntimeClasses: map[string]*inventory.RuntimeClass{},
	}
	r := &reader{target: t, cluster: c, progress: progress, shapes: inventory.NewShapes(), events: inventory.NewEventPass(), served: map[string]bool{}, broken: map[string]bool{}, versions: map[string]string{}}
	r.templates = inventory.NewTemplates(r.shapes)
	client, err := connect(ctx, t)
	if err != nil {
		if ctx.Err() != nil && reason(err) != inventory.GapCredentials {
			err = ctx.Err()
		}
		r.unreachable(err)
		return c
	}
	r.client = client
	r.read(ctx)
	return c
}

// reader reads one cluster.
type reader struct {
	target    Target
	client    *client
	cluster   *inventory.Cluster
	progress  Progress
	shapes    *inventory.Shapes
	templates *inventory.Templates
	events    *inventory.EventPass
	workloads []*inventory.Workload
	// served groups by discovery, broken ones whose discovery failed, and the
	// version of each plural.group that the server prefers.
	served, broken map[string]bool
	versions       map[string]string
	discovered     bool
}

func (r *reader) say(doing string) {
	if r.progress != nil {
		r.progress(r.target.Name, doing)
	}
}

func (r *reader) read(ctx context.Context) {
	c := r.cluster
	r.say("connecting")
	version, err := r.version(ctx)
	if err != nil && !answered(err) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		r.unreachable(err)
		return
	}
	c.ServerVersion = gitVersion(version)
	c.CollectedAt, c.ClientSkew = r.client.guard.serverTime()
	r.discover(ctx)
	r.nodes(ctx)
	r.say("reading pods")
	r.pods(ctx)
	r.say("reading workloads, events and quotas")
	r.rest(ctx)
	r.templates.Commit(c, r.workloads)
	r.confirm(ctx)
	r.events.Commit(c)
	r.finish()
}

// version asks for the server's version, the first thing that it is asked for.
func (r *reader) version(ctx context.Context) (body []byte, err error) {
	err = again(ctx, func() error {
		body, err = r.client.typed.Discovery().(*discovery.DiscoveryClient).RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		return err
	})
	return body, err
}

// answered is true for the failure of a server that is there, and knows who we
// are: then its lists are asked for, whatever it said to something else.
func answered(err error) bool {
	switch reason(err) {
	case inventory.GapForbidden, inventory.GapExpired, inventory.GapError:
		return true
	}
	return false
}

// share bounds what a read may take of the time left that others do not need:
// one that hangs must not cost them theirs.
func share(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/4)
}

// finish decides whether anything was seen at all. A server that refuses every
// read was reached, and says what is missing: its cluster is partial.
func (r *reader) finish() {
	c := r.cluster
	if c.Usage == nil && c.Extent(inventory.NodeMetrics) == inventory.SeenWhole {
		c.Usage = map[string]inventory.Usage{} // it answers, and has no figures
	}
	c.Finish()
	for _, k := range table {
		switch c.Extent(k.name) {
		case inventory.SeenWhole, inventory.SeenSome, inventory.SeenListed:
			return
		}
	}
	refused := !slices.ContainsFunc(c.Gaps, func(g inventory.Gap) bool { return g.Reason != inventory.GapForbidden })
	if len(c.Gaps) > 0 && !refused {
		g := c.Gaps[0]
		for _, other := range c.Gaps {
			if other.Resource == inventory.Nodes {
				g = other
			}
		}
		c.Err = &g
	}
}

// unreachable gives every resource the same gap.
func (r *reader) unreachable(err error) {
	c := r.cluster
	if c.CollectedAt.IsZero() {
		if r.client != nil {
			c.CollectedAt, _ = r.client.guard.serverTime()
		} else {
			c.CollectedAt = time.Now().UTC().Truncate(time.Second)
		}
	}
	why := reason(err)
	message := ""
	switch why {
	case inventory.GapCredentials:
		message = r.client.redact(short(err))
	case inventory.GapTimeout:
		message = fmt.Sprintf("no answer within %s; is the address right, and does a firewall drop the packets?", r.target.Timeout)
	case inventory.GapUnreachable:
		message = r.client.redact(networkWords(err))
	default:
		message = r.client.redact(short(err))
	}
	c.Err = &inventory.Gap{Resource: "cluster", Reason: why, Message: message}
	for _, k := range table {
		if k.builtin {
			c.SetExtent(k.name, inventory.NotSeen)
			c.AddGap(inventory.Gap{Resource: k.name, Reason: why, Message: message})
		}
	}
}

// discover finds out which kinds the server has. A group whose discovery fails
// is known to be there and to be broken; the others are kept.
func (r *reader) discover(ctx context.Context) {
	c := r.cluster
	type answer struct {
		lists []*metav1.APIResourceList
		err   error
	}
	ctx, cancel := share(ctx)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		var got answer
		got.err = again(ctx, func() (err error) {
			got.lists, err = r.client.typed.Discovery().ServerPreferredResources()
			if err == nil {
				err = builtinKinds(got.lists)
			}
			return err
		})
		done <- got
	}()
	var got answer
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = ctx.Err()
	}
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(got.err); ok {
		for gv := range failed {
			r.broken[gv.Group] = true
		}
		got.err = nil
	}
	if got.err != nil {
		c.SetExtent(inventory.Discovery, inventory.NotSeen)
		c.AddGap(inventory.Gap{Resource: inventory.Discovery, Reason: reason(got.err), Message: r.client.words(got.err, "read the server's kinds", r.target.Timeout/4)})
		return
	}
	r.discovered = true
	c.SetExtent(inventory.Discovery, inventory.SeenWhole)
	for _, list := range got.lists {
		gv := list.GroupVersion
		group, version := splitGroupVersion(gv)
		r.served[group] = true
		for _, res := range list.APIResources {
			c.APIKinds = append(c.APIKinds, inventory.APIKind{Group: group, Version: version, Kind: res.Kind, Plural: res.Name, Namespaced: res.Namespaced})
			r.versions[res.Name+"."+group] = version
		}
	}
	c.MetricsServed = inventory.No
	if r.served["metrics.k8s.io"] || r.broken["metrics.k8s.io"] {
		c.MetricsServed = inventory.Yes
	}
}

// builtinKinds fails for an answer that does not name what every API server
// has. The client library takes a refused discovery for an empty one.
func builtinKinds(lists []*metav1.APIResourceList) error {
	has := map[string]bool{}
	for _, list := range lists {
		group, _ := splitGroupVersion(list.GroupVersion)
		for _, res := range list.APIResources {
			has[res.Name+"."+group] = true
		}
	}
	if !has["nodes."] || !has["daemonsets.apps"] {
		return errors.New("the server's list of kinds lacks what every API server has; it is refused, or something before the server hides it")
	}
	return nil
}

// seen notes how much of a resource was read, from the errors of its reads by namespace.
func (r *reader) seen(k resource, failed map[string]error, tried int) {
	c := r.cluster
	for namespace, err := range failed {
		g := inventory.Gap{Resource: k.name, Reason: reason(err), Message: r.client.explain(err, k, namespace, r.target.Timeout)}
		if namespace != "" && k.only == "" {
			g.Namespace = namespace
		}
		c.AddGap(g)
	}
	listed := len(r.target.Namespaces) > 0 && k.namespaced && k.only == ""
	switch {
	case len(failed) == tried:
		c.SetExtent(k.name, inventory.NotSeen)
	case len(failed) > 0:
		c.SetExtent(k.name, inventory.SeenSome)
	case listed:
		c.SetExtent(k.name, inventory.SeenListed)
	default:
		c.SetExtent(k.name, inventory.SeenWhole)
	}
}

// spaces are the namespaces to read a kind in; "" is all of them at once.
func (r *reader) spaces(k resource) []string {
	switch {
	case k.only != "":
		return []string{k.only}
	case k.namespaced && len(r.target.Namespaces) > 0:
		return r.target.Namespaces
	}
	return []string{""}
}
