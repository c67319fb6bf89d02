// Package s3faults stands before an S3 server and does what third-party servers and bad lines do: it refuses headers, conditions
// and addressing styles, fails, is slow, and cuts connections. It is for tests.
package s3faults

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Fault answers a request in the server's place and returns true, or changes it and lets it pass.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// Proxy is a handler with faults before a server. Faults may be changed at any time.
type Proxy struct {
	next http.Handler

	mu       sync.Mutex
	faults   []Fault
	requests []*http.Request
}

// New stands before next with no fault.
func New(next http.Handler) *Proxy { return &Proxy{next: next} }

// Set replaces the faults.
func (p *Proxy) Set(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.requests = faults, nil
}

// Requests gives the requests since Set, without their bodies.
func (p *Proxy) Requests() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	faults := p.faults
	p.requests = append(p.requests, r.Clone(r.Context()))
	p.mu.Unlock()
	for _, fault := range faults {
		if fault(w, r, p.next) {
			return
		}
	}
	p.next.ServeHTTP(w, r)
}

// Refuse answers as an S3 server refuses.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", "REQ-1")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>REQ-1</RequestId></Error>", code, message)
}

// Writes says whether a request writes an object.
func Writes(r *http.Request) bool { return r.Method == http.MethodPut }

// Every makes a fault of a refusal for the requests that match.
func Every(match func(*http.Request) bool, status int, code, message string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !match(r) {
			return false
		}
		Refuse(w, status, code, message)
		return true
	}
}

// First applies a fault to the first n requests that match only.
func First(n int, match func(*http.Request) bool, fault Fault) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !match(r) {
			return false
		}
		mu.Lock()
		n--
		left := n
		mu.Unlock()
		return left >= 0 && fault(w, r, next)
	}
}

// ModernIntegrity says whether a request has any of what came with the SDKs' default checksums.
func ModernIntegrity(r *http.Request) bool {
	return r.Header.Get("X-Amz-Sdk-Checksum-Algorithm") != "" || r.Header.Get("X-Amz-Trailer") != "" || r.Trailer != nil ||
		strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") || strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-")
}

// HasChecksum says whether a write has a checksum header of any kind.
func HasChecksum(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			return true
		}
	}
	return r.Header.Get("Content-Md5") != ""
}

// RefuseChecksums is a server from before checksums: it knows neither their headers nor chunked encoding.
func RefuseChecksums() Fault {
	return Every(func(r *http.Request) bool { return ModernIntegrity(r) || HasChecksum(r) }, http.StatusBadRequest, "InvalidArgument",
		"The x-amz-checksum-sha256 header is not supported")
}

// DemandChecksum is a bucket with object lock.
func DemandChecksum() Fault {
	return Every(func(r *http.Request) bool { return Writes(r) && !HasChecksum(r) }, http.StatusBadRequest, "InvalidRequest",
		"Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters")
}

// RefuseUnsignedChunks refuses an unsigned payload and chunks together.
func RefuseUnsignedChunks() Fault {
	return Every(func(r *http.Request) bool {
		return strings.Contains(r.Header.Get("X-Amz-Content-Sha256"), "UNSIGNED-PAYLOAD")
	}, http.StatusBadRequest, "InvalidArgument", "aws-chunked encoding is not supported with the specified x-amz-content-sha256 value")
}

// Conditional says whether a request is a write under a condition.
func Conditional(r *http.Request) bool {
	return Writes(r) && (r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Match") != "")
}

// RefuseConditions is a server that says that it has no conditional writes, as Alibaba OSS does.
func RefuseConditions() Fault {
	return Every(Conditional, http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented.")
}

// IgnoreConditions is a server that does not even know the headers, and overwrites.
func IgnoreConditions() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if Writes(r) {
			r.Header.Del("If-None-Match")
			r.Header.Del("If-Match")
		}
		return false
	}
}

// RefusePathStyle wants the bucket in the host name. Without it the vendors answer with codes of their own.
func RefusePathStyle(bucket, code string) Fault {
	return Every(func(r *http.Request) bool { return !strings.HasPrefix(r.Host, bucket+".") }, http.StatusForbidden, code,
		"The bucket you are attempting to access must be addressed using the virtual-hosted style.")
}

// RefuseVirtualHosts is a server that takes the host for its own name and knows only the path.
func RefuseVirtualHosts(bucket string) Fault {
	return Every(func(r *http.Request) bool { return strings.HasPrefix(r.Host, bucket+".") }, http.StatusNotFound, "NoSuchBucket",
		"The specified bucket does not exist")
}

// CutAnswers sends n bytes of an answer's body and drops the connection.
func CutAnswers(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		body := recorded.Body.Bytes()
		for name, values := range recorded.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(body[:min(n, len(body))])
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// LoseAnswers does what is asked and drops the connection instead of answering.
func LoseAnswers() Fault {
	return func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
}

// LoseRequests drops the connection after reading a part of the request, without doing anything.
func LoseRequests() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		_, _ = io.CopyN(io.Discard, r.Body, 10)
		panic(http.ErrAbortHandler)
	}
}

// Never takes a request and does not answer until the client gives up.
func Never() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	}
}

// Answer gives the same page to everything, as a captive portal does.
func Answer(status int, contentType, body string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.Copy(w, bytes.NewBufferString(body))
		return true
	}
}
