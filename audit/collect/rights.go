package collect

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"gpuaudit/audit/health"
	"gpuaudit/audit/inventory"
	"gpuaudit/audit/settings"
)

// Health of the connection to a cluster, for the doctor.
type Health struct {
	Err           string
	ServerVersion string
	ServerTime    time.Time
	Skew          time.Duration
	// Missing are rights that an audit needs and has not, in words.
	Missing []string
	// Platform says what kind of cluster this looks like.
	Platform string
}

// Examine tries a cluster: reach, credentials, every needed right by
// SelfSubjectAccessReviews, server time, marks of virtual clusters.
func Examine(ctx context.Context, t Target) Health {
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	var h Health
	client, err := connect(ctx, t)
	if err != nil {
		h.Err = client.redact(short(err))
		return h
	}
	version, err := client.typed.Discovery().(*discovery.DiscoveryClient).RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil && reason(err) != inventory.GapForbidden {
		h.Err = client.redact(networkWords(err))
		return h
	}
	h.ServerVersion = gitVersion(version)
	h.ServerTime, h.Skew = client.guard.serverTime()
	r := &reader{target: t}
	for _, k := range table {
		if !k.builtin {
			continue
		}
		for _, ns := range r.spaces(k) {
			allowed, err := client.allowed(ctx, k, ns)
			switch {
			case err != nil:
				h.Missing = append(h.Missing, fmt.Sprintf("whether list %s is allowed is not known: %s", k.name, client.redact(short(err))))
			case !allowed:
				h.Missing = append(h.Missing, fmt.Sprintf("list %s%s is not allowed", k.name, scopeWords(k, ns)))
			}
		}
	}
	h.Platform = client.platform(ctx)
	return h
}

func scopeWords(k resource, ns string) string {
	switch {
	case ns != "":
		return " in namespace " + ns
	case k.namespaced:
		return " in all namespaces"
	}
	return ""
}

func (c *client) allowed(ctx context.Context, k resource, namespace string) (bool, error) {
	review, err := c.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: k.group, Resource: k.plural}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// platform looks at a page of nodes for marks of virtual clusters.
func (c *client) platform(ctx context.Context) string {
	list, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return ""
	}
	seen := &inventory.Cluster{CollectedAt: time.Unix(0, 0)}
	for i := range list.Items {
		seen.Nodes = append(seen.Nodes, inventory.NodeOf(&list.Items[i]))
	}
	seen.SortNodes(nil)
	v := health.Judge(seen, settings.DefaultThresholds())
	if len(v.Virtual) > 0 {
		return fmt.Sprintf("looks like a virtual cluster (%s): free devices are an upper bound here", v.Virtual[0])
	}
	return ""
}
