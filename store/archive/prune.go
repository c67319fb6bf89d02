package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gpuaudit/store"
)

// Pruned counts what Prune removed.
type Pruned struct {
	Snapshots, Headers, Reports, Slots int
	// Since is the time before which things were removed, by the store's clock; zero when there was nothing to go by.
	Since time.Time
}

// Prune removes snapshots, their headers, reports and slots that were written longer than keep before the store's newest
// audit. Both times are the store's own, so neither a wrong clock here nor an audit under another date removes
// anything. What remains is always whole: a chain loses only its beginning, in its own order; the head of each
// chain and the snapshot to compare with stay whatever their age, as does every report that a remaining header
// holds the hash of. Acknowledgements stay.
//
// It goes on after an error as far as that is safe and returns all errors.
func (a *Archive) Prune(ctx context.Context, keep time.Duration) (Pruned, error) {
	var done Pruned
	if keep <= 0 {
		return done, nil
	}
	var clusters []string
	var errs []error
	var newest time.Time
	for cluster, err := range a.Clusters(ctx) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		info, err := a.store.Stat(ctx, store.LatestKey(cluster))
		if errors.Is(err, store.ErrNotFound) {
			continue // nothing was ever chained here, so nothing is known to be newer
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		clusters = append(clusters, cluster)
		if info.Modified.After(newest) {
			newest = info.Modified
		}
	}
	if newest.IsZero() {
		return done, errors.Join(errs...)
	}
	done.Since = newest.Add(-keep)
	p := &pruner{archive: a, since: done.Since, done: &done, reports: map[string]bool{}}
	for _, cluster := range clusters {
		if err := p.cluster(ctx, cluster); err != nil {
			errs = append(errs, fmt.Errorf("remove what is older than %s of cluster %q: %w", done.Since.Format(time.RFC3339), cluster, err))
		}
	}
	// With a cluster unread it is not known which reports its headers need.
	if len(errs) == 0 {
		errs = append(errs, p.oldReports(ctx), p.slots(ctx))
	}
	return done, errors.Join(errs...)
}

type pruner struct {
	archive *Archive
	since   time.Time
	done    *Pruned
	reports map[string]bool // folders of reports that remaining headers need
}

// cluster cuts the expired beginning off one chain.
func (p *pruner) cluster(ctx context.Context, cluster string) error {
	a := p.archive
	t, err := a.readTip(ctx, cluster)
	if err != nil || t.latest == nil {
		return err
	}
	expired, err := p.expired(ctx, cluster)
	if err != nil {
		return err
	}
	cut, err := p.beginning(ctx, *t.latest, expired)
	if err != nil {
		return err
	}
	cutKeys := map[string]bool{}
	for _, h := range cut {
		cutKeys[h.Key()] = true
	}
	for key, h := range expired {
		if !cutKeys[key] {
			p.need(h)
		}
	}
	if head, err := t.latest.head().Parse(); err == nil {
		p.need(head)
	}
	if len(cut) > 0 {
		if err := p.recordCut(ctx, cluster, cut[len(cut)-1].Key()); err != nil {
			return err
		}
	}
	for _, h := range cut {
		if err := p.remove(ctx, h.SnapshotKey, &p.done.Snapshots); err != nil {
			return err
		}
		if err := p.remove(ctx, h.Key(), &p.done.Headers); err != nil {
			return err
		}
	}
	return p.orphans(ctx, *t.latest, expired)
}

func (p *pruner) need(h Header) {
	if h.ReportKey != "" {
		parts := strings.SplitAfterN(h.ReportKey, "/", 6)
		if len(parts) == 6 {
			p.reports[strings.Join(parts[:5], "")] = true
		}
	}
}

// expired reads the headers that were written before p.since.
func (p *pruner) expired(ctx context.Context, cluster string) (map[string]Header, error) {
	out := map[string]Header{}
	for info, err := range p.archive.store.List(ctx, store.ChainPrefix(cluster), "") {
		if err != nil {
			return nil, err
		}
		if _, _, ok := store.ParseStamp(info.Key); !ok || !info.Modified.Before(p.since) {
			continue
		}
		object, err := p.archive.store.Get(ctx, info.Key)
		if err != nil {
			return nil, err
		}
		h, err := RawHeader{Key: info.Key, Body: object.Body}.Parse()
		if err != nil {
			return nil, err
		}
		out[info.Key] = h
	}
	return out, nil
}

