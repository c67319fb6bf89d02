//go:build versitygw

package s3

// These tests run against a real server, which test/tools/versitygw/build.sh builds: go test -tags versitygw ./store/s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/storetest"
	"gpuaudit/store/storetest/versitygw"
)

var realBuckets atomic.Int64

// openReal makes a bucket on a real server and opens it; again opens it anew.
func openReal(t *testing.T, server *versitygw.Server, options store.Options, lock bool) (s *Store, again func() *Store) {
	t.Helper()
	bucket := fmt.Sprintf("audit-%d", realBuckets.Add(1))
	server.Bucket(t, bucket, lock)
	options.URL = "s3://" + bucket + "/team/a"
	options.Endpoint = server.URL
	if options.Addressing == store.AddressingVirtual {
		_, port, _ := net.SplitHostPort(server.Address)
		options.Endpoint = "http://" + net.JoinHostPort(versitygw.Domain, port)
	}
	at, err := options.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	again = func() *Store {
		s, err := open(t.Context(), at, tuning{transport: func(tr *http.Transport) {
			tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server.Address)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return again(), again
}

func TestRealServerSuite(t *testing.T) {
	versitygw.Environment(t)
	server := versitygw.Start(t)
	for name, options := range map[string]store.Options{
		"plain":          {},
		"checksums":      {Checksums: store.ChecksumsOn},
		"md5":            {Checksums: store.ChecksumsMD5},
		"virtual hosted": {Addressing: store.AddressingVirtual},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (store.Store, func() store.Store) {
				s, again := openReal(t, server, options, false)
				return s, func() store.Store { return again() }
			})
		})
	}
}

// TestRealServerObjectLock: what is locked cannot be removed, what moves still moves, and the lock ends when it should.
func TestRealServerObjectLock(t *testing.T) {
	versitygw.Environment(t)
	server := versitygw.Start(t)
	s, _ := openReal(t, server, store.Options{ObjectLockDays: 3}, true)
	a := archive.New(s)
	for i := range 3 {
		in := storetest.NewAudit("c", storetest.Day.AddDate(0, 0, i), fmt.Sprintf("r%d", i))
		if _, err := a.SaveSnapshot(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	latest, err := a.LatestSnapshot(t.Context(), "c")
	if err != nil || latest.Run != "r2" {
		t.Fatalf("latest %q, %v", latest.Run, err)
	}
	out, err := server.Client().GetObjectRetention(t.Context(), &s3.GetObjectRetentionInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + latest.Key)})
	if err != nil {
		t.Fatal(err)
	}
	until := aws.ToTime(out.Retention.RetainUntilDate)
	if want := time.Now().AddDate(0, 0, 3); until.Sub(want).Abs() > time.Hour || out.Retention.Mode != "GOVERNANCE" {
		t.Errorf("locked until %s in mode %s, want about %s in governance mode", until, out.Retention.Mode, want)
	}
	// A removal of the name leaves the version: that is what object lock promises.
	version, err := server.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + latest.Key)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.Client().DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + latest.Key), VersionId: version.VersionId})
	if err == nil {
		t.Error("the locked version was deleted")
	}
	if _, err := a.LatestSnapshot(t.Context(), "c"); err != nil {
		t.Errorf("after trying to delete it: %v", err)
	}
}

func TestRealServerErrors(t *testing.T) {
	versitygw.Environment(t)
	server := versitygw.Start(t)
	s, again := openReal(t, server, store.Options{}, false)
	if _, err := s.Create(t.Context(), "a/b", []byte("x"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	open := func(change func(*store.Options)) *Store {
		options := s.options
		options.URL = "s3://" + s.bucket + "/team/a"
		options.Checksums = ""
		change(&options)
		at, err := options.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		opened, err := Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	noBucket := open(func(o *store.Options) { o.URL = "s3://no-such-bucket" })
	_, err := noBucket.Get(t.Context(), "a/b")
	want(t, err, nil, "404", "NoSuchBucket", "store.url")
	if errors.Is(err, store.ErrNotFound) {
		t.Error("a missing bucket is taken for a missing object")
	}
	for _, err := range noBucket.List(t.Context(), "", "") {
		want(t, err, nil, "NoSuchBucket")
	}
	locked := open(func(o *store.Options) { o.ObjectLockDays = 3 })
	_, err = locked.Create(t.Context(), "a/locked", []byte("x"), store.Attributes{Retain: true})
	want(t, err, nil, "a/locked", "store.objectLockDays")

	region := open(func(o *store.Options) { o.Region = "us-west-2" })
	_, err = region.Get(t.Context(), "a/b")
	want(t, err, nil, "store.region")

	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, err = again().Get(t.Context(), "a/b")
	want(t, err, nil, "SignatureDoesNotMatch")
	t.Setenv("AWS_ACCESS_KEY_ID", "NOBODY")
	_, err = again().Get(t.Context(), "a/b")
	want(t, err, nil, "InvalidAccessKeyId", "credentials")
	_, err = again().Stat(t.Context(), "a/b")
	if err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("stat by an unknown user: %v", err)
	}
}

// TestRealServerPresign fetches a presigned link without any credentials.
func TestRealServerPresign(t *testing.T) {
	versitygw.Environment(t)
	server := versitygw.Start(t)
	s, _ := openReal(t, server, store.Options{}, false)
	key := "reports/2026/06/01/r/上海 1/report.html"
	if _, err := s.Create(t.Context(), key, []byte("<p>hello"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	link, until, err := s.Presign(t.Context(), key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(until); left < 59*time.Minute || left > time.Hour {
		t.Errorf("valid until %s", until)
	}
	response, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK || string(body) != "<p>hello" || response.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("the link gives %s, %q, %q", response.Status, response.Header.Get("Content-Type"), body)
	}
	plain, err := http.Get(s.URL(key))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if plain.StatusCode != http.StatusForbidden {
		t.Errorf("the plain address answers %s without a signature", plain.Status)
	}
}
