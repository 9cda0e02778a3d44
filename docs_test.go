// What the documents say of the tests.

package redlock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTests: each test, fuzz target or benchmark that a document names is
// there. A name may be the start of several.
func TestDocumentsNameTests(t *testing.T) {
	var declared []string
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z0-9]\w*)\(`)
	var documents []string
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".":
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			documents = append(documents, path)
		case isTest(path):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range function.FindAllSubmatch(source, -1) {
				declared = append(declared, string(m[1]))
			}
		}
		return nil
	})
	noErr(t, err)
	named := 0
	for _, path := range documents {
		text, err := os.ReadFile(path)
		noErr(t, err)
	names:
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z0-9]\w*`).FindAllString(string(text), -1) {
			named++
			for _, d := range declared {
				if strings.HasPrefix(d, name) {
					continue names
				}
			}
			t.Errorf("%s: there is no %s", path, name)
		}
	}
	if named < 100 {
		t.Errorf("%d names in %d documents: that was no test", named, len(documents))
	}
}
