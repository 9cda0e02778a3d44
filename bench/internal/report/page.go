// The page: one HTML file that needs nothing else.

package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	// The plots are made by this program, which escapes all text in them.
	"svg":  func(s string) template.HTML { return template.HTML(s) }, //nolint:gosec // as said
	"left": left,
}).Parse(pageText))

// A card is one figure that is read first.
type card struct{ Figure, Text string }

// HTML writes the page.
func HTML(w io.Writer, r *result.Result) error {
	plots, missing := plotsOf(r)
	grids := Grids(r)
	var targets *Grid
	compare := cards(r)
	if r.Setup.Suite {
		targets, grids, compare = &grids[0], grids[1:], nil // the targets say the same, and more
	}
	return page.Execute(w, map[string]any{
		"R": r, "Where": Where(r), "How": How(r), "Cards": compare, "Targets": targets, "Plots": plots, "Missing": missing, "Grids": grids,
		"Started": r.Started.Format("2006-01-02 15:04 MST"),
	})
}

// cards compare this library with the baseline, where both were measured.
func cards(r *result.Result) []card {
	var all []card
	for _, s := range r.Situations() {
		mine, base := r.Find("redlock", s), r.Find(peer.Baseline, s)
		if mine == nil || base == nil || s.Sweep {
			continue
		}
		switch s.Kind {
		case result.Lock:
			if ratio, ok := mine.LatencyRatio(base, "cycle"); ok {
				all = append(all, card{Ratio(ratio.Median) + " ×", fmt.Sprintf("the median latency of %s: %s", peer.Baseline, title(r, s))})
			}
			if ratio, ok := mine.ThroughputRatio(base); ok {
				all = append(all, card{Ratio(ratio.Median) + " ×", fmt.Sprintf("the throughput of %s: %s", peer.Baseline, title(r, s))})
			}
		case result.HandOver:
			if ratio, ok := mine.LatencyRatio(base, "handover"); ok {
				all = append(all, card{Ratio(ratio.Median) + " ×", fmt.Sprintf("the median of %s: %s", peer.Baseline, title(r, s))})
			}
		case result.Extend, result.PerNode:
		}
	}
	return all
}
