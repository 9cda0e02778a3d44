// Links within the repository lead somewhere.

package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code    = regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`\n]*`")
)

// TestDocumentLinks follows every relative link, also to a heading.
func TestDocumentLinks(t *testing.T) {
	seen := 0
	for _, d := range documents(t) {
		for _, to := range links(d) {
			seen++
			if fault := to.fault(t); fault != "" {
				t.Errorf("%s: %s: %s", d.path, to.text, fault)
			}
		}
	}
	t.Logf("%d links", seen)
	if seen < 20 {
		t.Error("that was no test")
	}
}

// TestDocumentLinksBite has it find what is wrong.
func TestDocumentLinksBite(t *testing.T) {
	for text, want := range map[string]string{
		"[a](nowhere.md)":                          "no file",
		"[a](safety.md#no-such-heading)":           "no heading",
		"[a](safety.md#nodes-that-restart)":        "",
		"[a](../README.md)":                        "",
		"## Two words, here\n[a](#two-words-here)": "",
		"[a](#two-words)":                          "no heading",
		"`[a](nowhere.md)`":                        "",
	} {
		found := ""
		for _, to := range links(document{"docs/bad.md", text}) {
			found = to.fault(t)
		}
		if want == "" && found != "" || !strings.Contains(found, want) {
			t.Errorf("%q: found %q, want %q", text, found, want)
		}
	}
}

// A target is a link, and the document that it is in.
type target struct {
	document
	text string
}

func links(d document) (all []target) {
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(d.text, ""), -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			all = append(all, target{d, m[1]})
		}
	}
	return all
}

func (l target) fault(t *testing.T) string {
	t.Helper()
	path, anchor, _ := strings.Cut(l.text, "#")
	text := l.document.text
	if path != "" {
		file := filepath.Join("..", "..", filepath.Dir(l.path), path)
		info, err := os.Stat(file)
		if err != nil {
			return "no file"
		}
		if anchor == "" || info.IsDir() {
			return ""
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = string(content)
	}
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, slug(m[1]))
	}
	if !slices.Contains(anchors, anchor) {
		return "no heading"
	}
	return ""
}

// slug is the anchor that GitHub gives a heading.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(title))
}
