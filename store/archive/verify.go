package archive

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuaudit/store"
)

// FaultKind says what is wrong with a chain.
type FaultKind string

// The faults that Verify finds.
const (
	// FaultHeader: a header cannot be read, is of a newer version, of another cluster or under a wrong name.
	FaultHeader FaultKind = "badHeader"
	// FaultHeaderChanged: a header does not have the hash that the one after it, or latest.json, holds.
	FaultHeaderChanged FaultKind = "headerChanged"
	// FaultHeaderMissing: a header that another names as the one before is not there, and is not where the chain begins.
	FaultHeaderMissing FaultKind = "headerMissing"
	// FaultFork: two headers name the same one as the one before.
	FaultFork FaultKind = "fork"
	// FaultCircle: headers that name each other in a circle.
	FaultCircle FaultKind = "circle"
	// FaultSnapshotChanged, FaultSnapshotMissing, FaultReportChanged, FaultReportMissing: what a header holds the
	// hash of is other than it was, or gone.
	FaultSnapshotChanged FaultKind = "snapshotChanged"
	FaultSnapshotMissing FaultKind = "snapshotMissing"
	FaultReportChanged   FaultKind = "reportChanged"
	FaultReportMissing   FaultKind = "reportMissing"
	// FaultUnreadable: an object could not be read, so nothing is known of it.
	FaultUnreadable FaultKind = "unreadable"
)

// Fault is one thing wrong, with the object that it is about.
type Fault struct {
	Kind    FaultKind
	Key     string
	Message string
}

func (f Fault) String() string { return f.Message }

// Verification is what Verify found.
type Verification struct {
	// Faults, sorted by key. None: everything that was there hangs together.
	Faults []Fault
	// Headers, Snapshots and Reports are how many were checked and are right.
	Headers, Snapshots, Reports int
	// NotIncluded are the objects that get answered ErrNotIncluded for: their hashes are in the chain, they are not here.
	NotIncluded []string
	// First and Head are the keys of the oldest and the newest header. BeginsAfter is the header that the oldest names as
	// the one before, and that is not here, with the hash it must have: everything up to it was removed by
	// retention, or left out. Both are empty for a chain that is here from its very beginning.
	First, Head                    string
	BeginsAfter, BeginsAfterSHA256 string
	// HeadSHA256 is the hash of the newest header, to be compared with one that was published.
	HeadSHA256 string
}

// ErrNotIncluded is what a Getter returns for an object that is deliberately not part of what is verified.
var ErrNotIncluded = errors.New("not included")

// Getter reads an object by its key in the store. It returns store.ErrNotFound for one that should be there and is not.
type Getter func(key string) ([]byte, error)

// Verify checks the headers of one cluster, in any order, and with a Getter every snapshot and report that they
// hold hashes of. It does no I/O of its own and needs no store, so it serves an offline bundle as well. What it
// proves is that the parts belong together; that they are the original ones is shown by a hash of the
// head that was published at the time.
func Verify(headers []RawHeader, get Getter) Verification {
	v := &verifier{raw: map[string]RawHeader{}, parsed: map[string]Header{}, next: map[string][]string{}, depths: map[string]int{}}
	v.parse(headers)
	v.links()
	v.order()
	if get != nil {
		for _, key := range v.keys {
			if h, ok := v.parsed[key]; ok {
				v.object(get, key, h.SnapshotKey, h.SnapshotSHA256, FaultSnapshotChanged, FaultSnapshotMissing, &v.out.Snapshots)
				v.object(get, key, h.ReportKey, h.ReportSHA256, FaultReportChanged, FaultReportMissing, &v.out.Reports)
			}
		}
	}
	slices.SortStableFunc(v.out.Faults, func(x, y Fault) int { return strings.Compare(x.Key, y.Key) })
	slices.Sort(v.out.NotIncluded)
	return v.out
}

type verifier struct {
	out    Verification
	keys   []string // sorted
	raw    map[string]RawHeader
	parsed map[string]Header
	next   map[string][]string // key -> the headers that name it as the one before
	depths map[string]int
}

