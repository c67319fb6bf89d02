package dump

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gpuaudit/audit/inventory"
)

// scope says what a file's name and place declare.
type scope struct {
	kind     kind
	declared bool
	// byName is true when the file's own name declares it, not its folder's.
	byName    bool
	namespace string // "" is the whole cluster
}

// scope reads a file's name: pods.json, prod/pods.json, pods/prod.json. With a
// list of namespaces a folder is a namespace when the list has it, else when it
// could be one.
func (r *reader) scope(file string) scope {
	name, dir := base(file), filepath.Dir(file)
	parent := filepath.Base(dir)
	if k, ok := byPlural(name); ok {
		s := scope{kind: k, declared: true, byName: true}
		if dir != "." && k.namespaced && r.isNamespace(parent) {
			s.namespace = parent
		}
		return s
	}
	if k, ok := byPlural(strings.ToLower(parent)); ok && dir != "." && k.namespaced && r.isNamespace(name) {
		return scope{kind: k, declared: true, namespace: name}
	}
	return scope{}
}

func (r *reader) isNamespace(name string) bool {
	if len(r.cluster.Namespaces) == 0 {
		return len(validation.IsDNS1123Label(name)) == 0
	}
	for _, n := range r.cluster.Namespaces {
		if n == name {
			return true
		}
	}
	return false
}

// content is what one file turned out to hold.
type content struct {
	objects int
	other   string                     // a kind that it holds
	held    map[inventory.Resource]int // objects by resource
	failure *inventory.Gap             // the API's answer that stands in place of a list
}

// shown is a resource of which an object stands in a file that declares nothing.
type shown struct {
	resource inventory.Resource
	// folder is the object's namespace when the file's folder has that name.
	folder string
}

// failed reads a Status that an API server answered in place of a list: what it
// was asked for was not seen, which an empty list would hide.
func failed(resource inventory.Resource, raw json.RawMessage) (*inventory.Gap, error) {
	var s struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Code    int    `json:"code"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	if s.Status == "Success" {
		return nil, nil
	}
	gap := &inventory.Gap{Resource: resource, Reason: inventory.GapError, Message: "the file holds an answer of the API server instead of a list: " + s.Message}
	switch s.Code {
	case http.StatusForbidden:
		gap.Reason = inventory.GapForbidden
	case http.StatusUnauthorized:
		gap.Reason = inventory.GapCredentials
	case http.StatusGone:
		gap.Reason = inventory.GapExpired
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		gap.Reason = inventory.GapTimeout
	}
	return gap, nil
}

// misnamed is an error for a file whose name declares a resource and that holds
// others alone: taken as an empty list it would say that there is none.
func misnamed(s scope, c *content) error {
	if !s.byName || c.objects == 0 || c.held[s.kind.resource] > 0 {
		return nil
	}
	return fmt.Errorf("holds %s objects and no %s, which its name says; rename it", c.other, s.kind.kind)
}

// settle tells what was collected, once all files were read: only then is it
// known which folders are namespaces.
func (r *reader) settle() {
	whole, scoped := map[inventory.Resource]bool{}, map[inventory.Resource]bool{}
	for _, file := range r.files {
		s := r.scope(file)
		if !s.declared {
			continue
		}
		resource := s.kind.resource
		if c := r.contents[file]; c != nil && c.failure != nil {
			gap := *c.failure
			gap.Namespace = s.namespace
			r.known[resource] = append(r.known[resource], gap)
			r.failing[resource] = true
			continue
		}
		whole[resource] = whole[resource] || s.namespace == ""
		scoped[resource] = scoped[resource] || s.namespace != ""
		r.collected(resource, s.namespace)
	}
	for s := range r.shown {
		if s.folder != "" && r.isNamespace(s.folder) {
			r.collected(s.resource, s.folder)
			continue
		}
		// A stray object beside files of some namespaces, or beside a refusal,
		// does not make these the whole.
		r.whole[s.resource] = whole[s.resource] || !scoped[s.resource] && !r.failing[s.resource]
	}
}

// collected notes that a resource was read for a namespace, or for all.
func (r *reader) collected(resource inventory.Resource, namespace string) {
	if namespace == "" {
		r.whole[resource] = true
		return
	}
	if r.scoped[resource] == nil {
		r.scoped[resource] = map[string]bool{}
	}
	r.scoped[resource][namespace] = true
}
