package inventory

import (
	"slices"
	"sort"
)

// kept bounds the values and users named for one label key, and the owners
// named for one shape.
const kept = 32

// smallest keeps the first `kept` of all distinct strings added, in order:
// bounded, and the same whatever the order of adding.
type smallest []string

func (s *smallest) add(v string) {
	i, found := slices.BinarySearch(*s, v)
	if found || i >= kept {
		return
	}
	*s = slices.Insert(*s, i, v)
	if len(*s) > kept {
		*s = (*s)[:kept]
	}
}

// labelUses collects who selects nodes by which label key.
type labelUses map[string]*LabelUse

func (u labelUses) add(key, value, user string) {
	if key == "" {
		return
	}
	use := u[key]
	if use == nil {
		use = &LabelUse{Key: key}
		u[key] = use
	}
	if value != "" {
		(*smallest)(&use.Values).add(value)
	}
	(*smallest)(&use.Users).add(user)
	use.Total++
}

func (u labelUses) mergeInto(c *Cluster) {
	if c.SelectedLabels == nil {
		c.SelectedLabels = map[string]*LabelUse{}
	}
	for key, use := range u {
		to := c.SelectedLabels[key]
		if to == nil {
			to = &LabelUse{Key: key}
			c.SelectedLabels[key] = to
		}
		for _, v := range use.Values {
			(*smallest)(&to.Values).add(v)
		}
		for _, v := range use.Users {
			(*smallest)(&to.Users).add(v)
		}
		to.Total += use.Total
	}
}

// sortRunning orders running shapes by their key and merges equal ones.
func sortRunning(list []RunningShape) []RunningShape {
	sort.SliceStable(list, func(i, j int) bool { return list[i].Shape.Key() < list[j].Shape.Key() })
	var out []RunningShape
	for _, r := range list {
		if n := len(out); n > 0 && out[n-1].Shape.Key() == r.Shape.Key() {
			out[n-1].Count += r.Count
			for _, o := range r.Owners {
				(*smallest)(&out[n-1].Owners).add(o)
			}
			continue
		}
		out = append(out, r)
	}
	return out
}
