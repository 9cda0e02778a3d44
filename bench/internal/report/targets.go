// The targets of design.md, and what was measured of them.

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// missed is how the table says that a target was not reached.
const missed = "no"

// A target is a line: what was measured, and what it should be.
type target struct {
	r    *result.Result
	grid *Grid
}

func targetGrid(r *result.Result) Grid {
	g := Grid{Title: "Targets", Columns: []string{"", "what", "measured", "from … to", "target", "reached"}}
	t := target{r, &g}
	one, busy := result.Situation{Kind: result.Lock, Callers: 1}, result.Situation{Kind: result.Lock, Callers: 128}

	t.ratio("1 caller", "median of lock + unlock by redsync", 0.8, atMost, func() (result.Ratio, bool) {
		return t.cell(ours, one).LatencyRatio(r.Find(peer.Baseline, one), "cycle")
	})
	t.ratio("128 callers", "throughput by redsync, fenced", 4.5, atLeast, func() (result.Ratio, bool) {
		return t.cell(ours, busy).ThroughputRatio(r.Find(peer.Baseline, busy))
	})
	t.ratio("", "throughput by redsync, unfenced", 7.5, atLeast, func() (result.Ratio, bool) {
		return t.cell(unfenced, busy).ThroughputRatio(r.Find(peer.Baseline, busy))
	})
	for _, name := range []string{ours, unfenced, peer.Baseline} {
		if used := cpu(t.cell(name, busy), func(u result.Usage) time.Duration { return u.NodeCPU }); used != "" {
			t.row("", "processor time of all nodes for a lock and unlock, "+name, used, "", "(reported)", "")
		}
	}
	for _, s := range []result.Situation{one, busy} {
		if v, ok := t.cell(ours, s).PerCycle(func(u result.Usage) float64 { return float64(u.Allocs) }); ok {
			t.row(plural(s.Callers, "caller"), "allocations for a lock and unlock", fmt.Sprintf("%.0f", v), "", "≤ 80 on plain commands, ≤ 60 on full duplex", reached(v, 80, atMost))
		}
	}
	t.regions()
	t.faults()
	if s, ok := of(r, result.HandOver); ok {
		t.time("hand-over", "p50", t.cell(ours, s).Op("handover"), 50, 2*time.Millisecond)
		t.time("", "p99", t.cell(ours, s).Op("handover"), 99, 10*time.Millisecond)
	}
	t.leases()
	t.names()
	return g
}

// Which side of a target is good.
type side string

const (
	atMost  side = "≤"
	atLeast side = "≥"
)

func reached(value, limit float64, s side) string {
	if (s == atMost) == (value <= limit) || value == limit {
		return "yes"
	}
	return missed
}

// cell is that of a peer; an empty one if it was not measured.
func (t target) cell(name string, s result.Situation) *result.Cell {
	if c := t.r.Find(name, s); c != nil {
		return c
	}
	return &result.Cell{}
}

func (t target) row(cells ...string) { t.grid.Rows = append(t.grid.Rows, cells) }

func (t target) ratio(where, what string, limit float64, s side, of func() (result.Ratio, bool)) {
	ratio, ok := of()
	if !ok {
		return
	}
	text := ratioText(ratio, true)
	t.row(where, what, text[0], text[1], fmt.Sprintf("%s %v", s, limit), reached(ratio.Median, limit, s))
}

func (t target) time(where, what string, series *result.Series, percentile float64, limit time.Duration) {
	if series.Count() == 0 {
		return
	}
	v := series.At(percentile)
	t.row(where, what, Time(v), "", "≤ "+Time(limit), reached(float64(v), float64(limit), atMost))
}

