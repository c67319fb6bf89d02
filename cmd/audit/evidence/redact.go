package evidence

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"gpuaudit/audit/report"
)

// Redaction replaces names that are ours alone by stable pseudonyms: namespaces,
// pods, workloads, images, internal hosts and addresses, and what configured patterns match. Node names, label keys
// and values in question and every number stay.
type Redaction struct {
	// Names maps originals to pseudonyms; it stays with us.
	Names    map[string]string
	words    *regexp.Regexp
	patterns []*regexp.Regexp
}

// NewRedaction collects the names of a report. Kubernetes' own namespaces are no secret.
func NewRedaction(c *report.Cluster, patterns []string) (*Redaction, error) {
	r := &Redaction{Names: map[string]string{}}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("redaction pattern %q: %w", p, err)
		}
		r.patterns = append(r.patterns, re)
	}
	namespaces, pods, owners, services := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	take := func(namespace, name, owner string) {
		namespaces[namespace] = true
		pods[name] = true
		if i := strings.LastIndexByte(owner, '/'); i >= 0 {
			owners[owner[i+1:]] = true
		}
	}
	for _, p := range c.Pending {
		take(p.Namespace, p.Name, p.Owner)
	}
	for _, f := range c.Findings {
		switch f.Subject.Kind {
		case "Node", "Cluster", "Scheduler", "APIService":
		case "Pod":
			take(f.Subject.Namespace, f.Subject.Name, "")
		default:
			take(f.Subject.Namespace, "", "")
			owners[f.Subject.Name] = true
		}
		for _, text := range append(slices.Clone(f.Objects), objects(f.Evidence)...) {
			if parts := strings.Split(text, "/"); len(parts) == 3 && parts[0] != "Node" && parts[0] != "Lease" {
				take(parts[1], "", "")
				switch parts[0] {
				case "Pod":
					pods[parts[2]] = true
				case "Service":
					services[parts[2]] = true
				default:
					owners[parts[2]] = true
				}
			}
		}
	}
	for _, k := range c.Classes {
		for _, o := range k.Owners {
			if parts := strings.Split(o, "/"); len(parts) == 3 {
				take(parts[1], "", "x/"+parts[2])
			}
		}
	}
	images, hosts := map[string]bool{}, map[string]bool{}
	if err := foundIn(c, images, hosts); err != nil {
		return nil, err
	}
	for _, own := range []string{"", "default", "kube-system", "kube-public", "kube-node-lease"} {
		delete(namespaces, own)
	}
	labels := map[string]bool{}
	for _, n := range c.Nodes {
		for _, set := range []map[string]bool{namespaces, pods, owners, services, images, hosts} {
			delete(set, n.Name)
		}
		for k, v := range n.Labels {
			labels[k], labels[k+"="+v], labels[k+" is "+v] = true, true, true // as why a device is lost is worded
		}
		for name := range n.Devices {
			labels[name] = true // nvidia.com/gpu, whatever namespace is called gpu
		}
	}
	for _, k := range c.Classes {
		for key, v := range k.NodeSelector {
			labels[key], labels[key+"="+v] = true, true
		}
		for name := range k.Requests {
			labels[name] = true
		}
	}
	for _, d := range c.Devices {
		labels[d.Resource] = true
	}
	for _, d := range c.Unknown {
		labels[d.Resource] = true
	}
	r.number("namespace", namespaces)
	r.number("workload", owners)
	r.number("pod", pods)
	r.number("service", services)
	r.number("image", images)
	r.number("host", hosts)
	r.build(labels)
	return r, nil
}

// What an image, and a host or address that only we know, look like in a text.
// Names of kinds and label keys, which look like hosts as well, have none of these endings.
var (
	imageText = regexp.MustCompile(`(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*(?::[A-Za-z0-9_][A-Za-z0-9._-]*)?@sha256:[0-9a-f]{64}|(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|localhost:[0-9]+)/[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9_][A-Za-z0-9._-]*`)
	quoted    = regexp.MustCompile(`(?i)image \\?"([^"\\\s]+)\\?"`)
	urlHost   = regexp.MustCompile(`[a-z][a-z0-9+.-]*://(?:[^/@\s"\\]+@)?([A-Za-z0-9.-]+)`)
	innerHost = regexp.MustCompile(`[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:svc|local|internal|intranet|intra|corp|lan|private|home\.arpa)(?:\.cluster\.local)?\b`)
	address   = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)
)

