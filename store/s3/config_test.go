package s3

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/storetest/s3faults"
	"gpuaudit/store/storetest/s3memory"
)

func TestAddress(t *testing.T) {
	for _, tc := range []struct {
		endpoint, region, bucket string
		addressing               store.Addressing
		want                     string // the address of key a b/上
		wantRegion               string
		err                      string
	}{
		{"", "eu-west-1", "audit-1", "", "https://audit-1.s3.eu-west-1.amazonaws.com/a%20b/%E4%B8%8A", "eu-west-1", ""},
		{"", "cn-north-1", "audit-1", "", "https://audit-1.s3.cn-north-1.amazonaws.com.cn/a%20b/%E4%B8%8A", "cn-north-1", ""},
		{"", "eu-west-1", "audit-1", "path", "https://s3.eu-west-1.amazonaws.com/audit-1/a%20b/%E4%B8%8A", "eu-west-1", ""},
		{"", "eu-west-1", "a.b", "", "https://s3.eu-west-1.amazonaws.com/a.b/a%20b/%E4%B8%8A", "eu-west-1", ""},
		{"", "", "audit-1", "", "", "", "store.region"},
		{"http://127.0.0.1:9000", "", "audit-1", "", "http://127.0.0.1:9000/audit-1/a%20b/%E4%B8%8A", "us-east-1", ""},
		{"http://[::1]:9000", "", "audit-1", "auto", "http://[::1]:9000/audit-1/a%20b/%E4%B8%8A", "us-east-1", ""},
		{"http://localhost:9000", "", "audit-1", "", "http://localhost:9000/audit-1/a%20b/%E4%B8%8A", "us-east-1", ""},
		{"https://minio.example.com/s3", "x", "audit-1", "", "https://minio.example.com/s3/audit-1/a%20b/%E4%B8%8A", "x", ""},
		{"https://minio.example.com", "", "audit-1", "virtual", "https://audit-1.minio.example.com/a%20b/%E4%B8%8A", "us-east-1", ""},
		{"https://oss-cn-hangzhou.aliyuncs.com", "", "audit-1", "", "https://audit-1.oss-cn-hangzhou.aliyuncs.com/a%20b/%E4%B8%8A", "cn-hangzhou", ""},
		{"https://s3.oss-cn-hangzhou-internal.aliyuncs.com", "", "audit-1", "", "https://audit-1.s3.oss-cn-hangzhou-internal.aliyuncs.com/a%20b/%E4%B8%8A", "cn-hangzhou", ""},
		{"https://cos.ap-shanghai.myqcloud.com", "", "audit-1250000000", "", "https://audit-1250000000.cos.ap-shanghai.myqcloud.com/a%20b/%E4%B8%8A", "ap-shanghai", ""},
		{"https://tos-s3-cn-beijing.volces.com", "", "audit-1", "", "https://audit-1.tos-s3-cn-beijing.volces.com/a%20b/%E4%B8%8A", "cn-beijing", ""},
		{"https://tos-s3-cn-beijing.ivolces.com", "", "audit-1", "", "https://audit-1.tos-s3-cn-beijing.ivolces.com/a%20b/%E4%B8%8A", "cn-beijing", ""},
		{"https://s3.eu-west-1.amazonaws.com", "", "audit-1", "", "https://audit-1.s3.eu-west-1.amazonaws.com/a%20b/%E4%B8%8A", "eu-west-1", ""},
		{"https://S3.Dualstack.EU-West-1.amazonaws.com", "", "audit-1", "", "https://audit-1.S3.Dualstack.EU-West-1.amazonaws.com/a%20b/%E4%B8%8A", "eu-west-1", ""},
		{"https://evil-aliyuncs.com", "", "audit-1", "", "https://evil-aliyuncs.com/audit-1/a%20b/%E4%B8%8A", "us-east-1", ""},
		{"http://10.0.0.1", "", "audit-1", "virtual", "", "", "IP address"},
		{"https://minio.example.com", "", "Audit_1", "virtual", "", "", "store.addressing to path"},
		{"https://oss-cn-hangzhou.aliyuncs.com", "", "a.b", "", "https://oss-cn-hangzhou.aliyuncs.com/a.b/a%20b/%E4%B8%8A", "cn-hangzhou", ""},
		{"ftp://x", "", "audit-1", "", "", "", "AWS_ENDPOINT_URL_S3"},
		{"http://u:planted@x", "", "audit-1", "", "", "", "AWS_ENDPOINT_URL_S3"},
	} {
		a := newAddress(tc.endpoint, tc.region, tc.bucket, tc.addressing)
		if tc.err != "" {
			want(t, a.err, nil, strings.TrimPrefix(tc.err, "store.addressing to "))
			continue
		}
		if got := a.object(tc.bucket, "a b/上"); a.err != nil || got != tc.want || a.region != tc.wantRegion {
			t.Errorf("%q %q: %q in %q, %v; want %q in %q", tc.endpoint, tc.addressing, got, a.region, a.err, tc.want, tc.wantRegion)
		}
	}
}