// beginning gives the expired headers that the chain begins with, in its order. It ends before the head and the latest
// snapshot's header, and is empty where the headers do not make a line.
func (p *pruner) beginning(ctx context.Context, latest Latest, expired map[string]Header) ([]Header, error) {
	after := map[string][]Header{}
	var first []Header
	for _, h := range expired {
		after[h.PreviousKey] = append(after[h.PreviousKey], h)
		if _, ok := expired[h.PreviousKey]; ok {
			continue
		}
		if h.PreviousKey != "" {
			_, err := p.archive.store.Stat(ctx, h.PreviousKey)
			if err == nil {
				continue
			}
			if !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
		}
		first = append(first, h)
	}
	if len(first) != 1 {
		return nil, nil
	}
	var cut []Header
	for h := first[0]; h.Key() != latest.HeadKey && h.SnapshotKey != latest.Snapshot; {
		cut = append(cut, h)
		next := after[h.Key()]
		if len(next) != 1 || len(cut) > len(expired) {
			break
		}
		h = next[0]
	}
	return cut, nil
}

// recordCut notes in latest.json where the chain will begin, before anything is removed.
func (p *pruner) recordCut(ctx context.Context, cluster, key string) error {
	a := p.archive
	object, err := a.store.Get(ctx, key)
	if err != nil {
		return err
	}
	for attempt := range appendAttempts {
		t, err := a.readTip(ctx, cluster)
		if err != nil || t.latest == nil {
			return err
		}
		next := *t.latest
		next.PrunedKey, next.PrunedSHA256 = key, Hash(object.Body)
		err = a.writeLatest(ctx, t, next)
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrChanged) {
			return err
		}
		if err := store.Pause(ctx, attempt); err != nil {
			return err
		}
	}
	return fmt.Errorf("%q: %w", store.LatestKey(cluster), store.ErrChanged)
}

// orphans removes expired snapshots that no header holds, and those whose header a cut off prune removed already.
func (p *pruner) orphans(ctx context.Context, latest Latest, expired map[string]Header) error {
	cluster := latest.Cluster
	for info, err := range p.archive.store.List(ctx, store.SnapshotsPrefix(cluster), "") {
		if err != nil {
			return err
		}
		at, run, ok := store.ParseStamp(info.Key)
		if !ok || !info.Modified.Before(p.since) || info.Key == latest.Snapshot || at.After(latest.Time) {
			continue
		}
		header := store.HeaderKey(cluster, at, run)
		if _, chained := expired[header]; chained || header == latest.HeadKey {
			continue
		}
		_, err := p.archive.store.Stat(ctx, header)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := p.remove(ctx, info.Key, &p.done.Snapshots); err != nil {
			return err
		}
	}
	return nil
}

// oldReports removes whole reports, all of whose files are expired.
func (p *pruner) oldReports(ctx context.Context) error {
	for ref, err := range p.archive.Reports(ctx, time.Time{}, p.since) {
		if err != nil {
			return err
		}
		if p.reports[ref.prefix()] {
			continue
		}
		var keys []string
		young := false
		for info, err := range p.archive.store.List(ctx, ref.prefix(), "") {
			if err != nil {
				return err
			}
			keys = append(keys, info.Key)
			young = young || !info.Modified.Before(p.since)
		}
		if young || len(keys) == 0 {
			continue
		}
		for _, key := range keys {
			if err := p.remove(ctx, key, nil); err != nil {
				return err
			}
		}
		p.done.Reports++
	}
	return nil
}

// slots removes expired records of digests and of shares of a slot.
func (p *pruner) slots(ctx context.Context) error {
	for _, prefix := range []string{store.SlotsPrefix, store.SharesPrefix} {
		for info, err := range p.archive.store.List(ctx, prefix, "") {
			if err != nil {
				return err
			}
			if info.Modified.Before(p.since) {
				if err := p.remove(ctx, info.Key, &p.done.Slots); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *pruner) remove(ctx context.Context, key string, count *int) error {
	if err := p.archive.store.Delete(ctx, key); err != nil {
		return err
	}
	if count != nil {
		*count++
	}
	return nil
}
