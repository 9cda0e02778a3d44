// What a flag may be.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

const (
	most        = 10_000    // callers
	longestSlot = time.Hour // of a measurement
	farthest    = time.Minute
)

// A faults collects what is wrong.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

func (f *faults) within(name string, value, low, high int) {
	if value < low || value > high {
		f.add("-%s %d: must be from %d to %d", name, value, low, high)
	}
}

func (f *faults) between(name string, value, low, high time.Duration) {
	if value < low || value > high {
		f.add("-%s %v: must be from %v to %v", name, value, low, high)
	}
}

// check parses what is text, and returns all faults, joined. Set names the flags
// that were given.
func (c *config) check(t text, set map[string]bool, rest []string) error {
	var f faults
	if len(rest) > 0 {
		f.add("unexpected argument %q", rest[0])
	}
	c.checkNodes(&f, t, set)
	c.checkLoad(&f, t)
	c.checkDelays(&f, t, set["delay-sweep"])
	c.checkMeasure(&f, t)
	var err error
	if c.peers, err = peer.Select(strings.Split(t.peers, ",")); err != nil {
		for line := range strings.Lines(err.Error()) {
			f.add("-peers %s", strings.TrimSpace(line))
		}
	}
	c.setup.Nodes = c.n
	if c.suite {
		c.checkSuite(&f, t, set)
	} else if set["only"] {
		f.add("-only %s: needs -suite", t.only)
	}
	if c.out == "" {
		f.add("-out %q: must not be empty", c.out)
	}
	return errors.Join(f...)
}

func (c *config) checkNodes(f *faults, t text, set map[string]bool) {
	if !slices.Contains([]string{startEmbedded, startServers, startContainers}, c.start) {
		f.add("-start %q: must be %s, %s or %s", c.start, startEmbedded, startServers, startContainers)
	}
	f.within("n", c.n, 1, 25)
	if !set["redis"] {
		return
	}
	for _, other := range []string{"start", "n", "image"} {
		if set[other] {
			f.add("-redis with -%s: nodes are either yours or started", other)
		}
	}
	var err error
	if c.redis, err = nodes.Parse(strings.Split(t.redis, ",")); err != nil {
		for line := range strings.Lines(err.Error()) {
			f.add("-redis: %s", strings.TrimSpace(line))
		}
		return
	}
	c.n = len(c.redis)
}

func (c *config) checkLoad(f *faults, t text) {
	s := c.setup
	f.between("ttl", s.TTL, 100*time.Millisecond, time.Hour)
	if s.TTL%time.Millisecond != 0 {
		f.add("-ttl %v: must be whole milliseconds", s.TTL)
	}
	for item := range strings.SplitSeq(t.callers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(item))
		switch {
		case err != nil:
			f.add("-callers %q: want whole numbers, separated by commas", item)
		case n < 1 || n > most:
			f.add("-callers %d: must be from 1 to %d", n, most)
		case n < s.Contention:
			f.add("-contention %d: more than there are with -callers %d", s.Contention, n)
		case slices.Contains(c.callers, n):
			f.add("-callers %d: is there twice", n)
		default:
			c.callers = append(c.callers, n)
		}
	}
	f.within("names", s.Names, 1, 1000)
	f.within("contention", s.Contention, 1, most)
	f.between("hold", s.Hold, 0, s.TTL/2)
	f.within("waiters", c.waiters, 2, 100)
	f.between("duration", s.Duration, 10*time.Millisecond, longestSlot)
	f.between("warmup", s.WarmUp, 0, time.Minute)
	f.within("rounds", s.Rounds, 1, 1000)
}

func (c *config) checkDelays(f *faults, t text, asked bool) {
	c.delays = parseDelays(f, "delay", t.delay)
	c.sweep = parseDelays(f, "delay-sweep", t.sweep)
	if n := len(c.delays); n > 1 && n != c.n {
		f.add("-delay %s: %d delays for %d nodes; want one, or one for each", t.delay, n, c.n)
	}
	if len(c.delays) == 1 {
		c.delays = slices.Repeat(c.delays, max(c.n, 0))
	}
	if len(c.delays) == 0 && len(c.sweep) == 0 {
		return
	}
	for _, opts := range c.redis {
		err := nodes.CanDelay(opts)
		if err != nil && !asked && len(c.delays) == 0 {
			c.sweep = nil
			return
		}
		if err != nil {
			f.add("-delay, -delay-sweep: %w", err)
		}
	}
}

func parseDelays(f *faults, name, list string) []time.Duration {
	if list == "" {
		return nil
	}
	var all []time.Duration
	for item := range strings.SplitSeq(list, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(item))
		if err != nil {
			f.add("-%s %q: want times such as 20ms, separated by commas", name, item)
			continue
		}
		f.between(name, d, 0, farthest)
		all = append(all, d)
	}
	return all
}

func (c *config) checkMeasure(f *faults, t text) {
	c.measure = make(map[result.Kind]bool)
	for item := range strings.SplitSeq(t.measure, ",") {
		kind := result.Kind(strings.TrimSpace(item))
		if !slices.Contains(result.Kinds, kind) {
			f.add("-measure %q: must be of lock, extend, handover, nodes", item)
		}
		c.measure[kind] = true
	}
}

// situations are what the peers are compared in, in the order of the report.
func (c *config) situations() []result.Situation {
	switch {
	case len(c.instead) > 0:
		return c.instead
	case c.suite:
		return slices.DeleteFunc(suite(), func(s result.Situation) bool { return c.only != nil && !c.only.MatchString(s.String()) })
	}
	var all []result.Situation
	network := result.NetworkName(c.delays)
	if c.measure[result.Lock] {
		for _, n := range c.callers {
			all = append(all, result.Situation{Kind: result.Lock, Callers: n, Network: network})
		}
	}
	if c.measure[result.Extend] {
		all = append(all, result.Situation{Kind: result.Extend, Callers: c.callers[0], Network: network})
	}
	if c.measure[result.HandOver] {
		all = append(all, result.Situation{Kind: result.HandOver, Callers: c.waiters, Network: network})
	}
	if c.measure[result.PerNode] {
		all = append(all, result.Situation{Kind: result.PerNode, Callers: 1, Network: network})
	}
	for _, d := range c.sweep {
		all = append(all, result.Situation{Kind: result.Lock, Callers: c.callers[0], Network: d.String(), RTT: d, Sweep: true})
	}
	return all
}

// delaysOf are the delays of the nodes in a situation.
func (c *config) delaysOf(s result.Situation) []time.Duration {
	switch {
	case s.Sweep:
		return slices.Repeat([]time.Duration{s.RTT}, c.n)
	case s.Fault == result.Slow:
		slow := make([]time.Duration, c.setup.Nodes)
		slow[len(slow)-1] = slowBy
		return slow
	case c.suite && s.Network != "":
		return regions
	}
	return c.delays
}
