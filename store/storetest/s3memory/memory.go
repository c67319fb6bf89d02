// Package s3memory is an S3 server in memory for tests: github.com/rclone/gofakes3, which is developed apart from this project
// and checks signatures, payload hashes and conditions.
package s3memory

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// Options of a server.
type Options struct {
	// Bucket is made at the start.
	Bucket string
	// AccessKey and Secret that requests must be signed with; empty: signatures are not checked.
	AccessKey, Secret string
	// HostBucket takes the bucket from the host name instead of the path. Signatures are not checked then.
	HostBucket bool
}

// New gives the server's handler.
func New(o Options) (http.Handler, error) {
	b := &backend{Backend: s3mem.New()}
	if err := b.CreateBucket(context.Background(), o.Bucket); err != nil {
		return nil, fmt.Errorf("make bucket %q: %w", o.Bucket, err)
	}
	options := []gofakes3.Option{
		gofakes3.WithIntegrityCheck(true), gofakes3.WithHostBucket(o.HostBucket),
		gofakes3.WithLogger(gofakes3.StdLog(log.New(io.Discard, "", 0))),
	}
	if o.AccessKey != "" && !o.HostBucket {
		options = append(options, gofakes3.WithV4Auth(map[string]string{o.AccessKey: o.Secret}))
	}
	return gofakes3.New(b, options...).Server(), nil
}

// backend makes up for two things in which the server is not like a real one.
type backend struct {
	*s3mem.Backend
	writes sync.Mutex
}

// PutObject checks the conditions and writes in one step. The server itself checks only before.
func (b *backend) PutObject(ctx context.Context, bucket, key string, meta map[string]string, body io.Reader, size int64) (gofakes3.PutObjectResult, error) {
	b.writes.Lock()
	defer b.writes.Unlock()
	if gofakes3.HasWriteConditions(ctx) {
		etag := ""
		there, err := b.HeadObject(ctx, bucket, key)
		if err != nil && !gofakes3.HasErrorCode(err, gofakes3.ErrNoSuchKey) {
			return gofakes3.PutObjectResult{}, err
		}
		if err == nil {
			etag = hex.EncodeToString(there.Hash)
		}
		if err := gofakes3.CheckWriteConditions(ctx, err == nil, etag); err != nil {
			return gofakes3.PutObjectResult{}, err
		}
	}
	return b.Backend.PutObject(ctx, bucket, key, meta, body, size)
}

// ListBucket begins after the marker even if the marker is no key. The server leaves out the key that follows such a one.
func (b *backend) ListBucket(ctx context.Context, bucket string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList, error) {
	if page.Marker == "" {
		return b.Backend.ListBucket(ctx, bucket, prefix, page)
	}
	if _, err := b.HeadObject(ctx, bucket, page.Marker); err == nil {
		return b.Backend.ListBucket(ctx, bucket, prefix, page)
	}
	all, err := b.Backend.ListBucket(ctx, bucket, nil, gofakes3.ListBucketPage{})
	if err != nil {
		return nil, err
	}
	before := ""
	for _, item := range all.Contents {
		if item.Key > page.Marker {
			break
		}
		before = item.Key
	}
	page.Marker, page.HasMarker = before, before != ""
	return b.Backend.ListBucket(ctx, bucket, prefix, page)
}
