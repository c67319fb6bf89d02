package s3

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"gpuaudit/store"
)

// rights are what each operation needs in a policy.
var rights = map[string]string{
	"get": "s3:GetObject", "head": "s3:GetObject", "presign": "s3:GetObject", "create": "s3:PutObject", "put": "s3:PutObject",
	"replace": "s3:PutObject", "delete": "s3:DeleteObject", "list": "s3:ListBucket",
}

// wrongStyle are the codes by which servers refuse a path-style or a virtual-hosted request.
var wrongStyle = []string{"SecondLevelDomainForbidden", "PathStyleDomainForbidden", "InvalidPathAccess", "PathStyleAccessForbidden", "VirtualHostDomainRequired", "InvalidVirtualHost"}

// unknownHeader are the codes by which servers refuse a header that they do not know.
var unknownHeader = []string{"NotImplemented", "InvalidArgument", "InvalidRequest", "UnsupportedHeader", "XAmzContentSHA256Mismatch", "InvalidDigest", "BadDigest", "MissingContentLength", "UnexpectedContent", "Not Implemented", "Bad Request"}

// hint says which setting may help against what the server said.
func (s *Store) hint(e *Error, header http.Header, tries int, err error) string {
	if e.Kind != nil {
		return ""
	}
	switch {
	case e.Status == 0:
		return s.networkHint(e, err)
	case e.Status/100 == 2:
		return otherServer
	}
	text := strings.ToLower(e.Code + " " + e.Message)
	writes := e.Op == "create" || e.Op == "put" || e.Op == "replace"
	lock := writes && s.options.ObjectLockDays > 0
	switch {
	case strings.HasPrefix(e.Code, "KMS.") || mentions(text, "kms", "key management"):
		return "see store.kmsKeyID and the right to use that key (kms:GenerateDataKey, kms:Decrypt)"
	case slices.Contains(wrongStyle, e.Code) || strings.Contains(text, "virtual") && (strings.Contains(text, "style") || strings.Contains(text, "host")) || strings.Contains(text, "second level domain"):
		return s.styleHint()
	case writes && (strings.Contains(text, "object lock") || strings.Contains(text, "objectlock")) && mentions(text, "md5", "checksum"):
		return "the bucket's object lock needs a checksum: set store.checksums to on, or to md5 where the server knows only Content-MD5"
	case lock && (strings.Contains(text, "object lock") || strings.Contains(text, "objectlock") || strings.Contains(text, "retention")):
		return "create the bucket with object lock enabled, or set store.objectLockDays to 0"
	case writes && mentions(text, "checksum", "content-md5", "aws-chunked", "trailer", "digest", "x-amz-sdk"):
		return s.checksumHint(text)
	case e.Op != "put" && writes && s.Conditional() && (mentions(text, "if-none-match", "if-match", "condition") || e.Status == http.StatusNotImplemented || slices.Contains(unknownHeader, e.Code)):
		return s.conditionHint()
	case writes && slices.Contains(unknownHeader, e.Code) && s.options.Checksums != store.ChecksumsOff:
		return "if the server refuses checksum headers, set store.checksums to off"
	}
	return s.accessHint(e, header, tries)
}

// otherServer is for answers that no S3 server gives.
const otherServer = "something else answers under that address: see store.endpoint, and whether a proxy or a login page is in between"

func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

func (s *Store) styleHint() string {
	if s.address.virtual {
		return "the server does not take the bucket in the host name: set store.addressing to path"
	}
	return "the server takes the bucket only in the host name: set store.addressing to virtual"
}

func (s *Store) checksumHint(text string) string {
	needs := mentions(text, "required", "missing", "must")
	if s.options.Checksums == store.ChecksumsOff && !needs {
		return ""
	}
	if needs {
		return "the server needs a checksum: set store.checksums to on, or to md5 where it knows only Content-MD5"
	}
	return "the server refuses the checksum header: set store.checksums to off"
}

func (s *Store) conditionHint() string {
	hint := "if the server refuses If-None-Match and If-Match on writes, set store.conditions to off and let only one audit write to the store"
	if s.options.Checksums != store.ChecksumsOff {
		hint += "; if it refuses checksum headers, set store.checksums to off"
	}
	return hint
}

// accessHint is about who, where and when rather than what.
func (s *Store) accessHint(e *Error, header http.Header, tries int) string {
	region := plain(header.Get("X-Amz-Bucket-Region"), maxMessage)
	switch {
	case e.Code == "NoSuchBucket" && s.address.virtual && s.address.endpoint != nil:
		return "make the bucket, or correct its name in store.url and the server in store.endpoint; a server that takes the bucket only in the path needs store.addressing path"
	case e.Code == "NoSuchBucket":
		return "make the bucket, or correct its name in store.url and the server in store.endpoint"
	case e.Status == http.StatusMovedPermanently || e.Status == http.StatusTemporaryRedirect || e.Code == "PermanentRedirect" || e.Code == "AuthorizationHeaderMalformed" || e.Code == "IllegalLocationConstraintException":
		if region != "" {
			return fmt.Sprintf("the bucket is in region %q: set store.region to it", region)
		}
		return "the bucket is in another region: set store.region (and store.endpoint) to the bucket's"
	case e.Code == "RequestTimeTooSkewed":
		return "set this machine's clock: it is too far from the server's"
	case e.Code == "InvalidAccessKeyId" || e.Code == "XAdminUserNotFound" || e.Code == "ExpiredToken" || e.Code == "InvalidToken" || e.Code == "TokenRefreshRequired":
		return "the credentials are not valid (any more): see store.profile, AWS_ACCESS_KEY_ID or the role"
	case e.Code == "SignatureDoesNotMatch":
		return "see the secret key, store.region, store.addressing, and whether a proxy changes requests on the way"
	case e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized:
		hint := fmt.Sprintf("the credentials need %s on the bucket", rights[e.Op])
		if e.Op == "get" || e.Op == "head" {
			hint += ", and s3:ListBucket, without which a missing object looks forbidden"
		}
		if s.options.Addressing == "" || s.options.Addressing == store.AddressingAuto {
			hint += "; some servers answer the wrong addressing style with this code too, see store.addressing"
		}
		return hint
	case e.Status == http.StatusTooManyRequests || e.Status >= 500:
		if tries > 1 {
			return fmt.Sprintf("the server failed %d times in a row; run again later", tries)
		}
		return "the server failed; run again later"
	case e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotFound:
		return "see store.endpoint and store.addressing: this server may not know the bucket under that address"
	}
	return ""
}

// networkHint is for requests that got no answer.
func (s *Store) networkHint(e *Error, err error) string {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	text := err.Error()
	switch {
	case errors.Is(e.Cause, context.Canceled):
		return ""
	case errors.As(err, &dns) && s.address.virtual && s.address.endpoint != nil:
		return "see store.endpoint; if the host itself is right, the server has no name for the bucket: set store.addressing to path"
	case errors.As(err, &dns):
		return "see store.endpoint and store.region"
	case errors.As(err, &host) && s.address.virtual:
		return "the server's certificate does not cover the bucket's host name: set store.addressing to path"
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &host):
		return "see the server's certificate; a private CA goes into store.caFile"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the server speaks http: write http:// in store.endpoint"
	case e.Op == "get" && strings.Contains(text, "body ended"):
		return "the line or a proxy cuts answers off; run again later"
	}
	return "see store.endpoint, and HTTPS_PROXY and NO_PROXY if there is a proxy"
}
