// The table fits the source, the list fits the table, and the program tells a mutant
// that was killed from one that was not.

package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var which = flag.String("mutants", "", "regular expression of mutants to run, or all")

func table(t *testing.T) (root string, all []mutant) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = readTable(); err != nil {
		t.Fatal(err)
	}
	return root, all
}

// TestTable: each old text is in its file exactly once, each new one can be parsed, and
// each killer is there.
func TestTable(t *testing.T) {
	root, all := table(t)
	function := regexp.MustCompile(`(?m)^func (Test[A-Z0-9]\w*)\(`)
	declared := make(map[killer]bool)
	looked := make(map[string]bool)
	for _, m := range all {
		if _, err := m.mutate(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for _, k := range m.killers {
			if !looked[k.pkg] {
				looked[k.pkg] = true
				files, err := filepath.Glob(filepath.Join(root, k.pkg, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range function.FindAllSubmatch(text, -1) {
						declared[killer{k.pkg, string(f[1])}] = true
					}
				}
			}
			if name, _, _ := strings.Cut(k.test, "/"); !declared[killer{k.pkg, name}] {
				t.Errorf("%s: there is no %s", m.name, k)
			}
		}
	}
}

// TestDocument: the list is that of the table.
func TestDocument(t *testing.T) {
	root, all := table(t)
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != describe(all) {
		t.Errorf("%s is not up to date; go run ./internal/mutants -list writes it", document)
	}
}

// TestMutants runs the three that cost least, or those that the flag -mutants names.
func TestMutants(t *testing.T) {
	root, all := table(t)
	pattern := ""
	switch *which {
	case "":
		if testing.Short() {
			t.Skip("not with -short")
		}
		pattern = "quorum-even-half|fence-equal-refused|slot-first-brace"
	case "all":
		pattern = ".*"
	default:
		pattern = *which
	}
	some, err := choose(all, pattern, "1/1")
	if err != nil {
		t.Fatal(err)
	}
	if *which == "" && len(some) != 3 {
		t.Fatalf("%d mutants, want three", len(some))
	}
	if err := runAll(t.Context(), root, some, 1, false, t.Output()); err != nil {
		t.Error(err)
	}
}

// small is a module with a function, what is wrong with which its tests find.
var small = map[string]string{
	"go.mod":     "module small\n\ngo 1.26\n",
	"twice.go":   "package small\n\nfunc twice(n int) int {\n\treturn 2 * n\n}\n",
	"other/x.go": "package other\n",
	"twice_test.go": `package small

import "testing"

func TestTwice(t *testing.T) {
	if n := twice(2); n != 4 {
		t.Error(n)
	}
}

func TestNone(t *testing.T) {}

func TestSkipped(t *testing.T) { t.Skip() }

func TestRed(t *testing.T) { t.Fail() }

func TestSub(t *testing.T) {
	t.Run("a b", func(t *testing.T) { TestTwice(t) })
}
`,
}

func smallLab(t *testing.T) *lab {
	t.Helper()
	root := t.TempDir()
	for file, text := range small {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newLab(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLab: only a test that was run, and failed, kills.
func TestLab(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	l := smallLab(t)
	const killed, survived = "", "SURVIVED"
	for _, tt := range []struct {
		name, old, new, test, ends string
		want                       string // in the error; or one of those
	}{
		{"killed", "2 * n", "3 * n", "TestTwice", "", killed},
		{"killed by a subtest", "2 * n", "3 * n", "TestSub/a_b", "", killed},
		{"the same", "2 * n", "n * 2", "TestTwice", "", survived},
		{"nobody looks", "2 * n", "3 * n", "TestNone", "", survived},
		{"the start of a name", "2 * n", "3 * n", "TestTwi", "", "was not run"},
		{"no such subtest", "2 * n", "3 * n", "TestSub/c", "", "was not run"},
		{"skipped", "2 * n", "3 * n", "TestSkipped", "", "was skipped"},
		{"no program", "2 * n", "two * n", "TestTwice", "", "does not compile"},
		{"no syntax", "2 * n", "2 * ", "TestTwice", "", "expected operand"},
		{"no old text", "2 + n", "3 * n", "TestTwice", "", "0 times"},
		{"two old texts", "n", "m", "TestTwice", "", "times in"},
		{"a panic", "return 2 * n", `panic("x")`, "TestTwice", "", "panicked, want that it failed"},
		{"a panic that is meant", "return 2 * n", `panic("x")`, "TestTwice", "panic", killed},
		{"no panic", "2 * n", "3 * n", "TestTwice", "panic", "failed, want that it panicked"},
	} {
		m := mutant{ends: tt.ends, edits: []edit{{"twice.go", tt.old, tt.new}}, killers: []killer{{".", tt.test}}}
		_, err := l.try(t.Context(), m)
		s := new(survivor)
		switch lived := errors.As(err, &s); {
		case tt.want == killed && err == nil, tt.want == survived && lived:
		case tt.want != killed && tt.want != survived && !lived && err != nil && strings.Contains(err.Error(), tt.want):
		default:
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if text, err := os.ReadFile(filepath.Join(l.root, "twice.go")); err != nil || string(text) != small["twice.go"] {
			t.Fatalf("%s: afterwards the file is %q, %v", tt.name, text, err)
		}
	}
	if bad := l.unsound(t.Context(), []killer{{".", "TestTwice"}, {".", "TestRed"}}); len(bad) != 1 || bad[killer{".", "TestRed"}] == nil {
		t.Errorf("%v, want that one is unsound that always fails", bad)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.try(ctx, mutant{edits: []edit{{"twice.go", "2", "3"}}, killers: []killer{{".", "TestTwice"}}}); err == nil {
		t.Error("killed although there was no time")
	}
}

// TestArm: what changes a body of a function can be switched on, and does the same.
func TestArm(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	const source = `package small

const two = 2

type number int

func (n number) twice() number { return two * n }

func (number) name() string { return "number" }

func double[N int | int64](n N) N { return two * n }

func sum(first int, more ...int) (n int) {
	n = first
	for _, m := range more {
		n += m
	}
	return n
}

var last int

func keep(n int) { last = n }
`
	const tests = `package small

import "testing"

func TestSmall(t *testing.T) {
	keep(3)
	if number(2).twice() != 4 || double(2) != 4 || sum(1, 2, 3) != 6 || last != 3 || number(1).name() != "number" {
		t.Fail()
	}
}
`
	l := smallLab(t)
	if err := os.WriteFile(filepath.Join(l.root, "twice_test.go"), []byte(tests), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.root, "twice.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	killers := []killer{{".", "TestSmall"}}
	var all []mutant
	for name, e := range map[string]edit{
		"armed-method":   {"twice.go", "number { return two * n }", "number { return n }"},
		"armed-generic":  {"twice.go", "N { return two * n }", "N { return n }"},
		"armed-variadic": {"twice.go", "n += m", "n -= m"},
		"armed-nothing":  {"twice.go", "{ last = n }", "{ last = n + 1 }"},
		"same-method":    {"twice.go", "number { return two * n }", "number { return n * two }"},
		"alone-constant": {"twice.go", "const two = 2", "const two = 3"},
		"alone-unnamed":  {"twice.go", `return "number"`, `return "x"`},
	} {
		all = append(all, mutant{name: name, edits: []edit{e}, killers: killers})
	}
	armed, err := arm(l.root, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.armed = armed
	if bad := l.unsound(t.Context(), killers); len(bad) > 0 {
		t.Error(bad)
	}
	for _, m := range all {
		if is, can := armed[m.name] > 0, !strings.HasPrefix(m.name, "alone"); is != can {
			t.Errorf("%s: armed is %t", m.name, is)
			continue
		}
		if armed[m.name] == 0 {
			continue
		}
		_, err := l.try(t.Context(), m)
		if s := new(survivor); (err == nil) != strings.HasPrefix(m.name, "armed") || err != nil && !errors.As(err, &s) {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestRun: a program in which one mutant does not compile is no reason not to run the
// others.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	l := smallLab(t)
	var all []mutant
	for name, replacement := range map[string]string{"killed": "3 * n", "same": "n * 2", "broken": "two * n"} {
		all = append(all, mutant{name: name, edits: []edit{{"twice.go", "2 * n", replacement}}, killers: []killer{{".", "TestTwice"}}})
	}
	var out strings.Builder
	err := runAll(t.Context(), l.root, all, 2, false, &out)
	if err == nil || err.Error() != "survived: same; faulty: broken" || !strings.Contains(out.String(), "3 mutants, 1 killed") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	all = slices.DeleteFunc(all, func(m mutant) bool { return m.name != "killed" })
	if err := runAll(t.Context(), l.root, all, 2, false, &out); err != nil || !strings.Contains(out.String(), "of which 1 are in one program") {
		t.Errorf("%v\n%s", err, out.String())
	}
	all[0].killers[0].test = "TestRed"
	out.Reset()
	if err := runAll(t.Context(), l.root, all, 2, false, &out); err == nil || !strings.Contains(out.String(), "although nothing is broken") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestEnding: what a test binary prints.
func TestEnding(t *testing.T) {
	for out, want := range map[string]ending{
		"--- PASS: TestX (0.00s)\nPASS\n":                                                  passed,
		"--- FAIL: TestX (0.00s)\n    x_test.go:1: no\nFAIL\n":                             failed,
		"--- FAIL: TestX (0.00s)\n    --- FAIL: TestX/a (0.00s)\nFAIL\n":                   failed,
		"--- SKIP: TestX (0.00s)\nPASS\n":                                                  skipped,
		"--- FAIL: TestXY (0.00s)\nFAIL\n":                                                 unclear,
		"testing: warning: no tests to run\nPASS\n":                                        unclear,
		"=== RUN   TestX\n--- FAIL: TestX (0.00s)\npanic: no [recovered]\n":                panicked,
		"=== RUN   TestX\nfatal error: all goroutines are asleep - deadlock!\n":            panicked,
		"=== RUN   TestX\npanic: test timed out after 1s\n\trunning tests:\n":              hung,
		"--- FAIL: TestX (0.00s)\npanic: deadlock: all goroutines in bubble are blocked\n": hung,
		"": unclear,
	} {
		if got := endingOf("TestX", []byte(out)); got != want {
			t.Errorf("%q: %v, want %v", out, got, want)
		}
	}
}

// TestParse: what is written in a table, and what must not be.
func TestParse(t *testing.T) {
	const good = "A comment.\n\n== a-b\nbreaks x\nkill ./q TestX/a_b\nends hang\nedit q/x.go\n<<<\n\ta\n\nb\n===\n>>>\nedit y.go\n<<<\n1\n===\n2\n>>>\n"
	all, err := parse("t", good)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	m := all[0]
	if m.name != "a-b" || m.breaks != "breaks x" || m.ends != "hang" || m.table != "t" ||
		len(m.edits) != 2 || m.edits[0] != (edit{"q/x.go", "\ta\n\nb", ""}) || m.edits[1] != (edit{"y.go", "1", "2"}) ||
		len(m.killers) != 1 || m.killers[0] != (killer{"./q", "TestX/a_b"}) {
		t.Errorf("%+v", m)
	}
	for what, change := range map[string][2]string{
		"no killer":       {"kill ./q TestX/a_b\n", ""},
		"no words":        {"breaks x\n", ""},
		"more words":      {"breaks x\n", "breaks x\ny\n"},
		"no end":          {"\n2\n>>>\n", "\n2\n"},
		"no change":       {"\n1\n===\n2\n", "\n2\n===\n2\n"},
		"no old text":     {"\n1\n===\n2\n", "\n===\n2\n"},
		"no text":         {"edit y.go\n", "edit y.go\nedit z.go\n"},
		"a strange name":  {"== a-b", "== a_b"},
		"a strange end":   {"ends hang", "ends well"},
		"no package":      {"kill ./q ", "kill "},
		"text of no file": {"edit q/x.go\n", ""},
	} {
		if _, err := parse("t", strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("%s is let pass", what)
		}
	}
}

// TestChoose: the shards are all mutants, each once.
func TestChoose(t *testing.T) {
	_, all := table(t)
	seen := make(map[string]int)
	for _, shard := range []string{"1/3", "2/3", "3/3"} {
		some, err := choose(all, ".*", shard)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range some {
			seen[m.name]++
		}
	}
	for _, m := range all {
		if seen[m.name] != 1 {
			t.Errorf("%s is in %d shards", m.name, seen[m.name])
		}
	}
	for _, shard := range []string{"", "0/3", "4/3", "x"} {
		if _, err := choose(all, ".*", shard); err == nil {
			t.Errorf("there is a shard %q", shard)
		}
	}
	if _, err := choose(all, "no such mutant", "1/1"); err == nil {
		t.Error("none are taken for some")
	}
}
