// Every block of Go is compiled and run, in one build.

package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

// TestDocuments runs them.
func TestDocuments(t *testing.T) {
	all := documents(t)
	n := 0
	for _, d := range all {
		for _, f := range d.fenced() {
			if f.language == "go" {
				n++
			}
		}
	}
	if n < 2 || len(all) < 5 {
		t.Fatalf("%d blocks in %d documents: that is no test", n, len(all))
	}
	t.Logf("%d blocks of Go in %d documents", n, len(all))
	if out := compileAndRun(t, all); out != "" {
		t.Error(out)
	}
}

// TestDocumentsBite has the test find what is wrong, and where.
func TestDocumentsBite(t *testing.T) {
	for _, broken := range []map[string]string{
		{ // by the line of the block: what is wrong in it
			"mutex.Lock()":                           `:0: not enough arguments`,
			"client.NoSuchMethod()":                  `:0: client\.NoSuchMethod undefined`,
			"x := 1\nreturn nil, x":                  `:1: too many return values`,
			"package main\n\nfunc main() { none() }": `:2: undefined: none`,
			"func f() { redlock.None() }":            `:0: undefined: redlock\.None`,
		},
		{"if {": `:0: syntax error`},
		{
			"return errors.New(\"no\")":                         `:0: no`,
			"err := lease.Unlock(ctx)\nerr = lease.Unlock(ctx)": `:0: .*not held`,
			"panic(1)": `:0: panic: 1`,
			"package main\n\nfunc main() { panic(2) }": `:0: exit status 2`,
		},
	} {
		d, line := document{path: "bad.md"}, 1
		var wants []string
		for block, want := range broken {
			d.text += "```go\n" + block + "\n```\n"
			off, text, _ := strings.Cut(strings.TrimPrefix(want, ":"), ":")
			wants = append(wants, fmt.Sprintf(`bad\.md:%d:%s`, line+1+int(off[0]-'0'), text))
			line += strings.Count(block, "\n") + 3
		}
		out := compileAndRun(t, []document{d})
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("found %q, want %s", out, want)
			}
		}
	}
}

// ours is an address in a document, for which a node in memory stands in.
var ours = regexp.MustCompile(`\b10\.\d+\.\d+\.\d+:\d+`)

// compileAndRun returns what is wrong with the blocks of Go.
func compileAndRun(t *testing.T, all []document) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	set, err := nodes.StartEmbedded(5, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	place := make(map[string]string)
	nodeFor := func(addr string) string {
		if place[addr] == "" {
			place[addr] = set.Addrs()[len(place)%5]
		}
		return place[addr]
	}

	// The sources are overlaid on this module, so that they are built as a part of it
	// and nothing is written there.
	tmp, bin := t.TempDir(), t.TempDir()
	base := filepath.Join(root, "examples", "documents", "blocks")
	prelude, err := filepath.Abs(filepath.Join("testdata", "prelude.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]string{filepath.Join(base, "fragments", "prelude.go"): prelude}
	folders := map[string]source{"fragments": {}}
	for _, d := range all {
		for _, f := range d.fenced() {
			if f.language != "go" {
				continue
			}
			f.text = ours.ReplaceAllStringFunc(f.text, nodeFor)
			number := len(overlay)
			s := sourceOf(f, number, root)
			file := filepath.Join(tmp, fmt.Sprintf("block%d.go", number))
			if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
				t.Fatal(err)
			}
			overlay[filepath.Join(base, s.folder, filepath.Base(file))] = file
			if s.folder != "fragments" {
				folders[s.folder] = s
			}
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	overlaid := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(overlaid, list, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-overlay", overlaid, "-o", bin+string(filepath.Separator))
	for folder := range folders {
		build.Args = append(build.Args, "./documents/blocks/"+folder)
	}
	build.Dir = filepath.Join(root, "examples")
	if out, err := build.CombinedOutput(); err != nil {
		return string(out)
	}

	var wrong strings.Builder
	for folder, s := range folders {
		if s.compiled {
			continue // and that is all
		}
		run, stop := context.WithTimeout(ctx, 2*time.Minute)
		cmd := exec.CommandContext(run, filepath.Join(bin, folder))
		cmd.Env = append(os.Environ(), nodes.Env+"=")
		out, err := cmd.CombinedOutput()
		stop()
		switch {
		case folder == "fragments" && err != nil:
			_, _ = wrong.Write(out)
		case err != nil:
			fmt.Fprintf(&wrong, "%s: %v\n%s", s.place(), err, out)
		case folder != "fragments" && bytes.Contains(out, []byte("redlock: ")):
			fmt.Fprintf(&wrong, "%s: it says\n%s", s.place(), out)
		}
	}
	return wrong.String()
}
