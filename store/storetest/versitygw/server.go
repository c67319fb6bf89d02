// Package versitygw starts a real S3 server for tests, one that is developed apart from this project and keeps objects as files. It is
// built by test/tools/versitygw/build.sh.
package versitygw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// The server's only account.
const (
	AccessKey = "AUDITTESTACCESSKEY"
	Secret    = "planted/secret+key/never/to/be/printed"
	Region    = "eu-test-1"
	// Domain is the host under which buckets are host names: http://bucket.Domain:port.
	Domain = "s3.audit.test"
)

// Server is a running server.
type Server struct {
	// URL is http://127.0.0.1:port, Address is 127.0.0.1:port.
	URL, Address string
}

// Repository is the top folder of the project, wherever in it tests run; "." when there is none above.
func Repository() string {
	here, err := os.Getwd()
	for dir := here; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools", "versitygw", "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "."
}

// Binary is where build.sh puts the server. The version is that of its module, so that an old binary is not taken for it.
func Binary() (string, error) {
	const build = "run test/tools/versitygw/build.sh first"
	tools := filepath.Join(Repository(), "test", "tools", "versitygw")
	module, err := os.ReadFile(filepath.Join(tools, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("version of the S3 test server: %w", err)
	}
	version := regexp.MustCompile(`versity/versitygw (v\S+)`).FindSubmatch(module)
	if version == nil {
		return "", fmt.Errorf("version of the S3 test server: not in %s/go.mod", tools)
	}
	binary := filepath.Join(Repository(), "test", ".bin", "versitygw-"+string(version[1]), "versitygw")
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("the S3 test server is not built: %w; %s", err, build)
	}
	return binary, nil
}

// Start runs a server on a free port of the loopback until the test ends. Without the binary the test fails and says how to
// build it.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // the free port may be taken by another before the server has it
		if s, err := start(t, binary); err == nil {
			return s
		} else if !errors.Is(err, errGone) {
			t.Fatal(err)
		}
	}
	t.Fatal("the S3 test server did not get a port in 5 tries")
	return nil
}

var errGone = errors.New("the server ended at once")

func start(t testing.TB, binary string) (*Server, error) {
	dir := t.TempDir()
	for _, sub := range []string{"root", "ver", "iam"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, binary, "-q", "-p", address, "-r", Region, "--virtual-domain", Domain, "--iam-dir", filepath.Join(dir, "iam"),
		"posix", "--versioning-dir", filepath.Join(dir, "ver"), filepath.Join(dir, "root"))
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+Secret)
	var output buffer
	command.Stdout, command.Stderr = &output, &output
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("the S3 test server said:\n%s", output.String())
		}
	})
	s := &Server{Address: address, URL: "http://" + address}
	return s, s.ready(ended, &output)
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// ready waits until the server answers.
func (s *Server) ready(ended <-chan struct{}, output *buffer) error {
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if response, err := http.Get(s.URL); err == nil {
			return response.Body.Close()
		}
		select {
		case <-tick.C:
		case <-ended:
			return fmt.Errorf("%w: %s", errGone, strings.TrimSpace(output.String()))
		case <-deadline:
			return fmt.Errorf("the S3 test server does not answer on %s: %s", s.Address, output.String())
		}
	}
}

// Client speaks to the server by the SDK, past the project's own store.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.URL), Region: Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, Secret, ""),
	})
}

// Bucket makes a bucket, with object lock if asked.
func (s *Server) Bucket(t testing.TB, name string, lock bool) {
	t.Helper()
	if _, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name), ObjectLockEnabledForBucket: aws.Bool(lock)}); err != nil {
		t.Fatalf("make bucket %q: %v", name, err)
	}
}

// User makes an account without any rights.
func (s *Server) User(t testing.TB, access, secret string) {
	t.Helper()
	binary, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary, "admin", "--region", Region, "--endpoint-url", s.URL, "create-user", "--access", access, "--secret", secret, "--role", "user")
	command.Env = append(os.Environ(), "ADMIN_ACCESS_KEY="+AccessKey, "ADMIN_SECRET_KEY="+Secret)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make user %q: %v\n%s", access, err, out)
	}
}

// Policy sets a bucket's policy.
func (s *Server) Policy(t testing.TB, bucket, policy string) {
	t.Helper()
	if _, err := s.Client().PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: aws.String(policy)}); err != nil {
		t.Fatalf("set the policy of bucket %q: %v\n%s", bucket, err, policy)
	}
}

// Environment gives the process this server's credentials and nothing else of an AWS configuration.
func Environment(t testing.TB) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": Secret, "AWS_REGION": Region, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_SESSION_TOKEN": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_CA_BUNDLE": "",
	} {
		t.Setenv(name, value)
	}
}

// buffer is a bytes.Buffer for a process that writes while a test reads.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
