package s3

import (
	"bytes"
	"context"
	"crypto/md5" // #nosec G501 -- Content-MD5 is the protocol's integrity header
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"gpuaudit/store"
)

// bodyTries is how often the body of one object is fetched when it is cut off on the way.
const bodyTries = 3

// Get reads an object whole. A body that ends early is fetched again.
func (s *Store) Get(ctx context.Context, key string) (store.Object, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Object{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errSlow)
	defer cancel()
	for try := 1; ; try++ {
		object, retry, err := s.get(ctx, key)
		if err == nil || !retry || try == bodyTries {
			return object, err
		}
		if err := store.Pause(ctx, try+3); err != nil {
			return store.Object{}, s.explain(ctx, "get", key, 0, err)
		}
	}
}

func (s *Store) get(ctx context.Context, key string) (object store.Object, retry bool, err error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + key)})
	if err != nil {
		var failed *Error
		err = s.explain(ctx, "get", key, 0, err)
		// An error without a code was cut off before it said what is missing.
		return store.Object{}, errors.As(err, &failed) && failed.Status == http.StatusNotFound && !failed.coded, err
	}
	defer out.Body.Close()
	if aws.ToString(out.ETag) == "" {
		return store.Object{}, false, s.foreign("get", key, "the answer has no ETag")
	}
	size := aws.ToInt64(out.ContentLength)
	if size > store.MaxObject {
		return store.Object{}, false, fmt.Errorf("get %q in %s: %w: %d bytes, at most %d", key, s, store.ErrTooLarge, size, store.MaxObject)
	}
	body, err := io.ReadAll(io.LimitReader(out.Body, store.MaxObject+1))
	if err == nil && out.ContentLength != nil && int64(len(body)) != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return store.Object{}, ctx.Err() == nil, s.explain(ctx, "get", key, 0, fmt.Errorf("the body ended after %d of %d bytes: %w", len(body), size, err))
	}
	if len(body) > store.MaxObject {
		return store.Object{}, false, fmt.Errorf("get %q in %s: %w: more than %d bytes", key, s, store.ErrTooLarge, store.MaxObject)
	}
	info := store.Info{Key: key, Size: int64(len(body)), Modified: aws.ToTime(out.LastModified).UTC(), Version: aws.ToString(out.ETag)}
	return store.Object{Info: info, Body: body}, false, nil
}

// Stat describes an object. The answer to a HEAD has no body that says what is missing, the object or the bucket, so a
// missing one is asked for again by Get.
func (s *Store) Stat(ctx context.Context, key string) (store.Info, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Info{}, err
	}
	ctx, cancel := s.deadline(ctx, 0)
	defer cancel()
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + key)})
	var failed *Error
	if err = s.explain(ctx, "head", key, 0, err); errors.As(err, &failed) && failed.Status == http.StatusNotFound {
		object, err := s.Get(ctx, key)
		return object.Info, err
	}
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified).UTC(), Version: aws.ToString(out.ETag)}, nil
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	ctx, cancel := s.deadline(ctx, 0)
	defer cancel()
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + key)})
	if err = s.explain(ctx, "delete", key, 0, err); errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// conflictTries bounds how often a creation is sent again that the server could not decide (409).
const conflictTries = 6

// Create writes an object with If-None-Match: *. With conditions: off it looks first, which two writers at the same instant
// both survive; the archive's names are unique for that reason.
func (s *Store) Create(ctx context.Context, key string, body []byte, attr store.Attributes) (store.Info, error) {
	if !s.Conditional() {
		_, err := s.Stat(ctx, key)
		switch {
		case err == nil:
			return store.Info{}, &Error{Op: "create", Bucket: s.bucket, Key: s.prefix + key, Kind: store.ErrExists}
		case !errors.Is(err, store.ErrNotFound):
			return store.Info{}, err
		}
		return s.put(ctx, "create", key, body, attr, nil)
	}
	condition := func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }
	for try := 0; ; try++ {
		info, err := s.put(ctx, "create", key, body, attr, condition)
		var conflict *Error
		if !errors.As(err, &conflict) || !conflict.undecided() || try == conflictTries {
			return info, err
		}
		if err := store.Pause(ctx, try); err != nil {
			return store.Info{}, s.explain(ctx, "create", key, 0, err)
		}
	}
}

