package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Options say where the store is and how to speak to it. They mirror the `store:` block of the configuration and
// the parameters of a store URL. Credentials are never among them: they come from the environment, a profile, a
// web identity or the machine, as the AWS SDK finds them.
type Options struct {
	// URL: s3://bucket/prefix, file:///dir, or a plain path. Parameters in it may set every field below.
	URL string `json:"url,omitempty"`
	// Region signs requests. Empty: AWS_REGION or the profile; with an endpoint that needs none, us-east-1.
	Region string `json:"region,omitempty"`
	// Endpoint of a server that is not AWS, e.g. "https://oss-cn-hangzhou.aliyuncs.com". Empty: AWS_ENDPOINT_URL_S3,
	// the profile, or AWS.
	Endpoint string `json:"endpoint,omitempty"`
	// Addressing is where the bucket's name goes. Empty is AddressingAuto.
	Addressing Addressing `json:"addressing,omitempty"`
	// Profile of the shared AWS configuration files.
	Profile string `json:"profile,omitempty"`
	// Checksums is which integrity header a write carries. Empty is ChecksumsAuto.
	Checksums Checksums `json:"checksums,omitempty"`
	// Conditions is whether the server decides Create and Replace (If-None-Match, If-Match). Empty is ConditionsOn.
	Conditions Conditions `json:"conditions,omitempty"`
	// KMSKeyID encrypts objects with this key of the provider's key service (SSE-KMS). Empty: as the bucket does.
	KMSKeyID string `json:"kmsKeyID,omitempty"`
	// ObjectLockDays protects snapshots, chain headers and reports from deletion for so many days from their writing
	// (object lock, governance mode). 0: as the bucket does.
	ObjectLockDays int `json:"objectLockDays,omitempty"`
	// Keep is how long snapshots and reports are kept; older ones are removed after a run. 0: for ever.
	Keep Keep `json:"keep,omitempty"`
	// CAFile holds PEM certificates to trust in addition to the system's, for an endpoint with a private CA.
	CAFile string `json:"caFile,omitempty"`
}

// Addressing is the place of the bucket's name in a request.
type Addressing string

// AddressingAuto is virtual for AWS and the cloud vendors known to want it, and path for the rest (IP addresses,
// localhost, MinIO, Ceph). AddressingPath is https://host/bucket/key, AddressingVirtual https://bucket.host/key.
const (
	AddressingAuto    Addressing = "auto"
	AddressingPath    Addressing = "path"
	AddressingVirtual Addressing = "virtual"
)

// Checksums is the integrity header of a write, beside the signed hash of the payload that every request has.
type Checksums string

// ChecksumsAuto sends a precomputed SHA-256 header to AWS and where object lock needs it, and none to other servers
// (some refuse it). ChecksumsOn always sends it, ChecksumsMD5 sends Content-MD5 instead, for servers whose object
// lock knows only that. ChecksumsOff sends none.
const (
	ChecksumsAuto Checksums = "auto"
	ChecksumsOn   Checksums = "on"
	ChecksumsMD5  Checksums = "md5"
	ChecksumsOff  Checksums = "off"
)

// Conditions is whether the server is asked to decide who was first.
type Conditions string

// ConditionsOff is for servers that refuse or ignore If-None-Match and If-Match on writes. Unique names still keep
// everything apart, but only one writer a cluster is then safe.
const (
	ConditionsOn  Conditions = "on"
	ConditionsOff Conditions = "off"
)

// UnmarshalJSON also takes true and false: YAML reads an unquoted on and off as booleans.
func (c *Checksums) UnmarshalJSON(raw []byte) error { return unmarshalSwitch(raw, c, "checksums") }

// UnmarshalJSON also takes true and false: YAML reads an unquoted on and off as booleans.
func (c *Conditions) UnmarshalJSON(raw []byte) error { return unmarshalSwitch(raw, c, "conditions") }

func unmarshalSwitch[T ~string](raw []byte, into *T, field string) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	switch v := v.(type) {
	case nil:
		*into = ""
	case bool:
		*into = "off"
		if v {
			*into = "on"
		}
	case string:
		*into = T(v)
	default:
		return fmt.Errorf("%s: %s is neither on nor off", field, raw)
	}
	return nil
}

// Keep is a duration that may be written in days or weeks ("400d", "8w"), or as Go writes durations ("720h").
type Keep time.Duration

// ParseKeep reads what Keep.String writes.
func ParseKeep(text string) (Keep, error) {
	d, err := time.ParseDuration(text)
	for unit, hours := range map[string]int64{"d": 24, "w": 7 * 24} {
		number, found := strings.CutSuffix(text, unit)
		if !found {
			continue
		}
		var n int64
		if n, err = strconv.ParseInt(number, 10, 64); err == nil && n > 100*366*24/hours {
			err = fmt.Errorf("longer than a century")
		}
		d = time.Duration(n*hours) * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("keep %q: want a number of days or weeks such as \"400d\" or \"8w\", or a duration such as \"720h\"", text)
	}
	if d != 0 && d < time.Hour {
		return 0, fmt.Errorf("keep %q: must be 0 (for ever) or at least 1h", text)
	}
	return Keep(d), nil
}

// String writes whole days as days.
func (k Keep) String() string {
	d := time.Duration(k)
	if d != 0 && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	return d.String()
}

// MarshalText and UnmarshalText make Keep a string in configuration files.
func (k Keep) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalJSON takes numbers too: YAML reads an unquoted 0 as one.
func (k *Keep) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	return k.UnmarshalText([]byte(strings.Trim(string(raw), `"`)))
}

// UnmarshalText reads ParseKeep's form.
func (k *Keep) UnmarshalText(text []byte) error {
	parsed, err := ParseKeep(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}

// MaxLockDays bounds ObjectLockDays: what is locked by a slip of the finger stays locked.
const MaxLockDays = 3660

// Check reports the first field that has no meaning.
func (o Options) Check() error {
	switch o.Addressing {
	case "", AddressingAuto, AddressingPath, AddressingVirtual:
	default:
		return fmt.Errorf("store addressing %q: want auto, path or virtual", o.Addressing)
	}
	switch o.Checksums {
	case "", ChecksumsAuto, ChecksumsOn, ChecksumsMD5, ChecksumsOff:
	default:
		return fmt.Errorf("store checksums %q: want auto, on, md5 or off", o.Checksums)
	}
	switch o.Conditions {
	case "", ConditionsOn, ConditionsOff:
	default:
		return fmt.Errorf("store conditions %q: want on or off", o.Conditions)
	}
	if o.ObjectLockDays < 0 || o.ObjectLockDays > MaxLockDays {
		return fmt.Errorf("store objectLockDays %d: want 0 to %d", o.ObjectLockDays, MaxLockDays)
	}
	if o.ObjectLockDays > 0 && o.Checksums == ChecksumsOff {
		return fmt.Errorf("store objectLockDays %d with checksums off: object lock refuses writes without a checksum; set checksums to on, or to md5 where the server knows only Content-MD5", o.ObjectLockDays)
	}
	if o.Keep < 0 {
		return fmt.Errorf("store keep %q: must not be negative", o.Keep)
	}
	if o.Endpoint != "" {
		if _, err := parseEndpoint(o.Endpoint); err != nil {
			return err
		}
	}
	return nil
}
