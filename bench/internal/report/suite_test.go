// What a suite shows: every target with what was measured of it, and how things grow.

package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/report"
	"github.com/quorumlock/redlock/bench/internal/result"
)

const suiteDelays = "1ms,20ms,70ms,90ms,150ms"

// suite has figures for every target. Those of redlock are scaled by how, of 1
// being as fast as redsync.
func suite(how float64) *result.Result {
	r := full()
	r.Cells, r.Commit = nil, "0123abc"
	r.Setup.Suite, r.Setup.Nodes, r.Setup.TTL = true, 5, 10*time.Second
	r.Peers = []result.Peer{{Name: "redlock"}, {Name: "redlock-unfenced"}, {Name: "redsync"}}
	for _, p := range r.Peers {
		for _, s := range []result.Situation{
			{Kind: result.Lock, Callers: 1},
			{Kind: result.Lock, Callers: 128},
			{Kind: result.Lock, Callers: 1, Fault: result.Silent},
			{Kind: result.Lock, Callers: 128, Nodes: 1},
			{Kind: result.Lock, Callers: 128, Nodes: 9},
			{Kind: result.Lock, Callers: 128, Nodes: 1, Names: 1000},
			{Kind: result.Lock, Callers: 1, Network: suiteDelays},
			{Kind: result.Lock, Callers: 200, Network: suiteDelays},
			{Kind: result.HandOver, Callers: 2},
			{Kind: result.Held, Callers: 10},
			{Kind: result.Held, Callers: 1000},
		} {
			unit, cycles := 100*time.Millisecond, int64(20)
			if p.Name != "redsync" {
				unit, cycles = time.Duration(how*float64(unit)), int64(float64(cycles)/how)
			}
			if s.Fault != "" {
				unit *= 2
			}
			times := new(result.Series)
			times.Record(unit)
			r.Cell(p.Name, s).Set(0, result.Round{
				Took: time.Second, Cycles: cycles, Least: 6 * time.Second,
				Ops:   map[string]*result.Series{"lock": times, "unlock": times, "cycle": times, "handover": times},
				Usage: result.Usage{Allocs: uint64(cycles) * 70, NodeCPU: time.Second, ClientCPU: time.Second, Commands: 10, Goroutines: int64(s.Callers), Memory: 1e6},
			})
		}
	}
	return r
}

func grid(t *testing.T, r *result.Result, title string) report.Grid {
	t.Helper()
	for _, g := range report.Grids(r) {
		if strings.HasPrefix(g.Title, title) {
			return g
		}
	}
	t.Fatalf("there is no table %q", title)
	return report.Grid{}
}

func TestTargets(t *testing.T) {
	verdicts := func(how float64) map[string]string {
		all := make(map[string]string)
		where := ""
		for _, row := range grid(t, suite(how), "Targets").Rows {
			if row[0] != "" {
				where = row[0]
			}
			if verdict := row[len(row)-1]; verdict != "" {
				all[where+": "+row[1]] = verdict
			}
		}
		return all
	}
	fast, slow := verdicts(0.01), verdicts(1)
	if len(fast) < 13 {
		t.Errorf("only %d targets: %v", len(fast), fast)
	}
	for what, verdict := range fast {
		// These do not depend on how fast anything is.
		bad := strings.HasPrefix(what, "one node silent") || strings.Contains(what, "goroutines")
		same := bad || strings.Contains(what, "allocations") || strings.Contains(what, "names") || strings.Contains(what, "lost") || strings.Contains(what, "time left")
		if want := map[bool]string{false: "yes", true: "no"}[bad]; verdict != want {
			t.Errorf("fast: %s is %q", what, verdict)
		}
		if want := map[bool]string{false: "no", true: verdict}[same]; slow[what] != want {
			t.Errorf("slow: %s is %q", what, slow[what])
		}
	}
}

func TestSuiteTables(t *testing.T) {
	r := suite(0.5)
	for title, rows := range map[string]int{
		"Scaling with callers": 6, "Scaling with nodes": 9, "Scaling with names": 6, "Nodes at a distance": 6, "One node in trouble": 12, "Leases held": 6,
	} {
		g := grid(t, r, title)
		if len(g.Rows) != rows {
			t.Errorf("%s has %d rows, want %d: %q", title, len(g.Rows), rows, g.Rows)
		}
		for _, row := range g.Rows {
			if len(row) != len(g.Columns) {
				t.Errorf("%s: %d cells below %d columns: %q", title, len(row), len(g.Columns), row)
			}
		}
	}
	root, figures := page(t, r)
	for _, id := range []string{"latency", "regions", "regions-busy", "faults", "size"} {
		if figures[id] == nil {
			t.Errorf("there is no plot %q", id)
		}
	}
	if figures["extend"] != nil || root == nil {
		t.Error("there is a plot of what was not measured")
	}
	var b bytes.Buffer
	if err := report.Table(&b, r); err != nil || !strings.Contains(b.String(), "commit 0123abc") {
		t.Errorf("no commit in the table (%v):\n%s", err, b.String())
	}
}
