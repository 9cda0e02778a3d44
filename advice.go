// What the TTL should be, from what was measured.

package redlock

import (
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// A TTL should be this many times what all but one in a hundred renewals take:
	// then several can be tried one after the other before the lease ends.
	latenciesPerTTL = 10

	// A TTL should be this many times the longest pause of the process: a third of it
	// may be gone when the pause begins, and then there must be time to renew.
	pausesPerTTL = 4

	// Renewals that advice rests on at least.
	enoughRenewals = 20

	// Above that one does not wait for a crashed holder's TTL to end.
	usefulTTL = 5 * time.Minute
)

// An advisor keeps what advice rests on beside the latencies.
type advisor struct {
	shortest atomic.Int64 // TTL of a lease that is renewed; 0 if there was none
	pause    atomic.Int64 // the longest
	renewals atomic.Int64 // that succeeded

	told [2]atomic.Bool // by reason: the logger was told
}

// advise returns what is to be said.
func (a *advisor) advise(heartbeat Latency) (all []Advice) {
	shortest, pause := time.Duration(a.shortest.Load()), time.Duration(a.pause.Load())
	if shortest == 0 {
		return nil
	}
	if p99 := heartbeat.P99; heartbeat.Count >= enoughRenewals && shortest/latenciesPerTTL < p99 {
		all = append(all, advice(AdviceLatency, shortest, p99*latenciesPerTTL, fmt.Sprintf(
			"one renewal in a hundred takes %v or more, and the TTL should be %d times that", rough(p99), latenciesPerTTL)))
	}
	if shortest/pausesPerTTL < pause {
		all = append(all, advice(AdvicePause, shortest, pause*pausesPerTTL, fmt.Sprintf(
			"a timer was late by %v, since the process or the machine stood still or had no CPU, and the TTL should be %d times that", rough(pause), pausesPerTTL)))
	}
	return all
}

func advice(reason AdviceReason, shortest, least time.Duration, text string) Advice {
	a := Advice{Reason: reason, Shortest: shortest, TTL: roundUp(least)}
	if a.TTL > usefulTTL {
		a.TTL = 0
		a.Text = text + fmt.Sprintf(": more than %v, so that this is to be mended instead", usefulTTL)
		return a
	}
	a.Text = text + fmt.Sprintf(": use WithTTL(%v) or more where it is %v now", a.TTL, shortest)
	return a
}

// roundUp returns a TTL that people would write, not below d.
func roundUp(d time.Duration) time.Duration {
	unit := 10 * time.Second
	switch {
	case d <= time.Second:
		unit = 50 * time.Millisecond
	case d <= 10*time.Second:
		unit = 500 * time.Millisecond
	case d <= time.Minute:
		unit = 5 * time.Second
	}
	return (d + unit - 1) / unit * unit
}

// rough keeps two or three digits.
func rough(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// lowerTo sets v to n unless it is lower, and not 0.
func lowerTo(v *atomic.Int64, n int64) {
	for old := v.Load(); (old == 0 || old > n) && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// paused notes that a timer was so late.
func (c *Client) paused(late time.Duration) {
	a := &c.count.advisor
	if int64(late) <= a.pause.Load() {
		return
	}
	raiseTo(&a.pause, int64(late))
	c.warn(AdvicePause)
}

// renewed notes that a renewal succeeded, and looks now and then what that took.
func (c *Client) renewed() {
	if c.count.advisor.renewals.Add(1)%enoughRenewals == 0 {
		c.warn(AdviceLatency)
	}
}

// warn gives the logger what advice there is for a reason, once.
func (c *Client) warn(reason AdviceReason) {
	a := &c.count.advisor
	told := &a.told[0]
	if reason == AdvicePause {
		told = &a.told[1]
	}
	if !c.set.logged || told.Load() {
		return
	}
	for _, advice := range a.advise(c.count.heartbeat.latency()) {
		if advice.Reason == reason && told.CompareAndSwap(false, true) {
			c.set.logger.Warn("redlock: the TTL is too short for what is measured; Client.Stats has the latest advice",
				"reason", string(reason), "advice", advice.Text)
		}
	}
}
