// Package report shows a result: as a table, as plots, and as a page.
package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// A Grid is a table. The first column is text, the others are figures.
type Grid struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Grids are all tables of a result.
func Grids(r *result.Result) []Grid {
	all := summaries(r)
	var sweep []result.Situation
	for _, s := range r.Situations() {
		switch {
		case s.Sweep:
			sweep = append(sweep, s)
		case s.Kind == result.PerNode:
			all = append(all, nodeGrid(r, s))
		case s.Kind == result.Held: // it is in a summary
		default:
			all = append(all, latencyGrid(r, s), costGrid(r, s))
		}
	}
	if len(sweep) > 0 {
		all = append(all, sweepGrid(r, sweep))
	}
	return all
}

// title says what a situation is, for a reader.
func title(r *result.Result, s result.Situation) string {
	var text string
	switch s.Kind {
	case result.Lock:
		text = fmt.Sprintf("Lock and unlock, %s", plural(s.Callers, "caller"))
		if r.Setup.Contention > 1 {
			text += fmt.Sprintf(", %d on the same names", r.Setup.Contention)
		}
		if r.Setup.Hold > 0 {
			text += fmt.Sprintf(", held for %v", r.Setup.Hold)
		}
	case result.Extend:
		text = fmt.Sprintf("Extend, %s", plural(s.Callers, "caller"))
	case result.HandOver:
		text = fmt.Sprintf("Hand-over among %d clients", s.Callers)
	case result.PerNode:
		text = "Each node, 1 caller"
	case result.Held:
		text = plural(s.Callers, "lease") + " held"
	}
	if s.Nodes > 0 {
		text += ", " + plural(s.Nodes, "node")
	}
	if s.Names > 0 {
		text += ", " + plural(s.Names, "name")
	}
	if s.Fault != "" {
		text += fmt.Sprintf(", one node %s", s.Fault)
	}
	if s.Network != "" {
		text += ", delay " + s.Network
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// cells are those of a situation, in the order of the peers.
func cells(r *result.Result, s result.Situation) []*result.Cell {
	var all []*result.Cell
	for _, p := range r.Peers {
		if c := r.Find(p.Name, s); c != nil {
			all = append(all, c)
		}
	}
	return all
}

func latencyGrid(r *result.Result, s result.Situation) Grid {
	g := Grid{Title: title(r, s) + ": latency", Columns: []string{"", "operation"}}
	for _, p := range result.Percentiles {
		g.Columns = append(g.Columns, p.Name)
	}
	g.Columns = append(g.Columns, "p50 by "+peer.Baseline, "from … to", "calls")
	base := r.Find(peer.Baseline, s)
	for _, c := range cells(r, s) {
		for i, op := range c.Ops() {
			row := []string{"", opName(op)}
			if i == 0 {
				row[0] = c.Peer
			}
			series := c.Op(op)
			for _, p := range result.Percentiles {
				row = append(row, Time(series.At(p.P)))
			}
			ratio, ok := c.LatencyRatio(base, op)
			row = append(row, ratioText(ratio, ok)...)
			g.Rows = append(g.Rows, append(row, fmt.Sprint(series.Count())))
		}
	}
	return g
}

func opName(op string) string {
	switch op {
	case "cycle":
		return "lock+unlock"
	case "handover":
		return "hand-over"
	}
	return op
}

func ratioText(ratio result.Ratio, ok bool) []string {
	if !ok {
		return []string{"", ""}
	}
	return []string{Ratio(ratio.Median), Ratio(ratio.Low) + " … " + Ratio(ratio.High)}
}

// Ratio writes a quotient with two digits at least.
func Ratio(v float64) string {
	digits := 2
	if v > 0 && v < 0.1 {
		digits = 1 - int(math.Floor(math.Log10(v)))
	}
	return fmt.Sprintf("%.*f", digits, v)
}

func costGrid(r *result.Result, s result.Situation) Grid {
	g := Grid{
		Title: title(r, s) + ": throughput and cost of a " + cycleName(s.Kind),
		Columns: []string{
			"", "per second", "by " + peer.Baseline, "allocations", "bytes allocated", "caller CPU",
			"node CPU", "commands", "bytes to nodes", "bytes from nodes",
			"goroutines", "connections", "memory", "errors",
		},
	}
	base := r.Find(peer.Baseline, s)
	for _, c := range cells(r, s) {
		ratio, ok := c.ThroughputRatio(base)
		row := []string{c.Peer, fmt.Sprintf("%.0f", c.Throughput()), ratioText(ratio, ok)[0]}
		for _, of := range []func(result.Usage) float64{
			func(u result.Usage) float64 { return float64(u.Allocs) },
			func(u result.Usage) float64 { return float64(u.AllocBytes) },
		} {
			row = append(row, perCycle(c, of, "%.0f"))
		}
		row = append(row, cpu(c, func(u result.Usage) time.Duration { return u.ClientCPU }),
			cpu(c, func(u result.Usage) time.Duration { return u.NodeCPU }),
			perCycle(c, func(u result.Usage) float64 { return float64(u.Commands) }, "%.1f"),
			perCycle(c, func(u result.Usage) float64 { return float64(u.BytesIn) }, "%.0f"),
			perCycle(c, func(u result.Usage) float64 { return float64(u.BytesOut) }, "%.0f"))
		row = append(append(row, footprint(c)...), fmt.Sprint(c.Errors()))
		g.Rows = append(g.Rows, row)
	}
	return g
}

func cycleName(k result.Kind) string {
	switch k {
	case result.Extend:
		return "call"
	case result.HandOver:
		return "hand-over"
	}
	return "lock and unlock"
}

func perCycle(c *result.Cell, of func(result.Usage) float64, format string) string {
	if v, ok := c.PerCycle(of); ok {
		return fmt.Sprintf(format, v)
	}
	return ""
}

func cpu(c *result.Cell, of func(result.Usage) time.Duration) string {
	if v, ok := c.PerCycle(func(u result.Usage) float64 { return float64(of(u)) }); ok {
		return Time(time.Duration(v))
	}
	return ""
}

func nodeGrid(r *result.Result, s result.Situation) Grid {
	g := Grid{Title: title(r, s), Columns: []string{"", "node", "operation"}}
	for _, p := range result.Percentiles {
		g.Columns = append(g.Columns, p.Name)
	}
	g.Columns = append(g.Columns, "answers")
	for _, c := range cells(r, s) {
		rows := [][]string{}
		add := func(who, op string, series *result.Series) {
			if series.Count() == 0 {
				return
			}
			row := []string{"", who, op}
			for _, p := range result.Percentiles {
				row = append(row, Time(series.At(p.P)))
			}
			rows = append(rows, append(row, fmt.Sprint(series.Count())))
		}
		for _, op := range []string{"lock", "unlock"} {
			for _, n := range r.Nodes {
				add(n.Name, op, c.PerNode(n.Name, op))
			}
			add("quorum", op, c.Op(op))
		}
		if len(rows) > 0 {
			rows[0][0] = c.Peer
		}
		g.Rows = append(g.Rows, rows...)
	}
	return g
}

// sweepGrid has a row for each peer and distance.
func sweepGrid(r *result.Result, sweep []result.Situation) Grid {
	g := Grid{
		Title:   fmt.Sprintf("By distance of all nodes, %s", plural(sweep[0].Callers, "caller")),
		Columns: []string{"", "round trip", "lock p50", "lock p99", "p50 by " + peer.Baseline, "unlock p50", "unlock p99", "per second", "errors"},
	}
	for _, p := range r.Peers {
		name := p.Name
		for _, s := range sweep {
			c := r.Find(p.Name, s)
			if c == nil {
				continue
			}
			lock, unlock := c.Op("lock"), c.Op("unlock")
			ratio, ok := c.LatencyRatio(r.Find(peer.Baseline, s), "lock")
			g.Rows = append(g.Rows, []string{
				name, "+" + s.RTT.String(), Time(lock.At(50)), Time(lock.At(99)), ratioText(ratio, ok)[0],
				Time(unlock.At(50)), Time(unlock.At(99)), fmt.Sprintf("%.0f", c.Throughput()), fmt.Sprint(c.Errors()),
			})
			name = ""
		}
	}
	return g
}

// Time writes a duration with three digits.
func Time(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d < time.Microsecond:
		return d.String()
	case d < time.Millisecond:
		return digits(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second:
		return digits(float64(d)/float64(time.Millisecond)) + " ms"
	}
	return digits(d.Seconds()) + " s"
}

func digits(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Clip cuts text to at most n characters.
func Clip(text string, n int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}
