package capacity

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gpuaudit/audit/inventory"
)

// nameClasses gives observed classes readable, unique and stable names: what
// they select, then how many devices, then what else they ask for that the
// others of that name do not, then their first owner.
func nameClasses(classes []*Class) {
	plain := func(c *Class) string { return fmt.Sprintf("%s x%d", selected(c.Shape), c.need()) }
	steps := []func(c *Class, differs string) string{
		func(c *Class, _ string) string { return selected(c.Shape) },
		func(c *Class, _ string) string { return plain(c) },
		func(c *Class, _ string) string { return plain(c) + " " + shortResource(c.Resource) },
		func(c *Class, differs string) string { return strings.TrimSpace(plain(c) + " " + differs) },
		func(c *Class, _ string) string { return plain(c) + " " + firstOwner(c) },
		func(c *Class, differs string) string {
			return strings.TrimSpace(plain(c) + " " + firstOwner(c) + " " + differs)
		},
		func(c *Class, _ string) string {
			sum := sha256.Sum256([]byte(c.Shape.Key()))
			return plain(c) + " " + firstOwner(c) + " " + hex.EncodeToString(sum[:3])
		},
	}
	todo, differs := classes, map[*Class]string{}
	for i, step := range steps {
		used := map[string][]*Class{}
		for _, c := range todo {
			c.Name = step(c, differs[c])
			used[c.Name] = append(used[c.Name], c)
		}
		todo = nil
		for _, list := range used {
			if len(list) > 1 && i < len(steps)-1 {
				todo = append(todo, rest(list)...)
				tellApart(list, differs)
			}
		}
		if len(todo) == 0 {
			return
		}
	}
}

// tellApart words, for classes of one name, the requests in which they differ.
func tellApart(list []*Class, differs map[*Class]string) {
	names := map[string]bool{}
	for _, c := range list {
		for name := range c.Shape.Requests {
			names[name] = true
		}
	}
	words := map[*Class][]string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		same := true
		for _, c := range list {
			same = same && c.Shape.Requests[name] == list[0].Shape.Requests[name]
		}
		for _, c := range list {
			if !same && name != c.Resource {
				words[c] = append(words[c], shortResource(name)+" "+inventory.Quantity(name, c.Shape.Requests[name]))
			}
		}
	}
	for c, w := range words {
		differs[c] = strings.Join(w, " ")
	}
}

// keepApart tells apart classes whose names are the same by chance: a selected
// value may read like another class's name.
func keepApart(classes []*Class) {
	used := map[string]bool{}
	for _, c := range classes {
		name := c.Name
		for n := 3; used[c.Name]; n++ {
			sum := sha256.Sum256([]byte(c.Shape.Key()))
			c.Name = name + " " + hex.EncodeToString(sum[:n])
		}
		used[c.Name] = true
	}
}

// rest are the classes of one name that need a longer one: all but the one
// with the fewest devices, which keeps the plain name if it is the only such.
func rest(list []*Class) []*Class {
	slices.SortStableFunc(list, func(a, b *Class) int { return cmp.Compare(a.need(), b.need()) })
	if list[0].need() < list[1].need() {
		return list[1:]
	}
	return list
}

// selected words what a shape selects nodes by.
func selected(s *inventory.Shape) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		switch key {
		case "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
			continue
		}
		parts = append(parts, s.NodeSelector[key])
	}
	if s.Affinity != nil {
		words := map[string]bool{}
		for _, t := range s.Affinity.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				switch {
				case e.Operator == "In" && len(e.Values) > 0:
					words[strings.Join(e.Values, "|")] = true
				case e.Operator == "NotIn" && len(e.Values) > 0:
					words["not "+strings.Join(e.Values, "|")] = true
				default:
					words[e.Key+" "+string(e.Operator)] = true
				}
			}
			for _, f := range t.MatchFields {
				word := strings.Join(f.Values, "|")
				if f.Operator == corev1.NodeSelectorOpNotIn {
					word = "not " + word
				}
				words[word] = true
			}
		}
		parts = append(parts, slices.Sorted(maps.Keys(words))...)
	}
	name := strings.Trim(strings.Join(parts, "+"), "+")
	if name == "" {
		return "any"
	}
	if len(name) > 60 {
		sum := sha256.Sum256([]byte(name))
		name = strings.ToValidUTF8(name[:50], "") + " " + hex.EncodeToString(sum[:3])
	}
	return name
}

func shortResource(r string) string {
	if i := strings.LastIndexByte(r, '/'); i >= 0 {
		return r[i+1:]
	}
	return r
}

func firstOwner(c *Class) string {
	if len(c.owners) == 0 {
		return "?"
	}
	return c.owners[0]
}
