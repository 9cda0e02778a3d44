// The searches: the rule that is shipped must be clean, and each of those that
// are known to be wrong must be found out.

package model

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var large = flag.Bool("model.large", false,
	"also search what takes minutes and gigabytes (with -timeout 0), each up to ten million states")

// Some searches are for those who have the time.
type effort int

const (
	quick effort = iota
	full         // not with -short, nor under the race detector
	huge         // only with -model.large
)

func (e effort) skip(t *testing.T) {
	t.Helper()
	switch {
	case e == huge && !*large:
		t.Skip("needs -model.large")
	case e >= full && (testing.Short() || race):
		t.Skip("NOT SEARCHED with -short or -race")
	}
}

// explore runs a model and logs what it found.
func explore(t *testing.T, m model, most int) finding {
	t.Helper()
	start := time.Now()
	f := m.run(most)
	t.Logf("%d states in %v, %d with every attempt granted", f.states, time.Since(start).Round(time.Millisecond), f.grants)
	if f.fault != "" {
		t.Logf("after %d moves, %s:\n\t%s", f.moves, f.fault, strings.Join(f.trace, "\n\t"))
	}
	return f
}

// crashing is a model with a clock and a crash: buckets of two ticks, and no
// counter more than a tick ahead. So a node must stay out of votes for three
// ticks, and the skew.
func crashing(m model) model {
	m.nodes, m.attempts, m.crashes = 3, 2, max(m.crashes, 1)
	m.clock, m.bucket, m.bound = true, 2, 1
	m.ticks = 1 // a crash at the first or second tick of a bucket
	if m.skew > 0 {
		m.slow = 1
	}
	return m
}

// TestClean searches the shipped rule, and variants that are as good. Nothing
// must be wrong, and there must be nothing left to search.
func TestClean(t *testing.T) {
	for _, tt := range []struct {
		name   string
		effort effort
		model  model
	}{
		{"shipped", quick, model{nodes: 3, attempts: 2, spread: 2}},
		{"hints", quick, model{nodes: 3, attempts: 2, spread: 2, hint: 2}},
		{"refusals", quick, model{nodes: 3, attempts: 2, spread: 2, refusals: true}},
		{"raise to the maximum", quick, model{nodes: 3, attempts: 2, spread: 2, rule: raiseMax}},
		{"rearm", quick, model{nodes: 3, attempts: 2, spread: 2, rearm: counted, onTime: true, resume: true}},
		{"late acquires and rearm", quick, model{nodes: 3, attempts: 2, spread: 2, rearm: counted}},
		{"crash", full, crashing(model{gap: 3, after: 1})},
		{"crash and hints", full, crashing(model{gap: 3, hint: 2})},
		{"crash and skew", full, crashing(model{skew: 1, gap: 4})},
		{"three attempts", full, model{nodes: 3, attempts: 3}},
		{"three attempts and rearm", full, model{nodes: 3, attempts: 3, rearm: counted}},
		{"four nodes", full, model{nodes: 4, attempts: 2}},
		{"five nodes", full, model{nodes: 5, attempts: 2}},
		{"copies", full, model{nodes: 3, attempts: 2, limit: 4}},
		{"three attempts and copies", full, model{nodes: 3, attempts: 3, limit: 3}},

		{"more copies", huge, model{nodes: 3, attempts: 2, limit: 5}},
		{"three attempts and more copies", huge, model{nodes: 3, attempts: 3, limit: 4}},
		{"five nodes and refusals", huge, model{nodes: 5, attempts: 2, refusals: true}},
		{"two crashes", huge, crashing(model{crashes: 2, gap: 3, after: 1})},
		{"crash and more skew", huge, crashing(model{skew: 2, gap: 5})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.effort.skip(t)
			f := explore(t, tt.model, 10_000_000)
			switch {
			case f.fault != "":
				t.Error(f.fault)
			case !f.all && tt.effort == huge:
				t.Log("there are more states")
			case !f.all:
				t.Error("there are more states")
			}
			if f.grants == 0 {
				t.Error("not all attempts were ever granted: that proves nothing")
			}
		})
	}
}

