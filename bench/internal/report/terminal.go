// The tables on a terminal.

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorumlock/redlock/bench/internal/result"
)

// Table writes all tables, and what a reader should know about them.
func Table(w io.Writer, r *result.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", Where(r), How(r))
	for _, g := range Grids(r) {
		fmt.Fprintf(&b, "\n%s\n", g.Title)
		writeGrid(&b, g)
	}
	for _, c := range r.Cells {
		if n := c.Errors(); n > 0 {
			fmt.Fprintf(&b, "\n%s, %s: %d calls failed, the first with: %s\n", c.Peer, c.Situation, n, c.FirstError())
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "FAILED: %s, %s, round %d: %s\n", f.Peer, f.Cell, f.Round, f.Error)
	}
	if r.Interrupted {
		b.WriteString("INTERRUPTED: the figures are of what was measured until then.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGrid pads columns by characters, not bytes. Columns without figures are left out.
func writeGrid(b *strings.Builder, g Grid) {
	lines := append([][]string{g.Columns}, g.Rows...)
	wide := make([]int, len(g.Columns))
	used := make([]bool, len(g.Columns))
	for i, line := range lines {
		for j, text := range line {
			wide[j] = max(wide[j], utf8.RuneCountInString(text))
			used[j] = used[j] || i > 0 && text != ""
		}
	}
	for _, line := range lines {
		var out strings.Builder
		for j, text := range line {
			if !used[j] {
				continue
			}
			pad := strings.Repeat(" ", wide[j]-utf8.RuneCountInString(text))
			if left(g, j) {
				out.WriteString("  " + text + pad)
			} else {
				out.WriteString("  " + pad + text)
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

// left tells whether a column holds text.
func left(g Grid, column int) bool {
	name := g.Columns[column]
	return slices.Contains([]string{"", "operation", "node", "target", "what"}, name)
}

// Where says in one line what was measured on.
func Where(r *result.Result) string {
	kinds, versions := map[string]int{}, map[string]bool{}
	for i, n := range r.Nodes {
		if r.Setup.Nodes == 0 || i < r.Setup.Nodes { // a suite has more, for one series
			kinds[n.Kind]++
		}
		if n.Version != "" {
			versions[n.Version] = true
		}
	}
	var text []string
	for kind, n := range kinds {
		text = append(text, fmt.Sprintf("%s (%s)", plural(n, "node"), kind))
	}
	for v := range versions {
		text = append(text, "Redis "+v)
	}
	m := r.Machine
	text = append(text, fmt.Sprintf("callers on %s/%s, %s", m.OS, m.Arch, plural(m.CPUs, "processor")))
	if m.CPU != "" {
		text[len(text)-1] += " " + m.CPU
	}
	if m.GOMAXPROCS != m.CPUs {
		text = append(text, fmt.Sprintf("GOMAXPROCS %d", m.GOMAXPROCS))
	}
	if m.Load != "" {
		text = append(text, "load average before "+m.Load)
	}
	text = append(text, m.Go)
	if r.Commit != "" {
		text = append(text, "commit "+r.Commit)
	}
	return strings.Join(text, ", ")
}

// How says in one line how it was measured.
func How(r *result.Result) string {
	s := r.Setup
	return fmt.Sprintf("TTL %v, %s of %v for each peer, in turn, after %v to warm up; ratios are medians over the rounds",
		s.TTL, plural(s.Rounds, "round"), s.Duration, s.WarmUp)
}
