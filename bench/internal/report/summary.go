// What a suite is about: the targets, and what a lock costs as things grow.

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/internal/result"
)

// ours and unfenced are the names of this library as a peer.
const (
	ours     = "redlock"
	unfenced = "redlock-unfenced"
)

// summaries are the tables that a suite has in front of the others.
func summaries(r *result.Result) []Grid {
	if !r.Setup.Suite {
		return nil
	}
	all := []Grid{targetGrid(r)}
	for _, part := range []struct {
		title string
		which []result.Situation
	}{
		{"Scaling with callers", locks(r)},
		{"Scaling with nodes", bySize(r)},
		{"Scaling with names", byNames(r)},
		{"Nodes at a distance", far(r)},
	} {
		if len(part.which) > 0 {
			all = append(all, growthGrid(r, part.title, part.which))
		}
	}
	for _, g := range []Grid{faultGrid(r), heldGrid(r)} {
		if len(g.Rows) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// pick returns the situations that fit.
func pick(r *result.Result, fits func(result.Situation) bool) []result.Situation {
	return slices.DeleteFunc(r.Situations(), func(s result.Situation) bool { return !fits(s) })
}

// far are those with nodes in several regions.
func far(r *result.Result) []result.Situation {
	return pick(r, func(s result.Situation) bool { return s.Kind == result.Lock && strings.Contains(s.Network, ",") })
}

// bySize are those that differ in the number of nodes, the usual one among them.
func bySize(r *result.Result) []result.Situation {
	callers := make(map[int]bool)
	for _, s := range r.Situations() {
		if s.Nodes > 0 && s.Names == 0 {
			callers[s.Callers] = true
		}
	}
	plain := locks(r)
	all := pick(r, func(s result.Situation) bool {
		return s.Kind == result.Lock && s.Names == 0 && callers[s.Callers] && (s.Nodes > 0 || slices.Contains(plain, s))
	})
	slices.SortStableFunc(all, func(a, b result.Situation) int {
		return cmp.Or(a.Callers-b.Callers, nodesOf(r, a)-nodesOf(r, b))
	})
	return all
}

// byNames are those whose callers go through names, and the one that has a name for
// each caller.
func byNames(r *result.Result) []result.Situation {
	some := pick(r, func(s result.Situation) bool { return s.Names > 0 })
	if len(some) == 0 {
		return nil
	}
	own := some[0]
	own.Names = 0
	return append([]result.Situation{own}, some...)
}

func nodesOf(r *result.Result, s result.Situation) int {
	if s.Nodes > 0 {
		return s.Nodes
	}
	return r.Setup.Nodes
}

// growthGrid is one line for each peer and situation.
func growthGrid(r *result.Result, title string, which []result.Situation) Grid {
	g := Grid{Title: title, Columns: []string{
		"", "callers", "nodes", "names", "lock p50", "lock p99", "unlock p50", "per second", "allocations", "caller CPU", "node CPU",
		"commands", "goroutines", "connections", "memory", "errors",
	}}
	for _, p := range r.Peers {
		name := p.Name
		for _, s := range which {
			c := r.Find(p.Name, s)
			if c == nil {
				continue
			}
			names := s.Names
			if names == 0 {
				names = s.Callers * max(r.Setup.Names, 1)
			}
			lock, unlock := c.Op("lock"), c.Op("unlock")
			row := []string{
				name, fmt.Sprint(s.Callers), fmt.Sprint(nodesOf(r, s)), fmt.Sprint(names),
				Time(lock.At(50)), Time(lock.At(99)), Time(unlock.At(50)), fmt.Sprintf("%.0f", c.Throughput()),
				perCycle(c, func(u result.Usage) float64 { return float64(u.Allocs) }, "%.0f"),
				cpu(c, func(u result.Usage) time.Duration { return u.ClientCPU }),
				cpu(c, func(u result.Usage) time.Duration { return u.NodeCPU }),
				perCycle(c, func(u result.Usage) float64 { return float64(u.Commands) }, "%.1f"),
			}
			g.Rows = append(g.Rows, append(append(row, footprint(c)...), fmt.Sprint(c.Errors())))
			name = ""
		}
	}
	return g
}

// footprint is the goroutines, connections and memory of the clients of a cell.
func footprint(c *result.Cell) []string {
	of := func(what func(result.Usage) int64) int64 {
		return c.Most(func(r result.Round) int64 { return what(r.Usage) })
	}
	memory := of(func(u result.Usage) int64 { return u.Memory })
	return []string{
		count(of(func(u result.Usage) int64 { return u.Goroutines })),
		count(of(func(u result.Usage) int64 { return u.Connections })),
		fmt.Sprintf("%.1f MB", float64(memory)/1e6),
	}
}

// count writes a number; nothing if it was not read.
func count(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// faultGrid compares what happens with a node in trouble to what happens without.
func faultGrid(r *result.Result) Grid {
	g := Grid{Title: "One node in trouble: by the same with all healthy", Columns: []string{
		"", "what", "operation", "p50", "p99", "p50 by healthy", "p99 by healthy", "from … to", "per second", "goroutines", "connections", "memory", "errors",
	}}
	for _, p := range r.Peers {
		name := p.Name
		for _, s := range pick(r, func(s result.Situation) bool { return s.Fault != "" }) {
			c := r.Find(p.Name, s)
			if c == nil {
				continue
			}
			healthy := s
			healthy.Fault = ""
			base := r.Find(p.Name, healthy)
			for i, op := range c.Ops() {
				p50, ok50 := c.LatencyRatio(base, op)
				p99, ok99 := c.RatioAt(base, op, 99)
				row := []string{name, "", opName(op), Time(c.Op(op).At(50)), Time(c.Op(op).At(99)), ratioText(p50, ok50)[0]}
				row = append(row, ratioText(p99, ok99)...)
				if i == 0 {
					row[1] = fmt.Sprintf("%s, one %s", plural(s.Callers, "caller"), s.Fault)
					row = append(append(append(row, fmt.Sprintf("%.0f", c.Throughput())), footprint(c)...), fmt.Sprint(c.Errors()))
				} else {
					row = append(row, "", "", "", "", "")
				}
				g.Rows = append(g.Rows, row)
				name = ""
			}
		}
	}
	return g
}

// heldGrid is about leases that are held.
func heldGrid(r *result.Result) Grid {
	g := Grid{Title: fmt.Sprintf("Leases held and renewed, TTL %v", r.Setup.TTL), Columns: []string{
		"", "leases", "lost", "least time left", "commands per second", "caller CPU per second", "node CPU per second", "goroutines", "connections", "memory",
	}}
	for _, s := range pick(r, func(s result.Situation) bool { return s.Kind == result.Held }) {
		for _, c := range cells(r, s) {
			var took time.Duration
			var commands int64
			var callers, nodes time.Duration
			for _, round := range c.Rounds {
				took += round.Took
				commands += round.Usage.Commands
				callers += round.Usage.ClientCPU
				nodes += round.Usage.NodeCPU
			}
			second := max(took.Seconds(), 1e-9)
			row := []string{
				c.Peer, fmt.Sprint(s.Callers), fmt.Sprint(c.Most(func(r result.Round) int64 { return r.Lost })), Time(least(c)),
				fmt.Sprintf("%.0f", float64(commands)/second),
				Time(time.Duration(float64(callers) / second)), Time(time.Duration(float64(nodes) / second)),
			}
			g.Rows = append(g.Rows, append(row, footprint(c)...))
		}
	}
	return g
}

// least is the shortest time that a lease had left.
func least(c *result.Cell) time.Duration {
	var all []time.Duration
	for _, round := range c.Rounds {
		if round.Took > 0 {
			all = append(all, round.Least)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}
