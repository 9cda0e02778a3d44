// The timers of a Skewed.

package clock

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A stopwatch is a timer on c that tells how long it took in the bubble.
func stopwatch(c Clock, d time.Duration) (Timer, <-chan time.Duration) {
	start := time.Now()
	fired := make(chan time.Duration, 10)
	return c.AfterFunc(d, func() { fired <- time.Since(start) }), fired
}

// wantFired checks when the timer fires, or with a negative want that it has not.
func wantFired(t *testing.T, fired <-chan time.Duration, want time.Duration) {
	t.Helper()
	if want < 0 {
		synctest.Wait()
		select {
		case d := <-fired:
			t.Errorf("timer fired after %v", d)
		default:
		}
		return
	}
	if d := <-fired; d != want {
		t.Errorf("timer fired after %v, want %v", d, want)
	}
}

func TestTimerRate(t *testing.T) {
	for _, tt := range []struct {
		rate    float64
		d, want time.Duration
	}{
		{1, time.Hour, time.Hour},
		{2, time.Hour, 30 * time.Minute},
		{0.5, time.Hour, 2 * time.Hour},
		{1.01, 101 * time.Second, 100 * time.Second},
		{3, 10, 4}, // 3 1/3 ns, and not earlier
		{1e300, time.Hour, 1},
		{2, 0, 0},
		{2, -time.Hour, 0},
		{1, earliest, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := NewSkewed(System, Skew{Rate: tt.rate})
			timer, fired := stopwatch(c, tt.d)
			wantFired(t, fired, tt.want)
			if c.Elapsed() < tt.d {
				t.Errorf("rate %v: fired at %v, before %v", tt.rate, c.Elapsed(), tt.d)
			}
			if timer.Stop() {
				t.Error("Stop after the call says that it prevented it")
			}
			if len(c.timers) != 0 {
				t.Error("the clock still knows the timer")
			}
		})
	}
}

// TestTimerSetRate: a pending timer stays due at the same reading.
func TestTimerSetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{})
		_, a := stopwatch(c, 10*time.Second)
		_, b := stopwatch(c, 20*time.Second)
		time.Sleep(4 * time.Second)
		c.SetRate(2)
		time.Sleep(time.Second) // reading 6 s
		c.SetRate(0.5)
		wantFired(t, a, 13*time.Second) // 4 s more take 8 s
		wantElapsed(t, c, 10*time.Second)
		c.SetRate(1e9)
		wantFired(t, b, 13*time.Second+10)
	})
}

// TestTimerSuspend: the timers of a machine that resumes are late.
func TestTimerSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{})
		_, before := stopwatch(c, time.Minute)
		c.Suspend(time.Hour)
		_, after := stopwatch(c, time.Minute)
		wantFired(t, before, -1)
		c.SetRate(2) // not a reason to fire either
		wantFired(t, before, 30*time.Second)
		wantFired(t, after, 30*time.Second)
		wantElapsed(t, c, time.Hour+time.Minute)
	})
}

func TestTimerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{Rate: 2})
		timer, fired := stopwatch(c, time.Minute)
		if !timer.Stop() {
			t.Error("Stop of a pending timer says that it was too late")
		}
		if timer.Stop() {
			t.Error("the second Stop says that it stopped it")
		}
		c.SetRate(3) // arms the pending ones only
		time.Sleep(time.Hour)
		wantFired(t, fired, -1)
	})
}

func TestTimerReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{Rate: 2})
		timer, fired := stopwatch(c, time.Minute)
		time.Sleep(20 * time.Second)
		if !timer.Reset(time.Minute) {
			t.Error("Reset of a pending timer says that it had fired")
		}
		wantFired(t, fired, 50*time.Second)
		if timer.Reset(time.Minute) {
			t.Error("Reset of a fired timer says that it was pending")
		}
		wantFired(t, fired, 80*time.Second)
		timer.Stop()
		if timer.Reset(0) {
			t.Error("Reset of a stopped timer says that it was pending")
		}
		wantFired(t, fired, 80*time.Second)
		time.Sleep(time.Hour)
		wantFired(t, fired, -1)
	})
}

// TestTimerCallsClock: f runs in its own goroutine and may use the clock, and
// block.
func TestTimerCallsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{Rate: 2})
		done := make(chan time.Duration)
		self := make(chan Timer, 1)
		self <- c.AfterFunc(time.Second, func() {
			c.SetRate(4)
			c.Suspend(time.Minute)
			timer := <-self
			timer.Reset(time.Hour)
			timer.Stop()
			c.AfterFunc(time.Second, func() { done <- c.Elapsed() })
			<-t.Context().Done() // blocks until after the test
		})
		if d := <-done; d != time.Minute+2*time.Second {
			t.Errorf("the second call came at %v, want 1m2s", d)
		}
	})
}

func TestTimerNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := NewSkewed(System, Skew{Rate: math.SmallestNonzeroFloat64})
		timer, fired := stopwatch(slow, 1)
		time.Sleep(10000 * time.Hour)
		wantFired(t, fired, -1)
		if !timer.Stop() {
			t.Error("Stop of a pending timer says that it was too late")
		}

		c := NewSkewed(System, Skew{})
		time.Sleep(time.Hour)
		timer, fired = stopwatch(c, latest)
		time.Sleep(10000 * time.Hour)
		wantFired(t, fired, -1)
		timer.Reset(time.Hour)
		wantFired(t, fired, 10001*time.Hour)

		// A clock at its end has no time left to wait for.
		c.Suspend(latest)
		c.SetRate(1e300)
		time.Sleep(time.Hour)
		c.SetRate(1)
		_, fired = stopwatch(c, time.Hour)
		wantFired(t, fired, 0)
	})
}
