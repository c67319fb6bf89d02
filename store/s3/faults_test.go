package s3

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/storetest"
	"gpuaudit/store/storetest/s3faults"
)

func writes(r *http.Request) bool { return s3faults.Writes(r) }
func lists(r *http.Request) bool  { return strings.Contains(r.URL.RawQuery, "list-type") }
func reads(r *http.Request) bool  { return r.Method == http.MethodGet && !lists(r) }
func anything(*http.Request) bool { return true }

// audit saves two audits and reads the last back: everything that a run needs of a store.
func audit(ctx context.Context, s *Store) error {
	a := archive.New(s)
	for i, run := range []string{"r1", "r2"} {
		if _, err := a.SaveSnapshot(ctx, storetest.NewAudit("c", storetest.Day.AddDate(0, 0, i), run)); err != nil {
			return err
		}
	}
	got, err := a.LatestSnapshot(ctx, "c")
	if err == nil && got.Run != "r2" {
		err = errors.New("the latest snapshot is " + got.Run)
	}
	if err != nil {
		return err
	}
	v, orphans, err := a.Check(ctx, "c")
	if err == nil && (len(v.Faults) > 0 || len(orphans) > 0 || v.Headers != 2) {
		err = errors.New("the chain is not whole")
	}
	return err
}

// TestDialects: what servers refuse, with the setting that gets along with it, and the error that names the setting.
func TestDialects(t *testing.T) {
	for _, tc := range []struct {
		name       string
		fault      func(bucket string) s3faults.Fault
		hostBucket bool
		fails      *store.Options // nil: nothing fails
		says       []string
		works      store.Options
	}{
		{
			name: "refuses checksums", fault: func(string) s3faults.Fault { return s3faults.RefuseChecksums() },
			fails: &store.Options{Checksums: store.ChecksumsOn}, says: []string{"HTTP 400", "InvalidArgument", "store.checksums to off"},
		},
		{
			name: "demands a checksum", fault: func(string) s3faults.Fault { return s3faults.DemandChecksum() },
			fails: &store.Options{}, says: []string{"HTTP 400", "InvalidRequest", "store.checksums to on"}, works: store.Options{Checksums: store.ChecksumsOn},
		},
		{
			name: "demands a checksum, takes MD5", fault: func(string) s3faults.Fault { return s3faults.DemandChecksum() }, works: store.Options{Checksums: store.ChecksumsMD5},
		},
		{name: "refuses chunks with an unsigned payload", fault: func(string) s3faults.Fault { return s3faults.RefuseUnsignedChunks() }},
		{
			name: "refuses conditions", fault: func(string) s3faults.Fault { return s3faults.RefuseConditions() },
			fails: &store.Options{}, says: []string{"HTTP 501", "NotImplemented", "store.conditions to off", "one audit"}, works: store.Options{Conditions: store.ConditionsOff},
		},
		{name: "ignores conditions", fault: func(string) s3faults.Fault { return s3faults.IgnoreConditions() }, works: store.Options{Conditions: store.ConditionsOff}},
		{
			name: "refuses path style as OSS", fault: func(b string) s3faults.Fault { return s3faults.RefusePathStyle(b, "SecondLevelDomainForbidden") }, hostBucket: true,
			fails: &store.Options{}, says: []string{"HTTP 403", "SecondLevelDomainForbidden", "store.addressing to virtual"}, works: store.Options{Addressing: store.AddressingVirtual},
		},
		{
			name: "refuses path style as COS", fault: func(b string) s3faults.Fault { return s3faults.RefusePathStyle(b, "PathStyleDomainForbidden") }, hostBucket: true,
			fails: &store.Options{Addressing: store.AddressingPath}, says: []string{"store.addressing to virtual"}, works: store.Options{Addressing: store.AddressingVirtual},
		},
		{
			name: "refuses path style as TOS", fault: func(b string) s3faults.Fault { return s3faults.RefusePathStyle(b, "InvalidPathAccess") }, hostBucket: true,
			fails: &store.Options{}, says: []string{"store.addressing to virtual"}, works: store.Options{Addressing: store.AddressingVirtual},
		},
		{
			name: "refuses path style with another code", fault: func(b string) s3faults.Fault { return s3faults.RefusePathStyle(b, "AccessDenied") }, hostBucket: true,
			fails: &store.Options{}, says: []string{"HTTP 403", "store.addressing"}, works: store.Options{Addressing: store.AddressingVirtual},
		},
		{
			name: "knows only path style", fault: func(b string) s3faults.Fault { return s3faults.RefuseVirtualHosts(b) },
			fails: &store.Options{Addressing: store.AddressingVirtual}, says: []string{"HTTP 404", "NoSuchBucket", "store.url", "store.addressing path"}, works: store.Options{Addressing: store.AddressingPath},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, tc.hostBucket)
			f.faults.Set(tc.fault(f.bucket))
			endpoint := func(o store.Options) store.Options {
				o.Endpoint = "http://objects.example.internal"
				return o
			}
			if tc.fails != nil {
				want(t, audit(t.Context(), f.open(t, endpoint(*tc.fails))), nil, append(tc.says, "s3://"+f.bucket+"/team/a/")...)
			}
			if err := audit(t.Context(), f.open(t, endpoint(tc.works))); err != nil {
				t.Errorf("with %+v: %v", tc.works, err)
			}
		})
	}
}

