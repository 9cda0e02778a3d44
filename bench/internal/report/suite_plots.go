// The plots of a suite.

package report

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/internal/chart"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

func regions(r *result.Result) (string, bool) { return regionsWith(r, slices.MinFunc) }

func regionsBusy(r *result.Result) (string, bool) { return regionsWith(r, slices.MaxFunc) }

type choose func([]result.Situation, func(a, b result.Situation) int) result.Situation

// regionsWith draws a lock with the fewest or the most callers.
func regionsWith(r *result.Result, which choose) (string, bool) {
	all := far(r)
	if len(all) == 0 {
		return "", false
	}
	s := which(all, func(a, b result.Situation) int { return a.Callers - b.Callers })
	return rangesOf(r, s, "lock", "Lock across regions, "+plural(s.Callers, "caller"))
}

// faults draws the slowest hundredth by callers, a line for each fault.
func faults(r *result.Result) (string, bool) {
	plot := chart.Lines{Title: "One of the nodes in trouble: p99 of " + ours, Note: note(r), Dots: true}
	plot.X, plot.Y = chart.Axis{Label: "callers", Log: true}, chart.Axis{Label: "lock + unlock, p99", Log: true, Format: chart.Millis}
	for i, fault := range []result.Fault{"", result.Slow, result.Dead, result.Silent} {
		line := chart.Line{Name: "one " + string(fault), Style: []int{style(ours), 6, 5, 7}[i]} // not those of other peers in the report
		if fault == "" {
			line.Name = "all healthy"
		}
		for _, s := range locks(r) {
			s.Fault = fault
			if c := r.Find(ours, s); c != nil {
				line.Points = append(line.Points, chart.Point{X: float64(s.Callers), Y: chart.InMillis(c.Op("cycle").At(99))})
				if fault != "" && !slices.Contains(plot.X.Ticks, float64(s.Callers)) {
					plot.X.Ticks = append(plot.X.Ticks, float64(s.Callers))
				}
			}
		}
		if len(line.Points) > 0 {
			plot.Lines = append(plot.Lines, line)
		}
	}
	return plot.SVG(), len(plot.Lines) > 1
}

// sizes draws processor time by the number of nodes, with the most callers.
func sizes(r *result.Result) (string, bool) {
	all := bySize(r)
	if len(all) == 0 {
		return "", false
	}
	callers := all[len(all)-1].Callers
	plot := chart.Lines{Title: "Cost by the number of nodes, " + plural(callers, "caller"), Note: noteOf(r, "nodes"), Dots: true}
	plot.X = chart.Axis{Label: "nodes", Format: chart.Number}
	plot.Y = chart.Axis{Label: "processor time", Format: chart.Millis}
	for _, name := range []string{ours, peer.Baseline, "floor"} {
		line := chart.Line{Name: name, Style: style(name)}
		for _, s := range all {
			c := r.Find(name, s)
			if c == nil || s.Callers != callers {
				continue
			}
			v, ok := c.PerCycle(func(u result.Usage) float64 { return float64(u.ClientCPU + u.NodeCPU) })
			if ok {
				line.Points = append(line.Points, chart.Point{X: float64(nodesOf(r, s)), Y: chart.InMillis(time.Duration(v))})
			}
		}
		if len(line.Points) > 0 {
			plot.Lines = append(plot.Lines, line)
		}
	}
	return plot.SVG(), len(plot.Lines) > 0
}
