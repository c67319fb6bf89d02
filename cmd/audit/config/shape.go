package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Mismatches lists every value of a JSON text that is of another kind than the
// field of into that it stands for. A decoder stops at the first and speaks of
// Go types. Values are not repeated: one of them may be a secret.
func Mismatches(raw []byte, into any, at string) []string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil // the decoder's own error tells more
	}
	var out []string
	mismatches(v, reflect.TypeOf(into), at, func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) })
	return out
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	listOrText = reflect.TypeFor[Strings]()
	decodes    = reflect.TypeFor[json.Unmarshaler]()
)

func mismatches(v any, t reflect.Type, at string, bad func(string, ...any)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wrong := func(want string) {
		bad("%s: is %s, want %s", cmp.Or(strings.TrimPrefix(at, "."), "the file as a whole"), kindOf(v), want)
	}
	_, text := v.(string)
	switch {
	case v == nil || t == rawType || (t == listOrText && text):
		return
	case t != listOrText && reflect.PointerTo(t).Implements(decodes):
		// Amounts and durations take numbers too: what is wrong about these is said later.
		raw, err := json.Marshal(v)
		if err != nil || json.Unmarshal(raw, reflect.New(t).Interface()) != nil || (t.Kind() == reflect.String && !scalar(v)) {
			wrong("a text or a number")
		}
		return
	}
	switch t.Kind() {
	case reflect.String:
		if !text {
			wrong("a text (in quotes)")
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			wrong("true or false")
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, ok := v.(json.Number)
		if _, err := strconv.ParseInt(n.String(), 10, t.Bits()); !ok || err != nil {
			wrong("a whole number")
		}
	case reflect.Float64:
		n, ok := v.(json.Number)
		if _, err := n.Float64(); !ok || err != nil {
			wrong("a number")
		}
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			wrong("a list")
		}
		for i, item := range list {
			mismatches(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i), bad)
		}
	case reflect.Map, reflect.Struct:
		fields, ok := v.(map[string]any)
		if !ok {
			wrong("fields with values")
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if field := fieldType(t, name); field != nil {
				mismatches(fields[name], field, at+"."+name, bad)
			}
		}
	}
}

// fieldType is the type of a field by its name in the file, nil for one that
// is not known; unknown ones are told elsewhere.
func fieldType(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type
		}
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if inner := fieldType(f.Type, name); inner != nil {
				return inner
			}
		}
	}
	return nil
}

func scalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return "a text"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "a number with a fraction or an exponent"
		}
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	}
	return "a block of fields"
}
