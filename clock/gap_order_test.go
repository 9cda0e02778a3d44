// A gap that several calls look at, at once or in an unlucky order.

package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGapStale: a call that read the other clock before a jump, and goes on once
// another call has counted it, does not take its reading for a step back. The
// jump would then be counted again.
func TestGapStale(t *testing.T) {
	c, g := newClocks()
	inner := false
	g.other = func() time.Duration {
		v := c.other()
		if !inner {
			inner = true
			c.lead += time.Hour
			c.wantSeen(t, g, time.Hour)
		}
		return v
	}
	c.wantSeen(t, g, time.Hour)
	c.wantSeen(t, g, time.Hour)
}

// TestGapSettlesAlone: two calls that settle at the same time would each write
// what they have read, the older one last.
func TestGapSettlesAlone(t *testing.T) {
	c, g := newClocks()
	g.other = func() time.Duration {
		if c.readings > 1 && g.mu.TryLock() {
			t.Error("settle reads a clock without the lock")
			g.mu.Unlock()
		}
		return c.other()
	}
	c.readings = 0
	c.lead += time.Hour
	c.wantSeen(t, g, time.Hour)
	if c.readings != 5 {
		t.Errorf("%d readings, want 5", c.readings)
	}
}

// TestGapConcurrent: whatever the interleaving, nobody sees the sum go back, and
// each jump is counted once.
func TestGapConcurrent(t *testing.T) {
	const jumps, length = 20_000, time.Hour
	var lead atomic.Int64
	start := time.Now()
	mono := func() time.Duration { return time.Since(start) }
	other := func() time.Duration { return time.Since(start) + time.Duration(lead.Load()) }
	g := newGap(mono, other, noise)

	var readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			for last := time.Duration(0); !stop.Load(); {
				jumped := time.Duration(lead.Load())
				m := mono()
				seen := g.seen(m)
				if now := m + seen; now < last || seen < jumped-time.Minute {
					t.Errorf("%v after %v, seen %v of %v", now, last, seen, jumped)
					return
				}
				last = m + seen
			}
		})
	}
	for i := range jumps {
		// The whole jump is seen by a reading that starts after it.
		lead.Add(int64(length))
		want := time.Duration(i+1) * length
		if got := g.seen(mono()); got.Round(time.Minute) != want {
			t.Errorf("seen %v after %d jumps, want %v", got, i+1, want)
		}
	}
	stop.Store(true)
	readers.Wait()
}
