package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gpuaudit/audit/inventory"
)

// Where quantities and times stand in objects of the API, by the name of the
// field: the values of the first are quantities.
var (
	quantityMaps = map[string]bool{
		"capacity": true, "allocatable": true, "requests": true, "limits": true, "hard": true, "used": true,
		"overhead": true, "podFixed": true, "allocatedResources": true, "usage": true,
	}
	quantityFields = map[string]bool{"sizeLimit": true, "divisor": true}
	timeFields     = map[string]bool{
		"creationTimestamp": true, "deletionTimestamp": true, "lastHeartbeatTime": true, "lastTransitionTime": true, "lastProbeTime": true,
		"lastUpdateTime": true, "startTime": true, "startedAt": true, "finishedAt": true, "completionTime": true, "lastScheduleTime": true,
		"firstTimestamp": true, "lastTimestamp": true, "eventTime": true, "lastObservedTime": true, "renewTime": true, "acquireTime": true, "timeAdded": true,
	}
)

// wrongFields names the quantities and times of an object that are none, at most
// eight of them, in the order of their paths.
func wrongFields(raw json.RawMessage) []string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if dec.Decode(&object) != nil {
		return nil
	}
	var out []string
	walkFields(object, "", "", &out)
	const most = 8
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return out
}

func walkFields(v any, parent, path string, out *[]string) {
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if wrong := wrongField(x[key], key, parent); wrong != "" {
				*out = append(*out, strings.TrimPrefix(step(path, key), ".")+" "+wrong)
				continue
			}
			switch key {
			case "labels", "annotations", "matchLabels", "nodeSelector", "managedFields", "env":
			default:
				walkFields(x[key], key, step(path, key), out)
			}
		}
	case []any:
		for i, item := range x {
			walkFields(item, parent, fmt.Sprintf("%s[%d]", path, i), out)
		}
	}
}

func step(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	return path + "." + key
}

// wrongField says what is wrong with a value where a quantity or a time stands.
func wrongField(v any, key, parent string) string {
	if v == nil {
		return ""
	}
	text := fmt.Sprint(v)
	shown := text
	if len(shown) > 80 {
		shown = strings.ToValidUTF8(shown[:80], "") + "…"
	}
	_, isMap := v.(map[string]any)
	switch {
	case quantityMaps[parent] && !isMap, quantityFields[key] && !isMap:
		q, err := inventory.ReadQuantity(text)
		if err != nil {
			return fmt.Sprintf("is %q, want a quantity such as 8, 500m or 64Gi", shown)
		}
		if q.Sign() < 0 {
			return fmt.Sprintf("is %q, which is negative", shown)
		}
	case timeFields[key] && !isMap:
		if s, ok := v.(string); ok {
			if _, err := time.Parse(time.RFC3339, s); err == nil {
				return ""
			}
		}
		return fmt.Sprintf("is %q, want a time such as 2026-01-31T08:00:00Z", shown)
	}
	return ""
}

// endless is true where an object may hold a quantity whose exponent has four
// digits and more: reading it would take as long as it has digits.
func endless(raw []byte) bool {
	for i, c := range raw {
		switch c {
		case 'e', 'E':
			if number(raw, i) {
				return true
			}
		case '\\':
			if spelt.Match(raw[i:min(i+6, len(raw))]) {
				return true
			}
		}
	}
	return false
}

// spelt is a digit, a sign or an e that is written as an escape: nobody does,
// but to get past the look at exponents.
var spelt = regexp.MustCompile(`^\\u00(?:3[0-9]|2[bBdDeE]|[46]5)`)

// number is true when the e at i is that of a number with a long exponent,
// quoted or not.
func number(raw []byte, i int) bool {
	digits := 0
	j := i + 1
	if j < len(raw) && (raw[j] == '+' || raw[j] == '-') {
		j++
	}
	for ; j < len(raw) && raw[j] >= '0' && raw[j] <= '9'; j++ {
		digits++
	}
	if digits < 4 || j == len(raw) || !bytes.ContainsRune([]byte("\",}] \t\r\n"), rune(raw[j])) {
		return false
	}
	j = i - 1
	for j >= 0 && (raw[j] >= '0' && raw[j] <= '9' || raw[j] == '.' || raw[j] == '+' || raw[j] == '-') {
		j--
	}
	return j < i-1 && j >= 0 && bytes.ContainsRune([]byte("\":, \t\r\n["), rune(raw[j]))
}
