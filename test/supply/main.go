// Command supply checks what the program is built from: `licenses` writes the
// licence of every module that is linked in and fails for one that is not
// permitted, `vuln` reads what govulncheck found (OpenVEX, standard input) and
// fails for an advisory that is not in the list of known ones.
package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	err := errors.New("usage: supply licenses FILE | supply vuln KNOWN < FOUND")
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "licenses":
			err = licenses(os.Args[2])
		case "vuln":
			err = vuln(os.Args[2], os.Stdin)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "supply: "+err.Error())
		os.Exit(1)
	}
}

// marks tell a licence by words of its text that no other has; the first that
// fits is taken.
var marks = []struct {
	name  string
	words []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"MPL-2.0", []string{"Mozilla Public License", "2.0"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "Neither the name"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms"}},
	{"MIT", []string{"Permission is hereby granted, free of charge, to any person obtaining a copy"}},
	{"ISC", []string{"Permission to use, copy, modify, and", "distribute this software for any purpose"}},
}

// permitted licences: none of them asks anything of the program's own source.
var permitted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

func licenses(file string) error {
	out, err := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/audit").Output()
	if err != nil {
		return fmt.Errorf("list what is linked in: %w", err)
	}
	rows := map[string][]string{}
	var bad []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if p.Module == nil || p.Module.Main || rows[p.Module.Path] != nil {
			continue
		}
		m := *p.Module
		if m.Replace != nil {
			m = *m.Replace
		}
		name, source, err := license(m.Dir)
		if err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
		if !slices.Contains(permitted, name) {
			bad = append(bad, fmt.Sprintf("%s: licence %q (%s) is not among the permitted ones", m.Path, name, source))
		}
		rows[p.Module.Path] = []string{m.Path, m.Version, name, source}
	}
	if err := table(file, rows); err != nil {
		return err
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "\n"))
	}
	fmt.Printf("%d modules, all of permitted licences\n", len(rows))
	return nil
}

func table(file string, rows map[string][]string) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	list := [][]string{}
	for _, row := range rows {
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if err := w.WriteAll(append([][]string{{"module", "version", "licence", "file"}}, list...)); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// license tells a module's licence from the file at its root.
func license(dir string) (name, file string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", "", err
	}
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(upper, "LICEN") && !strings.HasPrefix(upper, "COPYING") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", "", err
		}
		text := strings.Join(strings.Fields(string(body)), " ")
		for _, m := range marks {
			if !slices.ContainsFunc(m.words, func(w string) bool { return !strings.Contains(text, w) }) {
				return m.name, e.Name(), nil
			}
		}
		return "unknown", e.Name(), nil
	}
	return "none", "", nil
}

// vuln compares what was found with the known advisories: a line each, the
// advisory, a blank and why it is no matter yet.
func vuln(file string, found io.Reader) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for line := range strings.Lines(string(body)) {
		id, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(id, "GO-") {
			if strings.TrimSpace(why) == "" {
				return fmt.Errorf("%s: %s is known without a reason", file, id)
			}
			known[id] = why
		}
	}
	var vex struct {
		Statements []struct {
			Vulnerability struct{ Name, Description string }
			Status        string
		}
		Tooling string
	}
	if err := json.NewDecoder(found).Decode(&vex); err != nil || vex.Tooling == "" {
		return fmt.Errorf("govulncheck gave no result: %w", err)
	}
	var bad []string
	hit := 0
	for _, s := range vex.Statements {
		if s.Status != "affected" {
			continue
		}
		if known[s.Vulnerability.Name] == "" {
			bad = append(bad, fmt.Sprintf("%s: %s", s.Vulnerability.Name, s.Vulnerability.Description))
			continue
		}
		hit++
		delete(known, s.Vulnerability.Name)
	}
	if len(bad) > 0 {
		return errors.New("advisories that the program is affected by:\n" + strings.Join(bad, "\n"))
	}
	for id := range known {
		fmt.Printf("%s does not affect the program any more: take it off %s\n", id, file)
	}
	fmt.Printf("no advisory beside %d known ones\n", hit)
	return nil
}
