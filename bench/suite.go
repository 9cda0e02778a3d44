// The suite: what the targets of this library are about, and where its limits are,
// in one run.

package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

const (
	suiteNodes = 5
	mostNodes  = 9                      // of the series of sizes
	slowBy     = 100 * time.Millisecond // what a slow node takes longer
	allNames   = 1_000_000
	allLeases  = 10_000
)

// regions are the round trips to five nodes. The quorum's third is at 70 ms.
var regions = []time.Duration{time.Millisecond, 20 * time.Millisecond, 70 * time.Millisecond, 90 * time.Millisecond, 150 * time.Millisecond}

// suite are its situations. What is compared with each other stands together, so
// that it is measured at about the same time.
func suite() []result.Situation {
	var all []result.Situation
	add := func(s ...result.Situation) { all = append(all, s...) }
	for _, n := range []int{1, 4, 16, 64, 128, 256, 512} {
		add(result.Situation{Kind: result.Lock, Callers: n})
		if n == 4 || n == 256 {
			continue
		}
		for _, f := range []result.Fault{result.Slow, result.Dead, result.Silent} {
			add(result.Situation{Kind: result.Lock, Callers: n, Fault: f})
		}
		if n != 1 && n != 128 {
			continue
		}
		for size := 1; size <= mostNodes; size++ {
			if size != suiteNodes && (n > 1 || slices.Contains([]int{1, 3, mostNodes}, size)) {
				add(result.Situation{Kind: result.Lock, Callers: n, Nodes: size})
			}
		}
	}
	add(
		result.Situation{Kind: result.Extend, Callers: 1},
		result.Situation{Kind: result.Extend, Callers: 1, Fault: result.Silent},
		result.Situation{Kind: result.HandOver, Callers: 2},
		result.Situation{Kind: result.Lock, Callers: 1, Network: result.NetworkName(regions)},
		result.Situation{Kind: result.Lock, Callers: 200, Network: result.NetworkName(regions)},
	)
	for _, d := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
		add(result.Situation{Kind: result.Lock, Callers: 1, Network: d.String(), RTT: d, Sweep: true})
	}
	add(
		// What a client keeps of names does not depend on the nodes, and one is faster.
		result.Situation{Kind: result.Lock, Callers: 128, Nodes: 1, Names: 10_000},
		result.Situation{Kind: result.Lock, Callers: 128, Nodes: 1, Names: allNames},
		result.Situation{Kind: result.Held, Callers: 100},
		result.Situation{Kind: result.Held, Callers: allLeases},
	)
	return all
}

// lengthOf is how much longer a situation is measured than others.
func (c *config) lengthOf(s result.Situation) float64 {
	switch {
	case !c.suite, s.Sweep:
		return 1
	case s.Network != "" && s.Callers == 1:
		return 6 // some 140 ms each
	case s.Network != "":
		return 3
	case s.Kind == result.HandOver:
		return 2 // the lock is held in between
	case s.Nodes > 0:
		return 0.6
	}
	return 1
}

// wants tells whether a peer is measured in a situation and a round. In a suite, what
// says little is left out, so that it does not take an hour.
func (c *config) wants(round int, s result.Situation, p peer.Peer) bool {
	if !c.suite {
		return true
	}
	ours := strings.HasPrefix(p.Name, "redlock")
	plain := s.Nodes == 0 && s.Fault == "" && s.Names == 0 && s.Network == ""
	switch {
	case s.Kind == result.Held:
		return p.Name == "redlock" && round == 0
	case s.Names > 0:
		return p.Name == "redlock" && (s.Names < allNames || round == 0)
	case s.Network != "" && p.Name == "redislock": // one node alone is as near as you put it
		return false
	case s.Nodes%2 == 0 && s.Nodes > 0:
		return p.Name == "redlock"
	case s.Nodes > 0:
		return slices.Contains([]string{"redlock", peer.Baseline, "floor"}, p.Name)
	case (s.Fault == result.Silent || s.Fault == result.Dead) && p.Name == peer.Baseline: // seconds for each call
		return s.Callers == 1 && round == 0
	case s.Fault != "" && s.Callers == 1:
		return ours || strings.HasPrefix(p.Name, peer.Baseline)
	case s.Fault != "":
		return p.Name == "redlock"
	case plain && s.Kind == result.Lock && p.Serve != nil, p.Name == "redislock":
		return s.Callers == 1 || s.Callers == 128 || s.Kind != result.Lock
	case plain && (s.Callers == 4 || s.Callers == 64 || s.Callers == 256):
		return ours || p.Name == peer.Baseline
	}
	return true
}

// checkSuite refuses what a suite decides itself, and decides it.
func (c *config) checkSuite(f *faults, t text, set map[string]bool) {
	for _, other := range []string{"redis", "start", "n", "callers", "names", "contention", "hold", "waiters", "delay", "delay-sweep", "measure"} {
		if set[other] {
			f.add("-suite with -%s: it decides that itself", other)
		}
	}
	c.start, c.n, c.setup.Nodes, c.setup.Suite = startServers, mostNodes, suiteNodes, true
	c.sweep = nil
	if t.only == "" {
		return
	}
	var err error
	if c.only, err = regexp.Compile(t.only); err != nil {
		f.add("-only %s: %w", t.only, err)
	} else if len(c.situations()) == 0 {
		f.add("-only %s: nothing in a suite is called so", t.only)
	}
}
