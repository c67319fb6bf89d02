package snapshot

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Sequence decodes snapshots of one cluster that are read one after another.
// Most of a snapshot is nodes, and most nodes are byte for byte what they were
// the day before: those are found by comparing bytes and taken over from the
// snapshot before, and of a node that changed only the fields that did are
// decoded. The result is that of Decode, which also judges whatever this does
// not take: nothing is accepted here that Decode refuses.
//
// Snapshots share maps and slices with those before them: they are to be read,
// not changed. The zero Sequence is ready; it is not for use by several at once.
type Sequence struct {
	nodes list[Node]
	gone  list[Gone]
}

// Decode reads a kept snapshot. raw is body unpacked by Unpack, and must not be
// changed until the next call has returned; nil makes it Decode(body). Errors are
// those of Decode.
func (q *Sequence) Decode(body, raw []byte) (*Snapshot, error) {
	if raw != nil {
		if s := q.next(raw); s != nil {
			return s, nil
		}
	}
	q.nodes, q.gone = list[Node]{}, list[Gone]{}
	return Decode(body)
}

// next is nil for what it does not take.
func (q *Sequence) next(raw []byte) *Snapshot {
	rest := make([]byte, 0, 4<<10)
	rest = append(rest, '{')
	var nodes *list[Node]
	var gone *list[Gone]
	in := scanner{text: raw}
	taken := in.object(func(key string) bool {
		switch {
		case key == "nodes" && nodes == nil:
			nodes = q.nodes.next(&in, decodeNode)
			return nodes != nil
		case key == "gone" && gone == nil:
			gone = q.gone.next(&in, decodeGone)
			return gone != nil
		case !plain(key) || strings.EqualFold(key, "nodes") || strings.EqualFold(key, "gone"):
			return false // twice, or in another spelling: encoding/json has rules for these
		}
		value, ok := in.value()
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(append(rest, '"'), key...), `":`...), value...)
		return ok
	})
	if !taken || !in.end() {
		return nil
	}
	var s Snapshot
	if json.Unmarshal(append(rest, '}'), &s) != nil || s.SchemaVersion < 1 || s.SchemaVersion > SchemaVersion || s.Cluster == "" || s.CollectedAt.IsZero() {
		return nil
	}
	q.nodes, q.gone = list[Node]{}, list[Gone]{}
	if nodes != nil {
		q.nodes, s.Nodes = *nodes, nodes.values
	}
	if gone != nil {
		q.gone, s.Gone = *gone, gone.values
	}
	return &s
}

