// The rules of this repository, as far as a linter does not know them.

package redlock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources calls f with every Go file of the repository, parsed up to its
// imports, and its path. Build tags do not matter.
func sources(t *testing.T, f func(path string, file *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	tree(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		f(path, file)
	})
}

// tree calls f with the slash-separated path of every file of the repository.
func tree(t *testing.T, f func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir():
			f(path)
		case e.Name() == "testdata" || e.Name() == ".git":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isTest reports whether path is of a file that users do not compile.
func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

// TestPackageComments: every package says once what it is, and every file what
// its one job is.
func TestPackageComments(t *testing.T) {
	comments := make(map[string][]string)
	sources(t, func(path string, file *ast.File) {
		if isTest(path) {
			return
		}
		pkg := filepath.ToSlash(filepath.Dir(path)) + ": package " + file.Name.Name
		files := comments[pkg]
		if file.Doc.Text() != "" {
			files = append(files, path)
		}
		comments[pkg] = files // also if there are none yet
		// Text is empty for what is nothing but directives.
		if len(file.Comments) == 0 || !slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
			return c.Pos() < file.Package && c.Text() != ""
		}) {
			t.Errorf("%s does not begin with a comment on its job", path)
		}
	})
	for pkg, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s has %d package comments, want 1: %q", pkg, len(files), files)
		}
	}
}

// TestModules: users inherit what the root module needs, and must not depend on
// a replacement that only works in this checkout.
func TestModules(t *testing.T) {
	allowed := []string{
		"github.com/alicebob/miniredis/v2", // tests
		"github.com/go-redsync/redsync/v4", // tests
		"github.com/hashicorp/go-multierror",
		"github.com/redis/go-redis/v9",
		"golang.org/x/sys",
	}
	tree(t, func(path string) {
		if filepath.Base(path) != "go.mod" {
			return
		}
		out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.FromSlash(path)).Output()
		if err != nil {
			t.Fatal(err)
		}
		var mod struct {
			Require []struct {
				Path     string
				Indirect bool
			}
			Replace []any
		}
		if err := json.Unmarshal(out, &mod); err != nil {
			t.Fatal(err)
		}
		if len(mod.Replace) > 0 {
			t.Errorf("%s has replace directives; they belong in go.work", path)
		}
		for _, r := range mod.Require {
			if path == "go.mod" && !r.Indirect && !slices.Contains(allowed, r.Path) {
				t.Errorf("%s requires %s", path, r.Path)
			}
		}
	})
}

// TestConsumerModules counts the modules of a program that uses the library.
func TestConsumerModules(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED with -short: the number of modules that a user gets")
	}
	const most = 18
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.sum":  string(sums), // so that no checksum has to be looked up
		"main.go": "package main\n\nimport _ \"github.com/quorumlock/redlock\"\n\nfunc main() {}\n",
		"go.mod": fmt.Sprintf("module example.com/consumer\n\ngo 1.26.0\n\n"+
			"require github.com/quorumlock/redlock v0.0.0\n\nreplace github.com/quorumlock/redlock => %q\n", root),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return string(out)
	}
	run("mod", "tidy") // only a tidy go.mod shows all that comes along
	list := run("list", "-m", "all")
	if n := strings.Count(list, "\n"); n > most {
		t.Errorf("a consumer has %d modules, want at most %d:\n%s", n, most, list)
	}
}

// TestFiles: a file has one job, and only one file knows the driver.
func TestFiles(t *testing.T) {
	const most = 280 // "about 250"
	sources(t, func(path string, file *ast.File) {
		if isTest(path) || strings.Contains(path, "/") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, want at most %d", path, n, most)
		}
		for _, imp := range file.Imports {
			if strings.HasPrefix(imp.Path.Value, `"github.com/redis/go-redis/`) && !strings.HasPrefix(path, "redis") {
				t.Errorf("%s imports %s; only redis*.go may", path, imp.Path.Value)
			}
		}
	})
}

// TestCompose reads docker-compose.yml by its indentation, which is all it takes.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^ *#.*\n`).ReplaceAll(text, nil)
	if regexp.MustCompile(`(?i)replicaof|slaveof`).Match(text) {
		t.Error("a node replicates another")
	}
	node := block(string(text), "", "x-node: &node")
	for _, want := range []string{
		`- --maxmemory-policy\n +- noeviction\n`,
		`- --appendonly\n +- "yes"\n +- --appendfsync\n +- always\n`,
		`healthcheck:\n +test: \[CMD, redis-cli, -e, ping\]\n`,
	} {
		if !regexp.MustCompile(want).MatchString(node) {
			t.Errorf("nodes have no %s in\n%s", want, node)
		}
	}

	services := block(string(text), "", "services:")
	names := regexp.MustCompile(`(?m)^  (\w+):$`).FindAllStringSubmatch(services, -1)
	ports, volumes := make(map[string]bool), make(map[string]bool)
	for i, name := range names {
		service := block(services, "  ", name[1]+":")
		if want := fmt.Sprintf("node%d", i+1); name[1] != want {
			t.Errorf("service %s, want %s", name[1], want)
		}
		if !strings.Contains(service, "    <<: *node\n") {
			t.Errorf("%s is not a node like the others", name[1])
		}
		// Open to this machine only: there is no password.
		for _, m := range regexp.MustCompile(`ports: \["127\.0\.0\.1:(\d+):6379"\]`).FindAllStringSubmatch(service, -1) {
			ports[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`volumes: \["(\w+):/data"\]`).FindAllStringSubmatch(service, -1) {
			volumes[m[1]] = true
		}
	}
	want := []string{"7001", "7002", "7003", "7004", "7005"}
	if got := slices.Sorted(maps.Keys(ports)); len(names) != 5 || !slices.Equal(got, want) || len(volumes) != 5 {
		t.Errorf("%d services on ports %q with %d volumes, want 5 on %q with 5", len(names), got, len(volumes), want)
	}
}

// block returns the lines below the line key that are indented deeper than it.
func block(text, indent, key string) string {
	_, rest, _ := strings.Cut("\n"+text, "\n"+indent+key+"\n")
	if end := regexp.MustCompile(`(?m)^` + indent + `\S`).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}
