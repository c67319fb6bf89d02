// Package open opens the store that a URL names. It is apart from package store so that the backends can import that.
package open

import (
	"context"

	"gpuaudit/store"
	"gpuaudit/store/local"
	"gpuaudit/store/s3"
)

// Store opens the store that the options name. It sends nothing and makes no folder; both happen at the first use.
func Store(ctx context.Context, options store.Options) (store.Store, error) {
	at, err := options.Resolve()
	if err != nil {
		return nil, err
	}
	if at.Kind == store.KindS3 {
		bucket, err := s3.Open(ctx, at)
		if err != nil {
			return nil, err
		}
		return bucket, nil
	}
	folder, err := local.Open(at.Dir)
	if err != nil {
		return nil, err
	}
	return folder, nil
}
