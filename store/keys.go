package store

import (
	"crypto/rand"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The keys of the contract. Other programs read them, so they change only with a new major version:
//
//	clusters/<name>/snapshots/<time>-<run>.json.gz
//	clusters/<name>/chain/<time>-<run>.json
//	clusters/<name>/latest.json
//	clusters/<name>/acks.json
//	reports/<yyyy>/<mm>/<dd>/<run>/<file>
//	reports/<yyyy>/<mm>/<dd>/<run>/<name>/<file>
//	slots/<slot>.json
//	shares/<slot>/<index>-of-<count>.json
//
// <name> and <slot> are Segment of the cluster's or slot's name; <time> is KeyTime; <run> is a run id.
const (
	ClustersPrefix = "clusters/"
	ReportsPrefix  = "reports/"
	SlotsPrefix    = "slots/"
	// SharesPrefix holds what the processes of one slot have audited, where several share the clusters.
	SharesPrefix = "shares/"
	// ProbesPrefix holds what Probe writes and removes again.
	ProbesPrefix = "probes/"

	snapshotSuffix = ".json.gz"
	jsonSuffix     = ".json"
)

// ClusterPrefix is the folder of one cluster, with its "/".
func ClusterPrefix(cluster string) string { return ClustersPrefix + Segment(cluster) + "/" }

// SnapshotsPrefix is the folder of one cluster's snapshots.
func SnapshotsPrefix(cluster string) string { return ClusterPrefix(cluster) + "snapshots/" }

// SnapshotKey is where the snapshot of a cluster at a time, taken by a run, is kept.
func SnapshotKey(cluster string, at time.Time, run string) string {
	return SnapshotsPrefix(cluster) + KeyTime(at) + "-" + run + snapshotSuffix
}

// ChainPrefix is the folder of one cluster's chain headers.
func ChainPrefix(cluster string) string { return ClusterPrefix(cluster) + "chain/" }

// HeaderKey is where the chain header of that snapshot is kept.
func HeaderKey(cluster string, at time.Time, run string) string {
	return ChainPrefix(cluster) + KeyTime(at) + "-" + run + jsonSuffix
}

// LatestKey is the pointer to a cluster's newest snapshot and to the head of its chain.
func LatestKey(cluster string) string { return ClusterPrefix(cluster) + "latest.json" }

// AcksKey holds what was acknowledged on a cluster.
func AcksKey(cluster string) string { return ClusterPrefix(cluster) + "acks.json" }

// ReportPrefix is the folder of a run's reports; at is the time in the report (generatedAt).
func ReportPrefix(at time.Time, run string) string {
	return ReportsPrefix + at.UTC().Format("2006/01/02/") + run + "/"
}

// ReportKey is one file of the report over all clusters.
func ReportKey(at time.Time, run, file string) string { return ReportPrefix(at, run) + file }

// ClusterReportKey is one file of the report about one cluster, which names no other.
func ClusterReportKey(at time.Time, run, cluster, file string) string {
	return ReportPrefix(at, run) + Segment(cluster) + "/" + file
}

// SlotKey is the record of a scheduled digest.
func SlotKey(slot string) string { return SlotsPrefix + Segment(slot) + jsonSuffix }

// SharePrefix is the folder of a slot's shares, with its "/".
func SharePrefix(slot string) string { return SharesPrefix + Segment(slot) + "/" }

// ShareKey is the record of one share of a slot's clusters: the share of process index, of count processes.
func ShareKey(slot string, index, count int) string {
	return fmt.Sprintf("%s%d-of-%d%s", SharePrefix(slot), index, count, jsonSuffix)
}

// SlotName gives the name that SlotKey made the key from, or as much of it as the key holds.
func SlotName(key string) string {
	name, _ := Name(strings.TrimSuffix(strings.TrimPrefix(key, SlotsPrefix), jsonSuffix))
	return name
}

// keyTimeLayout has a fixed width and no character that a path, a URL or a shell minds, so that names sort
// as their times do. Milliseconds keep audits of one second apart.
const keyTimeLayout = "20060102T150405.000Z"

// KeyTime writes a time (years 0 to 9999) as it stands in keys, in UTC, cut to the millisecond.
func KeyTime(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(keyTimeLayout) }

// ParseStamp takes the time and the run out of the last part of a snapshot's or header's key. ok is false for
// names of another form, which listings pass over.
func ParseStamp(key string) (at time.Time, run string, ok bool) {
	name := path.Base(key)
	name, found := strings.CutSuffix(name, snapshotSuffix)
	if !found {
		if name, found = strings.CutSuffix(name, jsonSuffix); !found {
			return time.Time{}, "", false
		}
	}
	if len(name) < len(keyTimeLayout)+2 || name[len(keyTimeLayout)] != '-' {
		return time.Time{}, "", false
	}
	at, err := time.Parse(keyTimeLayout, name[:len(keyTimeLayout)])
	run = name[len(keyTimeLayout)+1:]
	if err != nil || CheckRun(run) != nil {
		return time.Time{}, "", false
	}
	return at, run, true
}

// runTimeLayout is the beginning of a run id, so that ids sort by time and a report is found without a search.
const runTimeLayout = "20060102-150405"

// runDigits are those of rand.Text, in the order in which they sort.
const runDigits = "234567abcdefghijklmnopqrstuvwxyz"

// NewRun makes the id of a run that starts at the given time: the time in UTC to the second, its millisecond in two
// digits of 32, and 30 random bits that keep apart the runs of one millisecond, e.g. "20260601-093000-k3v7qa2m".
func NewRun(at time.Time) string {
	ms := at.UTC().Nanosecond() / int(time.Millisecond)
	return at.UTC().Format(runTimeLayout) + "-" + string([]byte{runDigits[ms/32], runDigits[ms%32]}) + strings.ToLower(rand.Text()[:6])
}

// RunTime takes the time out of a run id that NewRun made.
func RunTime(run string) (time.Time, bool) {
	if len(run) < len(runTimeLayout) {
		return time.Time{}, false
	}
	at, err := time.Parse(runTimeLayout, run[:len(runTimeLayout)])
	return at, err == nil
}

// CheckRun says whether a run id may stand in keys: 1 to 64 of a-z, 0-9, "-" and "_", the first a letter or digit.
func CheckRun(run string) error {
	if run == "" || len(run) > 64 {
		return fmt.Errorf("run id %q: want 1 to 64 characters", run)
	}
	for i, r := range run {
		plain := 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
		if !plain && (i == 0 || r != '-' && r != '_') {
			return fmt.Errorf("run id %q: character %q is not one of a-z, 0-9, \"-\" and \"_\"", run, r)
		}
	}
	return nil
}

// MaxKey and MaxSegment bound keys and the parts between their "/", in bytes: S3 allows keys of 1024 bytes with the
// prefix of the store included, file systems allow names of 255.
const (
	MaxKey     = 800
	MaxSegment = 240
)

// CheckKey says why a key cannot be kept everywhere: it must be UTF-8 without control characters and
// backslashes, and its parts must be neither empty nor too long nor start with "." (which also rules out
// "." and ".."; stores keep names of their own there).
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("key %q: must not be empty", key)
	case len(key) > MaxKey:
		return fmt.Errorf("key %q: %d bytes, at most %d are allowed", key, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q: not valid UTF-8", key)
	}
	for part := range strings.SplitSeq(key, "/") {
		switch {
		case part == "":
			return fmt.Errorf("key %q: has an empty part; use single \"/\" between parts and none at the ends", key)
		case part[0] == '.':
			return fmt.Errorf("key %q: part %q must not start with \".\"", key, part)
		case len(part) > MaxSegment:
			return fmt.Errorf("key %q: part of %d bytes, at most %d are allowed", key, len(part), MaxSegment)
		}
	}
	for _, r := range key {
		if unicode.IsControl(r) || r == '\\' {
			return fmt.Errorf("key %q: character %q is not allowed", key, r)
		}
	}
	return nil
}

// ContentType is the media type that a browser needs to show an object, by the extension of its key.
func ContentType(key string) string {
	switch path.Ext(key) {
	case ".json":
		return "application/json"
	case ".gz":
		return "application/gzip"
	case ".zip":
		return "application/zip"
	case ".html":
		return "text/html; charset=utf-8"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
