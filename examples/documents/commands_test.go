// Commands in the documents: their packages, tests and flags exist.

package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Commands that are taken as they are: what they need is not of this repository, or a
// test of its own runs them (TestCompose, for docker-compose).
var elsewhere = []string{"docker", "docker-compose", "redis-cli", "chromium", "ACL", "sudo", "git", "curl"}

// known are the flags of go test that documents may use.
var known = []string{"bench", "benchtime", "count", "cover", "cpu", "fuzz", "fuzztime", "json", "list", "parallel", "race", "run", "short", "shuffle", "tags", "timeout", "v"}

// TestDocumentCommands looks at every line of a block that is a command, and at every
// command of go in the text.
func TestDocumentCommands(t *testing.T) {
	seen := 0
	for _, d := range documents(t) {
		for _, c := range commands(d) {
			seen++
			if fault := c.fault(); fault != "" {
				t.Errorf("%s:%d: %s: %s", c.document, c.line, c.text, fault)
			}
		}
	}
	t.Logf("%d commands", seen)
	if seen < 20 {
		t.Error("that was no test")
	}
}

// TestDocumentCommandsBite has it find what is wrong.
func TestDocumentCommandsBite(t *testing.T) {
	for text, want := range map[string]string{
		"```\ngo run ./examples/biling\n```":                    "no folder",
		"```\ngo run ./examples/billing -chaoss\n```":           "no flag -chaoss",
		"```\nX=1 go run ./examples/billing -v && cd nowhere\n": "no folder",
		"```\ncd examples && go test -run TestNothing .\n```":   "no test",
		"```\ngo test -shrot ./...\n```":                        "no flag -shrot",
		"    internal/testimage/bild.sh\n":                      "no file",
		"Run `go run ./quorum` now.":                            "no program",
		"Run `go test ./quorumm` now.":                          "no folder",
		"```\ngo frobnicate\n```":                               "not known",
		"```\ngo get github.com/quorumlock/redlock/otel\n```":   "no folder",
		"```\ngo get github.com/quorumlock/redlock/fence\n```":  "",
		"```\ncd bench\ngo run ./bench -h\n```":                 "no folder",
		"```\ngo run ./bench -start servers -n 3\n```":          "",
		"```\ndocker-compose up -d # whatever\n```":             "",
		"```\n  3.06s  worker 6 took over\n```":                 "",
		"```\ncd bench\ngo test -run '^$' -bench . ./...\n```":  "",
	} {
		var faults []string
		for _, c := range commands(document{"bad.md", text}) {
			faults = append(faults, c.fault())
		}
		found := strings.Join(faults, "")
		if want == "" && found != "" || !strings.Contains(found, want) {
			t.Errorf("%q: found %q, want %q", text, found, want)
		}
	}
}

// A command is one, and the folder that it is run in, from the root of the repository.
type command struct {
	document string
	line     int
	folder   string
	text     string
}

var (
	span       = regexp.MustCompile("`((?:go (?:run|test|doc|vet) )[^`]*)`")
	assignment = regexp.MustCompile(`^[A-Z_]+=\S*$`)
	first      = regexp.MustCompile(`^(go|cd|\./\S*|internal/\S+|\.ci/\S+|` + strings.Join(elsewhere, "|") + `)$`)
)

// commands finds them in blocks without a language, in indented blocks, and in the text.
func commands(d document) (all []command) {
	folder, inside, language := ".", false, ""
	for i, line := range strings.Split(d.text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			inside, language, folder = !inside, strings.Trim(trimmed, "`"), "."
			continue
		case inside && language == "", !inside && strings.HasPrefix(line, "    ") && !strings.HasPrefix(trimmed, "|"):
			for part := range strings.SplitSeq(strings.Split(trimmed, " #")[0], " && ") {
				words := strings.Fields(strings.Split(part, " | ")[0])
				for len(words) > 0 && assignment.MatchString(words[0]) {
					words = words[1:]
				}
				if len(words) == 0 || !first.MatchString(words[0]) {
					break // output, most likely
				}
				c := command{d.path, i + 1, folder, strings.Join(words, " ")}
				all = append(all, c)
				if words[0] == "cd" && len(words) > 1 {
					folder = filepath.Join(folder, words[1])
				}
			}
		case !inside:
			folder = "."
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				all = append(all, command{d.path, i + 1, ".", m[1]})
			}
		}
	}
	return all
}

