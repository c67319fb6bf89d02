package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"gpuaudit/audit/inventory"
)

// reader reads one cluster's folder in two passes: the first reads everything
// but the pods, the second the pods, since what is kept of a pod depends on
// its node.
type reader struct {
	folder
	o       Options
	cluster *inventory.Cluster
	newest  time.Time
	seen    map[string]bool // kind, namespace and name of objects read
	// whole resources have a file or an object for the whole cluster; scoped
	// ones by namespace.
	whole  map[inventory.Resource]bool
	scoped map[inventory.Resource]map[string]bool
	pods   map[string]bool // files that hold pods
	// takenAt and known are from the marker of a dump that this program wrote.
	takenAt time.Time
	known   map[inventory.Resource][]inventory.Gap
	loader
}

func newReader(f folder, o Options) *reader {
	c := &inventory.Cluster{Name: f.name, Source: inventory.Dump, Custom: map[inventory.Resource][]*inventory.Custom{}, PriorityClasses: map[string]int32{}, RuntimeClasses: map[string]*inventory.RuntimeClass{}}
	return &reader{folder: f, o: o, cluster: c, seen: map[string]bool{}, whole: map[inventory.Resource]bool{}, scoped: map[inventory.Resource]map[string]bool{}, pods: map[string]bool{},
		loader: newLoader(c)}
}

// scope says what a file's name and place declare.
type scope struct {
	kind      kind
	declared  bool
	namespace string // "" is the whole cluster
}

func (r *reader) scope(file string) scope {
	name, dir := base(file), filepath.Dir(file)
	parent := strings.ToLower(filepath.Base(dir))
	if k, ok := byPlural(name); ok {
		s := scope{kind: k, declared: true}
		if dir != "." && k.namespaced && r.isNamespace(filepath.Base(dir)) {
			s.namespace = filepath.Base(dir)
		}
		return s
	}
	if k, ok := byPlural(parent); ok && dir != "." && k.namespaced && len(validation.IsDNS1123Label(name)) == 0 {
		return scope{kind: k, declared: true, namespace: name}
	}
	return scope{}
}

// isNamespace tells a namespace's folder from another: by the list of
// namespaces where there is one, else by the name's form.
func (r *reader) isNamespace(name string) bool {
	if len(r.cluster.Namespaces) > 0 {
		for _, n := range r.cluster.Namespaces {
			if n == name {
				return true
			}
		}
		return false
	}
	return len(validation.IsDNS1123Label(name)) == 0
}

// first reads everything but pods, of which it only takes the times.
func (r *reader) first() error {
	// Namespaces first: they decide what a folder's name means.
	files := append([]string(nil), r.files...)
	sort.SliceStable(files, func(i, j int) bool { return base(files[i]) == "namespaces" && base(files[j]) != "namespaces" })
	var broken []error
	for _, file := range files {
		if err := r.file(file, false); err != nil {
			broken = append(broken, err)
		}
	}
	return errors.Join(broken...)
}

// second reads the pods and finishes the cluster.
func (r *reader) second(now time.Time) (*inventory.Cluster, error) {
	c := r.cluster
	c.CollectedAt = now
	r.extents(false)
	r.loader.finish()
	r.loader.beginPods()
	var broken []error
	for _, file := range r.files {
		if r.pods[file] {
			if err := r.file(file, true); err != nil {
				broken = append(broken, err)
			}
		}
	}
	if len(broken) > 0 {
		return nil, errors.Join(broken...)
	}
	r.loader.commitPods()
	r.extents(true)
	c.Finish()
	return c, nil
}

// file reads one file: everything but pods, or the pods alone.
func (r *reader) file(file string, pods bool) error {
	s := r.scope(file)
	fallback := head{}
	if s.declared {
		fallback = head{APIVersion: apiVersion(s.kind), Kind: s.kind.kind}
		r.collected(s.kind, s.namespace)
	}
	path := filepath.Join(r.dir, file)
	return stream(path, r.o.MaxBytes, fallback, func(o object) error {
		return r.object(file, s, o, pods)
	})
}

func apiVersion(k kind) string {
	switch {
	case k.group == "":
		return "v1"
	case k.group == "events.k8s.io", k.group == "apps", k.group == "batch", k.group == "coordination.k8s.io", k.group == "discovery.k8s.io", k.group == "scheduling.k8s.io", k.group == "node.k8s.io":
		return k.group + "/v1"
	}
	return k.group + "/v1beta1"
}

