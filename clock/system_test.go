// System: in a bubble, with a suspend that the test makes up, and for real.

package clock

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

func TestSystemFollowsBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, wall := System.Elapsed(), System.Now()
		for _, d := range []time.Duration{1, time.Millisecond, 8760 * time.Hour} {
			before := System.Elapsed()
			time.Sleep(d)
			if got := System.Elapsed() - before; got != d {
				t.Errorf("%v passed, want %v", got, d)
			}
		}
		if a, b := System.Elapsed()-start, System.Now().Sub(wall); a != b {
			t.Errorf("Elapsed %v, Now %v", a, b)
		}

		var fired time.Duration
		before := System.Elapsed()
		System.AfterFunc(time.Minute, func() { fired = System.Elapsed() - before })
		stopped := System.AfterFunc(time.Minute, func() { t.Error("stopped timer fired") })
		if !stopped.Stop() {
			t.Error("Stop came too late")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if fired != time.Minute {
			t.Errorf("timer fired after %v, want a minute", fired)
		}
	})
}

// TestSystemSuspend: CLOCK_BOOTTIME alone jumps. That is all a program sees of a
// suspend, and a lease must end by it.
func TestSystemSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := time.Now()
		mono := func() time.Duration { return time.Since(origin) }
		var boot time.Duration
		var c Clock = &system{origin, newGap(mono, func() time.Duration { return mono() + boot }, time.Millisecond)}

		time.Sleep(time.Second)
		var late atomic.Bool
		c.AfterFunc(time.Minute, func() { late.Store(true) })

		want := c.Elapsed() + time.Hour
		boot += time.Hour
		if got := c.Elapsed(); got != want {
			t.Errorf("Elapsed is %v after a suspend, want %v", got, want)
		}
		if synctest.Wait(); late.Load() {
			t.Error("the timer knows of the suspend")
		}
		boot -= time.Hour
		if got := c.Elapsed(); got != want {
			t.Errorf("Elapsed is %v after a step back, want %v", got, want)
		}
		time.Sleep(time.Minute)
		if got := c.Elapsed(); got != want+time.Minute {
			t.Errorf("Elapsed is %v a minute later, want %v", got, want+time.Minute)
		}
		if synctest.Wait(); !late.Load() {
			t.Error("the timer has not fired")
		}
	})
}

// TestWallGap: the variant for systems without CLOCK_BOOTTIME has the same time
// in a bubble, and sees no jump on going in and out of one.
func TestWallGap(t *testing.T) {
	origin := time.Now()
	c := &system{origin, wallGap(origin)}
	for range 3 {
		before := time.Now()
		a := c.Elapsed()
		synctest.Test(t, func(t *testing.T) {
			start := c.Elapsed()
			time.Sleep(time.Hour)
			if got := c.Elapsed() - start; got != time.Hour {
				t.Errorf("%v passed in the bubble, want an hour", got)
			}
		})
		if got, most := c.Elapsed()-a, time.Since(before); got < 0 || got > most {
			t.Errorf("%v passed outside the bubble, want at most %v", got, most)
		}
	}
}

// TestWallGapReads tells the two clocks apart. A test cannot step the machine's
// wall clock, so it forges a Time whose monotonic reading is 23 hours old.
func TestWallGapReads(t *testing.T) {
	origin := time.Now()
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&origin)).ext -= int64(23 * time.Hour)
	if time.Since(origin) < 23*time.Hour || time.Since(origin.Round(0)) > time.Hour {
		t.Fatal("time.Time is not laid out as it was")
	}

	g := wallGap(origin)
	if got := g.mono().Truncate(time.Hour); got != 23*time.Hour {
		t.Errorf("monotonic clock reads %v, want 23 hours", got)
	}
	if got := g.other().Truncate(time.Hour); got != 0 {
		t.Errorf("wall clock reads %v, want about 0", got)
	}
	if tick := 16 * time.Millisecond; g.noise < 2*tick {
		t.Errorf("jumps of %v count, but the clocks may be apart by a tick of %v", g.noise, tick)
	}
}

func TestSystemReal(t *testing.T) {
	outer := time.Now()
	begin := System.Elapsed()
	inner := time.Now()

	const wait = 20 * time.Millisecond
	fired := make(chan time.Duration, 1)
	System.AfterFunc(wait, func() { fired <- System.Elapsed() - begin })
	last := begin
	for range 10000 {
		now := System.Elapsed()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
	if d := <-fired; d < wait {
		t.Errorf("timer fired after %v, want at least %v", d, wait)
	}

	least := time.Since(inner)
	got := System.Elapsed() - begin
	if most := time.Since(outer); got < least || got > most {
		t.Errorf("%v passed, want %v to %v", got, least, most)
	}
	if d := time.Since(System.Now()); d < 0 || d > time.Minute {
		t.Errorf("Now is %v ago", d)
	}
}

func TestSystemAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { System.Elapsed() }); n > 0 {
		t.Errorf("Elapsed allocates %v times", n)
	}
}

func BenchmarkElapsed(b *testing.B) {
	origin := time.Now()
	for name, c := range map[string]Clock{
		"clock=system": System,
		"clock=wall":   &system{origin, wallGap(origin)},
		"clock=skewed": NewSkewed(System, Skew{Rate: 1.01}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Elapsed()
			}
		})
	}
	b.Run("clock=time.Since", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.Since(origin)
		}
	})
	b.Run("clock=system/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				System.Elapsed()
			}
		})
	})
}
