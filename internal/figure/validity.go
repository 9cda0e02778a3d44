// How long a lease may be trusted, and how a renewal moves that.

package main

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock"
)

// validity is not to scale: elapsed and drift would not be seen. Its figures are those of
// the library's arithmetic.
func validity() string {
	const (
		ttl     = 10 * time.Second
		elapsed = 40 * time.Millisecond
	)
	drift := redlock.Drift{Factor: 0.01, Floor: 2 * time.Millisecond}
	left := drift.Validity(ttl, elapsed)

	// Places: the TTL is 330 wide, and every key lives so long from when it was set.
	const (
		asked, granted = 140, 185
		long           = 330
		deadline       = asked + long - 30
		renewed        = asked + long/3
		passed         = renewed + 45
		later          = renewed + long - 30
	)
	set := [5]int{152, 160, 172, 180, 215} // the last grant is late, and kept
	again := [4]int{renewed + 12, renewed + 22, renewed + 36, renewed + 60}

	c := newCanvas(400, "Validity: when a lease ends, and why no key ends before it",
		"A holder counts its time from before the first command was sent. Every node sets its key later than that and keeps it for the TTL, so that on each node the key outlives the deadline of the lease.")
	c.mark(asked, 62, 372, "clock is read, commands are sent")
	c.mark(deadline, 62, 200, "deadline")
	c.text(16, 90, "start", "", "holder")
	c.bar(asked, granted, 76, 22, "cost", "")
	c.text(asked+4, 113, "start", "faint", "elapsed")
	c.bar(granted, deadline, 76, 22, "lease", "the lease is trusted")
	c.bar(deadline, asked+long, 76, 22, "drift", "")
	c.text(deadline+5, 113, "start", "faint", "drift")
	c.text(asked+long+12, 91, "start", "faint", fmt.Sprintf("%v - %v - %v = %v", ttl, elapsed, ttl-elapsed-left, left))

	c.text(16, 136, "start", "", "keys on")
	c.text(16, 152, "start", "", "five nodes")
	for i, x := range set {
		y := 126 + 14*i
		c.bar(x, x+long, y, 10, "key", "")
		if i == 4 {
			c.text(x+long+12, y+9, "start", "faint", "granted late: kept as well")
		}
	}
	c.text(set[0]+long+12, 135, "start", "faint", "set later than it was asked for: ends later")

	c.text(16, 239, "start", "", "a renewal")
	c.mark(renewed, 222, 372, "sent, a third of the TTL later")
	c.bar(granted, passed, 228, 22, "lease", "trusted")
	c.bar(passed, later, 228, 22, "lease", "and again, from when it was sent")
	c.bar(later, renewed+long, 228, 22, "drift", "")
	c.add(`<path d="M%d 228V250" stroke="#ffffff" stroke-width="2"/>`, passed)
	c.mark(later, 222, 372, "new deadline")
	c.text(passed+4, 265, "start", "faint", "confirmed by a quorum in time")
	c.text(16, 290, "start", "", "keys of")
	c.text(16, 306, "start", "", "a quorum")
	for i, x := range again {
		c.bar(set[i], x+long, 280+14*i, 10, "key", "")
	}
	c.bar(set[4], set[4]+long, 336, 10, "key", "")
	c.text(set[4]+long+12, 345, "start", "faint", "no answer: counts no more")
	c.time(asked-10, width-16, 372)
	c.text(16, 392, "start", "faint", "Not to scale.")
	return c.end()
}
