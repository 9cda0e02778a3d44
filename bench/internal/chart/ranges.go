// Ranges: from the median to the slowest, a row for each peer.

package chart

import (
	"fmt"
	"html"
)

// A Range is a row.
type Range struct {
	Name               string
	Style              int
	P50, P90, P99, Max float64
}

// Ranges is a plot of rows: a bar from p50 over p90 to p99, and a tick at the maximum.
type Ranges struct {
	Title, Note string
	X           Axis
	Rows        []Range
}

// SVG draws the plot.
func (r Ranges) SVG() string {
	const left, figures = 210, 96
	high := float64(top + bottom + rowHigh*max(1, len(r.Rows)))
	c := newCanvas(high, r.Title, r.Note)
	var all []float64
	for _, row := range r.Rows {
		all = append(all, row.P50, row.P99, row.Max)
	}
	x := newScale(r.X, all, left, width-right-figures)
	c.xAxis(x, high-bottom)
	for i, row := range r.Rows {
		y := top + rowHigh*(float64(i)+0.5)
		s := styleOf(row.Style)
		c.label(left-10, y+4, "end", "#222222", row.Name, "")
		c.add(`<g><title>%s</title>`, html.EscapeString(fmt.Sprintf("%s: p50 %s, p90 %s, p99 %s, max %s",
			row.Name, x.text(row.P50), x.text(row.P90), x.text(row.P99), x.text(row.Max))))
		c.line(x.at(row.P50), y, x.at(row.Max), y, s.color, `stroke-width="1" stroke-dasharray="2 2"`)
		c.line(x.at(row.P50), y, x.at(row.P99), y, s.color, `stroke-width="4" stroke-opacity="0.35"`)
		c.line(x.at(row.P50), y, x.at(row.P90), y, s.color, `stroke-width="8" stroke-opacity="0.55"`)
		c.add(`<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>`, x.at(row.P50), y, s.color)
		c.line(x.at(row.Max), y-6, x.at(row.Max), y+6, s.color, `stroke-width="2"`)
		c.add(`</g>`)
		c.label(width-right, y+4, "end", s.color, x.text(row.P50), `font-weight="600"`)
	}
	return c.end()
}