func (v *verifier) fault(kind FaultKind, key, format string, args ...any) {
	v.out.Faults = append(v.out.Faults, Fault{Kind: kind, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (v *verifier) parse(headers []RawHeader) {
	cluster := ""
	for _, raw := range headers {
		if there, twice := v.raw[raw.Key]; twice {
			if there.SHA256() != raw.SHA256() {
				v.fault(FaultHeader, raw.Key, "header %q is there twice with different bytes", raw.Key)
			}
			continue
		}
		v.raw[raw.Key] = raw
		v.keys = append(v.keys, raw.Key)
		h, err := raw.Parse()
		if err != nil {
			v.fault(FaultHeader, raw.Key, "header %q: %v", raw.Key, err)
			continue
		}
		if cluster == "" {
			cluster = h.Cluster
		}
		if h.Cluster != cluster {
			v.fault(FaultHeader, raw.Key, "header %q is of cluster %q, the others of %q", raw.Key, h.Cluster, cluster)
			continue
		}
		v.parsed[raw.Key] = h
		if h.PreviousKey != "" {
			v.next[h.PreviousKey] = append(v.next[h.PreviousKey], raw.Key)
		}
	}
	slices.Sort(v.keys)
}

// links compares each header with what the ones after it hold of it.
func (v *verifier) links() {
	for _, key := range v.keys {
		if names := v.next[key]; len(names) > 1 {
			slices.Sort(names)
			v.fault(FaultFork, key, "headers %q all name %q as the one before: two writers without conditions, or one of them was put in later", names, key)
		}
		changed := false
		for _, after := range v.next[key] {
			if held := v.parsed[after].PreviousSHA256; held != v.raw[key].SHA256() {
				v.fault(FaultHeaderChanged, key, "header %q has sha256 %s, but %q holds %s of it: one of the two was changed", key, v.raw[key].SHA256(), after, held)
				changed = true
			}
		}
		if _, ok := v.parsed[key]; ok && !changed {
			v.out.Headers++
		}
	}
}

// order finds the head and where the chain begins, and reports what does not hang together with the beginning.
func (v *verifier) order() {
	var begins, heads []string
	for _, key := range v.keys {
		if len(v.next[key]) == 0 {
			heads = append(heads, key)
		}
		if h, ok := v.parsed[key]; ok {
			if _, here := v.raw[h.PreviousKey]; !here {
				begins = append(begins, key)
			}
		}
	}
	if len(v.keys) > 0 && len(heads) == 0 {
		v.fault(FaultCircle, v.keys[0], "header %q and others name each other in a circle; none is the newest", v.keys[0])
		return
	}
	head := v.longest(heads)
	if head == "" {
		return
	}
	v.out.Head, v.out.HeadSHA256 = head, v.raw[head].SHA256()
	line, _ := v.line(head)
	first := v.beginning(begins, line)
	v.out.First = first
	if h := v.parsed[first]; h.PreviousKey != "" {
		v.out.BeginsAfter, v.out.BeginsAfterSHA256 = h.PreviousKey, h.PreviousSHA256
	}
	for _, key := range begins {
		if key == first {
			continue
		}
		if h := v.parsed[key]; h.PreviousKey != "" {
			v.fault(FaultHeaderMissing, h.PreviousKey, "header %q is missing: %q names it as the one before", h.PreviousKey, key)
		} else {
			v.fault(FaultFork, key, "header %q begins a second chain beside the one that ends in %q", key, head)
		}
	}
	v.circles(line)
}

// beginning picks, of the headers that have none before them here, the one that the chain may begin with: a very first one,
// if possible that of the head's line; else, where the beginning was cut off, the first by time.
func (v *verifier) beginning(begins []string, line map[string]bool) string {
	best := ""
	rank := func(key string) int {
		n := 0
		if v.parsed[key].PreviousKey == "" {
			n += 2
		}
		if n > 0 && line[key] {
			n++
		}
		return n
	}
	for _, key := range begins {
		if best == "" || rank(key) > rank(best) {
			best = key
		}
	}
	return best
}

// circles reports headers outside the chain that come from nowhere.
func (v *verifier) circles(line map[string]bool) {
	known := maps.Clone(line) // leads to an end
	for _, key := range v.keys {
		path := map[string]bool{}
		for at := key; !known[at]; {
			path[at] = true
			previous := v.parsed[at].PreviousKey
			if _, here := v.raw[previous]; !here {
				break
			}
			if path[previous] {
				v.fault(FaultCircle, at, "header %q and others outside the chain name each other in a circle", at)
				break
			}
			at = previous
		}
		maps.Copy(known, path)
	}
}

// longest picks the head with the most headers before it, of equals the last by key.
func (v *verifier) longest(heads []string) string {
	best, most := "", 0
	for _, key := range heads {
		if n := v.depth(key); n >= most {
			best, most = key, n
		}
	}
	return best
}

// depth counts the headers up to one, each only once for all calls.
func (v *verifier) depth(from string) int {
	var path []string
	at, n := from, 0
	for seen := map[string]bool{}; ; {
		if known, ok := v.depths[at]; ok {
			n = known
			break
		}
		if _, here := v.raw[at]; !here || seen[at] {
			break
		}
		seen[at] = true
		path = append(path, at)
		at = v.parsed[at].PreviousKey
	}
	for _, key := range slices.Backward(path) {
		n++
		v.depths[key] = n
	}
	return v.depths[from]
}

// line follows the links back from a header; it gives the headers on the way and the last one reached.
func (v *verifier) line(from string) (seen map[string]bool, last string) {
	seen = map[string]bool{from: true}
	for last = from; ; {
		previous := v.parsed[last].PreviousKey
		if _, here := v.raw[previous]; !here || seen[previous] {
			return seen, last
		}
		seen[previous], last = true, previous
	}
}

func (v *verifier) object(get Getter, header, key, want string, changed, missing FaultKind, right *int) {
	if key == "" {
		return
	}
	body, err := get(key)
	switch {
	case errors.Is(err, ErrNotIncluded):
		v.out.NotIncluded = append(v.out.NotIncluded, key)
	case errors.Is(err, store.ErrNotFound):
		v.fault(missing, key, "%q is missing: header %q holds its sha256 %s", key, header, want)
	case err != nil:
		v.fault(FaultUnreadable, key, "%q could not be read: %v", key, err)
	case Hash(body) != want:
		v.fault(changed, key, "%q has sha256 %s, but header %q holds %s", key, Hash(body), header, want)
	default:
		*right++
	}
}
