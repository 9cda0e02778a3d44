// Skewed: a clock that is wrong in a known way.

package clock

import (
	"math"
	"sync"
	"time"
)

// A Skew is how one clock differs from another.
type Skew struct {
	// Rate is how much faster the clock runs; 1.01 gains 10 ms in a second.
	// What is not a positive finite number stands for 1, so that the zero Skew
	// is none. A clock that stands still is one with a very small rate.
	Rate float64

	// Offset is added to the wall time. Elapsed is not affected.
	Offset time.Duration

	_ struct{}
}

// Skewed is a view of another clock, for tests of what happens when the clocks
// of a system disagree. It is made by [NewSkewed], and its skew may be changed
// while it runs. In a testing/synctest bubble, where there is only one time,
// each simulated machine gets a Skewed of its own.
//
// It has three readings. Elapsed and the wall time differ from the base by the
// rate, and jump with [Skewed.Suspend]; the wall time also jumps with
// [Skewed.Step]. The third is that of the timers, which runs at the rate and
// does not jump, like the monotonic clock of an operating system.
//
// Arithmetic saturates: a clock at a high rate ends up standing still at the
// largest Duration, and timers that are due there or later fire there.
type Skewed struct {
	base  Clock
	start time.Duration // reading of base when Elapsed was 0

	// Held for reading, too, so that a reading taken after another is not the
	// lower one. It is never held while waiting: in a bubble, a goroutine
	// blocked on a mutex keeps the time from passing.
	mu     sync.Mutex
	rate   float64
	from   time.Duration // reading of base when rate was set
	ran    time.Duration // reading of the timers' clock at that moment
	slept  time.Duration // sum of all suspends
	offset time.Duration // of the wall time, with all steps
	timers map[*timer]struct{}
}

// NewSkewed returns a clock that differs from base as s says. Its Elapsed starts
// at 0, and its wall time at that of base plus s.Offset. A nil base stands for
// [System].
func NewSkewed(base Clock, s Skew) *Skewed {
	if base == nil {
		base = System
	}
	start := base.Elapsed()
	return &Skewed{
		base:   base,
		start:  start,
		rate:   sane(s.Rate),
		from:   start,
		offset: s.Offset,
		timers: map[*timer]struct{}{},
	}
}

// sane returns rate if it is one, else 1.
func sane(rate float64) float64 {
	if rate > 0 && rate <= math.MaxFloat64 { // false for NaN
		return rate
	}
	return 1
}

// Elapsed returns the time since NewSkewed on this clock, with all suspends.
func (c *Skewed) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed(c.base.Elapsed())
}

// Now returns the wall time of base, with this clock's offset and steps, and what
// it has gained on base. It has no monotonic reading, as that would be base's.
func (c *Skewed) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.base.Elapsed()
	gained := c.elapsed(b) - (b - c.start) // of two that are not negative
	return c.base.Now().Round(0).Add(c.offset).Add(gained)
}

// SetRate makes the clock run at the given rate from its present reading on. As
// in a Skew, what is not a positive finite number stands for 1. Timers that are
// pending are due at the same reading as before.
func (c *Skewed) SetRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.base.Elapsed()
	c.ran, c.from, c.rate = c.running(b), b, sane(rate)
	for t := range c.timers {
		t.arm(b)
	}
}

// Step makes the wall time jump by d, which may be negative.
func (c *Skewed) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = saturatingAdd(c.offset, d)
}

// Suspend makes Elapsed and the wall time jump ahead by d while timers stay where
// they are: what a program sees when the machine resumes. A negative d does
// nothing.
func (c *Skewed) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = saturatingAdd(c.slept, max(d, 0))
}

// running returns the reading of the timers' clock when base reads b.
func (c *Skewed) running(b time.Duration) time.Duration {
	return saturatingAdd(c.ran, scale(b-c.from, c.rate))
}

// elapsed returns the reading of Elapsed when base reads b.
func (c *Skewed) elapsed(b time.Duration) time.Duration {
	return saturatingAdd(c.running(b), c.slept)
}
