package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/audit/inventory"
)

// reader reads one cluster's folder in two passes: the first reads everything
// but the pods, the second the pods, since what is kept of a pod depends on
// its node.
type reader struct {
	folder
	o       Options
	cluster *inventory.Cluster
	clock   clock
	seen    map[string]string // UID by kind, namespace and name of objects read
	// whole resources have a file or an object for the whole cluster; scoped
	// ones by namespace.
	whole  map[inventory.Resource]bool
	scoped map[inventory.Resource]map[string]bool
	pods   map[string]bool // files that hold pods
	// contents of files that declare a resource; shown by objects in others.
	contents map[string]*content
	shown    map[shown]bool
	// failing resources have a refusal of the API server in place of a list.
	failing map[inventory.Resource]bool
	// takenAt and known are from the marker of a dump that this program wrote.
	takenAt time.Time
	known   map[inventory.Resource][]inventory.Gap
	loader
}

func newReader(f folder, o Options) *reader {
	c := &inventory.Cluster{Name: f.name, Source: inventory.Dump, Custom: map[inventory.Resource][]*inventory.Custom{}, RuntimeClasses: map[string]*inventory.RuntimeClass{}}
	return &reader{folder: f, o: o, cluster: c, clock: newClock(), seen: map[string]string{}, whole: map[inventory.Resource]bool{}, scoped: map[inventory.Resource]map[string]bool{}, pods: map[string]bool{},
		contents: map[string]*content{}, shown: map[shown]bool{}, failing: map[inventory.Resource]bool{}, known: map[inventory.Resource][]inventory.Gap{},
		loader: newLoader(c)}
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
	r.settle()
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
	}
	c := &content{held: map[inventory.Resource]int{}}
	path := filepath.Join(r.dir, file)
	err := stream(path, r.o.MaxBytes, fallback, func(o object) error {
		return r.object(file, s, c, o, pods)
	})
	if err != nil || pods {
		return err
	}
	if c.failure == nil {
		if err := misnamed(s, c); err != nil {
			return &fileError{path, "", err}
		}
	}
	r.contents[file] = c
	return nil
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

// object takes one object of a file in one of the two passes.
func (r *reader) object(file string, s scope, c *content, o object, pods bool) error {
	k, known := byKind(o.apiVersion, o.kind)
	if !known {
		if pods {
			return nil
		}
		return r.unlike(file, s, c, o)
	}
	c.objects++
	c.other = o.kind
	c.held[k.resource]++
	isPod := k.resource == inventory.Pods
	if isPod && !pods {
		r.pods[file] = true
	}
	if pods && !isPod {
		return nil
	}
	var m named
	if len(o.metadata) > 0 {
		if err := json.Unmarshal(o.metadata, &m); err != nil {
			return fmt.Errorf("%s that ends here: metadata: %w", o.kind, err)
		}
	}
	if m.Name == "" {
		return fmt.Errorf("%s that ends here has no metadata.name", o.kind)
	}
	if !s.declared && !pods {
		// An object of a kind shows that its resource was collected, for the
		// namespace of its folder or for all.
		where := shown{resource: k.resource}
		if dir := filepath.Dir(file); dir != "." && k.namespaced && filepath.Base(dir) == m.Namespace {
			where.folder = m.Namespace
		}
		r.shown[where] = true
	}
	if isPod && !pods && (!r.o.Now.IsZero() || !r.takenAt.IsZero()) {
		return nil // its times decide nothing
	}
	if again, err := r.again(k, m.Namespace, m.Name, m.UID, isPod && !pods); again || err != nil {
		return err
	}
	at, err := r.load(k, o.raw, isPod && !pods)
	if err != nil {
		return fmt.Errorf("%s %q that ends here: %w", o.kind, m.Name, err)
	}
	if !pods {
		who := o.kind + " " + m.Name
		if m.Namespace != "" {
			who = o.kind + " " + m.Namespace + "/" + m.Name
		}
		r.clock.add(at, who)
	}
	return nil
}

// named is what tells objects apart.
type named struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// again is true for an object that another file held already. Events tell
// themselves apart (see inventory.EventPass).
func (r *reader) again(k kind, namespace, name, uid string, timesOnly bool) (bool, error) {
	if k.resource == inventory.Events {
		return false, nil
	}
	id := k.kind + "\x00" + k.group + "\x00" + namespace + "\x00" + name
	if timesOnly {
		id += "\x00times"
	}
	identity := k.resource == inventory.Nodes || k.resource == inventory.Namespaces && name == metav1.NamespaceSystem
	if !identity {
		uid = ""
	}
	before, again := r.seen[id]
	if !again {
		r.seen[id] = uid
	}
	if again && before != "" && uid != "" && before != uid {
		return true, fmt.Errorf("%s %q has UID %q here and %q elsewhere in the folder: two clusters or two moments in one; keep one of them", k.kind, name, uid, before)
	}
	return again, nil
}

// unlike takes what is no object of a kind that is read.
func (r *reader) unlike(file string, s scope, c *content, o object) error {
	switch {
	case strings.HasSuffix(o.kind, "APIResourceList"):
		return r.discovery(o.raw)
	case o.kind == "AuditDump":
		return r.made(o.raw)
	case o.kind == "Status" && s.declared:
		gap, err := failed(s.kind.resource, o.raw)
		if gap != nil {
			c.failure = gap
		}
		return err
	case o.kind == "":
		r.version(file, o.raw)
		return nil
	}
	c.objects++
	c.other = o.kind
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
