package collect

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"gpuaudit/audit/inventory"
)

// Marker is the file of a dump that says how it was made: a run on the dump
// then knows what the live run knew.
const Marker = "audit-dump.json"

// Made is what the marker holds.
type Made struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// CollectedAt is the API server's time when the read began.
	CollectedAt time.Time `json:"collectedAt"`
	Cluster     string    `json:"cluster"`
	// ManagedFields were asked for: that none is there means that they are stripped.
	ManagedFields bool     `json:"managedFields"`
	Namespaces    []string `json:"namespaces"`
	Gaps          []struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
	} `json:"gaps"`
}

// Dump writes what a run would read of a cluster as files that dump.Read reads
// back to the same inventory: one gzipped list a kind, without environment,
// arguments, commands and the annotations that no check reads. The folder must
// not exist or be empty; it appears whole or not at all.
func Dump(ctx context.Context, t Target, dir string, progress Progress) ([]inventory.Gap, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("dump folder %q is not empty; name a new one", dir)
	}
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	client, err := connect(ctx, t)
	if err != nil {
		return nil, errors.New(client.redact(short(err)))
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("dump folder %q: %w", dir, err)
	}
	tmp, err := os.MkdirTemp(parent, ".audit-dump-*")
	if err != nil {
		return nil, fmt.Errorf("dump folder %q: %w; name one in a folder that may be written", dir, err)
	}
	defer os.RemoveAll(tmp)
	w := &writer{client: client, target: t, dir: tmp, progress: progress}
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	_ = os.Remove(dir) // an empty folder makes way; anything else makes the rename fail
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, fmt.Errorf("dump folder %q: %w", dir, err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, fmt.Errorf("dump folder %q: %w", dir, err)
	}
	return w.gaps, nil
}

// writer writes the files of a dump.
type writer struct {
	client   *client
	target   Target
	dir      string
	progress Progress
	gaps     []inventory.Gap
	made     Made
}

func (w *writer) write(ctx context.Context) error {
	core, ok := w.client.typed.(*kubernetes.Clientset)
	if !ok {
		return errors.New("dump: no connection")
	}
	api := core.CoreV1().RESTClient()
	version, err := api.Get().AbsPath("/version").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("cluster %q: %s", w.target.Name, w.client.redact(networkWords(err)))
	}
	w.made = Made{APIVersion: "audit/v1", Kind: "AuditDump", Cluster: w.target.Name, ManagedFields: true, Namespaces: w.target.Namespaces}
	w.made.CollectedAt, _ = w.client.guard.serverTime()
	if v := gitVersion(version); v != "" {
		body, err := json.Marshal(map[string]string{"gitVersion": w.client.redact(v)})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.dir, "version.json"), append(body, '\n'), 0o644); err != nil {
			return err
		}
	}
	served, err := w.discovery()
	if err != nil {
		return err
	}
	for _, k := range table {
		version := k.version
		if !k.builtin {
			v, there := served[k.plural+"."+k.group]
			if served != nil && !there {
				continue // not installed
			}
			if v != "" {
				version = v
			}
		}
		if w.progress != nil {
			w.progress(w.target.Name, "writing "+string(k.name))
		}
		if err := w.kind(ctx, api, k, version); err != nil {
			return err
		}
	}
	return w.marker()
}

