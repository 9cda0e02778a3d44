// The files that a run leaves.

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quorumlock/redlock/bench/internal/report"
	"github.com/quorumlock/redlock/bench/internal/result"
)

const (
	jsonFile = "result.json"
	htmlFile = "report.html"
	textFile = "report.txt"
)

// writeAll writes all files, and tells where they are.
func writeAll(dir string, r *result.Result, out io.Writer) error {
	if err := writeJSON(dir, r); err != nil {
		return err
	}
	var html bytes.Buffer
	if err := report.HTML(&html, r); err != nil {
		return err
	}
	if err := write(dir, htmlFile, html.Bytes()); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := report.Table(&text, r); err != nil {
		return err
	}
	if err := write(dir, textFile, text.Bytes()); err != nil {
		return err
	}
	plots := report.Plots(r)
	for _, p := range plots {
		if err := write(dir, p.File, []byte(p.SVG)); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nwritten to %s: %s, %s, %s, and %d plots as SVG\n", dir, htmlFile, textFile, jsonFile, len(plots))
	return nil
}

func writeJSON(dir string, r *result.Result) error {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err
	}
	return write(dir, jsonFile, b.Bytes())
}

// write replaces a file at once: a run that dies leaves the old one or the new one.
func write(dir, name string, content []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".tmp", content, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// renderFile makes the report anew from the result of a run.
func renderFile(conf config, out io.Writer) error {
	f, err := os.Open(conf.from)
	if err != nil {
		return fmt.Errorf("-from: %w", err)
	}
	defer f.Close()
	r, err := result.Read(f)
	if err != nil {
		return fmt.Errorf("-from %s: %w", conf.from, err)
	}
	if err := report.Table(out, r); err != nil {
		return err
	}
	return writeAll(conf.out, r, out)
}
