package store

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestResolve(t *testing.T) {
	for _, tc := range []struct {
		options Options
		want    Location
	}{
		{Options{URL: "./audit-data"}, Location{Kind: KindLocal, Dir: "audit-data"}},
		{Options{URL: "/var/lib/audit/"}, Location{Kind: KindLocal, Dir: "/var/lib/audit"}},
		{Options{URL: "dir with ? and # and %20"}, Location{Kind: KindLocal, Dir: "dir with ? and # and %20"}},
		{Options{URL: "上海"}, Location{Kind: KindLocal, Dir: "上海"}},
		{Options{URL: "a:b"}, Location{Kind: KindLocal, Dir: "a:b"}},
		{Options{URL: "file:///var/lib/audit"}, Location{Kind: KindLocal, Dir: "/var/lib/audit"}},
		{Options{URL: "FILE://localhost/a%20b/%3F"}, Location{Kind: KindLocal, Dir: "/a b/?"}},
		{Options{URL: "s3://bucket"}, Location{Kind: KindS3, Bucket: "bucket"}},
		{Options{URL: "s3://bucket/"}, Location{Kind: KindS3, Bucket: "bucket"}},
		{Options{URL: "S3://bucket/team/a/"}, Location{Kind: KindS3, Bucket: "bucket", Prefix: "team/a/"}},
		{Options{URL: "s3://bucket-1250000000/%E4%B8%8A?"}, Location{Kind: KindS3, Bucket: "bucket-1250000000", Prefix: "上/"}},
		{
			Options{URL: "s3://b.c/p?region=cn-north-1&endpoint=http://127.0.0.1:9000/&addressing=path&checksums=md5&conditions=off&profile=x&kmsKeyID=k&objectLockDays=30&caFile=/ca.pem"},
			Location{Kind: KindS3, Bucket: "b.c", Prefix: "p/", Options: Options{
				Region: "cn-north-1", Endpoint: "http://127.0.0.1:9000", Addressing: AddressingPath, Checksums: ChecksumsMD5, Conditions: ConditionsOff,
				Profile: "x", KMSKeyID: "k", ObjectLockDays: 30, CAFile: "/ca.pem",
			}},
		},
		{Options{URL: "s3://bucket?region=r", Region: "r"}, Location{Kind: KindS3, Bucket: "bucket", Options: Options{Region: "r"}}},
		{Options{URL: "s3://bucket?region=", Region: "r"}, Location{Kind: KindS3, Bucket: "bucket", Options: Options{Region: "r"}}},
		{
			Options{URL: "s3://bucket", Endpoint: "oss-cn-hangzhou.aliyuncs.com"},
			Location{Kind: KindS3, Bucket: "bucket", Options: Options{Endpoint: "https://oss-cn-hangzhou.aliyuncs.com"}},
		},
	} {
		got, err := tc.options.Resolve()
		tc.want.Options.URL = tc.options.URL
		if err != nil || got != tc.want {
			t.Errorf("%+v:\n%+v, %v, want\n%+v", tc.options, got, err, tc.want)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	const secret = "hunter2"
	for _, tc := range []struct {
		options Options
		says    []string
	}{
		{Options{}, []string{"empty", "s3://bucket/prefix", "file:///dir", "plain path"}},
		{Options{URL: " "}, []string{"empty"}},
		{Options{URL: "gs://bucket"}, []string{`"gs"`, "s3://"}},
		{Options{URL: "https://bucket.s3.amazonaws.com/x"}, []string{`"https"`, "s3://"}},
		{Options{URL: "s3:bucket"}, []string{"//"}},
		{Options{URL: "s3:/bucket"}, []string{"//"}},
		{Options{URL: "file:dir"}, []string{"//"}},
		{Options{URL: "file://dir/x"}, []string{`"dir"`, "file:///dir"}},
		{Options{URL: "file://"}, []string{"no folder"}},
		{Options{URL: "file:///a?b"}, []string{"%3F"}},
		{Options{URL: "file:///a%zz"}, []string{"file:///dir"}},
		{Options{URL: "a\x00b"}, []string{"zero byte"}},
		{Options{URL: "s3://"}, []string{"bucket", "s3://"}},
		{Options{URL: "s3:///x"}, []string{"bucket"}},
		{Options{URL: "s3://bu cket"}, []string{`"bu cket"`}},
		{Options{URL: "s3://ab"}, []string{`"ab"`, "3 to 63"}},
		{Options{URL: "s3://key:" + secret + "@bucket/x"}, []string{"environment"}},
		{Options{URL: "s3://bucket/a//b"}, []string{"prefix", "empty part"}},
		{Options{URL: "s3://bucket/../b"}, []string{"prefix"}},
		{Options{URL: "s3://bucket/%zz"}, []string{"prefix", "%25"}},
		{Options{URL: "s3://bucket/" + strings.Repeat("p", 201)}, []string{"prefix", "200"}},
		{Options{URL: "s3://bucket?regoin=x"}, []string{`"regoin"`, "region"}},
		{Options{URL: "s3://bucket?region=a&region=b"}, []string{"region", "once"}},
		{Options{URL: "s3://bucket?region=a", Region: "b"}, []string{"region", `"a"`, `"b"`}},
		{Options{URL: "s3://bucket?a=%zz"}, []string{"parameters"}},
		{Options{URL: "s3://bucket?addressing=virtaul"}, []string{"addressing", `"virtaul"`, "auto, path or virtual"}},
		{Options{URL: "s3://bucket", Checksums: "crc"}, []string{"checksums", "auto, on, md5 or off"}},
		{Options{URL: "s3://bucket", Conditions: "maybe"}, []string{"conditions", "on or off"}},
		{Options{URL: "./x", Conditions: "maybe"}, []string{"conditions"}},
		{Options{URL: "s3://bucket?objectLockDays=x"}, []string{"objectLockDays", `"x"`}},
		{Options{URL: "s3://bucket?objectLockDays=3", ObjectLockDays: 4}, []string{"objectLockDays"}},
		{Options{URL: "s3://bucket", ObjectLockDays: -1}, []string{"objectLockDays"}},
		{Options{URL: "s3://bucket", ObjectLockDays: 100000}, []string{"objectLockDays", "3660"}},
		{Options{URL: "s3://bucket", ObjectLockDays: 1, Checksums: ChecksumsOff}, []string{"checksums", "md5"}},
		{Options{URL: "s3://bucket", Keep: -1}, []string{"keep"}},
		{Options{URL: "s3://bucket", Endpoint: "localhost:9000"}, []string{"scheme", "http://localhost:9000"}},
		{Options{URL: "s3://bucket", Endpoint: "10.0.0.1"}, []string{"scheme", "http://10.0.0.1"}},
		{Options{URL: "s3://bucket", Endpoint: "ftp://x"}, []string{"ftp", "http"}},
		{Options{URL: "s3://bucket", Endpoint: "https://"}, []string{"host"}},
		{Options{URL: "s3://bucket", Endpoint: "https://x?y=z"}, []string{"parameters"}},
		{Options{URL: "s3://bucket", Endpoint: "https://key:" + secret + "@x"}, []string{"environment"}},
		{Options{URL: "s3://bucket", Endpoint: "https://key:" + secret + "@x:y"}, []string{"not a URL"}},
		{Options{URL: "s3://bucket", Endpoint: "https://bucket.oss-cn-hangzhou.aliyuncs.com"}, []string{"bucket's name", `"oss-cn-hangzhou.aliyuncs.com"`}},
	} {
		got, err := tc.options.Resolve()
		if err == nil {
			t.Errorf("%+v is taken as %+v", tc.options, got)
			continue
		}
		for _, part := range tc.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: error %q does not have %q", tc.options, err, part)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q shows a password", err)
		}
	}
}

