package redlock

import (
	"context"
	"time"
)

// Waiting returns how much the client remembers of those who wait: lines, and who
// stands in the nodes' lines.
func (c *Client) Waiting() int {
	c.crowd.mu.Lock()
	defer c.crowd.mu.Unlock()
	return len(c.crowd.lines) + len(c.crowd.listed)
}

// Freeing returns how many locks the client knows to be released on nodes now, and
// Behind how many acquires wait for that.
func (c *Client) Freeing() (n int) {
	c.eachFreeing(func(freeing) { n++ })
	return n
}

func (c *Client) Behind() (n int) {
	c.eachFreeing(func(f freeing) { n += f.waiting })
	return n
}

func (c *Client) eachFreeing(do func(freeing)) {
	for _, l := range c.lanes {
		l.mu.Lock()
		for _, f := range l.freeing {
			do(f)
		}
		l.mu.Unlock()
	}
}

// UnderWay returns how many commands have a place on the way to a node, and how many
// trips there are.
func (c *Client) UnderWay() (commands, flights int) {
	for _, l := range c.lanes {
		l.mu.Lock()
		commands += l.underWay
		flights += l.airport.flights
		l.mu.Unlock()
	}
	return commands, flights
}

// Armed reports whether commands depart at some time by themselves.
func (c *Client) Armed() bool {
	for _, l := range c.lanes {
		l.mu.Lock()
		armed := !l.airport.at.IsZero()
		l.mu.Unlock()
		if armed {
			return true
		}
	}
	return false
}

// Ferry makes commands for a node travel together: trip is asked to take that many of
// them, and then each has to go alone.
func (c *Client) Ferry(node int, trip func(commands int)) {
	c.lanes[node].ferry = ferryFunc(trip)
}

// Carry makes commands for a node travel together: when trip returns, which is asked to
// take that many of them, the node is given one after the other.
func (c *Client) Carry(node int, trip func(commands int)) {
	l := c.lanes[node]
	l.ferry = carryFunc(func(ctx context.Context, calls []*call, answers []carried) {
		trip(len(calls))
		for i, c := range calls {
			a := &answers[i]
			switch c.op {
			case opAcquire:
				a.Reply, a.err = l.node.Acquire(ctx, c.claim())
			case opRelease:
				a.Reply, a.err = l.node.Release(ctx, c.claim(), c.bury)
			default:
				a.alone = true
			}
		}
	})
}

type carryFunc func(ctx context.Context, calls []*call, answers []carried)

func (f carryFunc) carry(ctx context.Context, calls []*call, answers []carried) {
	f(ctx, calls, answers)
}

type ferryFunc func(commands int)

func (f ferryFunc) carry(_ context.Context, calls []*call, answers []carried) {
	f(len(calls))
	for i := range answers {
		answers[i].alone = true
	}
}

// Summary returns what is said of durations that a client has measured.
func Summary(durations []time.Duration) Latency {
	var h histogram
	for _, d := range durations {
		h.record(d)
	}
	return h.latency()
}

// Resolved are the settings of a mutex that have bounds.
type Resolved struct {
	TTL, NodeTimeout, MinValidity, Renewal, MaxHold, Retention, ClockBound, CrashGuard time.Duration

	Drift       Drift
	MaxAttempts int
	Fencing     bool
}

// Resolved returns what came of all options.
func (m *Mutex) Resolved() Resolved {
	s := &m.set
	return Resolved{
		TTL: s.ttl, NodeTimeout: s.nodeTimeout, MinValidity: s.minValidity, Renewal: s.renewal, MaxHold: s.maxHold,
		Retention: s.retention, ClockBound: s.clockBound, CrashGuard: s.crashGuard,
		Drift: s.drift, MaxAttempts: s.maxAttempts, Fencing: s.fencing,
	}
}
