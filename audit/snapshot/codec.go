package snapshot

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxBytes bounds an unpacked snapshot: 5,000 nodes with long labels are a
// hundredth of it. A bomb is refused, not unpacked.
const MaxBytes = 512 << 20

// NewerError says that a snapshot was written by a newer program.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("snapshot has schemaVersion %d and this program reads up to %d; use the program version that wrote it, or a newer one", e.Version, SchemaVersion)
}

// Encode gives the gzip form that is kept. The same snapshot gives the same bytes.
func Encode(s *Snapshot) ([]byte, error) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	enc := json.NewEncoder(zip)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode snapshot of cluster %q: %w", s.Cluster, err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("compress snapshot of cluster %q: %w", s.Cluster, err)
	}
	return buf.Bytes(), nil
}

// Decode reads what Encode wrote. Errors: *NewerError, or what is broken.
func Decode(body []byte) (*Snapshot, error) { return decode(body, MaxBytes) }

func decode(body []byte, limit int64) (*Snapshot, error) {
	raw, err := unpack(body, nil, limit)
	if err != nil {
		return nil, err
	}
	var version struct {
		SchemaVersion *int `json:"schemaVersion"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, fmt.Errorf("snapshot is not JSON: %w", err)
	}
	switch {
	case version.SchemaVersion == nil || *version.SchemaVersion < 1:
		return nil, errors.New("snapshot has no schemaVersion")
	case *version.SchemaVersion > SchemaVersion:
		return nil, &NewerError{*version.SchemaVersion}
	}
	var s Snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("snapshot has fields of another shape: %w", err)
	}
	if s.Cluster == "" || s.CollectedAt.IsZero() {
		return nil, errors.New("snapshot names no cluster or no time")
	}
	return &s, nil
}

// Unpack gives the JSON of a kept snapshot in the memory of into, if it is large
// enough. At most limit bytes are unpacked; more is an error.
func Unpack(body, into []byte, limit int64) ([]byte, error) {
	return unpack(body, into, min(limit, MaxBytes))
}

func unpack(body, into []byte, limit int64) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("snapshot is not gzip: %w", err)
	}
	if cap(into) == 0 {
		// The last four bytes tell the size, if they are to be trusted: enough memory at once, and no more than needed.
		size := int64(binary.LittleEndian.Uint32(body[len(body)-4:]))
		into = make([]byte, 0, min(size, limit, 64<<20)+bytes.MinRead)
	}
	raw := bytes.NewBuffer(into[:0])
	if _, err := raw.ReadFrom(io.LimitReader(zip, limit+1)); err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	if int64(raw.Len()) > limit {
		return nil, fmt.Errorf("snapshot unpacks to more than %d bytes: refused", limit)
	}
	return raw.Bytes(), nil
}
