package s3

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/storetest/s3faults"
	"gpuaudit/store/storetest/s3memory"
)

const (
	testKey    = "AKIDTESTTESTTEST"
	testSecret = "planted/secret+key/never/to/be/printed"
)

// fakeServer is a separately developed server in memory that checks signatures and payload hashes, behind the fault proxy.
type fakeServer struct {
	url    string
	faults *s3faults.Proxy
	bucket string
}

var fakeBuckets atomic.Int64

// newFake starts a server. With hostBucket it takes the bucket from the host name (and cannot check signatures then).
func newFake(t *testing.T, hostBucket bool) *fakeServer {
	t.Helper()
	setCredentials(t)
	return startFake(t, hostBucket)
}

func startFake(t *testing.T, hostBucket bool) *fakeServer {
	t.Helper()
	f := &fakeServer{bucket: fmt.Sprintf("audit-%d", fakeBuckets.Add(1))}
	handler, err := s3memory.New(s3memory.Options{Bucket: f.bucket, AccessKey: testKey, Secret: testSecret, HostBucket: hostBucket})
	if err != nil {
		t.Fatal(err)
	}
	f.faults = s3faults.New(handler)
	server := httptest.NewUnstartedServer(f.faults)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// setCredentials gives the process credentials and nothing else of an AWS configuration.
func setCredentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	for _, name := range []string{"AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// open opens the bucket under a prefix, with the options' other fields as given.
func (f *fakeServer) open(t *testing.T, options store.Options) *Store {
	t.Helper()
	options.URL = "s3://" + f.bucket + "/team/a"
	if options.Endpoint == "" {
		options.Endpoint = f.url
	}
	at, err := options.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t.Context(), at, tuning{transport: f.dial, maxBackoff: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dial leads every host name to the server, as a name server with a wildcard would.
func (f *fakeServer) dial(tr *http.Transport) {
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !strings.HasPrefix(address, "127.0.0.1:") {
			address = f.url[len("http://"):]
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}
