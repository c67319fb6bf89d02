package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"gpuaudit/store"
)

// ReportJSON and Manifest are the names of files of a report.
const (
	ReportJSON = "report.json"
	Manifest   = "manifest.json"
)

// manifestVersion is the version of manifest.json that this program writes and the newest it reads.
const manifestVersion = 1

// Report is what a run reports, ready to be kept.
type Report struct {
	Run string
	// Time is generatedAt; it names the day's folder.
	Time time.Time
	// Files of the report over all clusters, by name: report.json, report.html, report.md, checklist.html.
	Files map[string][]byte
	// Clusters has, by cluster, the files of the report about it alone: report.json, report.html, report.md.
	Clusters map[string]map[string][]byte
}

// ManifestFile is manifest.json: the list of a report's files. It is written last, so a report that has one is whole.
type ManifestFile struct {
	Version     int       `json:"version"`
	Run         string    `json:"run"`
	GeneratedAt time.Time `json:"generatedAt"`
	Files       []File    `json:"files"`
}

// File is one file of a report.
type File struct {
	// Name is relative to the report's folder: "report.html", or "<cluster's folder>/report.html".
	Name string `json:"name"`
	// Cluster is the cluster that the file is about; empty for the files about all.
	Cluster string `json:"cluster,omitempty"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
}

// ReportRef names a kept report.
type ReportRef struct {
	Run string
	// Day is the folder's date, at midnight UTC.
	Day time.Time
}

func (r ReportRef) prefix() string { return store.ReportPrefix(r.Day, r.Run) }

// Key is where a file of the report is kept; name as in File.
func (r ReportRef) Key(name string) string { return r.prefix() + name }

// SaveReport keeps a report: all files, then manifest.json with their hashes. Saving the same report again changes
// nothing; other bytes under the same run are store.ErrExists.
func (a *Archive) SaveReport(ctx context.Context, r Report) (ReportRef, ManifestFile, error) {
	fail := func(err error) (ReportRef, ManifestFile, error) {
		return ReportRef{}, ManifestFile{}, fmt.Errorf("save report of run %q: %w", r.Run, err)
	}
	if err := store.CheckRun(r.Run); err != nil {
		return fail(err)
	}
	if err := CheckTime(r.Time); err != nil {
		return fail(err)
	}
	ref := ReportRef{Run: r.Run, Day: r.Time.UTC().Truncate(24 * time.Hour)}
	manifest, bodies, err := r.list()
	if err != nil {
		return fail(err)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers / 2)
	for i, file := range manifest.Files {
		group.Go(func() error { return a.createOnce(groupCtx, ref.Key(file.Name), bodies[i]) })
	}
	if err := group.Wait(); err != nil {
		return fail(err)
	}
	body, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return fail(err)
	}
	if err := a.createOnce(ctx, ref.Key(Manifest), append(body, '\n')); err != nil {
		return fail(err)
	}
	return ref, manifest, nil
}

// list gives the manifest and the files' bytes in its order.
func (r Report) list() (ManifestFile, [][]byte, error) {
	manifest := ManifestFile{Version: manifestVersion, Run: r.Run, GeneratedAt: r.Time.UTC()}
	byName := map[string][]byte{}
	add := func(name, cluster string, body []byte) error {
		if strings.Contains(path.Base(name), "..") || name == Manifest || store.CheckKey(name) != nil {
			return fmt.Errorf("file %q: not a name for a file of a report", name)
		}
		manifest.Files = append(manifest.Files, File{Name: name, Cluster: cluster, Size: int64(len(body)), SHA256: Hash(body)})
		byName[name] = body
		return nil
	}
	for name, body := range r.Files {
		if err := add(name, "", body); err != nil || strings.Contains(name, "/") {
			return manifest, nil, errors.Join(fmt.Errorf("file %q of the report over all clusters", name), err)
		}
	}
	for cluster, files := range r.Clusters {
		for name, body := range files {
			if err := add(store.Segment(cluster)+"/"+name, cluster, body); err != nil || strings.Contains(name, "/") {
				return manifest, nil, errors.Join(fmt.Errorf("file %q of the report of cluster %q", name, cluster), err)
			}
		}
	}
	slices.SortFunc(manifest.Files, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	bodies := make([][]byte, len(manifest.Files))
	for i, file := range manifest.Files {
		bodies[i] = byName[file.Name]
	}
	return manifest, bodies, nil
}

// Reports yields the kept reports of the days from one time to another, both included, oldest first. A zero time is no
// bound. The order within a day is that of the run ids.
func (a *Archive) Reports(ctx context.Context, from, to time.Time) iter.Seq2[ReportRef, error] {
	return func(yield func(ReportRef, error) bool) {
		for day, err := range a.days(ctx, from, to) {
			if err != nil {
				yield(ReportRef{}, err)
				return
			}
			for run, err := range a.store.Folders(ctx, store.ReportsPrefix+day.Format("2006/01/02/")) {
				if err == nil && store.CheckRun(run) != nil {
					continue
				}
				if !yield(ReportRef{Run: run, Day: day}, err) || err != nil {
					return
				}
			}
		}
	}
}

// days yields the days that have a folder of reports.
func (a *Archive) days(ctx context.Context, from, to time.Time) iter.Seq2[time.Time, error] {
	first, last := "", "9999/99/99"
	if !from.IsZero() {
		first = from.UTC().Format("2006/01/02")
	}
	if !to.IsZero() {
		last = to.UTC().Format("2006/01/02")
	}
	// outside says that no day under a folder such as "2026/05" is wanted.
	outside := func(folder string) bool {
		return folder > last[:len(folder)] || first != "" && folder < first[:len(folder)]
	}
	return func(yield func(time.Time, error) bool) {
		var walk func(folder string) bool
		walk = func(folder string) bool {
			for name, err := range a.store.Folders(ctx, store.ReportsPrefix+folder) {
				if err != nil {
					yield(time.Time{}, err)
					return false
				}
				inner := folder + name
				if len(inner) > len(last) || outside(inner) {
					continue
				}
				if len(inner) < len(last) {
					if !walk(inner + "/") {
						return false
					}
					continue
				}
				if day, err := time.Parse("2006/01/02", inner); err == nil && !yield(day, nil) {
					return false
				}
			}
			return true
		}
		walk("")
	}
}

// LatestRun stands for the newest report in FindReport.
const LatestRun = "latest"

// FindReport finds the report of a run, or of LatestRun: the last run of the last day that has a report.json. A run that
// was cut off while it was kept is passed over (see Newer). It fails with store.ErrNotFound, and with a MissingError
// where the report was whole and its report.json is gone.
func (a *Archive) FindReport(ctx context.Context, run string) (ReportRef, error) {
	fail := func(err error) (ReportRef, error) {
		return ReportRef{}, fmt.Errorf("find report of run %q: %w", run, err)
	}
	if run != LatestRun {
		if err := store.CheckRun(run); err != nil {
			return ReportRef{}, err
		}
		if day, ok := store.RunTime(run); ok {
			ref := ReportRef{Run: run, Day: day.Truncate(24 * time.Hour)}
			if has, err := a.hasReport(ctx, ref); has || err != nil {
				return ref, err
			}
		}
	}
	var days []time.Time
	for day, err := range a.days(ctx, time.Time{}, time.Time{}) {
		if err != nil {
			return fail(err)
		}
		days = append(days, day)
	}
	for _, day := range slices.Backward(days) {
		var refs []ReportRef
		for ref, err := range a.Reports(ctx, day, day) {
			if err != nil {
				return fail(err)
			}
			if run == LatestRun || ref.Run == run {
				refs = append(refs, ref)
			}
		}
		for _, ref := range slices.Backward(refs) {
			if has, err := a.hasReport(ctx, ref); has || err != nil {
				return ref, err
			}
		}
	}
	return fail(fmt.Errorf("%w in %s; `audit reports list` shows what is kept", store.ErrNotFound, a.store))
}

// hasReport fails with a MissingError where there is a manifest, which is written last, and no report.json.
func (a *Archive) hasReport(ctx context.Context, ref ReportRef) (bool, error) {
	_, err := a.store.Stat(ctx, ref.Key(ReportJSON))
	if !errors.Is(err, store.ErrNotFound) {
		return err == nil, err
	}
	switch _, err := a.store.Stat(ctx, ref.Key(Manifest)); {
	case err == nil:
		return false, &MissingError{Key: ref.Key(ReportJSON), NamedBy: ref.Key(Manifest)}
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	default:
		return false, err
	}
}

// Newer gives the runs after a report's, by day and run id, oldest first: for the latest report they are those that
// were cut off while they were kept.
func (a *Archive) Newer(ctx context.Context, than ReportRef) ([]ReportRef, error) {
	var out []ReportRef
	for ref, err := range a.Reports(ctx, than.Day, time.Time{}) {
		if err != nil {
			return nil, err
		}
		if ref.Day.After(than.Day) || ref.Run > than.Run {
			out = append(out, ref)
		}
	}
	return out, nil
}

// LoadManifest reads a report's list of files. A report without one was cut off while it was saved: store.ErrNotFound.
func (a *Archive) LoadManifest(ctx context.Context, ref ReportRef) (ManifestFile, error) {
	object, err := a.store.Get(ctx, ref.Key(Manifest))
	if err != nil {
		return ManifestFile{}, fmt.Errorf("manifest of run %q: %w", ref.Run, err)
	}
	var m ManifestFile
	if err := decode(object.Key, object.Body, &m); err != nil {
		return ManifestFile{}, err
	}
	if m.Version > manifestVersion {
		return ManifestFile{}, &NewerError{Key: object.Key, Version: m.Version, Know: manifestVersion}
	}
	return m, nil
}

// LoadFile reads one file of a report and checks it against the manifest where there is one. Name as in File.
func (a *Archive) LoadFile(ctx context.Context, ref ReportRef, name string) ([]byte, error) {
	object, err := a.store.Get(ctx, ref.Key(name))
	if err != nil {
		return nil, fmt.Errorf("file %q of run %q: %w", name, ref.Run, err)
	}
	m, err := a.LoadManifest(ctx, ref)
	if errors.Is(err, store.ErrNotFound) || name == Manifest {
		return object.Body, nil
	}
	if err != nil {
		return nil, err
	}
	for _, file := range m.Files {
		if file.Name == name && file.SHA256 != Hash(object.Body) {
			return nil, &BrokenError{Key: object.Key, Err: fmt.Errorf("its sha256 is %s, the manifest says %s", Hash(object.Body), file.SHA256)}
		}
	}
	return object.Body, nil
}

// ClusterFile is the name, as in File, of a file of the report about one cluster.
func ClusterFile(cluster, file string) string { return store.Segment(cluster) + "/" + file }

// FileURL is a link to a file of a kept report, by the store's own address.
func (a *Archive) FileURL(ref ReportRef, name string) string { return a.store.URL(ref.Key(name)) }
