// Lines: one thing against another, a line for each peer.

package chart

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// A Point is a pair of values.
type Point struct{ X, Y float64 }

// A Line is what is drawn of one peer.
type Line struct {
	Name   string
	Style  int
	Points []Point
}

// Lines is a plot of lines.
type Lines struct {
	Title, Note string
	X, Y        Axis
	Lines       []Line
	Dots        bool // mark every point
}

// SVG draws the plot.
func (l Lines) SVG() string {
	const left, names, high, nameHigh = 76, 150, 400, 15
	c := newCanvas(high, l.Title, l.Note)
	var xs, ys []float64
	for _, line := range l.Lines {
		for _, p := range line.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x := newScale(l.X, append(xs, l.X.Ticks...), left, width-right-names)
	y := newScale(l.Y, ys, high-bottom, top)
	c.xAxis(x, high-bottom)
	c.yAxis(y, left, width-right-names)
	type end struct {
		line Line
		y    float64
	}
	var ends []end
	for _, line := range l.Lines {
		if len(line.Points) == 0 {
			continue
		}
		l.draw(c, line, x, y)
		ends = append(ends, end{line, y.at(line.Points[len(line.Points)-1].Y)})
	}
	// Names stand where their lines end, but not on each other nor below the plot.
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(ends); i++ {
		ends[i].y = max(ends[i].y, ends[i-1].y+nameHigh)
	}
	limit := float64(high - bottom)
	for _, e := range slices.Backward(ends) {
		limit = min(limit, e.y)
		c.label(width-right-names+10, limit+4, "start", styleOf(e.line.Style).color, e.line.Name, `font-weight="600"`)
		limit -= nameHigh
	}
	return c.end()
}

func (l Lines) draw(c *canvas, line Line, x, y scale) {
	s := styleOf(line.Style)
	var path strings.Builder
	for i, p := range line.Points {
		fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x.at(p.X), y.at(p.Y))
	}
	c.add(`<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round" stroke-dasharray="%s"><title>%s</title></path>`,
		path.String(), s.color, s.dash, html.EscapeString(line.Name))
	if !l.Dots {
		return
	}
	for _, p := range line.Points {
		c.add(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %s, %s</title></circle>`,
			x.at(p.X), y.at(p.Y), s.color, html.EscapeString(line.Name), html.EscapeString(x.text(p.X)), html.EscapeString(y.text(p.Y)))
	}
}
