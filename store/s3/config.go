package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"gpuaudit/store"
)

// Retries of one operation: four tries with pauses of up to five seconds bridge a server that restarts, and let a run
// with a dead store end soon.
const (
	maxTries   = 4
	maxBackoff = 5 * time.Second
)

// headerTime is how long a server may be silent before its answer begins.
const headerTime = 60 * time.Second

// tuning is what tests adjust.
type tuning struct {
	transport  func(*http.Transport)
	maxBackoff time.Duration
}

// loadConfig is the SDK's own search (environment, files, web identity, the machine) with our options first.
func loadConfig(ctx context.Context, o store.Options, tune tuning) (aws.Config, error) {
	client, err := httpClient(o.CAFile, tune.transport)
	if err != nil {
		return aws.Config{}, err
	}
	backoff := maxBackoff
	if tune.maxBackoff > 0 {
		backoff = tune.maxBackoff
	}
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		// The SDK's warnings about checksums it did not verify are not for our users.
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(ro *retry.StandardOptions) {
				ro.MaxAttempts, ro.MaxBackoff = maxTries, backoff
			})
		}),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w; see store.profile, AWS_PROFILE, AWS_CA_BUNDLE and the files in ~/.aws", err)
	}
	return loaded, nil
}

// httpClient keeps the SDK's own kind of client: with any other, AWS_CA_BUNDLE makes loading the configuration
// fail. Proxies come from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as its transport reads them.
func httpClient(caFile string, tune func(*http.Transport)) (*awshttp.BuildableClient, error) {
	var pool *x509.CertPool
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("store.caFile: %w", err)
		}
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("store.caFile %q: holds no PEM certificate", caFile)
		}
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.ResponseHeaderTimeout = headerTime
		tr.MaxIdleConnsPerHost = 32
		if pool != nil {
			if tr.TLSClientConfig == nil {
				tr.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			tr.TLSClientConfig.RootCAs = pool
		}
		if tune != nil {
			tune(tr)
		}
	}), nil
}

// configure sets what the S3 client does differently from the SDK's defaults, and fills in the defaults of our options
// that depend on the server. The endpoint may also come from AWS_ENDPOINT_URL_S3 or a profile; only here is it known.
func (s *Store) configure(o *s3.Options) {
	if s.options.Endpoint != "" {
		o.BaseEndpoint = aws.String(s.options.Endpoint)
	}
	s.address = newAddress(aws.ToString(o.BaseEndpoint), o.Region, s.bucket, s.options.Addressing)
	if s.address.endpoint != nil {
		o.BaseEndpoint = aws.String(s.address.endpoint.String())
	}
	o.Region = s.address.region
	o.UsePathStyle = !s.address.virtual
	s.options.Checksums = checksums(s.options, s.address.endpoint == nil)
	// The SDK's default, a trailing CRC32 in chunked encoding, is refused or stored with the object by other servers.
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	o.DisableLogOutputChecksumValidationSkipped = true
	// No "Expect: 100-continue": proxies answer it themselves, or never.
	o.ContinueHeaderThresholdBytes = -1
}

// checksums settles ChecksumsAuto: AWS checks a SHA-256 header, object lock needs a checksum everywhere, and for the rest
// the signed hash of the payload does the same.
func checksums(o store.Options, isAWS bool) store.Checksums {
	if o.Checksums != "" && o.Checksums != store.ChecksumsAuto {
		return o.Checksums
	}
	if isAWS || o.ObjectLockDays > 0 {
		return store.ChecksumsOn
	}
	return store.ChecksumsOff
}
