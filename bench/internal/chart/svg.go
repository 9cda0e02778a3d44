// The SVG around every plot: size, title, axes.

package chart

import (
	"fmt"
	"html"
	"strings"
)

const (
	width   = 760
	top     = 56
	bottom  = 52
	right   = 18
	rowHigh = 26
)

// Series are told apart by colour, and by dashes where colours do not do.
type style struct{ color, dash string }

// styles are the colours of Okabe and Ito, which colour-blind people can tell apart.
var styles = []style{
	{"#0072b2", ""},
	{"#56b4e9", "7 3"},
	{"#d55e00", ""},
	{"#e69f00", "7 3"},
	{"#009e73", "2 3"},
	{"#444444", "2 3"},
	{"#cc79a7", ""},
	{"#8a5a9e", "7 3"},
	{"#7f6f00", "9 3 2 3"},
	{"#888888", "9 3 2 3"},
}

func styleOf(i int) style { return styles[((i%len(styles))+len(styles))%len(styles)] }

type canvas struct {
	strings.Builder
	width, height float64
}

func newCanvas(high float64, title, note string) *canvas {
	c := &canvas{width: width, height: high}
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%[1]d" height="%.[2]f" role="img" font-family="system-ui, sans-serif" font-size="12">`, width, high)
	c.add(`<title>%s</title>`, html.EscapeString(title))
	c.add(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	c.label(16, 24, "start", "#111111", title, `font-size="15" font-weight="600"`)
	c.label(16, 42, "start", "#666666", note, "")
	return c
}

func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(c, format, args...)
	c.WriteByte('\n')
}

func (c *canvas) line(x1, y1, x2, y2 float64, color, more string) {
	c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" %s/>`, x1, y1, x2, y2, color, more)
}

func (c *canvas) label(x, y float64, anchor, color, text, more string) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" %s>%s</text>`, x, y, anchor, color, more, html.EscapeString(text))
}

// xAxis draws ticks, grid and label below y, up to the top.
func (c *canvas) xAxis(s scale, y float64) {
	last := -1e9
	for _, v := range s.ticks() {
		x := s.at(v)
		c.line(x, top, x, y, "#e5e5e5", "")
		if x-last < 44 {
			continue // there is no room for its text
		}
		last = x
		c.label(x, y+16, "middle", "#444444", s.text(v), "")
	}
	c.label((s.from+s.to)/2, y+38, "middle", "#444444", s.axis.Label, "")
}

func (c *canvas) yAxis(s scale, from, to float64) {
	for _, v := range s.ticks() {
		y := s.at(v)
		c.line(from, y, to, y, "#e5e5e5", "")
		c.label(from-6, y+4, "end", "#444444", s.text(v), "")
	}
	c.add(`<text transform="translate(14 %.1f) rotate(-90)" text-anchor="middle" fill="#444444">%s</text>`, (s.from+s.to)/2, html.EscapeString(s.axis.Label))
}

func (c *canvas) end() string {
	c.add(`</svg>`)
	return c.String()
}