// foundIn collects images, hosts and addresses from every text of a report but
// its links, which are meant to be followed.
func foundIn(c *report.Cluster, images, hosts map[string]bool) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("redact: %w", err)
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return fmt.Errorf("redact: %w", err)
	}
	scan(tree, func(s string) {
		for _, m := range imageText.FindAllString(s, -1) {
			if !strings.Contains(s, "://"+m) {
				images[m] = true
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(s, -1) {
			images[m[1]] = true
		}
		for _, m := range urlHost.FindAllStringSubmatch(s, -1) {
			hosts[m[1]] = true
		}
		for _, re := range []*regexp.Regexp{innerHost, address} {
			for _, m := range re.FindAllString(s, -1) {
				hosts[m] = true
			}
		}
	})
	return nil
}

func scan(v any, f func(string)) {
	switch x := v.(type) {
	case string:
		f(x)
	case []any:
		for _, one := range x {
			scan(one, f)
		}
	case map[string]any:
		for key, one := range x {
			if key != "link" && key != "serverVersion" {
				scan(one, f)
			}
		}
	}
}

func objects(list []report.Evidence) []string {
	var out []string
	for _, e := range list {
		out = append(out, strings.TrimPrefix(e.Object, "Event about "))
	}
	return out
}

func (r *Redaction) number(kind string, names map[string]bool) {
	var list []string
	for n := range names {
		if n != "" && r.Names[n] == "" {
			list = append(list, n)
		}
	}
	sort.Strings(list)
	for i, n := range list {
		r.Names[n] = fmt.Sprintf("%s-%d", kind, i+1)
	}
}

// build makes the matcher: the vendor's label pairs, which stay, then our names,
// longer ones first, as whole words.
func (r *Redaction) build(labels map[string]bool) {
	words := func(set []string) string {
		slices.SortFunc(set, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(a, b)
		})
		for i := range set {
			set[i] = regexp.QuoteMeta(set[i])
		}
		return strings.Join(set, "|")
	}
	var names, pairs []string
	for n := range r.Names {
		names = append(names, n)
	}
	for l := range labels {
		pairs = append(pairs, l)
	}
	all := words(names)
	if len(pairs) > 0 {
		all = words(pairs) + "|" + all
	}
	r.words = regexp.MustCompile("(" + strings.Trim(all, "|") + ")")
}

// wordByte is true for what names are made of: a name inside of a longer word is another word.
func wordByte(b byte) bool {
	return b == '-' || b == '_' || (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
}

// plainWord matches names that are words or numbers of any text: they stand
// for a name only where a name is written.
var plainWord = regexp.MustCompile(`^(?:.{1,2}|[0-9]+)$`)

// written is true where s[from:to] is written as a name: alone, in quotes,
// after what announces a namespace, or as a part of namespace/name.
func written(s string, from, to int) bool {
	before, after := s[:from], s[to:]
	if before == "" && after == "" {
		return true
	}
	for _, announces := range []string{"-n ", "-n=", "--namespace ", "--namespace=", "amespace "} {
		if strings.HasSuffix(before, announces) {
			return true
		}
	}
	if before != "" && after != "" && strings.ContainsRune("\"'`", rune(before[len(before)-1])) && before[len(before)-1] == after[0] {
		return true
	}
	letter := func(part string) bool {
		return strings.ContainsFunc(part, func(r rune) bool { return (r|0x20) >= 'a' && (r|0x20) <= 'z' })
	}
	outside := func(r rune) bool { return r >= 0x80 || !wordByte(byte(r)) }
	if head, ok := strings.CutSuffix(before, "/"); ok && letter(head[strings.LastIndexFunc(head, outside)+1:]) {
		return true
	}
	tail, ok := strings.CutPrefix(after, "/")
	if end := strings.IndexFunc(tail, outside); end >= 0 {
		tail = tail[:end]
	}
	return ok && letter(tail)
}

// Text redacts one text.
func (r *Redaction) Text(s string) string {
	if len(r.Names) > 0 {
		var b strings.Builder
		rest := 0
		for _, at := range r.words.FindAllStringIndex(s, -1) {
			whole := (at[0] == 0 || !wordByte(s[at[0]-1])) && (at[1] == len(s) || !wordByte(s[at[1]]))
			alias, ours := r.Names[s[at[0]:at[1]]]
			if !whole || !ours {
				continue
			}
			if plainWord.MatchString(s[at[0]:at[1]]) && !written(s, at[0], at[1]) {
				continue
			}
			b.WriteString(s[rest:at[0]])
			b.WriteString(alias)
			rest = at[1]
		}
		s = b.String() + s[rest:]
	}
	for _, p := range r.patterns {
		s = p.ReplaceAllString(s, "[redacted]")
	}
	return s
}

// keep are fields whose values are the vendor's own, or words of ours.
var keep = map[string]bool{"node": true, "label": true, "resource": true, "check": true, "severity": true, "state": true, "cause": true, "reason": true, "uid": true, "id": true, "causedBy": true,
	"link": true, "finding": true, "unit": true, "kind": true, "outcome": true, "schemaVersion": true, "runID": true, "status": true, "source": true, "mode": true, "path": true, "schedulerName": true, "reportedBy": true}

// Report redacts every text of a report.
func (r *Redaction) Report(in *report.Report) (*report.Report, error) {
	body, err := report.Encode(in)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	if body, err = json.Marshal(r.walk("", tree)); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return report.Decode(body)
}

func (r *Redaction) walk(key string, v any) any {
	switch x := v.(type) {
	case string:
		if keep[key] {
			return x
		}
		return r.Text(x)
	case []any:
		for i := range x {
			x[i] = r.walk(key, x[i])
		}
	case map[string]any:
		path, _ := x["path"].(string)
		for k := range x {
			// The label in question stays, and so does what selects on it.
			if (k == "value" && strings.Contains(path, "label")) || k == "nodeSelector" || k == "labels" {
				continue
			}
			// A node's own record stays as it is: names, labels, devices.
			if key == "nodes" {
				continue
			}
			x[k] = r.walk(k, x[k])
		}
	}
	return v
}