// FuzzResolve: no URL panics, and what is taken is usable and comes out the same again.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"s3://bucket/p?region=x&endpoint=http://h:1", "file:///a", "./x", "s3://b:c@d/?", "s3://bucket/%2e%2e/x", "S3://aaa/%41", "://", "s3://[::1]/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := Options{URL: raw}.Resolve()
		if err != nil {
			return
		}
		switch got.Kind {
		case KindLocal:
			if got.Dir == "" {
				t.Fatalf("%q names no folder", raw)
			}
		case KindS3:
			if got.Bucket == "" || got.Prefix != "" && CheckKey(strings.TrimSuffix(got.Prefix, "/")) != nil {
				t.Fatalf("%q: bucket %q, prefix %q", raw, got.Bucket, got.Prefix)
			}
			if len(got.Prefix)+MaxKey > 1024 {
				t.Fatalf("%q: prefix and key may be longer than a server takes", raw)
			}
		default:
			t.Fatalf("%q: kind %q", raw, got.Kind)
		}
	})
}

// TestSwitches: YAML makes booleans of an unquoted on and off.
func TestSwitches(t *testing.T) {
	for text, want := range map[string]Options{
		`{"conditions":"off","checksums":"md5"}`: {Conditions: ConditionsOff, Checksums: ChecksumsMD5},
		`{"conditions":false,"checksums":true}`:  {Conditions: ConditionsOff, Checksums: ChecksumsOn},
		`{"conditions":true,"checksums":false}`:  {Conditions: ConditionsOn, Checksums: ChecksumsOff},
		`{"conditions":null,"keep":"400d"}`:      {Keep: Keep(400 * 24 * time.Hour)},
		`{"keep":"90d"}`:                         {Keep: Keep(90 * 24 * time.Hour)},
	} {
		var got Options
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{`{"conditions":1}`, `{"checksums":["on"]}`, `{"keep":"forever"}`, `{"keep":3}`} {
		var got Options
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is taken as %+v", text, got)
		}
	}
}

func TestKeep(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "1h": time.Hour, "36h": 36 * time.Hour, "7d": 7 * 24 * time.Hour, "8w": 56 * 24 * time.Hour, "36500d": 36500 * 24 * time.Hour} {
		got, err := ParseKeep(text)
		if err != nil || time.Duration(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if again, err := ParseKeep(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q, which is %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "d", "1", "-1d", "1y", "59m", "1e9d", "99999999999d", "1.5d"} {
		if got, err := ParseKeep(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
