package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"gpuaudit/store"
)

// Audit is what one run found on one cluster, ready to be kept.
type Audit struct {
	Cluster string
	// Time is the audit's now on this cluster; keys hold it to the millisecond.
	Time time.Time
	Run  string
	// Snapshot is the gzipped snapshot.
	Snapshot []byte
	// Report is report.json about this cluster alone, the same bytes that SaveReport is given for it. Empty: none.
	Report []byte
	// ReportTime is generatedAt of the run's report, which names the day's folder. Zero: Time.
	ReportTime time.Time
}

func (in Audit) check() error {
	switch {
	case in.Cluster == "":
		return fmt.Errorf("save snapshot: the cluster has no name")
	case !utf8.ValidString(in.Cluster):
		return fmt.Errorf("save snapshot of cluster %q: its name is not UTF-8, which the files about it could not hold; rename it", in.Cluster)
	case in.Time.IsZero():
		return fmt.Errorf("save snapshot of cluster %q: the audit has no time", in.Cluster)
	case len(in.Snapshot) == 0:
		return fmt.Errorf("save snapshot of cluster %q: the snapshot is empty", in.Cluster)
	}
	if err := CheckTime(in.Time); err != nil {
		return fmt.Errorf("save snapshot of cluster %q: %w", in.Cluster, err)
	}
	return store.CheckRun(in.Run)
}

// CheckTime says whether a time can stand in a key.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("time in year %d: keys hold the years 0 to 9999", year)
	}
	return nil
}

// Saved says where an audit went.
type Saved struct {
	Snapshot SnapshotRef
	// Header of this audit. It is the head of the cluster's chain unless another audit was saved since.
	Header RawHeader
	// Latest: this audit is now the one to compare with. It is not when a later one, by time, was there before.
	Latest bool
}

// SaveSnapshot keeps an audit: the cluster's report, the snapshot, and the next header of the chain, in the steps
// that the package comment gives. Saving the same audit again changes nothing and is no error; other bytes
// under the same run and time are store.ErrExists. After an error the snapshot may be kept or not, but the
// chain is whole.
func (a *Archive) SaveSnapshot(ctx context.Context, in Audit) (Saved, error) {
	if err := in.check(); err != nil {
		return Saved{}, err
	}
	at := in.Time.UTC().Truncate(time.Millisecond)
	h := Header{
		Version: HeaderVersion, Cluster: in.Cluster, Time: at, Run: in.Run,
		SnapshotKey: store.SnapshotKey(in.Cluster, at, in.Run), SnapshotSHA256: Hash(in.Snapshot),
	}
	if len(in.Report) > 0 {
		day := in.ReportTime
		if day.IsZero() {
			day = at
		}
		h.ReportKey, h.ReportSHA256 = store.ClusterReportKey(day, in.Run, in.Cluster, ReportJSON), Hash(in.Report)
		if err := a.createOnce(ctx, h.ReportKey, in.Report); err != nil {
			return Saved{}, fmt.Errorf("save report of cluster %q: %w", in.Cluster, err)
		}
	}
	if err := a.createOnce(ctx, h.SnapshotKey, in.Snapshot); err != nil {
		return Saved{}, fmt.Errorf("save snapshot of cluster %q: %w", in.Cluster, err)
	}
	header, latest, err := a.append(ctx, h)
	if err != nil {
		return Saved{}, fmt.Errorf("save chain header of cluster %q (its snapshot is kept): %w", in.Cluster, err)
	}
	return Saved{Snapshot: h.Ref(), Header: header, Latest: latest.Snapshot == h.SnapshotKey}, nil
}

// createOnce creates an immutable object; one with the same bytes is as good.
func (a *Archive) createOnce(ctx context.Context, key string, body []byte) error {
	_, err := a.store.Create(ctx, key, body, immutable)
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	there, getErr := a.store.Get(ctx, key)
	if getErr != nil {
		return errors.Join(err, getErr)
	}
	if !bytes.Equal(there.Body, body) {
		return fmt.Errorf("object %q is there with other bytes, from another run of the same id: %w", key, store.ErrExists)
	}
	return nil
}
