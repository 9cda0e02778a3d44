// The list of mutants for people.

package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const document = "docs/mutants.md"

// describe returns the list as a document.
func describe(all []mutant) string {
	var b strings.Builder
	b.WriteString(`# Mutants

Each line is a way to break the library, and a test that notices. The program
` + "`internal/mutants`" + ` makes the changes, one at a time and in a copy, and runs the
tests. It writes this list, too: ` + "`go run ./internal/mutants -list`" + `.

`)
	fmt.Fprintf(&b, "There are %d mutants. A mutant that survives is a test that is missing.\n", len(all))
	table := ""
	for _, m := range all {
		if m.table != table {
			table = m.table
			fmt.Fprintf(&b, "\n## %s\n\n| mutant | what is broken | where | killed by |\n|---|---|---|---|\n", table)
		}
		var files, tests []string
		for _, e := range m.edits {
			files = append(files, "`"+e.file+"`")
		}
		for _, k := range m.killers {
			test := k.test
			if path.Dir(m.edits[0].file) != path.Clean(k.pkg) {
				test = path.Join(k.pkg, test) // elsewhere
			}
			tests = append(tests, "`"+test+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.name, strings.ReplaceAll(m.breaks, "|", `\|`),
			strings.Join(slices.Compact(files), ", "), strings.Join(tests, ", "))
	}
	return b.String()
}
