// Making the copy, and breaking it.

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copyModule copies the module at from, without those that are in its folders, and
// without what no test of it reads.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, info.Mode().Perm())
	})
}

// mutate returns the files of the module at root that a mutant changes, as they are
// then, by name.
func (m mutant) mutate(root string) (map[string]string, error) {
	files := make(map[string]string)
	for _, e := range m.edits {
		text, ok := files[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("the old text is %d times in %s, not once:\n%s", n, e.file, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	for file, text := range files {
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// write puts files into the module at root, and returns what puts the old ones back.
func write(root string, files map[string]string) (restore func() error, err error) {
	was := make(map[string]string)
	for file := range files {
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		was[file] = string(b)
	}
	put := func(files map[string]string) error {
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	return func() error { return put(was) }, put(files)
}
