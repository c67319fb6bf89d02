package inventory

import (
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are amounts by resource name, as the scheduler counts them: cpu in
// thousandths of a core, everything else in whole units (bytes, devices).
// The map form of NodeInfo's Resource in kubernetes pkg/scheduler/framework.
type Resources map[string]int64

// FromList converts a resource list. Amounts are rounded up, as
// Quantity.MilliValue and Value do.
func FromList(list corev1.ResourceList) Resources {
	if len(list) == 0 {
		return nil
	}
	out := make(Resources, len(list))
	for name, q := range list {
		out[string(name)] = Amount(string(name), q)
	}
	return out
}

// Amounts are kept within these bounds: no node has a pebibyte of anything, a
// negative amount means nothing, and sums of absurd ones must not wrap around.
const (
	maxAmount = int64(1) << 50
	maxSum    = int64(1) << 58
)

// Amount converts one quantity: cpu to milli, the rest to whole units. Absurd
// amounts, which an API server would refuse and a dump may hold, are bounded.
func Amount(name string, q resource.Quantity) int64 {
	n := q.Value()
	if name == string(corev1.ResourceCPU) && n < maxAmount/1000 && n > -maxAmount/1000 {
		n = q.MilliValue()
	}
	return min(max(n, 0), maxAmount)
}

// AddAmounts adds without wrapping around.
func AddAmounts(a, b int64) int64 { return min(a+b, maxSum) }

// Quantity renders an amount in Kubernetes notation: 1500 of cpu is "1500m",
// 2147483648 of memory is "2Gi", 8 devices are "8".
func Quantity(name string, amount int64) string {
	switch name {
	case string(corev1.ResourceCPU):
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	if len(name) > 10 && name[:10] == "hugepages-" {
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}

// Quantities renders all amounts.
func (r Resources) Quantities() map[string]string {
	out := make(map[string]string, len(r))
	for name, amount := range r {
		out[name] = Quantity(name, amount)
	}
	return out
}

// Add adds other to r in place; r must not be nil when other is not empty.
func (r Resources) Add(other Resources) {
	for name, amount := range other {
		r[name] = AddAmounts(r[name], amount)
	}
}

// Clone copies r; never nil.
func (r Resources) Clone() Resources {
	out := make(Resources, len(r))
	for name, amount := range r {
		out[name] = amount
	}
	return out
}

// Names gives the resource names, sorted.
func (r Resources) Names() []string {
	out := make([]string, 0, len(r))
	for name := range r {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// Written is an amount as people write it in files: "8", "500m", "64Gi".
type Written string

// UnmarshalJSON takes numbers too: YAML reads an unquoted 8 as one.
func (w *Written) UnmarshalJSON(raw []byte) error {
	*w = Written(strings.Trim(string(raw), `"`))
	return nil
}

// Of gives the amount of a named resource, 0 for what is no quantity.
func (w Written) Of(name string) int64 {
	q, err := ReadQuantity(string(w))
	if err != nil {
		return 0
	}
	return Amount(name, q)
}
