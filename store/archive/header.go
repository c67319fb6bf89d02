package archive

import (
	"encoding/json"
	"fmt"
	"time"

	"gpuaudit/store"
)

// HeaderVersion is the version of headers and of latest.json that this program writes. It reads no newer one.
const HeaderVersion = 1

// Header is one link of a cluster's chain. Its hash is that of its bytes as kept, never of a rendering made again.
type Header struct {
	Version int       `json:"version"`
	Cluster string    `json:"cluster"`
	Time    time.Time `json:"time"`
	Run     string    `json:"run"`
	// Adopted: written by a later run for one that died before it could. Its report may be unknown.
	Adopted        bool   `json:"adopted,omitempty"`
	SnapshotKey    string `json:"snapshotKey"`
	SnapshotSHA256 string `json:"snapshotSHA256"`
	// ReportKey and ReportSHA256 are of the report about this cluster alone; empty when there was none.
	ReportKey    string `json:"reportKey"`
	ReportSHA256 string `json:"reportSHA256"`
	// PreviousKey and PreviousSHA256 are of the header before; empty on the first one.
	PreviousKey    string `json:"previousKey"`
	PreviousSHA256 string `json:"previousSHA256"`
}

// Key is where the header is kept.
func (h Header) Key() string { return store.HeaderKey(h.Cluster, h.Time, h.Run) }

// Ref names the header's snapshot.
func (h Header) Ref() SnapshotRef {
	return SnapshotRef{Cluster: h.Cluster, Key: h.SnapshotKey, Time: h.Time, Run: h.Run}
}

// RawHeader is a header as kept: its name and its very bytes.
type RawHeader struct {
	Key  string
	Body []byte
}

// SHA256 is what the next header holds as PreviousSHA256.
func (r RawHeader) SHA256() string { return Hash(r.Body) }

// Parse reads the header and checks it against its name.
func (r RawHeader) Parse() (Header, error) {
	var h Header
	if err := decode(r.Key, r.Body, &h); err != nil {
		return Header{}, err
	}
	if h.Version > HeaderVersion {
		return Header{}, &NewerError{Key: r.Key, Version: h.Version, Know: HeaderVersion}
	}
	if h.Version < 1 {
		return Header{}, &BrokenError{Key: r.Key, Err: fmt.Errorf("has no version")}
	}
	if h.Key() != r.Key {
		return Header{}, &BrokenError{Key: r.Key, Err: fmt.Errorf("its content belongs to %q", h.Key())}
	}
	if want := store.SnapshotKey(h.Cluster, h.Time, h.Run); h.SnapshotKey != want {
		return Header{}, &BrokenError{Key: r.Key, Err: fmt.Errorf("names snapshot %q, not %q", h.SnapshotKey, want)}
	}
	return h, nil
}

// raw gives the bytes to keep. They are compact because latest.json holds them verbatim.
func (h Header) raw() (RawHeader, error) {
	body, err := json.Marshal(h)
	if err != nil {
		return RawHeader{}, fmt.Errorf("encode chain header %q: %w", h.Key(), err)
	}
	return RawHeader{Key: h.Key(), Body: body}, nil
}

// Latest is the content of latest.json.
type Latest struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster"`
	// Snapshot, Time and Run are those of the snapshot to compare with: the greatest time.
	Snapshot string    `json:"snapshot"`
	Time     time.Time `json:"time"`
	Run      string    `json:"run"`
	// HeadKey, HeadSHA256 and Head are the newest header of the chain: its name, the hash of its bytes, its bytes.
	HeadKey    string          `json:"headKey"`
	HeadSHA256 string          `json:"headSHA256"`
	Head       json.RawMessage `json:"head"`
	// Pruned is the last header that retention removed: the oldest one that remains names it as the one before.
	PrunedKey    string `json:"prunedKey,omitempty"`
	PrunedSHA256 string `json:"prunedSHA256,omitempty"`
}

// parseLatest reads and checks latest.json.
func parseLatest(cluster string, body []byte) (Latest, error) {
	key := store.LatestKey(cluster)
	var l Latest
	if err := decode(key, body, &l); err != nil {
		return Latest{}, err
	}
	if l.Version > HeaderVersion {
		return Latest{}, &NewerError{Key: key, Version: l.Version, Know: HeaderVersion}
	}
	head, err := l.head().Parse()
	switch {
	case err != nil:
		return Latest{}, &BrokenError{Key: key, Err: err}
	case l.HeadSHA256 != l.head().SHA256():
		return Latest{}, &BrokenError{Key: key, Err: fmt.Errorf("the header in it does not have the hash beside it")}
	case l.Cluster != cluster || head.Cluster != cluster:
		return Latest{}, &BrokenError{Key: key, Err: fmt.Errorf("belongs to cluster %q", l.Cluster)}
	case l.Snapshot != store.SnapshotKey(cluster, l.Time, l.Run):
		return Latest{}, &BrokenError{Key: key, Err: fmt.Errorf("names snapshot %q, which is not that of its time and run", l.Snapshot)}
	}
	return l, nil
}

func (l Latest) head() RawHeader { return RawHeader{Key: l.HeadKey, Body: l.Head} }

func (l Latest) ref() SnapshotRef {
	return SnapshotRef{Cluster: l.Cluster, Key: l.Snapshot, Time: l.Time, Run: l.Run}
}