// plain is true for the letters that the keys of a snapshot are made of: no
// escapes, and none of the signs that encoding/json takes for a letter.
func plain(key string) bool {
	for i := range len(key) {
		if c := key[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// list is an array of a snapshot: each element's bytes and what they decode to.
type list[T any] struct {
	raw    [][]byte
	values []T
	names  map[string]int // made when the order differs from that before
}

// next reads an array that follows this one; nil when it is not plainly one.
// decode gives an element that is not the same as before: old is the element of
// that name before, or nil.
func (l *list[T]) next(in *scanner, decode func(raw, oldRaw []byte, old *T, into *T) bool) *list[T] {
	if in.literal("null") {
		return &list[T]{}
	}
	out := &list[T]{raw: make([][]byte, 0, len(l.raw)), values: make([]T, 0, len(l.raw))}
	expected := 0 // the element that comes next if nothing came or went
	ok := in.array(func() bool {
		if expected < len(l.raw) && in.same(l.raw[expected]) {
			// These bytes, not the equal ones of the snapshot before: its memory is used again.
			out.raw = append(out.raw, in.text[in.at-len(l.raw[expected]):in.at])
			out.values = append(out.values, l.values[expected])
			expected++
			return true
		}
		raw, ok := in.value()
		if !ok {
			return false
		}
		var value T
		if at, known := l.find(raw, expected); known {
			expected = at + 1
			if bytes.Equal(raw, l.raw[at]) {
				value = l.values[at]
			} else if !decode(raw, l.raw[at], &l.values[at], &value) {
				return false
			}
		} else if !decode(raw, nil, nil, &value) {
			return false
		}
		out.raw, out.values = append(out.raw, raw), append(out.values, value)
		return true
	})
	if !ok {
		return nil
	}
	return out
}

// find gives the element of the same name. It is where a good guess is: a wrong
// answer costs time, not truth.
func (l *list[T]) find(raw []byte, expected int) (int, bool) {
	name := nameOf(raw)
	if name == "" {
		return 0, false
	}
	if expected < len(l.raw) && nameOf(l.raw[expected]) == name {
		return expected, true
	}
	if l.names == nil {
		l.names = make(map[string]int, len(l.raw))
		for i, r := range l.raw {
			l.names[nameOf(r)] = i
		}
	}
	at, known := l.names[name]
	return at, known
}

// nameOf reads the name that a node or a gone node begins with; "" when it does not.
func nameOf(raw []byte) string {
	raw = bytes.TrimPrefix(raw, []byte(`{"node":`))
	raw, ok := bytes.CutPrefix(raw, []byte(`{"name":"`))
	if !ok {
		return ""
	}
	end := bytes.IndexByte(raw, '"')
	return string(raw[:max(end, 0)])
}

func decodeGone(raw, _ []byte, _ *Gone, into *Gone) bool { return json.Unmarshal(raw, into) == nil }

// decodeNode decodes the fields that differ from the node before and takes the
// others over.
func decodeNode(raw, oldRaw []byte, old *Node, into *Node) bool {
	differ, mask := changedFields(raw, oldRaw)
	if mask == 0 {
		return json.Unmarshal(raw, into) == nil
	}
	if json.Unmarshal(differ, into) != nil {
		return false
	}
	for i, f := range nodeFields {
		if mask&(1<<i) == 0 {
			f.take(into, old)
		}
	}
	return true
}

// nodeFields are the fields of a node in the order in which they are encoded.
var nodeFields = []struct {
	key  string
	take func(into, from *Node)
}{
	{"name", func(n, o *Node) { n.Name = o.Name }},
	{"uid", func(n, o *Node) { n.UID = o.UID }},
	{"created", func(n, o *Node) { n.Created = o.Created }},
	{"kind", func(n, o *Node) { n.Kind = o.Kind }},
	{"labels", func(n, o *Node) { n.Labels = o.Labels }},
	{"taints", func(n, o *Node) { n.Taints = o.Taints }},
	{"cordoned", func(n, o *Node) { n.Cordoned = o.Cordoned }},
	{"cordonedSince", func(n, o *Node) { n.CordonedSince = o.CordonedSince }},
	{"conditions", func(n, o *Node) { n.Conditions = o.Conditions }},
	{"ready", func(n, o *Node) { n.Ready = o.Ready }},
	{"silent", func(n, o *Node) { n.Silent = o.Silent }},
	{"capacity", func(n, o *Node) { n.Capacity = o.Capacity }},
	{"allocatable", func(n, o *Node) { n.Allocatable = o.Allocatable }},
	{"requested", func(n, o *Node) { n.Requested = o.Requested }},
	{"providerID", func(n, o *Node) { n.ProviderID = o.ProviderID }},
	{"osImage", func(n, o *Node) { n.OSImage = o.OSImage }},
	{"kernel", func(n, o *Node) { n.Kernel = o.Kernel }},
	{"kubelet", func(n, o *Node) { n.Kubelet = o.Kubelet }},
	{"setBy", func(n, o *Node) { n.SetBy = o.SetBy }},
}

// changedFields gives an object of the fields of raw that differ from those of
// old, and which they are. The mask is 0 when the two are not plainly objects
// of all fields in their order: then the node is to be decoded whole.
func changedFields(raw, old []byte) (object []byte, mask uint32) {
	if old == nil {
		return nil, 0
	}
	before := scanner{text: old}
	if !before.byte('{') {
		return nil, 0
	}
	object = append(object, '{')
	now := scanner{text: raw}
	next := 0
	ok := now.object(func(key string) bool {
		if next == len(nodeFields) || key != nodeFields[next].key || (next > 0 && !before.byte(',')) {
			return false
		}
		earlier, has := before.key()
		if !has || earlier != key {
			return false
		}
		was, ok := before.value()
		if !ok {
			return false
		}
		if now.same(was) {
			next++
			return true
		}
		value, ok := now.value()
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(append(append(append(object, '"'), key...), `":`...), value...)
		mask |= 1 << next
		next++
		return ok
	})
	if !ok || !now.end() || next != len(nodeFields) {
		return nil, 0
	}
	return append(object, '}'), mask
}
