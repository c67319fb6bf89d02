package s3

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"gpuaudit/store"
)

// address is where the bucket is reached.
type address struct {
	endpoint *url.URL // nil: AWS
	region   string
	virtual  bool
	err      error
}

// vendor is a cloud whose endpoints are known by their names.
type vendor struct {
	name string
	// host matches an endpoint; its group, if it has one, is the region.
	host *regexp.Regexp
}

// vendors serve the virtual-hosted style; most refuse the other one.
var vendors = []vendor{
	{"Amazon S3", regexp.MustCompile(`(?:^|\.)s3[.-](?:(?:dualstack|fips)[.-])?([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$`)},
	{"Amazon S3", regexp.MustCompile(`(?:^|\.)amazonaws\.com(?:\.cn)?$`)},
	{"Alibaba Cloud OSS", regexp.MustCompile(`(?:^|\.)oss-([a-z0-9-]+?)(?:-internal)?\.aliyuncs\.com$`)},
	{"Tencent Cloud COS", regexp.MustCompile(`(?:^|\.)cos(?:-internal)?\.([a-z0-9-]+)\.(?:myqcloud\.com|tencentcos\.(?:cn|com))$`)},
	{"Volcengine TOS", regexp.MustCompile(`(?:^|\.)tos-s3-([a-z0-9-]+)\.i?(?:volces|bytepluses)\.com$`)},
	{"Volcengine TOS", regexp.MustCompile(`(?:^|\.)tos-([a-z0-9-]+)\.i?(?:volces|bytepluses)\.com$`)},
	{"Huawei Cloud OBS", regexp.MustCompile(`(?:^|\.)obs\.([a-z0-9-]+)\.myhuaweicloud\.(?:com|cn)$`)},
	{"Baidu Cloud BOS", regexp.MustCompile(`(?:^|\.)s3\.([a-z0-9]+)\.bcebos\.com$`)},
	{"Kingsoft Cloud KS3", regexp.MustCompile(`(?:^|\.)ks3-([a-z0-9-]+?)(?:-internal)?\.ksyuncs\.com$`)},
	{"Google Cloud Storage", regexp.MustCompile(`^storage\.googleapis\.com$`)},
	{"DigitalOcean Spaces", regexp.MustCompile(`^([a-z0-9]+)\.digitaloceanspaces\.com$`)},
}

// vendorOf finds the vendor of an endpoint and its region, where the name holds one.
func vendorOf(host string) (v *vendor, region string) {
	for i := range vendors {
		if m := vendors[i].host.FindStringSubmatch(strings.ToLower(host)); m != nil {
			if len(m) > 1 {
				region = m[1]
			}
			return &vendors[i], region
		}
	}
	return nil, ""
}

// defaultRegion is what servers expect that have no regions.
const defaultRegion = "us-east-1"

func newAddress(endpoint, region, bucket string, addressing store.Addressing) address {
	a := address{region: region, virtual: true}
	known := false
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			a.err = errors.New("the S3 endpoint in AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile is not of the form https://host or http://host:port")
			return a
		}
		a.endpoint = u
		v, its := vendorOf(u.Hostname())
		known = v != nil
		if a.region == "" {
			a.region = its
		}
		if a.region == "" {
			a.region = defaultRegion
		}
	}
	if a.region == "" {
		a.err = errors.New("no region: set store.region, add ?region= to the URL, or set AWS_REGION")
		return a
	}
	switch addressing {
	case store.AddressingPath:
		a.virtual = false
	case store.AddressingVirtual:
		if a.endpoint != nil && isAddress(a.endpoint.Hostname()) {
			a.err = fmt.Errorf("addressing virtual with endpoint %q: a bucket cannot be a part of an IP address; give a host name, or set addressing to path", a.endpoint.Host)
		}
		if !hostLabel.MatchString(bucket) && a.err == nil {
			a.err = fmt.Errorf("addressing virtual: bucket %q cannot be part of a host name; set addressing to path", bucket)
		}
	default:
		a.virtual = (a.endpoint == nil || known) && hostLabel.MatchString(bucket)
	}
	return a
}

// hostLabel is a bucket name that can be one part of a host name under a wildcard certificate.
var hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{1,61}[a-z0-9])$`)

func isAddress(host string) bool { return net.ParseIP(host) != nil }

// object is the address of one object. The path is escaped as the protocol's signature wants it, which every server
// and browser understands.
func (a address) object(bucket, key string) string {
	u := url.URL{Scheme: "https", Host: "s3." + a.region + ".amazonaws.com"}
	if strings.HasPrefix(a.region, "cn-") {
		u.Host += ".cn"
	}
	if a.endpoint != nil {
		u.Scheme, u.Host, u.Path = a.endpoint.Scheme, a.endpoint.Host, strings.TrimSuffix(a.endpoint.Path, "/")
	}
	if a.virtual {
		u.Host = bucket + "." + u.Host
		u.Path += "/" + key
	} else {
		u.Path += "/" + bucket + "/" + key
	}
	return u.String()
}