// discovery writes what the server serves, as APIResourceLists.
func (w *writer) discovery() (map[string]string, error) {
	lists, err := w.client.typed.Discovery().ServerPreferredResources()
	if _, ok := discovery.GroupDiscoveryFailedErrorGroups(err); err != nil && !ok {
		w.gap(inventory.Discovery, "", err, "read the server's kinds: "+w.client.redact(short(err)))
		return nil, nil
	}
	served := map[string]string{}
	for _, l := range lists {
		l.Kind, l.APIVersion = "APIResourceList", "v1"
		group, version := splitGroupVersion(l.GroupVersion)
		for _, r := range l.APIResources {
			served[r.Name+"."+group] = version
		}
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": lists})
	if err != nil {
		return nil, err
	}
	return served, os.WriteFile(filepath.Join(w.dir, "discovery.json"), body, 0o644)
}

func (w *writer) gap(r inventory.Resource, namespace string, err error, message string) {
	w.gaps = append(w.gaps, inventory.Gap{Resource: r, Namespace: namespace, Reason: reason(err), Message: message})
}

// kind writes one kind: a file for the whole cluster, or one a namespace.
func (w *writer) kind(ctx context.Context, api rest.Interface, k resource, version string) error {
	r := &reader{target: w.target}
	for _, ns := range r.spaces(k) {
		folder := w.dir
		if ns != "" && k.only == "" {
			folder = filepath.Join(w.dir, ns)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		file := filepath.Join(folder, string(k.name)+".json.gz")
		readErr, writeErr := w.list(ctx, api, k, version, ns, file)
		if writeErr != nil {
			return fmt.Errorf("dump file %q: %w", file, writeErr)
		}
		if readErr == nil {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !k.builtin && apierrors.IsNotFound(readErr) {
			continue
		}
		w.gap(k.name, ns, readErr, w.client.explain(readErr, k, ns, w.target.Timeout))
	}
	return nil
}

// list streams one list into a file, page by page.
func (w *writer) list(ctx context.Context, api rest.Interface, k resource, version, namespace, file string) (readErr, writeErr error) {
	path := "/api/" + version
	if k.group != "" {
		path = "/apis/" + k.group + "/" + version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + k.plural
	readErr = list(ctx, func() pass {
		writeErr = nil
		out, err := os.Create(file)
		if err != nil {
			writeErr = err
			return pass{page: func(context.Context, metav1.ListOptions) (string, error) { return "", nil }, commit: func() {}}
		}
		zip := gzip.NewWriter(out)
		_, writeErr = zip.Write([]byte(`{"apiVersion":"v1","kind":"List","items":[`))
		first := true
		return pass{
			page: func(ctx context.Context, o metav1.ListOptions) (string, error) {
				request := api.Get().AbsPath(path).SetHeader("Accept", "application/json").Param("limit", fmt.Sprint(o.Limit))
				if o.Continue != "" {
					request = request.Param("continue", o.Continue)
				}
				body, err := request.DoRaw(ctx)
				if err != nil {
					return "", err
				}
				next, items, err := scrubbed(body, k)
				if err != nil {
					return "", err
				}
				for _, item := range items {
					if !first {
						item = append([]byte(",\n"), item...)
					}
					first = false
					if _, err := zip.Write(item); err != nil && writeErr == nil {
						writeErr = err
					}
				}
				return next, nil
			},
			commit: func() {
				_, err := zip.Write([]byte("]}\n"))
				writeErr = errors.Join(writeErr, err, zip.Close(), out.Sync(), out.Close())
			},
		}
	})
	return readErr, writeErr
}

// scrubbed gives a page's items with their kind and without what no check reads.
func scrubbed(body []byte, k resource) (next string, items [][]byte, err error) {
	var page struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return "", nil, fmt.Errorf("the answer is no list: %w", err)
	}
	kind := strings.TrimSuffix(page.Kind, "List")
	if kind == page.Kind || kind == "" {
		return "", nil, fmt.Errorf("the answer is a %q and no list", page.Kind)
	}
	for _, item := range page.Items {
		item["apiVersion"], item["kind"] = page.APIVersion, kind
		scrub(item, k)
		raw, err := json.Marshal(item)
		if err != nil {
			return "", nil, err
		}
		items = append(items, raw)
	}
	return page.Metadata.Continue, items, nil
}

// marker writes how the dump was made, and what could not be read.
func (w *writer) marker() error {
	slices.SortFunc(w.gaps, func(a, b inventory.Gap) int {
		return strings.Compare(string(a.Resource)+a.Namespace, string(b.Resource)+b.Namespace)
	})
	for _, g := range w.gaps {
		w.made.Gaps = append(w.made.Gaps, struct {
			Resource  string `json:"resource"`
			Namespace string `json:"namespace"`
			Reason    string `json:"reason"`
			Message   string `json:"message"`
		}{string(g.Resource), g.Namespace, string(g.Reason), g.Message})
	}
	body, err := json.MarshalIndent(w.made, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, Marker), append(body, '\n'), 0o644)
}
