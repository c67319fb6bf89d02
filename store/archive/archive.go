// Package archive is the use of the store's keys: snapshots and the chain that proves their order, reports,
// acknowledgements and slots. It knows nothing of Kubernetes; what it keeps are bytes.
//
// # The chain
//
// Each cluster has a chain of headers. A header holds the hashes of one snapshot, of its report and of the header
// before, so whoever holds one header's hash (a digest in Slack, stamped by Slack's clock) can show later that
// everything up to it is unchanged.
//
// Two audits may write to one chain at once, and either may die at any step. Both are settled by the one object
// that is replaced under a condition, latest.json, in which the newest header lies whole:
//
//  1. The report of the cluster and the snapshot are created. Their names are unique; nothing is overwritten.
//  2. latest.json is read. The header in it is the head. It is created as an object of its own, if whoever put it
//     there died before doing so.
//  3. The next header, which names the head as the one before, is put in latest.json on the condition that
//     latest.json is still what was read. Whoever loses starts again at 2.
//  4. The header is created as an object of its own.
//
// So the chain is a line in the order in which audits were saved, whatever their times, and every header but
// possibly the newest, which readers find in latest.json, is an object. Latest in the sense of "the one to compare
// with" is another thing, the greatest time: an audit with an older time is appended to the chain and never becomes it.
//
// An audit that died between 1 and 3 leaves a snapshot without a header. It is a whole snapshot and is found by
// listing; the next audit appends a header for it before its own, marked adopted.
//
// Where the store does not honour conditions, step 3 is a plain write and one writer a cluster is required. Two
// writers then lose no snapshot, but make a fork, which Verify reports.
package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gpuaudit/store"
)

// Archive keeps audits in a store. It holds no state and may be used by any number of goroutines and processes.
type Archive struct {
	store store.Store
}

// New gives the archive in a store.
func New(s store.Store) *Archive { return &Archive{store: s} }

// Store is where the archive is kept.
func (a *Archive) Store() store.Store { return a.store }

// BrokenError is an object of ours that is there and cannot be used: cut off, changed, or not what its name says.
// It is never overwritten; a reader goes on without it and says so.
type BrokenError struct {
	Key string
	Err error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("object %q is broken: %v; it is left as it is: restore it, or move it away to go on without it", e.Key, e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// MissingError is an object that another names and that is not there: it was there, since what names it is written
// last. Nothing older is taken in its place.
type MissingError struct{ Key, NamedBy string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("object %q is gone: %q names it; restore it, or find out who deletes from the store", e.Key, e.NamedBy)
}

// NewerError is an object written by a newer version of the program, whose meaning is not known here.
type NewerError struct {
	Key           string
	Version, Know int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("object %q has version %d, this program knows %d; use a newer program", e.Key, e.Version, e.Know)
}

// IsBroken says whether an error means that an object is there and cannot be used, now or ever by this program.
func IsBroken(err error) bool {
	var broken *BrokenError
	var newer *NewerError
	return errors.As(err, &broken) || errors.As(err, &newer)
}

// SnapshotRef names one kept snapshot.
type SnapshotRef struct {
	Cluster string
	Key     string
	Time    time.Time
	Run     string
}

// before orders by time, then run, which is also the order of the keys.
func (r SnapshotRef) before(other SnapshotRef) bool {
	if !r.Time.Equal(other.Time) {
		return r.Time.Before(other.Time)
	}
	return r.Run < other.Run
}

// Hash is the sha256 that headers and manifests hold, in hexadecimal digits.
func Hash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// decode reads an object of ours strictly enough to notice that it is not one.
func decode(key string, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return &BrokenError{Key: key, Err: err}
	}
	return nil
}

// immutable are the attributes of what is created once and protected as long as the store is configured to.
var immutable = store.Attributes{Retain: true}

// moving are the attributes of what is replaced again and again.
var moving = store.Attributes{CacheControl: "no-cache"}