// TestFaults searches rules that are wrong, and nodes that forget too much. A
// search that finds nothing there cannot be trusted elsewhere.
func TestFaults(t *testing.T) {
	const twice, reversed, resumed = "granted twice", "began after", "quorum again"
	for _, tt := range []struct {
		name  string
		model model
		fault string
	}{
		{"maximum without a raise", model{nodes: 3, attempts: 2, rule: justMax}, twice},
		{"at least, with copies", model{nodes: 3, attempts: 2, rule: atLeast, limit: 3}, twice},
		{"at least", model{nodes: 3, attempts: 2, rule: atLeast}, twice},
		{"one value for all attempts", model{nodes: 3, attempts: 2, oneValue: true}, twice},
		{"quorum of one that answered", model{nodes: 3, attempts: 2, votes: 1}, twice},
		{"quorum of two of four", model{nodes: 4, attempts: 2, votes: 2}, twice},
		{"quorum of two of five", model{nodes: 5, attempts: 2, votes: 2}, twice},

		{"rollback", model{nodes: 3, attempts: 2, crashes: 1}, twice},
		{"clock asked only for a missing counter", crashing(model{gap: 3, after: 1, seedOnly: true}), twice},
		{"no gap", crashing(model{}), twice},
		{"gap too short by one", crashing(model{gap: 2}), twice},
		{"gap too short for the skew", crashing(model{skew: 1, gap: 2}), twice},

		{"order of one that answered", model{nodes: 3, attempts: 2, spread: 1, votes: 1, repeats: true}, reversed},
		{"order after a rollback", model{nodes: 3, attempts: 2, spread: 2, crashes: 1, repeats: true}, reversed},

		{"rearm whatever the counter is", model{nodes: 3, attempts: 2, rearm: blind, onTime: true, resume: true}, resumed},
		// Nothing is promised there: if a lock was lost and given to another, an
		// acquire of the first holder that comes late may make up for it. Its token
		// is smaller, so that a resource with a guard is safe.
		{"late acquire", model{nodes: 3, attempts: 2, spread: 1, resume: true}, resumed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := explore(t, tt.model, 2_000_000)
			if !strings.Contains(f.fault, tt.fault) || f.fault == "" {
				t.Errorf("found %q, want %q", f.fault, tt.fault)
			}
			if len(f.trace) != tt.model.nodes+f.moves {
				t.Errorf("a trace of %d lines for %d moves", len(f.trace), f.moves)
			}
		})
	}
}

// TestReductions does without what makes the searches small, and must come to
// the same conclusions.
func TestReductions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		model model
		clean bool
	}{
		{"shipped", model{nodes: 3, attempts: 2}, true},
		{"rearm", model{nodes: 3, attempts: 2, rearm: counted, onTime: true, resume: true}, true},
		{"maximum without a raise", model{nodes: 3, attempts: 2, rule: justMax}, false},
		{"at least", model{nodes: 3, attempts: 2, rule: atLeast}, false},
		{"rollback", model{nodes: 3, attempts: 2, crashes: 1}, false},
		{"rearm whatever the counter is", model{nodes: 3, attempts: 2, rearm: blind, onTime: true, resume: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			small := tt.model.run(2_000_000)
			for _, m := range []struct{ ordered, eager bool }{{true, false}, {false, true}, {true, true}} {
				tt.model.ordered, tt.model.eager = m.ordered, m.eager
				f := tt.model.run(2_000_000)
				t.Logf("ordered=%t eager=%t: %d states, not %d", m.ordered, m.eager, f.states, small.states)
				if clean := f.fault == "" && f.all; clean != tt.clean || f.fault != small.fault {
					t.Errorf("ordered=%t eager=%t: clean is %t with the fault %q; want %t, %q",
						m.ordered, m.eager, clean, f.fault, tt.clean, small.fault)
				}
				if f.states <= small.states {
					t.Errorf("ordered=%t eager=%t: no more than %d states", m.ordered, m.eager, f.states)
				}
			}
		})
	}
}