// regions are about nodes at a distance: by the round trip to the quorum's last.
func (t target) regions() {
	for _, s := range far(t.r) {
		trip := quorumTrip(s.Network)
		c := t.cell(ours, s)
		lock := c.Op("lock")
		where := "regions, " + plural(s.Callers, "caller")
		if s.Callers == 1 {
			t.time(where, "lock, p50: a quorum is "+Time(trip)+" away", lock, 50, trip*105/100)
			t.time("", "lock, p99", lock, 99, trip*110/100)
			continue
		}
		t.time(where, "lock, p50", lock, 50, trip*110/100)
		if rate := c.Throughput(); rate > 0 {
			t.row("", "cycles per second", fmt.Sprintf("%.0f", rate), "", "≥ 1200", reached(rate, 1200, atLeast))
		}
	}
}

// quorumTrip is the round trip to the last of the nearest quorum.
func quorumTrip(network string) time.Duration {
	var all []time.Duration
	for part := range strings.SplitSeq(network, ",") {
		d, _ := time.ParseDuration(part) // as NetworkName has written it
		all = append(all, d)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// faults are about the slowest with a node in trouble.
func (t target) faults() {
	for _, s := range pick(t.r, func(s result.Situation) bool { return s.Fault != "" }) {
		healthy := s
		healthy.Fault = ""
		op := map[result.Kind]string{result.Lock: "cycle", result.Extend: "extend"}[s.Kind]
		where := fmt.Sprintf("one node %s, %s", s.Fault, plural(s.Callers, "caller"))
		t.ratio(where, "p99 of "+opName(op)+" by all healthy", 1.2, atMost, func() (result.Ratio, bool) {
			return t.cell(ours, s).RatioAt(t.r.Find(ours, healthy), op, 99)
		})
	}
}

// leases compares few that are held to many.
func (t target) leases() {
	all := pick(t.r, func(s result.Situation) bool { return s.Kind == result.Held })
	if len(all) < 2 {
		return
	}
	few, many := t.cell(ours, all[0]), t.cell(ours, all[len(all)-1])
	goroutines := func(c *result.Cell) int64 {
		return c.Most(func(r result.Round) int64 { return r.Usage.Goroutines })
	}
	where := fmt.Sprintf("%d leases held", all[len(all)-1].Callers)
	// Commands under way have some for a moment; a lease must not have one.
	limit := goroutines(few) + int64(all[len(all)-1].Callers)/100
	t.row(where, fmt.Sprintf("goroutines; %d with %d leases", goroutines(few), all[0].Callers), fmt.Sprint(goroutines(many)), "",
		fmt.Sprintf("≤ %d", limit), reached(float64(goroutines(many)), float64(limit), atMost))
	lost := many.Most(func(r result.Round) int64 { return r.Lost })
	t.row("", "lost", fmt.Sprint(lost), "", "≤ 0", reached(float64(lost), 0, atMost))
	// A lease that is renewed in time has two thirds of its TTL left, less what it
	// takes to be renewed and to look.
	left, soon := least(many), t.r.Setup.TTL*11/20
	t.row("", "shortest time left: a renewal comes after a third of the TTL", Time(left), "", "≥ "+Time(soon), reached(float64(left), float64(soon), atLeast))
}

// names compares many to few: a client keeps nothing of them.
func (t target) names() {
	all := byNames(t.r)
	if len(all) < 2 {
		return
	}
	most := all[len(all)-1]
	memory := func(s result.Situation) float64 {
		return float64(t.cell(ours, s).Most(func(r result.Round) int64 { return r.Usage.Memory }))
	}
	if t.r.Find(ours, most) == nil || t.r.Find(ours, all[0]) == nil {
		return
	}
	v, base := memory(most)/1e6, memory(all[0])/1e6
	limit := base + 5
	t.row(fmt.Sprintf("%d names", most.Names), fmt.Sprintf("memory that a client keeps; %.1f MB with %d names", base, most.Callers),
		fmt.Sprintf("%.1f MB", v), "", fmt.Sprintf("≤ %.1f MB", limit), reached(v, limit, atMost))
}
