package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gpuaudit/audit/inventory"
)

// reason says which kind of failure a read's error is.
func reason(err error) inventory.GapReason {
	var credentials *credentialsError
	switch {
	case errors.As(err, &credentials):
		return inventory.GapCredentials
	case apierrors.IsUnauthorized(err):
		return inventory.GapCredentials
	case apierrors.IsForbidden(err):
		return inventory.GapForbidden
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return inventory.GapExpired
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), timedOut(err):
		return inventory.GapTimeout
	case network(err):
		return inventory.GapUnreachable
	}
	return inventory.GapError
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// network is true for errors of connections and certificates: no answer of an
// API server was had.
func network(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	if errors.As(err, &op) || errors.As(err, &dns) || errors.As(err, &cert) || errors.As(err, &unknown) || errors.As(err, &record) {
		return true
	}
	var u *url.Error
	return errors.As(err, &u)
}

// explain words a failed read: verb, resource and scope, then what to do.
func (c *client) explain(err error, r resource, namespace string, deadline time.Duration) string {
	what := "list " + string(r.name)
	switch {
	case r.only != "":
		what += " in namespace " + r.only
	case namespace != "":
		what += " in namespace " + namespace
	case r.namespaced:
		what += " in all namespaces"
	}
	if reason(err) == inventory.GapForbidden {
		group := r.group
		if group == "" {
			group = "core"
		}
		return fmt.Sprintf("%s is not allowed (verb list, resource %s, API group %s); grant it with the role in deploy/rbac.yaml", what, r.plural, group)
	}
	if apierrors.IsNotFound(err) && r.builtin {
		return what + ": the server answers 404 for a built-in kind; a proxy or a virtual cluster may hide it"
	}
	if c != nil && c.guard != nil && reason(err) == inventory.GapTimeout {
		if n := c.guard.toldToWait(r); n > 0 {
			return fmt.Sprintf("%s: the server asks to wait again and again (HTTP 429, %d times) and gave no whole answer before the deadline (%s); raise the cluster's setting timeout, or see what keeps the server busy", what, n, deadline)
		}
	}
	return c.words(err, what, deadline)
}

// words tells what a read failed of, and what to do.
func (c *client) words(err error, what string, deadline time.Duration) string {
	switch reason(err) {
	case inventory.GapCredentials:
		return fmt.Sprintf("%s: the credentials were refused or could not be had: %s", what, c.redact(short(err)))
	case inventory.GapTimeout:
		return fmt.Sprintf("%s: no whole answer before the deadline (%s); raise the cluster's setting timeout, or see why it is slow", what, deadline)
	case inventory.GapExpired:
		return what + ": the list expired on the server again and again while it was read (HTTP 410)"
	case inventory.GapUnreachable:
		return fmt.Sprintf("%s: %s", what, c.redact(networkWords(err)))
	}
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "stream error"):
		return what + ": the connection broke off in the middle of the answer, again and again; see what stands between here and the API server"
	case errors.As(err, &status), errors.Is(err, errNoList):
		return fmt.Sprintf("%s: %s", what, c.redact(short(err)))
	}
	return fmt.Sprintf("%s: the answer cannot be read (%s); something before the API server may have given it", what, c.redact(short(err)))
}

func networkWords(err error) string {
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the API server's certificate has expired or is not valid yet (or the local clock is wrong)"
	case errors.As(err, &unknown):
		return "the API server's certificate is signed by an authority that the kubeconfig does not know"
	case errors.As(err, &cert):
		return "the API server's certificate does not verify: " + short(cert.Err)
	}
	return "cannot reach the API server: " + short(err)
}

// short gives the innermost words of an error, without URLs that may carry
// user names or tokens, and bounded.
func short(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var status apierrors.APIStatus
	text := err.Error()
	if errors.As(err, &status) {
		text = status.Status().Message
		if text == "" {
			text = http.StatusText(int(status.Status().Code))
		}
		text = fmt.Sprintf("%s (HTTP %d)", text, status.Status().Code)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

func sortedStrings(list []string) []string {
	sort.Strings(list)
	return list
}
