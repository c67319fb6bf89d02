package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxSize is the largest encoded report that Decode reads, in bytes.
const MaxSize = 256 << 20

// Encode gives the report as JSON: two spaces of indent and a final newline.
// Every list is a list and every map a map, never null; times are in UTC; bytes
// that are not UTF-8 become U+FFFD. Control characters and marks that change
// the direction of text are written as \u escapes, so that the JSON of a
// hostile name is safe to print. The report itself is not changed.
func Encode(r *Report) ([]byte, error) {
	value, err := normalise(reflect.ValueOf(r))
	if err != nil {
		return nil, fmt.Errorf("encode report %q: %w", r.RunID, err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value.Interface()); err != nil {
		return nil, fmt.Errorf("encode report %q: %w", r.RunID, err)
	}
	return escapeInvisible(b.Bytes()), nil
}

// EncodeCluster encodes the report restricted to one cluster: what its vendor may see.
func EncodeCluster(r *Report, cluster string) ([]byte, error) {
	one, err := Only(r, cluster)
	if err != nil {
		return nil, err
	}
	return Encode(one)
}

// Decode reads what Encode wrote. Keys that this program does not know are
// passed over; another schemaVersion is refused, since its keys may mean
// something else.
func Decode(data []byte) (*Report, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("report of %d bytes is over the limit of %d; is this a report.json?", len(data), MaxSize)
	}
	var head struct {
		SchemaVersion *string `json:"schemaVersion"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("decode report: %w; is the file whole?", err)
	}
	if head.SchemaVersion == nil {
		return nil, errors.New("decode report: no schemaVersion; is this a report.json?")
	}
	if *head.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("decode report: schemaVersion is %q and this program reads %q; use the version of audit that wrote it or a newer one",
			*head.SchemaVersion, SchemaVersion)
	}
	var r Report
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // numbers inside affinity and tolerations keep their digits
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return &r, nil
}

var (
	timeType  = reflect.TypeFor[time.Time]()
	classType = reflect.TypeFor[Class]()
)

// normalise gives a deep copy of v as it is to be written.
func normalise(v reflect.Value) (reflect.Value, error) {
	if v.Type() == timeType {
		return reflect.ValueOf(writableTime(v.Interface().(time.Time))), nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || notFinite(v.Elem()) {
			return reflect.Zero(v.Type()), nil
		}
		elem, err := normalise(v.Elem())
		if err != nil {
			return v, err
		}
		out := reflect.New(elem.Type())
		out.Elem().Set(elem)
		return out, nil
	case reflect.Struct:
		return normaliseStruct(v)
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			elem, err := normalise(v.Index(i))
			if err != nil {
				return v, err
			}
			out.Index(i).Set(elem)
		}
		return out, nil
	case reflect.Map:
		return normaliseMap(v)
	case reflect.String:
		return reflect.ValueOf(strings.ToValidUTF8(v.String(), "\uFFFD")).Convert(v.Type()), nil
	case reflect.Interface:
		return normaliseInterface(v)
	default:
		return v, nil
	}
}

func normaliseStruct(v reflect.Value) (reflect.Value, error) {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	for i := range v.NumField() {
		field, err := normalise(v.Field(i))
		if err != nil {
			return v, fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
		}
		out.Field(i).Set(field)
	}
	if v.Type() == classType {
		// Tolerations are a list, whatever type the list has.
		if field := out.FieldByName("Tolerations"); field.IsNil() {
			field.Set(reflect.ValueOf([]any{}))
		}
	}
	return out, nil
}

func normaliseMap(v reflect.Value) (reflect.Value, error) {
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	keys := v.MapKeys()
	// In order, so that of two keys that become one the same stays every time.
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(b.String(), a.String()) })
	for _, k := range keys {
		key, err := normalise(k)
		if err != nil {
			return v, err
		}
		elem, err := normalise(v.MapIndex(k))
		if err != nil {
			return v, err
		}
		out.SetMapIndex(key, elem)
	}
	return out, nil
}

// normaliseInterface turns what an interface holds into plain JSON values, so
// that a report just built and one just decoded give the same bytes.
func normaliseInterface(v reflect.Value) (reflect.Value, error) {
	zero := reflect.Zero(v.Type())
	if v.IsNil() {
		return zero, nil
	}
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return v, err
	}
	var generic any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&generic); err != nil {
		return v, err
	}
	if generic == nil {
		return zero, nil
	}
	return reflect.ValueOf(generic), nil
}

// notFinite is true for a number, or a struct with one, that JSON cannot hold:
// a share of nothing is unknown, not zero.
func notFinite(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)
	case reflect.Struct:
		for i := range v.NumField() {
			if notFinite(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// writableTime is t in UTC, held within the years that RFC 3339 can write.
func writableTime(t time.Time) time.Time {
	t = t.UTC()
	switch {
	case t.Year() > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	case t.Year() < 0:
		return time.Time{}
	}
	return t
}

// escapeInvisible writes characters that a terminal acts on, or that no reader
// sees, as JSON escapes. They occur only inside strings, where \u means the same.
func escapeInvisible(data []byte) []byte {
	invisible := func(r rune) bool { return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }
	if bytes.IndexFunc(data, invisible) < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case !invisible(r):
			out = append(out, data[:size]...)
		case r > 0xffff:
			high, low := utf16Pair(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		data = data[size:]
	}
	return out
}

func utf16Pair(r rune) (high, low rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}
