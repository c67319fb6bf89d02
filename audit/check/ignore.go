package check

import "path"

func matchAny(name string, globs []string) bool {
	for _, g := range globs {
		if ok, err := path.Match(g, name); err == nil && ok {
			return true
		}
	}
	return false
}

func (in *Input) ignoredNode(name string) bool { return matchAny(name, in.Settings.Ignore.Nodes) }

func (in *Input) ignoredNamespace(name string) bool {
	return matchAny(name, in.Settings.Ignore.Namespaces)
}
