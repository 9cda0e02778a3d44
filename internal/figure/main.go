// Figure draws the figures of the documents, in docs/figures. Run it there where the
// repository is: go run ./internal/figure
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . -dir ../../docs/figures

// figures are all of them, by the name of the file.
var figures = map[string]func() string{
	"validity.svg": validity,
	"fencing.svg":  fencing,
}

func main() {
	dir := filepath.Join("docs", "figures")
	if len(os.Args) == 3 && os.Args[1] == "-dir" {
		dir = os.Args[2]
	}
	for name, draw := range figures {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(draw()), 0o644); err != nil { //nolint:gosec // it is published
			fmt.Fprintln(os.Stderr, "figure:", err)
			os.Exit(1)
		}
	}
}
