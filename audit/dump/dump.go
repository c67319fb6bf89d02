// Package dump reads a folder of Kubernetes JSON or YAML into the inventory
// that a live read gives: same type, same gaps.
//
// # Which folder is a cluster
//
// A folder that holds readable files directly is one cluster, named by the
// folder; otherwise each of its subfolders is one. Subfolders are parts of one
// cluster all the same when one of them, without nodes of its own, is named
// like a resource (pods, events), like cluster-resources of a support bundle, or
// like a namespace of every cluster (kube-system, default). Lists of nodes in
// two places of one cluster are an error: it is several clusters.
//
// Readable files end in .json, .yaml, .yml, and any of these with .gz; others
// are passed over, as are hidden ones. A link to a file is followed inside the
// dump only; a link to a folder is not.
//
// # What a file holds
//
// Objects, Lists or typed lists in any nesting, an array of these, several
// documents too. Objects of kinds that no check reads are passed over, and
// nothing is kept of Secrets and ConfigMaps. An object that stands in several
// files counts once; one name with two UIDs is an error for nodes and for
// kube-system. JSON is read as it comes, YAML whole and up to MaxYAMLBytes.
//
// # What was collected
//
// A file whose base name is a resource's plural (pods.json,
// workloads.kueue.x-k8s.io.json) declares that the resource was collected, so
// that an empty list there means none. Within a cluster's folder, such a file
// in a subfolder named like a namespace covers that namespace alone, and so
// does a file named by a namespace in a folder named by a plural
// (pods/default.json); namespaces that no file covers are a gap. An object
// outside such files shows that its resource was collected. What was not
// collected is a gap, as far as it is built in and a check needs it. An API
// server's refusal in place of a list is a gap with that reason. A file that
// declares one resource and holds others alone is an error.
//
// Files that `audit dump` writes are named <plural>[.<group>].json.gz, beside a
// marker of kind AuditDump that tells the server's time and what could not be read.
//
// # Now
//
// Now is the newest time that the control plane or a kubelet set: creations,
// heartbeats, lease renewals, events, container starts. Deletion times and dates
// of certificates may lie ahead and do not count, nor do those of a single node
// whose clock is more than a day ahead of all the others, nor a few dates that lie
// more than a year after everything else: these are named in a note (see clock).
//
// A broken file fails the whole read with its name and position, all broken
// files at once: nothing is skipped.
package dump

import (
	"errors"
	"fmt"
	"time"

	"gpuaudit/audit/inventory"
)

// Options of a read.
type Options struct {
	// Now is the moment that the dump is judged at; zero is its newest time.
	Now time.Time
	// MaxBytes bounds what one file unpacks to; zero is DefaultMaxBytes.
	MaxBytes int64
}

// DefaultMaxBytes of one unpacked file: 150,000 pods of 20 KB.
const DefaultMaxBytes = 4 << 30

// Read reads all clusters of a folder. The time is Options.Now, or the newest
// time in all of them.
func Read(dir string, o Options) ([]*inventory.Cluster, time.Time, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	folders, err := clusters(dir)
	if err != nil {
		return nil, time.Time{}, err
	}
	readers := make([]*reader, 0, len(folders))
	var broken []error
	now := o.Now
	for _, f := range folders {
		r := newReader(f, o)
		if err := r.first(); err != nil {
			broken = append(broken, err)
			continue
		}
		at := r.takenAt
		if at.IsZero() {
			var note string
			if at, note = r.clock.newest(); note != "" && o.Now.IsZero() {
				r.cluster.Notes = append(r.cluster.Notes, note)
			}
		}
		if o.Now.IsZero() {
			now = later(now, at)
		} else if taken := later(r.clock.taken(), r.takenAt); taken.After(o.Now.Add(within)) {
			// Ages would be cut to 0 and everything would look young.
			broken = append(broken, fmt.Errorf("dump %q holds what happened at %s, after --now %s: every age would be too small; leave --now out, or give a moment that is not before the dump",
				f.dir, taken.UTC().Format(time.RFC3339), o.Now.UTC().Format(time.RFC3339)))
			continue
		}
		readers = append(readers, r)
	}
	if len(broken) > 0 {
		return nil, time.Time{}, errors.Join(broken...)
	}
	if now.IsZero() {
		return nil, time.Time{}, fmt.Errorf("dump %q holds no time at all; give the moment it was taken with --now", dir)
	}
	var out []*inventory.Cluster
	for _, r := range readers {
		c, err := r.second(now.UTC())
		if err != nil {
			broken = append(broken, err)
			continue
		}
		out = append(out, c)
	}
	if len(broken) > 0 {
		return nil, time.Time{}, errors.Join(broken...)
	}
	return out, now.UTC(), nil
}
