// The plots of a result.

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quorumlock/redlock/bench/internal/chart"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// A Plot is one picture.
type Plot struct {
	ID      string // in the page
	File    string
	Caption string // what a reader should see in it
	SVG     string
}

// A Missing is a plot that needs what was not measured.
type Missing struct{ ID, Why string }

// Plots are those for which there are figures.
func Plots(r *result.Result) []Plot {
	plots, _ := plotsOf(r)
	return plots
}

func plotsOf(r *result.Result) (plots []Plot, missing []Missing) {
	for _, draw := range []struct {
		id, why, caption string
		svg              func(*result.Result) (string, bool)
	}{
		{"latency", "needs -measure lock", "How long it takes to lock and then unlock, with nobody waiting: the flatter and lower, the better.", distribution},
		{"latency-busy", "needs -callers with several numbers", "The same with the most callers.", busyDistribution},
		{"throughput", "needs -measure lock", "Locks and unlocks per second of all callers together: higher is better.", throughput},
		{"delay", "needs -delay-sweep", "The median of a lock by how far away all nodes are. The grey line is one round trip: nobody can be below.", delays},
		{"handover", "needs -measure handover", "From the call of Unlock until the next client's Lock returns.", handOver},
		{"extend", "needs -measure extend", "How long it takes to extend a lease.", extend},
		{"regions", "needs -suite", "Nodes at 1, 20, 70, 90 and 150 ms: a quorum of five is complete after 70 ms, and no lock can be faster.", regions},
		{"regions-busy", "needs -suite", "The same with many callers.", regionsBusy},
		{"faults", "needs -suite", "The slowest hundredth of lock and unlock, by callers, when one of the nodes is in trouble. The lines should lie on each other.", faults},
		{"size", "needs -suite", "What a lock and unlock costs in processor time, that of the callers and of all nodes together, by the number of nodes.", sizes},
		{"nodes", "needs -measure nodes", "What each node took to grant a lock, and the quorum. A slow minority should not show in the quorum.", perNode},
	} {
		if draw.why == "needs -suite" && !r.Setup.Suite {
			continue
		}
		svg, ok := draw.svg(r)
		switch {
		case !ok && r.Setup.Suite:
			continue // it has no flags to change that
		case !ok:
			missing = append(missing, Missing{draw.id, draw.why})
			continue
		}
		plots = append(plots, Plot{draw.id, draw.id + ".svg", draw.caption, svg})
	}
	return plots, missing
}

// style is a peer's colour: the same in all reports, whoever takes part.
func style(name string) int { return max(slices.Index(peer.Names(), name), 0) }

// note stands below the title of a plot.
func note(r *result.Result) string {
	n := len(r.Nodes)
	if r.Setup.Nodes > 0 {
		n = min(n, r.Setup.Nodes)
	}
	return noteOf(r, plural(n, "node"))
}

func noteOf(r *result.Result, nodes string) string {
	if len(r.Nodes) > 0 {
		nodes += fmt.Sprintf(" (%s)", r.Nodes[0].Kind)
	}
	return fmt.Sprintf("%s, %s, %s", nodes, r.Machine.Go, plural(r.Machine.CPUs, "processor"))
}

// locks are the situations of plain locking, by number of callers.
func locks(r *result.Result) []result.Situation {
	all := slices.DeleteFunc(r.Situations(), func(s result.Situation) bool {
		return s.Kind != result.Lock || s.Sweep || s.Nodes > 0 || s.Names > 0 || s.Fault != ""
	})
	return slices.DeleteFunc(all, func(s result.Situation) bool { return s.Network != all[0].Network })
}

func of(r *result.Result, k result.Kind) (result.Situation, bool) {
	for _, s := range r.Situations() {
		if s.Kind == k && s.Fault == "" {
			return s, true
		}
	}
	return result.Situation{}, false
}

func distribution(r *result.Result) (string, bool) {
	all := locks(r)
	if len(all) == 0 {
		return "", false
	}
	return percentiles(r, all[0])
}

func busyDistribution(r *result.Result) (string, bool) {
	all := locks(r)
	if len(all) < 2 {
		return "", false
	}
	return percentiles(r, slices.MaxFunc(all, func(a, b result.Situation) int { return a.Callers - b.Callers }))
}

// percentiles draws what share of the calls took how long. The x axis gives each
// further nine the same room.
func percentiles(r *result.Result, s result.Situation) (string, bool) {
	nines := func(p float64) float64 { return -math.Log10(1 - p/100) }
	ticks := []float64{0, nines(50), 1, 2, 3, 4}
	names := []string{"0", "50", "90", "99", "99.9", "99.99"}
	plot := chart.Lines{
		Title: title(r, s), Note: note(r),
		X: chart.Axis{Label: "percent of calls", Ticks: ticks[:5], Format: func(v float64) string {
			if i := slices.Index(ticks, v); i >= 0 {
				return names[i] + " %"
			}
			return ""
		}},
		Y: chart.Axis{Label: "lock + unlock", Log: true, Format: chart.Millis},
	}
	for _, c := range cells(r, s) {
		series := c.Op("cycle")
		if series.Count() == 0 {
			continue
		}
		line := chart.Line{Name: c.Peer, Style: style(c.Peer)}
		for x := 0.0; x <= 3; x += 0.05 { // beyond, single calls would decide
			p := 100 * (1 - math.Pow(10, -x))
			line.Points = append(line.Points, chart.Point{X: x, Y: chart.InMillis(max(series.At(p), 1))})
		}
		plot.Lines = append(plot.Lines, line)
	}
	return plot.SVG(), len(plot.Lines) > 0
}

