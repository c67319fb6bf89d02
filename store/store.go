// Package store keeps objects: named, whole byte strings that are created once, or replaced under a
// condition. It knows nothing of what the objects mean; store/archive gives the keys their use, and
// store/local and store/s3 are the two places to keep them.
//
// Every implementation passes the one suite in store/storetest, which is the contract in executable form.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// The conditions that callers act on. Backends wrap them with the object's name and what to do, so that
// errors.Is finds the kind and the message finds the reader.
var (
	// ErrNotFound: no object has this key.
	ErrNotFound = errors.New("no such object")
	// ErrExists: the object was to be created and is there already; it was left as it is.
	ErrExists = errors.New("object exists already")
	// ErrChanged: the object is not, or no longer, the version that was to be replaced; it was left as it is.
	ErrChanged = errors.New("object was changed by another writer")
	// ErrTooLarge: the object is larger than the limit of a read (MaxObject).
	ErrTooLarge = errors.New("object is too large")
)

// MaxObject bounds what a Get reads into memory, in bytes. A snapshot of 5,000 nodes is two orders of
// magnitude below it; what is larger is not ours.
const MaxObject = 512 << 20

// Info describes an object without its bytes.
type Info struct {
	Key string
	// Size in bytes.
	Size int64
	// Modified is when the store last wrote the object, by the store's clock.
	Modified time.Time
	// Version identifies the bytes for Replace: an ETag, or a hash. It is opaque, never empty for an object that
	// was read or written, and empty in listings of stores that do not list it.
	Version string
}

// Object is an object with its bytes.
type Object struct {
	Info
	Body []byte
}

// Attributes tell a store how to hand an object to a browser and how long to protect it. A store without such
// notions (a folder) ignores them.
type Attributes struct {
	// ContentType; empty means it is derived from the key's extension (ContentType).
	ContentType string
	// ContentEncoding is set only when the bytes are an encoding of what ContentType says. Objects named .gz are
	// themselves application/gzip and have none, so that what is downloaded is what was hashed.
	ContentEncoding string
	// CacheControl, e.g. "no-cache" for a pointer that moves.
	CacheControl string
	// Retain asks for the store's configured retention (object lock). For immutable objects only: an object that
	// is replaced must not be retained.
	Retain bool
}

// Store is a flat, ordered name space of objects. Keys are checked by CheckKey. Implementations are safe for
// concurrent use, across processes too, and every write is all or nothing: a reader sees the old bytes, the
// new bytes or ErrNotFound, never a part.
type Store interface {
	// Get reads an object, or fails with ErrNotFound.
	Get(ctx context.Context, key string) (Object, error)
	// Stat describes an object, or fails with ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
	// Create writes an object that must not exist yet, or fails with ErrExists and leaves the other in place. Where
	// Conditional is false two creators at the same instant may both succeed; names must then be unique.
	Create(ctx context.Context, key string, body []byte, attr Attributes) (Info, error)
	// Put writes an object whether it exists or not.
	Put(ctx context.Context, key string, body []byte, attr Attributes) (Info, error)
	// Replace writes an object that must exist and be of the given version, or fails with ErrChanged. Where
	// Conditional is false the version is compared before the write, not with it.
	Replace(ctx context.Context, key, version string, body []byte, attr Attributes) (Info, error)
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
	// List yields the objects whose key starts with prefix and is greater than after, in the byte order of keys. It
	// pages by itself. It ends after the first error.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// Folders yields, in order, the distinct names that follow prefix up to the next "/" in keys, without the "/".
	// prefix is empty or ends in "/". Objects directly under prefix are not folders.
	Folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	// Conditional says whether Create and Replace are decided by the store itself, in one step with the write.
	Conditional() bool
	// URL is the address of an object for a link: an https URL, or a file URL. It need not be readable by everyone.
	URL(key string) string
	// String names the store for messages, as its URL and without secrets.
	String() string
}

// Presigner is a store that can make links which carry their own permission.
type Presigner interface {
	// Presign gives a link that reads the object until the returned time, which is the earlier of now+valid and the
	// end of the credentials that sign it.
	Presign(ctx context.Context, key string, valid time.Duration) (link string, until time.Time, err error)
}

// updateAttempts bounds Update. With a jittered pause between attempts it outlasts dozens of writers at once.
const updateAttempts = 64

// Update replaces the bytes of one object by what change makes of them, however many others do the same: it
// reads, changes and writes under a condition, and starts again when another writer was faster. change gets nil
// for an object that does not exist, may be called several times, and leaves the object alone by returning
// nil bytes. Its error is returned as it is.
func Update(ctx context.Context, s Store, key string, attr Attributes, change func(old []byte) ([]byte, error)) (Info, error) {
	for attempt := range updateAttempts {
		old, err := s.Get(ctx, key)
		missing := errors.Is(err, ErrNotFound)
		if err != nil && !missing {
			return Info{}, err
		}
		body, err := change(old.Body)
		if err != nil || body == nil {
			return old.Info, err
		}
		var info Info
		if missing {
			info, err = s.Create(ctx, key, body, attr)
		} else {
			info, err = s.Replace(ctx, key, old.Version, body, attr)
		}
		if !errors.Is(err, ErrExists) && !errors.Is(err, ErrChanged) {
			return info, err
		}
		if err := Pause(ctx, attempt); err != nil {
			return Info{}, fmt.Errorf("update %q in %s: other writers were faster: %w", key, s, err)
		}
	}
	return Info{}, fmt.Errorf("update %q in %s: another writer was faster %d times: %w; run again when fewer audits run at once", key, s, updateAttempts, ErrChanged)
}