// at returns a path below the folder of the command, from this package.
func (c command) at(path string) string { return filepath.Join("..", "..", c.folder, path) }

func (c command) fault() string {
	words := strings.Fields(c.text)
	switch {
	case slices.Contains(elsewhere, words[0]):
		return ""
	case words[0] == "cd":
		return c.folderFault(words[1])
	case words[0] != "go":
		path := c.at(words[0])
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join("..", "..", filepath.Dir(c.document), words[0])
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return "no file " + words[0]
		}
		return ""
	case len(words) < 2:
		return "not known"
	}
	switch words[1] {
	case "run":
		return c.runFault(words[2:])
	case "test":
		return c.testFault(words[2:])
	case "doc", "mod":
		return ""
	case "get":
		path, ours := strings.CutPrefix(words[len(words)-1], "github.com/quorumlock/redlock")
		if !ours {
			return "not ours"
		}
		return command{folder: "."}.folderFault("." + path)
	}
	return "not known"
}

func (c command) folderFault(path string) string {
	if info, err := os.Stat(c.at(path)); err != nil || !info.IsDir() {
		return "no folder " + path
	}
	return ""
}

// runFault is for go run, of a program here or of one that has a version.
func (c command) runFault(args []string) string {
	switch {
	case len(args) == 0:
		return "no package"
	case strings.Contains(args[0], "@"):
		return ""
	}
	if f := c.folderFault(args[0]); f != "" {
		return f
	}
	files, program := read(c.at(args[0]), false)
	if !program {
		return "no program in " + args[0]
	}
	return flagFault(args[1:], append(flags(files), "h"))
}

func (c command) testFault(args []string) string {
	allowed := known
	var patterns, folders []string
	for i, a := range args {
		switch {
		case (a == "-run" || a == "-bench" || a == "-fuzz") && i+1 < len(args):
			patterns = append(patterns, strings.Trim(args[i+1], "'\""))
		case strings.HasPrefix(a, "./") || a == ".":
			folders = append(folders, strings.TrimSuffix(a, "..."))
		}
	}
	if len(folders) == 0 {
		folders = []string{"."}
	}
	var tests []string
	for _, path := range folders {
		if f := c.folderFault(path); f != "" {
			return f
		}
		files, _ := read(c.at(path), true)
		allowed = append(slices.Clip(allowed), flags(files)...)
		for _, f := range files {
			for _, decl := range f.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
					tests = append(tests, fn.Name.Name)
				}
			}
		}
	}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return err.Error()
		}
		if p != "^$" && !slices.ContainsFunc(tests, re.MatchString) {
			return "no test " + p
		}
	}
	return flagFault(args, allowed)
}

// read parses the Go files of a folder, with tests or without, and tells whether they are
// a program.
func read(folder string, tests bool) (files []*ast.File, program bool) {
	names, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") && !tests {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err == nil {
			files, program = append(files, f), program || f.Name.Name == "main"
		}
	}
	return files, program
}

// flags returns the flags that are defined in files: the first text among the arguments of
// a method of a flag set, or of a function of package flag.
func flags(files []*ast.File) (names []string) {
	method := regexp.MustCompile(`^(Bool|Duration|Float64|Func|BoolFunc|Int|Int64|String|Text|Uint|Uint64)?(Var)?$`)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); !ok || !method.MatchString(s.Sel.Name) || len(call.Args) < 2 {
				return true
			}
			for _, a := range call.Args {
				if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					name, _ := strconv.Unquote(lit.Value)
					names = append(names, name)
					break
				}
			}
			return true
		})
	}
	return names
}

func flagFault(args, allowed []string) string {
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if strings.HasPrefix(a, "-") && len(name) > 0 && !slices.Contains(allowed, name) {
			return fmt.Sprintf("no flag -%s", name)
		}
	}
	return ""
}