func throughput(r *result.Result) (string, bool) {
	plot := chart.Lines{Title: "Throughput", Note: note(r), Dots: true, Y: chart.Axis{Label: "lock + unlock per second"}}
	plot.X = chart.Axis{Label: "callers", Log: true}
	lines := make(map[string]*chart.Line)
	for _, s := range locks(r) {
		plot.X.Ticks = append(plot.X.Ticks, float64(s.Callers))
		for _, c := range cells(r, s) {
			if lines[c.Peer] == nil {
				lines[c.Peer] = &chart.Line{Name: c.Peer, Style: style(c.Peer)}
			}
			l := lines[c.Peer]
			l.Points = append(l.Points, chart.Point{X: float64(s.Callers), Y: c.Throughput()})
		}
	}
	plot.Lines = inOrder(r, lines)
	return plot.SVG(), len(plot.Lines) > 0
}

// inOrder returns lines in the order of the peers, their points from left to right.
func inOrder(r *result.Result, lines map[string]*chart.Line) []chart.Line {
	var all []chart.Line
	for _, p := range r.Peers {
		if l := lines[p.Name]; l != nil {
			slices.SortFunc(l.Points, func(a, b chart.Point) int { return int(math.Copysign(1, a.X-b.X)) })
			all = append(all, *l)
		}
	}
	return all
}

func delays(r *result.Result) (string, bool) {
	plot := chart.Lines{Title: "Lock by distance of the nodes", Note: note(r), Dots: true}
	plot.X = chart.Axis{Label: "round trip to every node takes longer by", Format: chart.Millis}
	plot.Y = chart.Axis{Label: "lock, median", Format: chart.Millis}
	lines := make(map[string]*chart.Line)
	floor := chart.Line{Name: "one round trip", Style: -1}
	for _, s := range r.Situations() {
		if !s.Sweep {
			continue
		}
		x := chart.InMillis(s.RTT)
		floor.Points = append(floor.Points, chart.Point{X: x, Y: x})
		for _, c := range cells(r, s) {
			if lines[c.Peer] == nil {
				lines[c.Peer] = &chart.Line{Name: c.Peer, Style: style(c.Peer)}
			}
			lines[c.Peer].Points = append(lines[c.Peer].Points, chart.Point{X: x, Y: chart.InMillis(c.Op("lock").At(50))})
		}
	}
	lines[floor.Name] = &floor
	slices.SortFunc(floor.Points, func(a, b chart.Point) int { return int(math.Copysign(1, a.X-b.X)) })
	plot.Lines = append(inOrder(r, lines), floor)
	return plot.SVG(), len(plot.Lines) > 1
}

func handOver(r *result.Result) (string, bool) { return ranges(r, result.HandOver, "handover") }

func extend(r *result.Result) (string, bool) { return ranges(r, result.Extend, "extend") }

const rangesNote = "dot: median; bars: to p90 and p99; tick: slowest"

func ranges(r *result.Result, k result.Kind, op string) (string, bool) {
	s, ok := of(r, k)
	if !ok {
		return "", false
	}
	return rangesOf(r, s, op, title(r, s))
}

func rangesOf(r *result.Result, s result.Situation, op, title string) (string, bool) {
	plot := chart.Ranges{Title: title, Note: rangesNote, X: chart.Axis{Log: true, Format: chart.Millis}}
	for _, c := range cells(r, s) {
		if series := c.Op(op); series.Count() > 0 {
			plot.Rows = append(plot.Rows, row(c.Peer, style(c.Peer), series))
		}
	}
	return plot.SVG(), len(plot.Rows) > 0
}

func row(name string, style int, s *result.Series) chart.Range {
	at := func(p float64) float64 { return chart.InMillis(max(s.At(p), 1)) }
	return chart.Range{Name: name, Style: style, P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}

func perNode(r *result.Result) (string, bool) {
	s, ok := of(r, result.PerNode)
	if !ok {
		return "", false
	}
	plot := chart.Ranges{Title: "Lock on each node, 1 caller", Note: rangesNote, X: chart.Axis{Log: true, Format: chart.Millis}}
	if s.Network != "" {
		plot.Title += ", delay " + s.Network
	}
	for _, c := range cells(r, s) {
		for i, n := range r.Nodes {
			if series := c.PerNode(n.Name, "lock"); series.Count() > 0 {
				plot.Rows = append(plot.Rows, row(fmt.Sprintf("%s, node %d", c.Peer, i+1), style(c.Peer), series))
			}
		}
		if series := c.Op("lock"); series.Count() > 0 {
			plot.Rows = append(plot.Rows, row(strings.TrimSpace(c.Peer+", quorum"), style(c.Peer), series))
		}
	}
	return plot.SVG(), len(plot.Rows) > 0
}
