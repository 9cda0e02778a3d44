// Every plot is well-formed, and places what it shows inside itself.

package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/chart"
)

// parse fails the test unless svg is one well-formed element, and returns how often
// each element is in it. Circles must be inside.
func parse(t *testing.T, svg string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		count[e.Name.Local]++
		for _, a := range e.Attr {
			if v, err := strconv.ParseFloat(a.Value, 64); err == nil && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 2000) {
				t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	if count["svg"] != 1 || strings.Contains(svg, "NaN") {
		t.Errorf("no plot:\n%s", svg)
	}
	return count
}

func TestLines(t *testing.T) {
	for name, plot := range map[string]chart.Lines{
		"empty":     {},
		"one point": {Lines: []chart.Line{{Points: []chart.Point{{1, 1}}}}, Dots: true},
		"zero":      {Lines: []chart.Line{{Points: []chart.Point{{0, 0}, {0, 0}}}}, Dots: true},
		"log of zero": {
			X: chart.Axis{Log: true}, Y: chart.Axis{Log: true},
			Lines: []chart.Line{{Points: []chart.Point{{0, 0}, {1, 1e6}}}}, Dots: true,
		},
		"markup": {Title: "<b> & co", Lines: []chart.Line{{Name: "a<b", Points: []chart.Point{{1, 2}, {3, 4}}}}, Dots: true},
		"ticks":  {X: chart.Axis{Ticks: []float64{1, 16, 128}, Log: true}, Lines: []chart.Line{{Points: []chart.Point{{1, 1}, {128, 2}}}}, Dots: true},
	} {
		t.Run(name, func(t *testing.T) {
			points := 0
			for _, l := range plot.Lines {
				points += len(l.Points)
			}
			if got := parse(t, plot.SVG()); got["path"] != len(plot.Lines) || got["circle"] != points {
				t.Errorf("%d lines, %d dots for %d points", got["path"], got["circle"], points)
			}
		})
	}
}

// TestNames wants all names inside the plot, also of many lines that end in one place.
func TestNames(t *testing.T) {
	var plot chart.Lines
	for i := range 12 {
		plot.Lines = append(plot.Lines, chart.Line{Name: strconv.Itoa(i), Style: i, Points: []chart.Point{{0, 100}, {1, 0}}})
	}
	parse(t, plot.SVG())
}

func TestRanges(t *testing.T) {
	plot := chart.Ranges{X: chart.Axis{Log: true, Format: chart.Millis}}
	parse(t, plot.SVG())
	for i := range 30 {
		plot.Rows = append(plot.Rows, chart.Range{Name: "<peer>", Style: i - 1, P50: 0.1, P90: 1, P99: 10, Max: math.Pow(10, float64(i%5))})
	}
	if got := parse(t, plot.SVG()); got["circle"] != 30 {
		t.Errorf("%d rows", got["circle"])
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.05: "50 µs", 1: "1 ms", 250: "250 ms", 2000: "2 s"} {
		if got := chart.Millis(v); got != want {
			t.Errorf("%v ms is written %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 12: "12", 1500: "1.5k", 2e6: "2M"} {
		if got := chart.Number(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
	if got := chart.InMillis(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("1.5 ms are %v", got)
	}
}