// collected notes that a resource was read for a namespace, or for all.
func (r *reader) collected(k kind, namespace string) {
	if namespace == "" {
		r.whole[k.resource] = true
		return
	}
	if r.scoped[k.resource] == nil {
		r.scoped[k.resource] = map[string]bool{}
	}
	r.scoped[k.resource][namespace] = true
}

func (r *reader) object(file string, s scope, o object, pods bool) error {
	if strings.HasSuffix(o.kind, "APIResourceList") {
		if pods {
			return nil
		}
		return r.discovery(o.raw)
	}
	if o.kind == "AuditDump" {
		return r.made(o.raw)
	}
	k, ok := byKind(o.apiVersion, o.kind)
	if !ok {
		if o.kind == "" && !pods {
			r.version(file, o.raw)
		}
		return nil
	}
	isPod := k.resource == inventory.Pods
	if isPod && !pods {
		r.pods[file] = true
	}
	if isPod != pods && !isPod {
		return nil
	}
	var meta struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(o.raw, &meta); err != nil {
		return fmt.Errorf("%s that ends here: %w", o.kind, err)
	}
	if meta.Metadata.Name == "" {
		return fmt.Errorf("%s that ends here has no metadata.name", o.kind)
	}
	if !s.declared {
		// An object of a kind shows that its resource was collected, for the
		// namespace of its folder or for all.
		namespace := ""
		if dir := filepath.Dir(file); dir != "." && k.namespaced && r.isNamespace(filepath.Base(dir)) && filepath.Base(dir) == meta.Metadata.Namespace {
			namespace = filepath.Base(dir)
		}
		r.collected(k, namespace)
	}
	id := k.kind + "\x00" + k.group + "\x00" + meta.Metadata.Namespace + "\x00" + meta.Metadata.Name
	if isPod {
		id += map[bool]string{false: "\x00times"}[pods]
	}
	if k.resource != inventory.Events {
		if r.seen[id] {
			return nil
		}
		r.seen[id] = true
	}
	at, err := r.load(k, o.raw, isPod && !pods)
	if err != nil {
		return fmt.Errorf("%s %q that ends here: %w", o.kind, meta.Metadata.Name, err)
	}
	if at.After(r.newest) {
		r.newest = at
	}
	return nil
}

// discovery reads an APIResourceList: kinds that it names and that were not
// collected are gaps.
func (r *reader) discovery(raw json.RawMessage) error {
	var list struct {
		GroupVersion string `json:"groupVersion"`
		Resources    []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	group, version, found := strings.Cut(list.GroupVersion, "/")
	if !found {
		group, version = "", list.GroupVersion
	}
	for _, res := range list.Resources {
		if strings.Contains(res.Name, "/") {
			continue
		}
		r.cluster.APIKinds = append(r.cluster.APIKinds, inventory.APIKind{Group: group, Version: version, Kind: res.Kind, Plural: res.Name, Namespaced: res.Namespaced})
	}
	r.cluster.SetExtent(inventory.Discovery, inventory.SeenWhole)
	return nil
}

// made reads the marker of a dump that this program wrote: its time, that
// managedFields were asked for, and what could not be read and why.
func (r *reader) made(raw json.RawMessage) error {
	var m struct {
		CollectedAt   time.Time `json:"collectedAt"`
		ManagedFields bool      `json:"managedFields"`
		Namespaces    []string  `json:"namespaces"`
		Gaps          []struct {
			Resource, Namespace, Reason, Message string
		} `json:"gaps"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	if m.ManagedFields {
		r.cluster.Source = inventory.Live
	}
	r.takenAt = m.CollectedAt
	r.cluster.ListedNamespaces = m.Namespaces
	r.known = map[inventory.Resource][]inventory.Gap{}
	for _, g := range m.Gaps {
		gap := inventory.Gap{Resource: inventory.Resource(g.Resource), Namespace: g.Namespace, Reason: inventory.GapReason(g.Reason), Message: g.Message}
		r.known[gap.Resource] = append(r.known[gap.Resource], gap)
	}
	return nil
}

func (r *reader) version(file string, raw json.RawMessage) {
	if b := base(file); b != "version" && b != "serverversion" && b != "server-version" && b != "cluster_version" {
		return
	}
	var v struct {
		GitVersion    string `json:"gitVersion"`
		ServerVersion struct {
			GitVersion string `json:"gitVersion"`
		} `json:"serverVersion"`
		Info struct {
			GitVersion string `json:"gitVersion"`
		} `json:"info"`
	}
	if json.Unmarshal(raw, &v) == nil {
		for _, s := range []string{v.GitVersion, v.ServerVersion.GitVersion, v.Info.GitVersion} {
			if s != "" {
				r.cluster.ServerVersion = s
			}
		}
	}
}
