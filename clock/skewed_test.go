// Skewed: its readings.

package clock

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// wantElapsed checks what c reads.
func wantElapsed(t *testing.T, c Clock, want time.Duration) {
	t.Helper()
	if got := c.Elapsed(); got != want {
		t.Errorf("Elapsed is %v, want %v", got, want)
	}
}

// wantAhead checks how far c's wall time is ahead of the bubble's.
func wantAhead(t *testing.T, c Clock, want time.Duration) {
	t.Helper()
	if got := time.Until(c.Now()); got != want {
		t.Errorf("Now is ahead by %v, want %v", got, want)
	}
}

func TestSkewedNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(nil, Skew{})
		wantElapsed(t, c, 0)
		wantAhead(t, c, 0)
		time.Sleep(time.Hour + 1)
		wantElapsed(t, c, time.Hour+1)
		wantAhead(t, c, 0)
	})
}

func TestSkewedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{Rate: 1.25, Offset: -time.Hour})
		wantElapsed(t, c, 0)
		wantAhead(t, c, -time.Hour)
		time.Sleep(8 * time.Second)
		wantElapsed(t, c, 10*time.Second)
		wantAhead(t, c, -time.Hour+2*time.Second)

		// The new rate goes on from here.
		c.SetRate(0.5)
		wantElapsed(t, c, 10*time.Second)
		wantAhead(t, c, -time.Hour+2*time.Second)
		time.Sleep(8 * time.Second)
		wantElapsed(t, c, 14*time.Second)
		wantAhead(t, c, -time.Hour-2*time.Second)
	})
}

func TestSkewedInsaneRates(t *testing.T) {
	for _, rate := range []float64{0, -1, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()} {
		synctest.Test(t, func(t *testing.T) {
			c := NewSkewed(System, Skew{Rate: rate})
			time.Sleep(time.Second)
			wantElapsed(t, c, time.Second)
			c.SetRate(2)
			time.Sleep(time.Second)
			c.SetRate(rate)
			time.Sleep(time.Second)
			wantElapsed(t, c, 4*time.Second)
		})
	}
}

func TestSkewedStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{Offset: time.Minute})
		c.Step(time.Hour)
		wantElapsed(t, c, 0)
		wantAhead(t, c, time.Hour+time.Minute)
		c.Step(-3 * time.Hour)
		wantElapsed(t, c, 0)
		wantAhead(t, c, -2*time.Hour+time.Minute)
	})
}

func TestSkewedSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{Rate: 2})
		time.Sleep(time.Second)
		c.Suspend(time.Hour)
		c.Suspend(time.Minute)
		wantElapsed(t, c, time.Hour+time.Minute+2*time.Second)
		wantAhead(t, c, time.Hour+time.Minute+time.Second)
		c.Suspend(-time.Hour)
		wantElapsed(t, c, time.Hour+time.Minute+2*time.Second)
		wantAhead(t, c, time.Hour+time.Minute+time.Second)
		c.SetRate(1) // keeps the suspends
		time.Sleep(time.Second)
		wantElapsed(t, c, time.Hour+time.Minute+3*time.Second)
	})
}

// TestSkewedStacked: the base is skewed itself, and its jumps show through.
func TestSkewedStacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := NewSkewed(System, Skew{Rate: 2, Offset: time.Minute})
		time.Sleep(time.Second)
		c := NewSkewed(base, Skew{Rate: 3, Offset: time.Hour})
		wantElapsed(t, c, 0)
		wantAhead(t, c, time.Hour+time.Minute+time.Second)
		time.Sleep(time.Second)
		wantElapsed(t, c, 6*time.Second)
		wantAhead(t, c, time.Hour+time.Minute+6*time.Second)
		base.Step(time.Minute)
		wantAhead(t, c, time.Hour+2*time.Minute+6*time.Second)
		base.Suspend(time.Minute)
		wantElapsed(t, c, 6*time.Second+3*time.Minute)
		wantAhead(t, c, time.Hour+5*time.Minute+6*time.Second)

		fired := make(chan time.Duration, 1)
		start := time.Now()
		c.AfterFunc(12*time.Second, func() { fired <- time.Since(start) })
		if d := <-fired; d != 2*time.Second {
			t.Errorf("12s at six times the speed took %v, want 2s", d)
		}
	})
}

// TestSkewedNowIsWall: a monotonic reading would be that of the base, and make
// differences of two Nows ignore what this clock did in between.
func TestSkewedNowIsWall(t *testing.T) {
	c := NewSkewed(System, Skew{})
	a := c.Now()
	if strings.Contains(a.String(), "m=") {
		t.Errorf("Now has a monotonic reading: %v", a)
	}
	c.Step(-time.Hour)
	if d := c.Now().Sub(a).Round(time.Minute); d != -time.Hour {
		t.Errorf("a step back by an hour reads as %v", d)
	}
}

// TestSkewedSaturates: Elapsed ends up at the largest Duration and stays there.
func TestSkewedSaturates(t *testing.T) {
	for _, rates := range [][2]float64{{1e300, 1}, {math.MaxFloat64, 1e-300}, {1e18, 1e18}} {
		synctest.Test(t, func(t *testing.T) {
			c := NewSkewed(System, Skew{Rate: rates[0]})
			time.Sleep(time.Hour)
			wantElapsed(t, c, latest)
			c.Suspend(latest)
			wantElapsed(t, c, latest)
			c.SetRate(rates[1])
			time.Sleep(time.Hour)
			wantElapsed(t, c, latest)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewSkewed(System, Skew{})
		c.Step(latest)
		c.Step(latest)
		wantAhead(t, c, latest)
		c.Step(earliest)
		c.Step(earliest)
		c.Step(earliest)
		wantAhead(t, c, earliest)

		c = NewSkewed(System, Skew{Rate: math.SmallestNonzeroFloat64})
		time.Sleep(1000 * time.Hour)
		wantElapsed(t, c, 0)
		c.Suspend(latest)
		c.Suspend(latest)
		wantElapsed(t, c, latest)
		wantAhead(t, c, latest-1000*time.Hour)
	})
}