// TestFailures: what passes is got over, what stays is an error that says so, and nothing half is left.
func TestFailures(t *testing.T) {
	setCredentials(t)
	unavailable := func(match func(*http.Request) bool) s3faults.Fault {
		return s3faults.Every(match, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
	}
	for _, tc := range []struct {
		name  string
		fault s3faults.Fault
		says  []string // none: it is got over
	}{
		{name: "two 503", fault: s3faults.First(2, anything, unavailable(anything))},
		{name: "503 for ever", fault: unavailable(anything), says: []string{"HTTP 503", "SlowDown", "run again later"}},
		{name: "500 on reads for ever", fault: s3faults.Every(reads, 500, "InternalError", "We encountered an internal error."), says: []string{"HTTP 500", "InternalError"}},
		{name: "409 thrice", fault: s3faults.First(3, s3faults.Conditional, s3faults.Every(anything, 409, "ConditionalRequestConflict", "The conditional request cannot succeed due to a conflicting operation against this resource."))},
		{name: "409 OperationAborted once", fault: s3faults.First(1, s3faults.Conditional, s3faults.Every(anything, 409, "OperationAborted", "A conflicting conditional operation is currently in progress."))},
		{name: "answers of reads cut twice", fault: s3faults.First(2, reads, s3faults.CutAnswers(20))},
		{name: "answers of reads cut for ever", fault: func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			return reads(r) && s3faults.CutAnswers(20)(w, r, next)
		}, says: []string{"get s3://", "latest.json", "HTTP 404 Not Found"}},
		{name: "answers of writes lost", fault: s3faults.First(3, writes, s3faults.LoseAnswers())},
		{name: "requests lost", fault: s3faults.First(2, writes, s3faults.LoseRequests())},
		{name: "forbidden to list", fault: s3faults.Every(lists, 403, "AccessDenied", "Access Denied"), says: []string{"HTTP 403", "list s3://", "s3:ListBucket"}},
		{name: "forbidden to write", fault: s3faults.Every(writes, 403, "AccessDenied", "Access Denied"), says: []string{"create s3://", "s3:PutObject"}},
		{name: "clock", fault: s3faults.Every(anything, 403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."), says: []string{"clock"}},
		{name: "an unknown user who is a 404", fault: s3faults.Every(anything, 404, "XAdminUserNotFound", "No user exists with the provided access key ID."), says: []string{"HTTP 404 XAdminUserNotFound", "credentials"}},
		{name: "a missing bucket", fault: s3faults.Every(anything, 404, "NoSuchBucket", "The specified bucket does not exist"), says: []string{"HTTP 404 NoSuchBucket", "store.url"}},
		{name: "another region", fault: s3faults.Every(anything, 400, "AuthorizationHeaderMalformed", "The authorization header is malformed; the region 'us-east-1' is wrong"), says: []string{"store.region"}},
		{name: "an old token", fault: s3faults.Every(anything, 400, "ExpiredToken", "The provided token has expired."), says: []string{"credentials"}},
		{name: "a web page", fault: s3faults.Answer(200, "text/html", "<html>Welcome! Please log in</html>"), says: []string{"s3://", "not confirmed", "login page"}},
		{name: "a web page that is not found", fault: s3faults.Answer(404, "text/html", "<html>404</html>"), says: []string{"HTTP 404", "store.endpoint"}},
		{name: "a web page for reads", fault: func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			return r.Method == http.MethodGet && s3faults.Answer(200, "text/html", "<html>Welcome! Please log in</html>")(w, r, next)
		}, says: []string{"get s3://", "HTTP 200, but not the answer of an S3 server", "login page"}},
		{name: "a web page for listings", fault: func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			return lists(r) && s3faults.Answer(200, "text/html", "<html>Welcome! Please log in</html>")(w, r, next)
		}, says: []string{"list s3://", "HTTP 200, but not the answer of an S3 server", "login page"}},
		{name: "garbage", fault: s3faults.Answer(200, "application/xml", "\x00\x01<<<"), says: []string{"s3://", "login page"}},
		{name: "a quota", fault: s3faults.Every(writes, 507, "InsufficientStorage", "quota"), says: []string{"HTTP 507"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := startFake(t, false)
			s := f.open(t, store.Options{})
			f.faults.Set(tc.fault)
			err := audit(t.Context(), s)
			if len(tc.says) > 0 {
				want(t, err, nil, tc.says...)
				if errors.Is(err, store.ErrNotFound) {
					t.Errorf("%v is taken for a missing object", err)
				}
			} else if err != nil {
				t.Errorf("not got over: %v", err)
			}
			f.faults.Set()
			if err := audit(t.Context(), s); err != nil {
				t.Errorf("when the fault is over: %v", err)
			}
		})
	}
}

