// Bars, marks and arrows on a time line, as SVG that is readable on light and on dark.

package main

import (
	"fmt"
	"html"
	"strings"
)

const width = 760

// The colours are those of Okabe and Ito, which colour-blind people can tell apart, in two
// tones each. Nothing lies on colour alone: every bar has its text.
const css = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #59636e }
.inside { fill: #ffffff; font-weight: 600 }
.bad { fill: #b3261e; font-weight: 600 }
.axis { stroke: #8b949e; fill: none }
.mark { stroke: #59636e; stroke-dasharray: 3 3; fill: none }
.arrow { stroke: #1f2328; stroke-width: 1.5; fill: none; marker-end: url(#head) }
#head path { fill: #1f2328 }
.lease { fill: #0060a0 }
.other { fill: #00684a }
.key { fill: #56b4e9 }
.cost { fill: #e69f00 }
.drift { fill: #d55e00 }
.pause { fill: url(#hatch); stroke: #8b949e }
#hatch path { stroke: #8b949e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9198a1 }
.bad { fill: #ff9c94 }
.axis, .pause, #hatch path { stroke: #656c76 }
.mark { stroke: #9198a1 }
.arrow { stroke: #e6edf3 }
#head path { fill: #e6edf3 }
.key { fill: #1f6f9f }
.cost { fill: #b87d00 }
}
`

type canvas struct{ strings.Builder }

func newCanvas(high int, title, description string) *canvas {
	c := &canvas{}
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="t d">`, width, high)
	c.add(`<title id="t">%s</title>`, html.EscapeString(title))
	c.add(`<desc id="d">%s</desc>`, html.EscapeString(description))
	c.add(`<style>%s</style>`, css)
	c.add(`<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>`)
	c.add(`<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V7"/></pattern></defs>`)
	c.text(16, 24, "start", "title", title)
	return c
}

func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(c, format, args...)
	c.WriteByte('\n')
}

func (c *canvas) text(x, y int, anchor, class, text string) {
	c.add(`<text x="%d" y="%d" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, html.EscapeString(text))
}

// bar is a span of time, with its text inside.
func (c *canvas) bar(from, to, y, high int, class, text string) {
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" class="%s"/>`, from, y, to-from, high, class)
	if text != "" {
		c.text((from+to)/2, y+high/2+4, "middle", "inside", text)
	}
}

// mark is an instant, over some lanes, with its text above.
func (c *canvas) mark(x, from, to int, text string) {
	c.add(`<path d="M%d %dV%d" class="mark"/>`, x, from, to)
	c.text(x, from-5, "middle", "faint", text)
}

func (c *canvas) arrow(x1, y1, x2, y2 int) {
	c.add(`<path d="M%d %dL%d %d" class="arrow"/>`, x1, y1, x2, y2)
}

// time is the axis.
func (c *canvas) time(from, to, y int) {
	c.add(`<path d="M%d %dH%d" class="axis"/>`, from, y, to)
	c.text(to, y+16, "end", "faint", "time")
}

func (c *canvas) end() string {
	c.add(`</svg>`)
	return c.String()
}
