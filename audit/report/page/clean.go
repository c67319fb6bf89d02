package page

import (
	"encoding/json"
	"reflect"
	"time"

	"gpuaudit/audit/report/plain"
)

// clean gives a deep copy of v in which every text is one line of visible
// characters and of bounded length, so that nothing in a name can turn around,
// hide or drown what stands beside it.
func clean[T any](v T) T { return cleaned(reflect.ValueOf(v)).Interface().(T) }

var timeType = reflect.TypeFor[time.Time]()

func cleaned(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(cleaned(v.Elem()))
		return out
	case reflect.Struct:
		if v.Type() == timeType {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			out.Field(i).Set(cleaned(v.Field(i)))
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(cleaned(v.Index(i)))
		}
		return out
	case reflect.Map:
		return cleanedMap(v)
	case reflect.String:
		return reflect.ValueOf(text(v.String())).Convert(v.Type())
	}
	return v
}

func cleanedMap(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for i := v.MapRange(); i.Next(); {
		out.SetMapIndex(cleaned(i.Key()), cleaned(i.Value()))
	}
	return out
}

func text(s string) string { return plain.Cut(plain.Line(s), maxText) }

// compact writes a value of the API, such as an affinity, as JSON in a line;
// "" when there is none.
func compact(v any) string {
	if v == nil {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	switch s := string(data); s {
	case "null", "[]", "{}":
		return ""
	default:
		return text(s)
	}
}
