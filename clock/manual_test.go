// Timers of a Skewed over a base whose calls come when they should not.

package clock

import (
	"testing"
	"time"
)

// A manual clock moves, and calls, only when told.
type manual struct {
	now   time.Duration
	calls []func()
	delay time.Duration // of the last timer set
	stops int
}

func (m *manual) Elapsed() time.Duration { return m.now }
func (m *manual) Now() time.Time         { return time.Unix(0, 0).Add(m.now) }

func (m *manual) AfterFunc(d time.Duration, f func()) Timer {
	m.calls = append(m.calls, f)
	m.delay = d
	return m
}

func (m *manual) Stop() bool {
	m.stops++
	return false // always too late
}

func (m *manual) Reset(d time.Duration) bool {
	m.delay = d
	return false
}

// TestTimerCalledOutOfTurn: base's call may be under way when the timer is
// stopped, reset or re-armed. Whenever it comes, f must run once for each time it
// was due and never before that.
func TestTimerCalledOutOfTurn(t *testing.T) {
	m := &manual{now: -time.Hour} // the origin is arbitrary
	c := NewSkewed(m, Skew{Rate: 2})
	n := 0
	timer := c.AfterFunc(10, func() { n++ })
	call := m.calls[0]
	want := func(calls int, delay time.Duration) {
		t.Helper()
		if n != calls || m.delay != delay {
			t.Fatalf("f ran %d times, base waits %v; want %d, %v", n, m.delay, calls, delay)
		}
	}

	want(0, 5)
	m.now += 4
	call() // early
	want(0, 1)
	m.now++
	call() // on time
	want(1, 1)
	call() // again
	want(1, 1)

	timer.Reset(10)
	want(1, 5)
	call() // of before the Reset
	want(1, 5)
	c.SetRate(1)
	want(1, 10)
	m.now += 5
	call() // of before SetRate
	want(1, 5)
	timer.Stop()
	if m.stops != 1 {
		t.Error("base's timer was left to run")
	}
	m.now += 100
	call() // of before Stop
	want(1, 5)
	timer.Reset(-10)
	want(1, 0) // not every base may bear a negative delay
	c.SetRate(4)
	want(1, 0)
	call()
	want(2, 0)
	if len(m.calls) != 1 {
		t.Errorf("base has %d timers, want the one", len(m.calls))
	}
}
