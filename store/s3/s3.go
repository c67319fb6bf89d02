// Package s3 keeps a store's objects in a bucket of AWS S3 or of a server that speaks its protocol.
//
// Third-party servers differ most in what they refuse, so the requests are the plainest that do the work: PutObject
// with a known length, a signed hash of the payload, no chunked encoding, no trailers, no multi-part upload.
// Where a server needs more (a checksum header for object lock) or less (no conditions), a setting says so, and the
// error that one gets without it names the setting.
package s3

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"gpuaudit/store"
)

// Store is a bucket, or the part of one under a prefix.
type Store struct {
	client  *s3.Client
	options store.Options // with every default filled in
	bucket  string
	prefix  string // empty, or ends in "/"
	address address
	creds   aws.CredentialsProvider
	now     func() time.Time
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Presigner = (*Store)(nil)
)

// Open prepares a store. It reads the AWS configuration of the process's environment and files, but sends nothing: a
// wrong bucket or missing rights show at the first request.
func Open(ctx context.Context, at store.Location) (*Store, error) {
	return open(ctx, at, tuning{})
}

func open(ctx context.Context, at store.Location, tune tuning) (*Store, error) {
	if at.Kind != store.KindS3 {
		return nil, fmt.Errorf("open S3 store: location is %q, not %q", at.Kind, store.KindS3)
	}
	s := &Store{options: at.Options, bucket: at.Bucket, prefix: at.Prefix, now: time.Now}
	config, err := loadConfig(ctx, at.Options, tune)
	if err != nil {
		return nil, fmt.Errorf("open store s3://%s: %w", at.Bucket, err)
	}
	s.creds = config.Credentials
	s.client = s3.NewFromConfig(config, s.configure)
	if err := s.address.err; err != nil {
		return nil, fmt.Errorf("open store s3://%s: %w", at.Bucket, err)
	}
	return s, nil
}

// Conditional is false with conditions: off.
func (s *Store) Conditional() bool { return s.options.Conditions != store.ConditionsOff }

// String is the store's URL without parameters.
func (s *Store) String() string { return "s3://" + s.bucket + "/" + s.prefix }

// URL is the https address of an object. It answers only to those whom the bucket's policy lets in.
func (s *Store) URL(key string) string { return s.address.object(s.bucket, s.prefix+key) }

// The time that one operation may take, retries included: a part for the answer and a part for the bytes, at
// 50 kB/s, the slowest line that is still one. A caller's earlier deadline counts.
const (
	answerTime  = 90 * time.Second
	bytesPerSec = 50 << 10
	readTime    = 5 * time.Minute // the size is not known before
)

func (s *Store) deadline(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answerTime+time.Duration(size/bytesPerSec)*time.Second, errSlow)
}

var errSlow = errors.New("the server took too long")

// maxPresign is the longest that the protocol lets a presigned link live.
const maxPresign = 7 * 24 * time.Hour

// Presign signs a link. The credentials' own end is taken into account: a link signed with a role's token dies with it.
func (s *Store) Presign(ctx context.Context, key string, valid time.Duration) (string, time.Time, error) {
	if err := store.CheckKey(key); err != nil {
		return "", time.Time{}, err
	}
	if valid <= 0 || valid > maxPresign {
		return "", time.Time{}, fmt.Errorf("presign %q for %s: want more than 0 and at most %s, the protocol's limit", key, valid, maxPresign)
	}
	creds, err := s.creds.Retrieve(ctx)
	if err != nil {
		return "", time.Time{}, s.explain(ctx, "presign", key, 0, err)
	}
	until := s.now().Add(valid)
	if creds.CanExpire && creds.Expires.Before(until) {
		until = creds.Expires
	}
	signed, err := s3.NewPresignClient(s.client).PresignGetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + key),
	}, s3.WithPresignExpires(valid))
	if err != nil {
		return "", time.Time{}, s.explain(ctx, "presign", key, 0, err)
	}
	return signed.URL, until.UTC().Truncate(time.Second), nil
}
