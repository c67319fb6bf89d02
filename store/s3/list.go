package s3

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"gpuaudit/store"
)

// List pages through ListObjectsV2. What a server leaves to the client is done here: keys up to after are passed over even if
// start-after was ignored, keys that are not ours (folder markers of a console) too, and a server that does not list in
// order is refused, because "the newest is the last" would be wrong on it.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: aws.String(s.bucket), Prefix: aws.String(s.prefix + prefix)}
		if after != "" {
			in.StartAfter = aws.String(s.prefix + after)
		}
		last := ""
		for page, err := range s.pages(ctx, in, prefix) {
			if err != nil {
				yield(store.Info{}, err)
				return
			}
			for _, object := range page.Contents {
				key := aws.ToString(object.Key)
				if key <= last {
					yield(store.Info{}, fmt.Errorf("list %q in %s: the server lists %q after %q; a store must list in the byte order of keys", prefix, s, key, last))
					return
				}
				last = key
				key, ours := strings.CutPrefix(key, s.prefix)
				if !ours || key <= after || !strings.HasPrefix(key, prefix) || store.CheckKey(key) != nil {
					continue
				}
				if !yield(store.Info{Key: key, Size: aws.ToInt64(object.Size), Modified: aws.ToTime(object.LastModified).UTC(), Version: aws.ToString(object.ETag)}, nil) {
					return
				}
			}
		}
	}
}

// Folders asks the server for the names up to the next "/".
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			return
		}
		in := &s3.ListObjectsV2Input{Bucket: aws.String(s.bucket), Prefix: aws.String(s.prefix + prefix), Delimiter: aws.String("/")}
		last := ""
		for page, err := range s.pages(ctx, in, prefix) {
			if err != nil {
				yield("", err)
				return
			}
			for _, common := range page.CommonPrefixes {
				name := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(common.Prefix), s.prefix+prefix), "/")
				if name == last || store.CheckKey(name) != nil {
					continue // the last name of a page may be the first of the next
				}
				if last != "" && name+"/" < last+"/" {
					yield("", fmt.Errorf("list folders of %q in %s: the server lists %q after %q; a store must list in the byte order of keys", prefix, s, name, last))
					return
				}
				last = name
				if !yield(name, nil) {
					return
				}
			}
		}
	}
}

// pages yields the pages of one listing. A server that says there is more and not where ends it with an error, since the
// part that is missing would count as empty.
func (s *Store) pages(ctx context.Context, in *s3.ListObjectsV2Input, prefix string) iter.Seq2[*s3.ListObjectsV2Output, error] {
	return func(yield func(*s3.ListObjectsV2Output, error) bool) {
		for {
			page, err := s.page(ctx, in, prefix)
			if !yield(page, err) || err != nil || !aws.ToBool(page.IsTruncated) {
				return
			}
			next := aws.ToString(page.NextContinuationToken)
			if next == "" || next == aws.ToString(in.ContinuationToken) {
				yield(nil, s.explain(ctx, "list", prefix, 0, errors.New("the server says that there is more, but not where it begins")))
				return
			}
			in.ContinuationToken = aws.String(next)
		}
	}
}

func (s *Store) page(ctx context.Context, in *s3.ListObjectsV2Input, prefix string) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := s.deadline(ctx, 0)
	defer cancel()
	page, err := s.client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, s.explain(ctx, "list", prefix, 0, err)
	}
	// The SDK reads any XML, a web page too, as a listing of nothing.
	if page.Name == nil && page.MaxKeys == nil && page.KeyCount == nil && page.IsTruncated == nil {
		return nil, s.foreign("list", prefix, "the answer is not a listing")
	}
	return page, nil
}
