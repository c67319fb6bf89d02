// Package wire reads lists in the Kubernetes protobuf wire form one object at a
// time, and leaves out what an audit never looks at before the object is
// decoded: of a pod of 7 KB most is environment, mounts and probes, and
// decoding those costs more than all the rest.
//
// The envelope is k8s.io/apimachinery runtime.Unknown behind a magic prefix;
// field numbers are those of generated.proto in k8s.io/api and apimachinery,
// which never change meaning. Fields that are not known here are kept.
package wire

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
)

// magic begins every protobuf answer of an API server.
var magic = []byte("k8s\x00")

// Rule says what of a message is left out.
type Rule struct {
	drop   map[protowire.Number]bool
	nested map[protowire.Number]*Rule
	// entry drops map entries (a message of key 1 and value 2) by their key.
	entry map[protowire.Number]func(key []byte) bool
}

func numbers(list ...protowire.Number) map[protowire.Number]bool {
	out := map[protowire.Number]bool{}
	for _, n := range list {
		out[n] = true
	}
	return out
}

// Pod keeps of a pod's containers their name, image, ports, resources and
// restart policy. Of managedFields only who and when is kept.
var Pod = &Rule{nested: map[protowire.Number]*Rule{1: meta, 2: podSpec}}

var (
	meta = &Rule{
		nested: map[protowire.Number]*Rule{17: {drop: numbers(7)}}, // managedFields[].fieldsV1
		entry: map[protowire.Number]func([]byte) bool{12: func(key []byte) bool {
			return string(key) == "kubectl.kubernetes.io/last-applied-configuration"
		}},
	}
	podSpec = &Rule{
		drop:   numbers(15, 23, 26, 34), // imagePullSecrets, hostAliases, dnsConfig, ephemeralContainers
		nested: map[protowire.Number]*Rule{2: container, 20: container},
	}
	// command, args, workingDir, env, volumeMounts, the probes, lifecycle,
	// termination messages, imagePullPolicy, securityContext, envFrom, volumeDevices.
	container = &Rule{drop: numbers(3, 4, 5, 7, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22)}
)

// ErrNotProtobuf is returned for a body that does not begin as a protobuf answer.
var ErrNotProtobuf = errors.New("not in the protobuf form")

// List reads a list's body. each is called with the bytes of every item, cut
// down by the rule; they are valid until it returns. kind is checked, such as
// "PodList". The list's continue token is returned.
func List(body []byte, kind string, rule *Rule, each func(item []byte) error) (next string, err error) {
	raw, ok := bytes.CutPrefix(body, magic)
	if !ok {
		return "", ErrNotProtobuf
	}
	list, err := envelope(raw, kind)
	if err != nil {
		return "", err
	}
	var scratch []byte
	err = fields(list, func(n protowire.Number, t protowire.Type, value, _ []byte) error {
		switch {
		case n == 1 && t == protowire.BytesType: // ListMeta
			return fields(value, func(n protowire.Number, t protowire.Type, value, _ []byte) error {
				if n == 3 && t == protowire.BytesType { // continue
					next = string(value)
				}
				return nil
			})
		case n == 2 && t == protowire.BytesType:
			var err error
			if scratch, err = cut(scratch[:0], value, rule); err != nil {
				return err
			}
			return each(scratch)
		}
		return nil
	})
	return next, err
}

// envelope takes the list out of a runtime.Unknown.
func envelope(raw []byte, kind string) ([]byte, error) {
	var meta runtime.TypeMeta
	var list []byte
	err := fields(raw, func(n protowire.Number, t protowire.Type, value, _ []byte) error {
		switch {
		case n == 1 && t == protowire.BytesType:
			return fields(value, func(n protowire.Number, t protowire.Type, value, _ []byte) error {
				if n == 2 && t == protowire.BytesType {
					meta.Kind = string(value)
				}
				return nil
			})
		case n == 2 && t == protowire.BytesType:
			list = value
		case n == 3 && t == protowire.BytesType && len(value) > 0:
			return fmt.Errorf("encoding %q of the answer is not known", value)
		}
		return nil
	})
	if err == nil && list == nil {
		err = errors.New("decode: the answer ends before its list") // even an empty list has its metadata
	}
	if err == nil && meta.Kind != kind {
		err = fmt.Errorf("the answer is of kind %q, want %q", meta.Kind, kind)
	}
	return list, err
}

// fields walks the fields of a message. value is the content of a
// length-delimited field, whole the field with its tag.
func fields(message []byte, f func(n protowire.Number, t protowire.Type, value, whole []byte) error) error {
	for len(message) > 0 {
		n, t, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return fmt.Errorf("decode: %w", protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(n, t, message[tag:])
		if size < 0 {
			return fmt.Errorf("decode: %w", protowire.ParseError(size))
		}
		var value []byte
		if t == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		if err := f(n, t, value, message[:tag+size]); err != nil {
			return err
		}
		message = message[tag+size:]
	}
	return nil
}

// cut appends a message without what the rule leaves out.
func cut(to, message []byte, rule *Rule) ([]byte, error) {
	err := fields(message, func(n protowire.Number, t protowire.Type, value, whole []byte) error {
		if rule.drop[n] {
			return nil
		}
		if drop := rule.entry[n]; drop != nil && t == protowire.BytesType {
			key, err := entryKey(value)
			if err != nil || drop(key) {
				return err
			}
		}
		inner := rule.nested[n]
		if inner == nil || t != protowire.BytesType {
			to = append(to, whole...)
			return nil
		}
		to = protowire.AppendTag(to, n, t)
		at := len(to)
		to = append(to, 0, 0, 0, 0) // the length, known afterwards
		var err error
		if to, err = cut(to, value, inner); err != nil {
			return err
		}
		return putLength(to[at:at+4], len(to)-at-4)
	})
	return to, err
}

// putLength writes a length as a varint of four bytes, longer than it has to be.
func putLength(to []byte, n int) error {
	if n >= 1<<28 {
		return errors.New("decode: a message of more than 256 MB")
	}
	to[0], to[1], to[2], to[3] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21)
	return nil
}

func entryKey(entry []byte) (key []byte, err error) {
	err = fields(entry, func(n protowire.Number, t protowire.Type, value, _ []byte) error {
		if n == 1 && t == protowire.BytesType {
			key = value
		}
		return nil
	})
	return key, err
}
