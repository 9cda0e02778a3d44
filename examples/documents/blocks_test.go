// Blocks of Go in Markdown, and the sources that are made of them.

package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A document is a Markdown file, with its path from the root of the repository.
type document struct {
	path, text string
}

// documents returns all that are written by hand, but for the log of changes.
func documents(t *testing.T) (all []document) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "results" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md" || d.Name() == "CHANGELOG.md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		all = append(all, document{filepath.ToSlash(name), string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A fenced is a block between two fences.
type fenced struct {
	document string
	line     int // of its first line
	language string
	text     string // without the indentation that the fence has
}

func (f fenced) place() string { return fmt.Sprintf("%s:%d", f.document, f.line) }

func (d document) fenced() (all []fenced) {
	var open *fenced
	indent := ""
	for i, line := range strings.Split(d.text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			indent = line[:len(line)-len(trimmed)]
			open = &fenced{document: d.path, line: i + 2, language: strings.TrimSpace(strings.TrimLeft(trimmed, "`"))}
		case open != nil && strings.HasPrefix(trimmed, "```"):
			all, open = append(all, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return all
}

// packages are what a fragment may use without importing it, by name.
var packages = map[string]string{
	"clock":        "github.com/quorumlock/redlock/clock",
	"context":      "context",
	"errors":       "errors",
	"fence":        "github.com/quorumlock/redlock/fence",
	"fmt":          "fmt",
	"goredis":      "github.com/go-redsync/redsync/v4/redis/goredis/v9",
	"http":         "net/http",
	"log":          "log",
	"os":           "os",
	"redis":        "github.com/redis/go-redis/v9",
	"redlock":      "github.com/quorumlock/redlock",
	"redlockotel":  "github.com/quorumlock/redlock/redlockotel",
	"redlocktest":  "github.com/quorumlock/redlock/redlocktest",
	"redsync":      "github.com/go-redsync/redsync/v4",
	"redsyncredis": "github.com/go-redsync/redsync/v4/redis",
	"signal":       "os/signal",
	"slog":         "log/slog",
	"sql":          "database/sql",
	"sync":         "sync",
	"synctest":     "testing/synctest",
	"syscall":      "syscall",
	"testing":      "testing",
	"time":         "time",
}

// A source is a file to be compiled, in a package of its own unless it is a fragment.
type source struct {
	fenced
	folder   string // below that of all
	text     string
	compiled bool // and not run
}

// sourceOf makes one of a block; number is the block's. Lines keep their numbers, so that
// the compiler speaks of the document.
func sourceOf(f fenced, number int, root string) source {
	line := fmt.Sprintf("//line %s:%d\n", path.Join(filepath.ToSlash(root), f.document), f.line)
	apart := source{fenced: f, folder: fmt.Sprintf("block%d", number)}
	if strings.HasPrefix(f.text, "package ") {
		apart.text = line + f.text
		return apart
	}
	if file, err := parse("package p\n" + f.text); err == nil {
		apart.text, apart.compiled = "package main\n"+imports(file)+"func main() {}\n"+line+f.text, true
		return apart
	}
	s := source{fenced: f, folder: "fragments"}
	file, err := parse("package p\nfunc _() error {\n" + f.text + "\n}\n")
	ending, need := "return nil", ""
	if err == nil {
		need = imports(file)
		names := declared(file)
		for _, name := range names {
			ending = "_ = " + name + "\n" + ending
		}
		if slices.Contains(names, "err") {
			ending = strings.Replace(ending, "return nil", "return err", 1)
		}
	} // else the compiler tells where
	s.text = fmt.Sprintf("package main\n%sfunc init() {\nblocks = append(blocks, block{%q, func() error {\n%s%s\n%s\n}})\n}\n", need, f.place(), line, f.text, ending)
	return s
}

func parse(text string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "", text, 0)
}

// imports are those that a file needs and has not.
func imports(file *ast.File) string {
	var need []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && packages[x.Name] != "" && slices.Contains(file.Unresolved, x) {
				need = append(need, fmt.Sprintf("import %s %q\n", x.Name, packages[x.Name]))
			}
		}
		return true
	})
	slices.Sort(need)
	return strings.Join(slices.Compact(need), "")
}

// declared returns the variables of a fragment itself, not of its inner blocks.
func declared(file *ast.File) (names []string) {
	body := file.Decls[len(file.Decls)-1].(*ast.FuncDecl).Body
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.Name != "_" && !slices.Contains(names, id.Name) {
				names = append(names, id.Name)
			}
		}
	}
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			for _, x := range s.Lhs {
				if id, ok := x.(*ast.Ident); ok && s.Tok == token.DEFINE {
					add(id)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					add(v.Names...)
				}
			}
		}
	}
	return names
}
