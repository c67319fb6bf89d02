package s3

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/storetest/s3faults"
)

// TestPlainRequests looks at a write as it goes over the line.
func TestPlainRequests(t *testing.T) {
	body := []byte("<p>hello")
	for _, tc := range []struct {
		name    string
		options store.Options
		attr    store.Attributes
		want    map[string]string // header -> value; empty: must be absent
	}{
		{name: "third-party server", want: map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Content-Length": "8", "If-None-Match": "*", "Content-Encoding": "", "Cache-Control": "",
			"X-Amz-Content-Sha256":  "2c35ceb98d7757a74449079db9858dba4af1e87c41932a675471f3daea01886f",
			"X-Amz-Checksum-Sha256": "", "Content-Md5": "", "Expect": "", "X-Amz-Object-Lock-Mode": "", "X-Amz-Server-Side-Encryption": "",
		}},
		{name: "checksums on", options: store.Options{Checksums: store.ChecksumsOn}, want: map[string]string{"X-Amz-Checksum-Sha256": "?", "Content-Md5": ""}},
		{name: "md5", options: store.Options{Checksums: store.ChecksumsMD5}, want: map[string]string{"X-Amz-Checksum-Sha256": "", "Content-Md5": "?"}},
		{name: "conditions off", options: store.Options{Conditions: store.ConditionsOff}, want: map[string]string{"If-None-Match": ""}},
		{name: "key service", options: store.Options{KMSKeyID: "key-1"}, want: map[string]string{
			"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key-1",
		}},
		{name: "object lock", options: store.Options{ObjectLockDays: 30}, attr: store.Attributes{Retain: true}, want: map[string]string{
			"X-Amz-Object-Lock-Mode": "GOVERNANCE", "X-Amz-Object-Lock-Retain-Until-Date": "2026-07-01T09:30:00Z", "X-Amz-Checksum-Sha256": "?",
		}},
		{name: "object lock, but not for what moves", options: store.Options{ObjectLockDays: 30}, want: map[string]string{"X-Amz-Object-Lock-Mode": ""}},
		{name: "attributes", attr: store.Attributes{ContentType: "text/plain", ContentEncoding: "gzip", CacheControl: "no-cache"}, want: map[string]string{
			"Content-Type": "text/plain", "Content-Encoding": "gzip", "Cache-Control": "no-cache",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, false)
			s := f.open(t, tc.options)
			f.faults.Set(s3faults.Accept())
			s.now = func() time.Time { return time.Date(2026, 6, 1, 9, 30, 0, 0, time.UTC) }
			if _, err := s.Create(t.Context(), "r/x.html", body, tc.attr); err != nil {
				t.Fatal(err)
			}
			for _, r := range f.faults.Requests() {
				if r.Method != http.MethodPut {
					continue
				}
				if s3faults.ModernIntegrity(r) || len(r.TransferEncoding) > 0 {
					t.Errorf("the request has a trailer, chunks, or an SDK checksum header: %v %v", r.Header, r.TransferEncoding)
				}
				r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
				for name, want := range tc.want {
					got := r.Header.Get(name)
					if got != want && (want != "?" || got == "") {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				if testing.Verbose() {
					t.Log(r.Header)
				}
			}
		})
	}
}
