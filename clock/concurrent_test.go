// Skewed in the hands of many goroutines.

package clock

import (
	"sync"
	"testing"
	"time"
)

// TestSkewedConcurrent is for the race detector: each method runs in a loop of
// its own, over a base without locks that would put the loops in order.
func TestSkewedConcurrent(t *testing.T) {
	c := NewSkewed(still{}, Skew{})
	stopped, reset := c.AfterFunc(1, nil), c.AfterFunc(1, nil)
	var all sync.WaitGroup
	for range 20 {
		begin := make(chan struct{})
		for _, do := range []func(i int){
			func(int) { c.Elapsed() },
			func(int) { c.Now() },
			func(i int) { c.SetRate(float64(1 + i)) },
			func(i int) { c.Step(time.Duration(i)) },
			func(i int) { c.Suspend(time.Duration(i)) },
			func(int) { c.AfterFunc(0, func() {}) },
			func(int) { stopped.Stop() },
			func(int) { reset.Reset(1) },
		} {
			all.Go(func() {
				<-begin
				for i := range 100 {
					do(i)
				}
			})
		}
		close(begin)
		all.Wait()
	}
}

// A still clock stands still, and calls only what is due at once.
type still struct{}

func (still) Elapsed() time.Duration   { return 0 }
func (still) Now() time.Time           { return time.Time{} }
func (still) Stop() bool               { return false }
func (still) Reset(time.Duration) bool { return false }

func (still) AfterFunc(d time.Duration, f func()) Timer {
	if d == 0 {
		go f()
	}
	return still{}
}

// TestSkewedNeverBack runs on real time while the clock is changed: a reading
// that begins after another has ended is never lower.
func TestSkewedNeverBack(t *testing.T) {
	c := NewSkewed(System, Skew{})
	var all, calls sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := time.Duration(0)
			for i := range 500 {
				c.SetRate(float64(1+i%5) / 2)
				now := c.Elapsed()
				if now < last {
					t.Errorf("%v after %v", now, last)
				}
				last = now
				calls.Add(2)
				c.AfterFunc(time.Duration(i%50), calls.Done)
				c.AfterFunc(time.Hour, calls.Done).Reset(time.Duration(i % 50))
				c.AfterFunc(time.Hour, nil).Stop()
			}
		})
	}
	all.Wait()
	calls.Wait()
	if n := len(c.timers); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}
