package collect

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gpuaudit/audit/inventory"
)

const (
	pageSize = 500
	// restarts bounds how often a list that expired on the server (410) begins again.
	restarts = 3
	// retries bounds how often one page is asked for again after a passing failure.
	retries = 2
)

// pass reads one whole list: page reads the next page and takes its items in,
// commit puts all of it into the inventory. A pass that fails is dropped, so
// that a part of a list never stands for the whole.
type pass struct {
	page   func(ctx context.Context, o metav1.ListOptions) (next string, err error)
	commit func()
}

// list reads a list at one consistent revision: pages of one list continue at
// the revision of the first. resourceVersion=0 is never asked for: it would be
// answered from a cache, and ignores the limit.
func list(ctx context.Context, begin func() pass) error {
	var err error
	for range restarts {
		p := begin()
		o := metav1.ListOptions{Limit: pageSize}
		err = nil
		for {
			var next string
			next, err = retried(ctx, p, o)
			if err != nil || next == "" {
				break
			}
			o.Continue = next
		}
		if err == nil {
			p.commit()
			return nil
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
	return err
}

// retried asks for a page again after a failure that may pass.
func retried(ctx context.Context, p pass, o metav1.ListOptions) (next string, err error) {
	err = again(ctx, func() error {
		next, err = p.page(ctx, o)
		return err
	})
	return next, err
}

// again repeats a read after a failure that may pass. The client library itself
// waits as long as a 429 or 503 with Retry-After says.
func again(ctx context.Context, read func() error) error {
	wait := 200 * time.Millisecond
	for try := 0; ; try++ {
		err := read()
		if err == nil || try == retries || ctx.Err() != nil || !passing(err) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		wait *= 3
	}
}

func passing(err error) bool {
	switch reason(err) {
	case inventory.GapForbidden, inventory.GapCredentials, inventory.GapExpired, inventory.GapTimeout:
		return false
	case inventory.GapUnreachable:
		return true
	}
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500
	}
	return true // a cut body or one that does not decode
}

// errNoList is the error of an answer with status 200 that is no list: the
// decoder takes an empty object, or a Status, for a list without items.
var errNoList = errors.New("the answer is not the list that was asked for; something before the API server may have given it")

// mustBeList fails for such an answer. Source: API conventions, "Lists and
// Simple kinds": a list's kind ends with List, and the API server gives each
// the resource version that it was read at. Typed decoders drop the kind; an
// aggregated server, which is read untyped, may leave the version out.
func mustBeList(l listOf) error {
	if u, ok := l.(*unstructured.UnstructuredList); ok {
		if !strings.HasSuffix(u.GetKind(), "List") {
			return errNoList
		}
		return nil
	}
	if l.GetResourceVersion() == "" {
		return errNoList
	}
	return nil
}