// Put writes an object.
func (s *Store) Put(ctx context.Context, key string, body []byte, attr store.Attributes) (store.Info, error) {
	return s.put(ctx, "put", key, body, attr, nil)
}

// Replace writes an object with If-Match. With conditions: off it compares first.
func (s *Store) Replace(ctx context.Context, key, version string, body []byte, attr store.Attributes) (store.Info, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Info{}, err
	}
	if s.Conditional() {
		return s.put(ctx, "replace", key, body, attr, func(in *s3.PutObjectInput) { in.IfMatch = aws.String(version) })
	}
	there, err := s.Stat(ctx, key)
	if err == nil && there.Version != version || errors.Is(err, store.ErrNotFound) {
		return store.Info{}, &Error{Op: "replace", Bucket: s.bucket, Key: s.prefix + key, Kind: store.ErrChanged}
	}
	if err != nil {
		return store.Info{}, err
	}
	return s.put(ctx, "replace", key, body, attr, nil)
}

func (s *Store) put(ctx context.Context, op, key string, body []byte, attr store.Attributes, condition func(*s3.PutObjectInput)) (store.Info, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Info{}, err
	}
	opCtx, cancel := s.deadline(ctx, len(body))
	defer cancel()
	in := s.input(key, body, attr)
	if condition != nil {
		condition(in)
	}
	var tries tryCounter
	out, err := s.client.PutObject(opCtx, in, tries.count, signPayload)
	if err != nil {
		err = s.explain(opCtx, op, key, tries.n, err)
		if condition != nil && tries.n > 1 && (errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrChanged)) {
			return s.perhapsOurs(ctx, key, body, err)
		}
		return store.Info{}, err
	}
	info := store.Info{Key: key, Size: int64(len(body)), Modified: s.now().UTC(), Version: aws.ToString(out.ETag)}
	if info.Version == "" {
		// Every server gives the ETag. What does not may be a proxy's friendly page: ask whether the object is there.
		stat, err := s.Stat(ctx, key)
		if err == nil && (stat.Size != int64(len(body)) || stat.Version == "") {
			err = fmt.Errorf("the server answered without an ETag and then gave %d bytes, not %d", stat.Size, len(body))
		}
		if err != nil {
			return store.Info{}, fmt.Errorf("%s %q in %s: the write was not confirmed: %w; %s", op, key, s, err, otherServer)
		}
		return stat, nil
	}
	return info, nil
}

// perhapsOurs looks at the object after a condition failed on a second try: the first may have written it and only its
// answer was lost. The same bytes are then ours.
func (s *Store) perhapsOurs(ctx context.Context, key string, body []byte, refused error) (store.Info, error) {
	there, err := s.Get(ctx, key)
	if err == nil && bytes.Equal(there.Body, body) {
		return there.Info, nil
	}
	return store.Info{}, refused
}

func (s *Store) input(key string, body []byte, attr store.Attributes) *s3.PutObjectInput {
	in := &s3.PutObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + key),
		Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))),
		ContentType: aws.String(attr.ContentType),
	}
	if attr.ContentType == "" {
		in.ContentType = aws.String(store.ContentType(key))
	}
	if attr.ContentEncoding != "" {
		in.ContentEncoding = aws.String(attr.ContentEncoding)
	}
	if attr.CacheControl != "" {
		in.CacheControl = aws.String(attr.CacheControl)
	}
	switch s.options.Checksums {
	case store.ChecksumsOn:
		sum := sha256.Sum256(body)
		in.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
	case store.ChecksumsMD5:
		sum := md5.Sum(body) // #nosec G401 -- the protocol's integrity header
		in.ContentMD5 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
	}
	if s.options.KMSKeyID != "" {
		in.ServerSideEncryption, in.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, aws.String(s.options.KMSKeyID)
	}
	if attr.Retain && s.options.ObjectLockDays > 0 {
		in.ObjectLockMode = types.ObjectLockModeGovernance
		in.ObjectLockRetainUntilDate = aws.Time(s.now().UTC().Add(time.Duration(s.options.ObjectLockDays) * 24 * time.Hour))
	}
	return in
}