// TestLostAnswers: a creation whose answer was lost is known as one's own, and one that was beaten is not.
func TestLostAnswers(t *testing.T) {
	f := newFake(t, false)
	s := f.open(t, store.Options{})
	f.faults.Set(s3faults.First(1, writes, s3faults.LoseAnswers()))
	if _, err := s.Create(t.Context(), "slots/a.json", []byte("mine"), store.Attributes{}); err != nil {
		t.Fatalf("the object is ours: %v", err)
	}
	_, err := s.Create(t.Context(), "slots/a.json", []byte("mine"), store.Attributes{})
	want(t, err, store.ErrExists, "slots/a.json")

	got, err := s.Get(t.Context(), "slots/a.json")
	if err != nil {
		t.Fatal(err)
	}
	f.faults.Set(s3faults.First(1, writes, s3faults.LoseAnswers()))
	second, err := s.Replace(t.Context(), "slots/a.json", got.Version, []byte("mine, changed"), store.Attributes{})
	if err != nil {
		t.Fatalf("the change is ours: %v", err)
	}
	if _, err := s.Replace(t.Context(), "slots/a.json", second.Version, []byte("again"), store.Attributes{}); err != nil {
		t.Errorf("the version after a lost answer is not usable: %v", err)
	}
	// The request was lost before it did anything, and another was faster with the second try.
	f.faults.Set(s3faults.First(1, writes, func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		f.faults.Set()
		if _, err := s.Create(context.WithoutCancel(r.Context()), "slots/b.json", []byte("theirs"), store.Attributes{}); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	_, err = s.Create(t.Context(), "slots/b.json", []byte("mine"), store.Attributes{})
	want(t, err, store.ErrExists)
}

// TestCutBody: a body that ends early is fetched again, and is never taken for the object.
func TestCutBody(t *testing.T) {
	f := newFake(t, false)
	s := f.open(t, store.Options{})
	if _, err := s.Create(t.Context(), "a/b", []byte("0123456789"), store.Attributes{}); err != nil {
		t.Fatal(err)
	}
	f.faults.Set(s3faults.First(2, reads, s3faults.CutAnswers(4)))
	if got, err := s.Get(t.Context(), "a/b"); err != nil || string(got.Body) != "0123456789" {
		t.Errorf("after two cut answers: %q, %v", got.Body, err)
	}
	f.faults.Set(s3faults.CutAnswers(4))
	_, err := s.Get(t.Context(), "a/b")
	want(t, err, nil, "get s3://", "body ended after 4 of 10 bytes", "run again later")
	if n := len(f.faults.Requests()); n != bodyTries {
		t.Errorf("%d requests, want %d", n, bodyTries)
	}
}

// TestDeadline: a server that takes requests and never answers costs the caller's deadline, not more.
func TestDeadline(t *testing.T) {
	f := newFake(t, false)
	s := f.open(t, store.Options{})
	f.faults.Set(s3faults.Never())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.Create(ctx, "a/b", []byte("x"), store.Attributes{})
	want(t, err, context.DeadlineExceeded, "create s3://", "store.endpoint")
	_, err = s.Get(ctx, "a/b")
	want(t, err, context.DeadlineExceeded)
	for _, err := range s.List(ctx, "", "") {
		want(t, err, context.DeadlineExceeded)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestProbe: what doctor learns from a server that refuses, ignores or honours conditions.
func TestProbe(t *testing.T) {
	f := newFake(t, true) // checks no signatures, which would notice that headers are gone
	s := f.open(t, store.Options{Addressing: store.AddressingVirtual, Endpoint: "http://objects.example.internal"})
	f.faults.Set(s3faults.IgnoreConditions())
	got, err := store.Probe(t.Context(), s, "doctor 1")
	if err != nil || got.CreateHonoured || got.ReplaceHonoured {
		t.Errorf("a server that ignores conditions: %+v, %v", got, err)
	}
	f.faults.Set(s3faults.RefuseConditions())
	_, err = store.Probe(t.Context(), s, "doctor 2")
	want(t, err, nil, "store.conditions to off")
	f.faults.Set(s3faults.Every(func(r *http.Request) bool { return r.Method == http.MethodDelete }, 403, "AccessDenied", "Access Denied"))
	got, err = store.Probe(t.Context(), s, "doctor 3")
	want(t, err, nil, "remove the probe object", "s3:DeleteObject")
	if !got.CreateHonoured || !got.ReplaceHonoured {
		t.Errorf("a server that honours conditions: %+v", got)
	}
}
