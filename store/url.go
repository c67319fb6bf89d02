package store

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kind is where a store is.
type Kind string

// KindLocal is a folder, KindS3 a bucket of a server that speaks S3.
const (
	KindLocal Kind = "local"
	KindS3    Kind = "s3"
)

// Location is a store's Options with its URL taken apart.
type Location struct {
	Kind Kind
	// Dir is the folder, for KindLocal.
	Dir string
	// Bucket and Prefix are for KindS3. Prefix is empty or ends in "/".
	Bucket, Prefix string
	// Options with the URL's parameters in their fields and Endpoint in its full form.
	Options Options
}

const forms = "want s3://bucket/prefix?region=&endpoint=&addressing=auto|path|virtual, file:///dir, or a plain path"

// Resolve takes the URL apart and puts its parameters in the options. A parameter that contradicts a field which is
// set is an error, as neither is known to be meant.
func (o Options) Resolve() (Location, error) {
	raw := o.URL
	scheme, rest, hasScheme := strings.Cut(raw, "://")
	switch {
	case strings.TrimSpace(raw) == "":
		return Location{}, fmt.Errorf("store URL is empty: %s", forms)
	case strings.ContainsRune(raw, 0):
		return Location{}, fmt.Errorf("store URL %q: contains a zero byte", raw)
	case hasScheme && strings.EqualFold(scheme, "s3"):
		return o.resolveS3(rest)
	case hasScheme && strings.EqualFold(scheme, "file"):
		return o.resolveFile(raw)
	case hasScheme && schemeForm.MatchString(scheme):
		return Location{}, fmt.Errorf("store URL with scheme %q: %s", scheme, forms)
	case strings.HasPrefix(strings.ToLower(raw), "s3:"), strings.HasPrefix(strings.ToLower(raw), "file:"):
		return Location{}, fmt.Errorf("store URL %q: after the scheme comes \"//\": %s", raw, forms)
	}
	return Location{Kind: KindLocal, Dir: filepath.Clean(raw), Options: o}, o.Check()
}

var (
	schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	// bucketForm is what any of the servers takes; AWS itself is stricter and says so.
	bucketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)
)

func (o Options) resolveFile(raw string) (Location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Location{}, fmt.Errorf("store URL %q: not a URL; want file:///dir", raw)
	}
	switch {
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return Location{}, fmt.Errorf("store URL of a file: has a user, parameters or a fragment; want file:///dir, with \"?\" written %%3F and \"#\" written %%23")
	case u.Host != "" && u.Host != "localhost":
		return Location{}, fmt.Errorf("store URL %q: host %q in a file URL; want three slashes, file:///dir, or a plain path for a relative one", raw, u.Host)
	case u.Path == "":
		return Location{}, fmt.Errorf("store URL %q: names no folder; want file:///dir", raw)
	}
	return Location{Kind: KindLocal, Dir: filepath.Clean(filepath.FromSlash(u.Path)), Options: o}, o.Check()
}

// resolveS3 takes the part after "s3://".
func (o Options) resolveS3(rest string) (Location, error) {
	rest, query, _ := strings.Cut(rest, "?")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if strings.Contains(bucket, "@") {
		return Location{}, fmt.Errorf("store URL has a user or password before the bucket: credentials come from the environment, a profile or a web identity, never from the URL")
	}
	if !bucketForm.MatchString(bucket) {
		return Location{}, fmt.Errorf("store URL: bucket %q: want 3 to 63 letters, digits, \"-\", \".\" or \"_\" after s3://", bucket)
	}
	prefix, err := url.PathUnescape(prefix)
	if err != nil {
		return Location{}, fmt.Errorf("store URL: prefix: %w; write %% as %%25", err)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		if err := CheckKey(prefix); err != nil {
			return Location{}, fmt.Errorf("store URL: prefix: %w", err)
		}
		if len(prefix) > maxPrefix {
			return Location{}, fmt.Errorf("store URL: prefix of %d bytes, at most %d are allowed", len(prefix), maxPrefix)
		}
		prefix += "/"
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Location{}, fmt.Errorf("store URL: parameters: %w", err)
	}
	if o, err = o.withParameters(values); err != nil {
		return Location{}, err
	}
	if err := o.Check(); err != nil {
		return Location{}, err
	}
	if o.Endpoint != "" {
		endpoint, err := parseEndpoint(o.Endpoint)
		if err != nil {
			return Location{}, err
		}
		if strings.HasPrefix(strings.ToLower(endpoint.Host), strings.ToLower(bucket)+".") {
			return Location{}, fmt.Errorf("store endpoint %q: begins with the bucket's name; give the host without it, %q", o.Endpoint, endpoint.Host[len(bucket)+1:])
		}
		o.Endpoint = endpoint.String()
	}
	return Location{Kind: KindS3, Bucket: bucket, Prefix: prefix, Options: o}, nil
}

// maxPrefix and MaxKey together stay below the 1024 bytes of S3.
const maxPrefix = 200

// withParameters puts a URL's parameters in the fields they are named after.
func (o Options) withParameters(values url.Values) (Options, error) {
	fields := map[string]*string{
		"region": &o.Region, "endpoint": &o.Endpoint, "profile": &o.Profile, "kmsKeyID": &o.KMSKeyID, "caFile": &o.CAFile,
		"addressing": (*string)(&o.Addressing), "checksums": (*string)(&o.Checksums), "conditions": (*string)(&o.Conditions),
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list := values[name]
		if len(list) > 1 {
			return o, fmt.Errorf("store URL: parameter %q is given %d times; give it once", name, len(list))
		}
		value := list[0]
		if value == "" {
			continue
		}
		switch field := fields[name]; {
		case name == "objectLockDays":
			days, err := strconv.Atoi(value)
			if err != nil || o.ObjectLockDays != 0 && o.ObjectLockDays != days {
				return o, fmt.Errorf("store URL: objectLockDays %q: want one number of days, here or in the configuration", value)
			}
			o.ObjectLockDays = days
		case field == nil:
			known := append(slices.Sorted(maps.Keys(fields)), "objectLockDays")
			slices.Sort(known)
			return o, fmt.Errorf("store URL: unknown parameter %q: known are %s", name, strings.Join(known, ", "))
		case *field != "" && *field != value:
			return o, fmt.Errorf("store URL: parameter %s is %q, but the configuration says %q; give it once", name, value, *field)
		default:
			*field = value
		}
	}
	return o, nil
}

// parseEndpoint reads scheme://host[:port][/path]; a host name alone means https.
func parseEndpoint(raw string) (*url.URL, error) {
	text := raw
	if !strings.Contains(text, "://") {
		host := text
		if h, _, err := net.SplitHostPort(text); err == nil {
			host = h
		}
		if host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil {
			return nil, fmt.Errorf("store endpoint %q: has no scheme; write http://%s or https://%s", raw, raw, raw)
		}
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The error of url.Parse repeats the text, which may hold a password.
		return nil, fmt.Errorf("store endpoint is not a URL: want https://host or http://host:port")
	case u.User != nil:
		return nil, fmt.Errorf("store endpoint with host %q has a user or password in it: credentials come from the environment, a profile or a web identity", u.Host)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("store endpoint %q: scheme %q; want http or https", raw, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("store endpoint %q: has no host", raw)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("store endpoint %q: has parameters; want https://host or http://host:port", raw)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}
