// Mutants as they are written down.

package main

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A mutant is one way to break the library.
type mutant struct {
	name    string
	breaks  string // what, in words
	edits   []edit
	killers []killer // each of which must fail
	ends    string   // how a killer ends if not by a failure: "panic" or "hang"
	table   string   // the file that it is in, without its extension
}

// An edit replaces a text that is in a file exactly once.
type edit struct{ file, old, new string }

// A killer is a test or subtest of a package, which is a folder.
type killer struct{ pkg, test string }

func (k killer) String() string { return k.pkg + " " + k.test }

//go:embed table/*.txt
var tables embed.FS

// readTable returns all mutants, in the order of the files.
func readTable() ([]mutant, error) {
	files, err := tables.ReadDir("table")
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, f := range files {
		text, err := tables.ReadFile(path.Join("table", f.Name()))
		if err != nil {
			return nil, err
		}
		some, err := parse(strings.TrimSuffix(f.Name(), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	seen := make(map[string]bool)
	for _, m := range all {
		if seen[m.name] {
			return nil, fmt.Errorf("there are two mutants %s", m.name)
		}
		seen[m.name] = true
	}
	return all, nil
}

var nameLike = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// parse reads a table. Lines before the first mutant are a comment. A mutant is
//
//	== name
//	what it breaks, on one line
//	kill ./folder TestName/subtest
//	edit file.go
//	<<<
//	the old text, whole lines or not
//	===
//	the new text, which may be none
//	>>>
//
// with at least one killer and one edit. "ends panic" or "ends hang" says that its
// killers do not fail but end so.
func parse(table, text string) ([]mutant, error) {
	var all []mutant
	var into *[]string // lines of a text
	var old, replacement []string
	for number, line := range strings.Split(text, "\n") {
		fault := func(what string) error { return fmt.Errorf("%s.txt:%d: %s", table, number+1, what) }
		if into == nil && strings.HasPrefix(line, "== ") {
			all = append(all, mutant{name: strings.TrimPrefix(line, "== "), table: table})
			if !nameLike.MatchString(all[len(all)-1].name) {
				return nil, fault("a name is small letters, digits and single hyphens")
			}
			continue
		}
		if len(all) == 0 {
			continue
		}
		m := &all[len(all)-1]
		verb, rest, _ := strings.Cut(line, " ")
		switch {
		case into == &old && line == "===":
			into = &replacement
		case into == &replacement && line == ">>>":
			e := &m.edits[len(m.edits)-1]
			e.old, e.new = strings.Join(old, "\n"), strings.Join(replacement, "\n")
			if e.old == "" || e.old == e.new {
				return nil, fault("the old text is none, or as the new one")
			}
			into, old, replacement = nil, nil, nil
		case into != nil:
			*into = append(*into, line)
		case line == "<<<" && len(m.edits) > 0 && m.edits[len(m.edits)-1].old == "":
			into = &old
		case verb == "edit" && rest != "":
			m.edits = append(m.edits, edit{file: rest})
		case verb == "kill":
			pkg, test, _ := strings.Cut(rest, " ")
			if !strings.HasPrefix(pkg, ".") || !strings.HasPrefix(test, "Test") {
				return nil, fault("want kill ./folder TestName")
			}
			m.killers = append(m.killers, killer{pkg, test})
		case verb == "ends" && (rest == "panic" || rest == "hang"):
			m.ends = rest
		case line == "":
		case m.breaks == "":
			m.breaks = line
		default:
			return nil, fault("this makes no sense here")
		}
	}
	if into != nil {
		return nil, fmt.Errorf("%s.txt: the last text has no end", table)
	}
	for _, m := range all {
		complete := m.breaks != "" && len(m.killers) > 0 && len(m.edits) > 0
		for _, e := range m.edits {
			complete = complete && e.old != ""
		}
		if !complete {
			return nil, fmt.Errorf("%s.txt: %s lacks what it breaks, an edit or a killer", table, m.name)
		}
	}
	return all, nil
}
