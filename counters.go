// Where a client counts: what it costs is a few atomic additions for each lock.

package redlock

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// counters are what Stats is made of.
type counters struct {
	acquired, unlocked atomic.Int64
	lost               [len(lossCauses)]atomic.Int64

	waiting       atomic.Int64
	lockFailed    [len(failures)]atomic.Int64
	attempts      atomic.Int64
	attemptFailed [len(failures)]atomic.Int64

	renewalFailed, dangers, dropped atomic.Int64

	heartbeat, acquire, wait, hold, unlock histogram

	advisor advisor
}

// nodeCounters are those of one node.
type nodeCounters struct {
	failed       [len(nodeFaultKinds)]atomic.Int64
	latency      histogram
	called, deaf atomic.Int64
}

// tick counts one of a kind.
func tick[K comparable](kinds []K, counts []atomic.Int64, k K) {
	counts[slices.Index(kinds, k)].Add(1)
}

// byKind names what was counted.
func byKind[K ~string](kinds []K, counts []atomic.Int64) map[K]int64 {
	m := make(map[K]int64, len(kinds))
	for i, k := range kinds {
		m[k] = counts[i].Load()
	}
	return m
}

func (n *counters) stats(c *Client) Stats {
	s := Stats{
		LeaseUnlocked: n.unlocked.Load(), LeaseLost: byKind(lossCauses[:], n.lost[:]),
		Waiting: n.waiting.Load(), LockFailed: byKind(failures[:], n.lockFailed[:]),
		AttemptFailed:   byKind(failures[:], n.attemptFailed[:]),
		RenewalFailed:   n.renewalFailed.Load(),
		Dangers:         n.dangers.Load(),
		CleanupsDropped: n.dropped.Load(),

		HeartbeatLatency: n.heartbeat.latency(), AcquireLatency: n.acquire.latency(), WaitTime: n.wait.latency(),
		HoldTime: n.hold.latency(), UnlockLatency: n.unlock.latency(),

		LongestPause: time.Duration(n.advisor.pause.Load()),
	}
	s.Renewals = s.HeartbeatLatency.Count + s.RenewalFailed
	c.mu.RLock()
	s.LeasesHeld = int64(len(c.grants))
	c.mu.RUnlock()
	s.LeaseAcquired, s.Attempts = n.acquired.Load(), n.attempts.Load() // after what became of them
	for _, l := range c.lanes {
		s.Nodes = append(s.Nodes, l.count.stats(l.node.Name()))
		s.Called += l.count.called.Load()
	}
	s.Advice = n.advisor.advise(s.HeartbeatLatency)
	return s
}

func (n *nodeCounters) stats(name string) NodeStats {
	s := NodeStats{
		Name: name, Failed: byKind(nodeFaultKinds[:], n.failed[:]), Latency: n.latency.latency(),
		Called: n.called.Load(), Deaf: n.deaf.Load(),
	}
	s.Calls = s.Latency.Count
	for _, f := range s.Failed {
		s.Calls += f
	}
	return s
}

// note counts what came of a call that was made.
func (n *nodeCounters) note(a answer) {
	if a.err == nil {
		n.latency.record(a.elapsed)
		return
	}
	tick(nodeFaultKinds[:], n.failed[:], faultOf(a))
}

// faultOf tells what was wrong with a call that failed.
func faultOf(a answer) NodeFault {
	var unfit *unfitError
	var young *youngError
	switch {
	case isTimeout(a.err): // also of a connection that was to be made
		return NodeTimeout
	case a.Verdict == Unsent:
		return NodeUnsent
	case a.Verdict == Rejected:
		return NodeRejected
	case a.Verdict == Forbidden:
		return NodeForbidden
	case errors.As(a.err, &unfit), errors.As(a.err, &young):
		return NodeUnfit
	default:
		return NodeUnanswered
	}
}
