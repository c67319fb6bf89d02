package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"gpuaudit/audit/collect/wire"
)

// podPages reads pages of pods. Pods are by far the most bytes of a cluster, so
// their pages are not decoded whole: one body is kept and used again for every
// page, and each pod is decoded without what no check looks at.
type podPages struct {
	client rest.Interface
	body   bytes.Buffer
}

// page reads one page and hands its pods out one by one.
func (p *podPages) page(ctx context.Context, namespace string, o metav1.ListOptions, each func(*corev1.Pod)) (next string, err error) {
	request := p.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource("pods").Param("limit", strconv.FormatInt(o.Limit, 10))
	if o.Continue != "" {
		request = request.Param("continue", o.Continue)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	p.body.Reset()
	_, err = p.body.ReadFrom(stream)
	if err = errors.Join(err, stream.Close()); err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	next, err = wire.List(p.body.Bytes(), "PodList", wire.Pod, func(item []byte) error {
		var pod corev1.Pod
		if err := pod.Unmarshal(item); err != nil {
			return err
		}
		each(&pod)
		return nil
	})
	if errors.Is(err, wire.ErrNotProtobuf) {
		return jsonPods(p.body.Bytes(), each)
	}
	return next, err
}

// jsonPods reads a page of a server, or of something before it, that speaks JSON only.
func jsonPods(body []byte, each func(*corev1.Pod)) (next string, err error) {
	var list corev1.PodList
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &list); err != nil {
		return "", fmt.Errorf("the answer is neither protobuf nor JSON: %w", err)
	}
	if list.Kind != "PodList" {
		return "", fmt.Errorf("the answer is of kind %q, want \"PodList\"", list.Kind)
	}
	for i := range list.Items {
		each(&list.Items[i])
	}
	return list.Continue, nil
}
