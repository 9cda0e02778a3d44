// The committed figures are those that the code draws.

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "figures")
	for name, draw := range figures {
		want := draw()
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
			t.Errorf("%s is not what the code draws: go run ./internal/figure", name)
		}
		for in := xml.NewDecoder(strings.NewReader(want)); ; {
			if _, err := in.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !strings.Contains(want, "prefers-color-scheme: dark") {
			t.Errorf("%s is for light only", name)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if figures[f.Name()] == nil {
			t.Errorf("nothing draws %s", f.Name())
		}
	}
}
