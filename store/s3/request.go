package s3

import (
	"context"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// tryCounter counts how often the SDK sent one request. It says so in its answers, but not with its errors.
type tryCounter struct{ n int }

// count is an option for one call.
func (t *tryCounter) count(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("countTries",
			func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				t.n++
				return next.HandleFinalize(ctx, in)
			}), "Retry", middleware.After)
	})
}

// signPayload is an option for one write: the hash of the payload is part of the signature over TLS too, where the SDK leaves
// it out. Every server verifies it, so it is the one check of the bytes that needs no header which some refuse.
func signPayload(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		signed := &v4.ComputePayloadSHA256{}
		_, err := stack.Finalize.Swap(signed.ID(), signed)
		return err
	})
}
