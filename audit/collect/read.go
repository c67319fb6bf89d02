package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gpuaudit/audit/inventory"
)

func gitVersion(body []byte) string {
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(body, &v) != nil {
		return ""
	}
	return v.GitVersion
}

func splitGroupVersion(gv string) (group, version string) {
	group, version, found := strings.Cut(gv, "/")
	if !found {
		return "", gv
	}
	return group, version
}

// each runs a read in every namespace that is to be read and notes the gaps.
func (r *reader) each(ctx context.Context, k resource, read func(ctx context.Context, namespace string) error) bool {
	failed := map[string]error{}
	spaces := r.spaces(k)
	for _, ns := range spaces {
		if err := read(ctx, ns); err != nil {
			if ctx.Err() != nil && reason(err) != inventory.GapForbidden {
				err = ctx.Err()
			}
			failed[ns] = err
		}
	}
	r.seen(k, failed, len(spaces))
	return len(failed) == 0
}

// nodes and leases come first: they decide what is kept of the pods.
func (r *reader) nodes(ctx context.Context) {
	c := r.cluster
	r.say("reading nodes")
	core := r.client.typed.CoreV1()
	r.each(ctx, find(inventory.Nodes), func(ctx context.Context, _ string) error {
		return list(ctx, func() pass {
			var nodes []*inventory.Node
			return pass{
				page: func(ctx context.Context, o metav1.ListOptions) (string, error) {
					l, err := core.Nodes().List(ctx, o)
					if err == nil {
						err = mustBeList(l)
					}
					if err != nil {
						return "", err
					}
					for i := range l.Items {
						if err := inventory.NodeAmounts(&l.Items[i]); err != nil {
							return "", err
						}
						nodes = append(nodes, inventory.NodeOf(&l.Items[i]))
					}
					return l.Continue, nil
				},
				commit: func() { c.Nodes = nodes },
			}
		})
	})
	leases := map[string]*inventory.Lease{}
	hasty, cancel := share(ctx)
	defer cancel()
	r.each(hasty, find(inventory.Leases), func(ctx context.Context, ns string) error {
		return read(ctx, func(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
			return r.client.typed.CoordinationV1().Leases(ns).List(ctx, o)
		}, func(l *coordinationv1.LeaseList) int { return len(l.Items) }, func(l *coordinationv1.LeaseList, i int) func() {
			name, lease := l.Items[i].Name, inventory.LeaseOf(&l.Items[i])
			return func() { leases[name] = lease }
		})
	})
	c.SortNodes(leases)
}

func (r *reader) pods(ctx context.Context) {
	pages := podPages{client: r.client.typed.CoreV1().RESTClient()}
	r.each(ctx, find(inventory.Pods), func(ctx context.Context, ns string) error {
		return list(ctx, func() pass {
			p := inventory.NewPodPass(r.cluster, r.shapes)
			return pass{
				page: func(ctx context.Context, o metav1.ListOptions) (string, error) {
					// A page that breaks off half way is asked for again, so nothing of it may be in the pass.
					var pods []*corev1.Pod
					next, err := pages.page(ctx, ns, o, func(pod *corev1.Pod) { pods = append(pods, pod) })
					for _, pod := range pods {
						err = cmp.Or(err, inventory.PodAmounts(pod))
					}
					if err != nil {
						return "", err
					}
					for _, pod := range pods {
						p.Add(pod)
					}
					return next, nil
				},
				commit: p.Commit,
			}
		})
	})
}

// listOf is a typed list of the API.
type listOf interface {
	GetContinue() string
	GetResourceVersion() string
}

// read reads a list, reducing every item at once; the reduced items are put
// into the inventory when the whole list was had.
func read[L listOf](ctx context.Context, get func(context.Context, metav1.ListOptions) (L, error), size func(L) int, item func(L, int) func()) error {
	return list(ctx, func() pass {
		var commits []func()
		return pass{
			page: func(ctx context.Context, o metav1.ListOptions) (string, error) {
				l, err := get(ctx, o)
				if err == nil {
					err = mustBeList(l)
				}
				if err != nil {
					return "", err
				}
				for i := range size(l) {
					if f := item(l, i); f != nil {
						commits = append(commits, f)
					}
				}
				return l.GetContinue(), nil
			},
			commit: func() {
				for _, f := range commits {
					f()
				}
			},
		}
	})
}

// custom reads a kind that is not built in, in the version the server prefers.
func (r *reader) custom(ctx context.Context, k resource, mu *sync.Mutex, take func(*unstructured.Unstructured)) {
	version, there := r.versions[k.plural+"."+k.group]
	c := r.cluster
	if r.discovered && !there {
		mu.Lock()
		defer mu.Unlock()
		if r.broken[k.group] {
			c.SetExtent(k.name, inventory.NotSeen)
			c.AddGap(inventory.Gap{Resource: k.name, Reason: inventory.GapError, Message: "list " + string(k.name) + ": its API group is registered and does not answer"})
			return
		}
		c.SetExtent(k.name, inventory.NotInstalled)
		return
	}
	if version == "" {
		version = k.version
	}
	gvr := schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.plural}
	failed := map[string]error{}
	spaces := r.spaces(k)
	for _, ns := range spaces {
		err := read(ctx, func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			if ns != "" {
				return r.client.dynamic.Resource(gvr).Namespace(ns).List(ctx, o)
			}
			return r.client.dynamic.Resource(gvr).List(ctx, o)
		}, func(l *unstructured.UnstructuredList) int { return len(l.Items) }, func(l *unstructured.UnstructuredList, i int) func() {
			u := l.Items[i]
			return func() { mu.Lock(); defer mu.Unlock(); take(&u) }
		})
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			failed[ns] = err
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(failed) == len(spaces) && !r.discovered {
		for _, err := range failed {
			if apierrors.IsNotFound(err) {
				c.SetExtent(k.name, inventory.NotInstalled)
				return
			}
		}
	}
	r.seen(k, failed, len(spaces))
}

// confirm asks again about pods whose node was not in the list: pods and nodes
// are two lists of two moments.
func (r *reader) confirm(ctx context.Context) {
	c := r.cluster
	if !c.Seen(inventory.Nodes) {
		return
	}
	const most = 50
	asked, there := map[string]bool{}, map[string]bool{}
	kept := c.Pods[:0]
	checked := 0
	for _, p := range c.Pods {
		if p.Node == "" || c.Node(p.Node) != nil {
			kept = append(kept, p)
			continue
		}
		if !asked[p.Node] && len(asked) < most {
			asked[p.Node] = true
			_, err := r.client.typed.CoreV1().Nodes().Get(ctx, p.Node, metav1.GetOptions{})
			there[p.Node] = err == nil
		}
		if there[p.Node] {
			continue // a node that came after the list was made: no orphan
		}
		if checked < most {
			checked++
			got, err := r.client.typed.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || (err == nil && (string(got.UID) != p.UID || done(got))) {
				continue // gone by now
			}
		}
		kept = append(kept, p)
	}
	c.Pods = kept
}

func done(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