func resolve(t *testing.T, options store.Options) store.Location {
	t.Helper()
	at, err := options.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestEnvironment: endpoint, region and credentials from the environment and from a profile.
func TestEnvironment(t *testing.T) {
	f := newFake(t, false)
	_, err := Open(t.Context(), resolve(t, store.Options{URL: "s3://" + f.bucket}))
	want(t, err, nil, "s3://"+f.bucket, "no region", "AWS_REGION")

	t.Setenv("AWS_ENDPOINT_URL_S3", f.url)
	s, err := Open(t.Context(), resolve(t, store.Options{URL: "s3://" + f.bucket}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Errorf("by the environment's endpoint: %v", err)
	}
	if s.options.Checksums != store.ChecksumsOff || s.address.virtual {
		t.Errorf("a server in the environment is taken for AWS: %+v, virtual %v", s.options, s.address.virtual)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://u:planted@h")
	_, err = Open(t.Context(), resolve(t, store.Options{URL: "s3://" + f.bucket}))
	want(t, err, nil, "AWS_ENDPOINT_URL_S3")
	t.Setenv("AWS_ENDPOINT_URL_S3", "")

	files := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(files, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONFIG_FILE", write("config", "[profile audit]\nregion = eu-west-3\nservices = local\n[services local]\ns3 =\n  endpoint_url = "+f.url+"\n"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", write("credentials", fmt.Sprintf("[audit]\naws_access_key_id = %s\naws_secret_access_key = %s\n", testKey, testSecret)))
	s, err = Open(t.Context(), resolve(t, store.Options{URL: "s3://" + f.bucket, Profile: "audit"}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "a/b"); err != nil || string(got.Body) != "x" || s.address.region != "eu-west-3" {
		t.Errorf("by the profile: %q in %q, %v", got.Body, s.address.region, err)
	}
	_, err = Open(t.Context(), resolve(t, store.Options{URL: "s3://" + f.bucket, Profile: "no-such"}))
	want(t, err, nil, "no-such", "store.profile")

	s, err = Open(t.Context(), resolve(t, store.Options{URL: "s3://" + f.bucket, Endpoint: f.url}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(t.Context(), "a/b")
	want(t, err, nil, "no credentials", "AWS_ACCESS_KEY_ID")
}

// TestWebIdentity: the role of a pod (IRSA), from a token file by an STS that is ours.
func TestWebIdentity(t *testing.T) {
	f := newFake(t, true) // the server in memory knows no session tokens: it does not check, we do
	virtual := store.Options{Addressing: store.AddressingVirtual, Endpoint: "http://objects.example.internal"}
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("WebIdentityToken") != "planted-token" || r.FormValue("RoleArn") != "arn:aws:iam::1:role/audit" {
			s3faults.Refuse(w, http.StatusForbidden, "AccessDenied", "no")
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>planted-session</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, testKey, testSecret, time.Now().Add(40*time.Minute).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("planted-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::1:role/audit",
		"AWS_ENDPOINT_URL_STS": sts.URL, "AWS_REGION": "eu-west-1",
	} {
		t.Setenv(name, value)
	}
	s := f.open(t, virtual)
	if _, err := s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.faults.Requests() {
		if r.Header.Get("X-Amz-Security-Token") != "planted-session" || !strings.Contains(r.Header.Get("Authorization"), testKey) {
			t.Errorf("the request is not signed by the role: %v", r.Header)
		}
	}
	// A link cannot outlive the role's credentials.
	link, until, err := s.Presign(t.Context(), "a/b", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(until); left > 41*time.Minute || left < 30*time.Minute {
		t.Errorf("the link is said to be valid for %s, the credentials for 40 minutes", left)
	}
	if !strings.Contains(link, "X-Amz-Security-Token=planted-session") {
		t.Errorf("the link %q is not signed by the role", link)
	}
	if err := os.WriteFile(token, []byte("planted-other"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = f.open(t, virtual).Get(t.Context(), "a/b")
	want(t, err, nil, "credentials")
}

func TestPresign(t *testing.T) {
	f := newFake(t, false)
	s := f.open(t, store.Options{})
	now := time.Date(2026, 6, 1, 9, 30, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	for _, valid := range []time.Duration{0, -time.Hour, maxPresign + time.Second} {
		_, _, err := s.Presign(t.Context(), "a/b", valid)
		want(t, err, nil, "168h0m0s")
	}
	link, until, err := s.Presign(t.Context(), "reports/上.html", maxPresign)
	if err != nil || !until.Equal(now.AddDate(0, 0, 7)) || strings.Contains(link, testSecret) || !strings.Contains(link, "/%E4%B8%8A.html?") {
		t.Errorf("%q until %s, %v", link, until, err)
	}
	if len(f.faults.Requests()) > 0 {
		t.Error("signing a link asks the server")
	}
	if _, _, err := s.Presign(t.Context(), "../x", time.Hour); err == nil {
		t.Error("a link to a key that cannot be")
	}
}

// TestTLS: a private CA by store.caFile or AWS_CA_BUNDLE, and the same plain requests as without TLS.
func TestTLS(t *testing.T) {
	setCredentials(t)
	handler, err := s3memory.New(s3memory.Options{Bucket: "audit-tls", AccessKey: testKey, Secret: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	faults := s3faults.New(handler)
	server := httptest.NewUnstartedServer(faults)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(options store.Options) *Store {
		t.Helper()
		options.URL, options.Endpoint = "s3://audit-tls", server.URL
		s, err := open(t.Context(), resolve(t, options), tuning{maxBackoff: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	_, err = open(store.Options{}).Get(t.Context(), "a/b")
	want(t, err, nil, "certificate", "store.caFile")
	if errors.Is(err, store.ErrNotFound) {
		t.Error("an untrusted server's object is taken for missing")
	}
	faults.Set(s3faults.RefuseChecksums(), s3faults.RefuseUnsignedChunks())
	if _, err := open(store.Options{CAFile: ca}).Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Errorf("with caFile: %v", err)
	}
	for _, r := range faults.Requests() {
		if hash := r.Header.Get("X-Amz-Content-Sha256"); r.Method == http.MethodPut && hash != "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" {
			t.Errorf("over TLS the payload is not signed but %q", hash)
		}
	}
	t.Setenv("AWS_CA_BUNDLE", ca)
	if got, err := open(store.Options{}).Get(t.Context(), "a/b"); err != nil || string(got.Body) != "x" {
		t.Errorf("with AWS_CA_BUNDLE: %v", err)
	}
	if _, err := open(store.Options{CAFile: ca}).Get(t.Context(), "a/b"); err != nil {
		t.Errorf("with both: %v", err)
	}
	t.Setenv("AWS_CA_BUNDLE", "")
	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), os.Args[0]} {
		_, err := Open(context.Background(), store.Location{Kind: store.KindS3, Bucket: "audit-tls", Options: store.Options{CAFile: bad, Endpoint: server.URL}})
		want(t, err, nil, "store.caFile", bad)
	}
	plain := httptest.NewServer(handler)
	defer plain.Close()
	s, err := openAt(t, "https"+strings.TrimPrefix(plain.URL, "http"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(t.Context(), "a/b")
	want(t, err, nil, "http://", "store.endpoint")
}

func openAt(t *testing.T, endpoint string) (*Store, error) {
	t.Helper()
	return open(t.Context(), resolve(t, store.Options{URL: "s3://audit-tls", Endpoint: endpoint}), tuning{maxBackoff: time.Millisecond})
}

// TestUnreachable: names that do not exist and ports that nobody listens on.
func TestUnreachable(t *testing.T) {
	setCredentials(t)
	s, err := openAt(t, "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(t.Context(), "a/b")
	want(t, err, nil, "get s3://audit-tls/a/b", "connection refused", "store.endpoint", "HTTPS_PROXY")
	for _, err := range s.List(t.Context(), "", "") {
		want(t, err, nil, "connection refused")
	}
	if s, err = openAt(t, "http://no-such-host.invalid"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Create(t.Context(), "a/b", nil, store.Attributes{})
	want(t, err, nil, "no-such-host.invalid", "store.endpoint")
}

func TestChecksumDefaults(t *testing.T) {
	for _, tc := range []struct {
		options store.Options
		isAWS   bool
		want    store.Checksums
	}{
		{store.Options{}, true, store.ChecksumsOn},
		{store.Options{}, false, store.ChecksumsOff},
		{store.Options{Checksums: store.ChecksumsAuto, ObjectLockDays: 1}, false, store.ChecksumsOn},
		{store.Options{Checksums: store.ChecksumsMD5, ObjectLockDays: 1}, true, store.ChecksumsMD5},
		{store.Options{Checksums: store.ChecksumsOff}, true, store.ChecksumsOff},
	} {
		if got := checksums(tc.options, tc.isAWS); got != tc.want {
			t.Errorf("%+v, AWS %v: %q, want %q", tc.options, tc.isAWS, got, tc.want)
		}
	}
}
