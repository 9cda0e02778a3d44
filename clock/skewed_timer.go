// The timers of a Skewed.

package clock

import "time"

// A timer is a pending call on a Skewed. Its fields belong to the clock's mutex.
type timer struct {
	clock *Skewed
	f     func()
	due   time.Duration // on the timers' clock
	wait  Timer         // on base
}

// AfterFunc calls f in its own goroutine once d has passed on this clock, not
// counting suspends.
func (c *Skewed) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, f: f}
	t.start(d)
	return t
}

// start makes t pending.
func (t *timer) start(d time.Duration) {
	b := t.clock.base.Elapsed()
	t.due = saturatingAdd(t.clock.running(b), d)
	t.clock.timers[t] = struct{}{}
	t.arm(b)
}

// arm has base call fire when t is due at the present rate, base reading b now.
func (t *timer) arm(b time.Duration) {
	// t is overdue if it was set so, or if base's call is under way.
	left := max(t.due-t.clock.running(b), 0)
	d := unscale(left, t.clock.rate)
	if t.wait == nil {
		t.wait = t.clock.base.AfterFunc(d, t.fire)
	} else {
		t.wait.Reset(d)
	}
}

// fire is called by base. The call may be one that Stop, Reset or SetRate was
// too late to prevent, so it trusts only the state of t and the time: it may
// find that t was called or stopped already, or that it is not due yet. Rounding
// can also make it a nanosecond early.
func (t *timer) fire() {
	c := t.clock
	c.mu.Lock()
	if _, pending := c.timers[t]; !pending {
		c.mu.Unlock()
		return
	}
	if b := c.base.Elapsed(); c.running(b) < t.due {
		t.arm(b)
		c.mu.Unlock()
		return
	}
	delete(c.timers, t)
	c.mu.Unlock()
	t.f()
}

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, pending := t.clock.timers[t]
	delete(t.clock.timers, t)
	t.wait.Stop()
	return pending
}

func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, pending := t.clock.timers[t]
	t.start(d)
	return pending
}
