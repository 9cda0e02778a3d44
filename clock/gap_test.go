// A gap with two scripted clocks: what counts as a suspend and what does not.

package clock

import (
	"testing"
	"time"
)

const noise = time.Millisecond

// clocks are two clocks that run alike, except that a test moves lead. Each
// reading can be followed by a delay, which passes on both.
type clocks struct {
	now, lead time.Duration
	delays    []time.Duration // after the next readings; none once used up
	readings  int
}

func (c *clocks) read(t time.Duration) time.Duration {
	c.readings++
	if len(c.delays) > 0 {
		c.now += c.delays[0]
		c.delays = c.delays[1:]
	}
	return t
}

func (c *clocks) mono() time.Duration  { return c.read(c.now) }
func (c *clocks) other() time.Duration { return c.read(c.now + c.lead) }

func newClocks() (*clocks, *gap) {
	c := &clocks{now: time.Hour, lead: time.Minute}
	return c, newGap(c.mono, c.other, noise)
}

// wantSeen checks what g has seen in all.
func (c *clocks) wantSeen(t *testing.T, g *gap, want time.Duration) {
	t.Helper()
	if got := g.seen(c.mono()); got != want {
		t.Errorf("seen %v, want %v", got, want)
	}
}

func TestGapJump(t *testing.T) {
	c, g := newClocks()
	c.wantSeen(t, g, 0) // that the other clock was ahead from the start is no jump
	c.now += time.Hour
	c.wantSeen(t, g, 0)
	c.lead += time.Second
	c.wantSeen(t, g, time.Second)
	c.wantSeen(t, g, time.Second)
	c.now += time.Hour
	c.lead += time.Hour
	c.wantSeen(t, g, time.Second+time.Hour)
}

func TestGapNoise(t *testing.T) {
	c, g := newClocks()
	for range 100 {
		c.lead += noise - 1
		c.wantSeen(t, g, 0)
		c.lead -= noise - 1
		c.wantSeen(t, g, 0)
	}
	c.lead += noise - 1
	c.wantSeen(t, g, 0)
	c.lead++
	c.wantSeen(t, g, noise)
	c.lead += noise - 1
	c.wantSeen(t, g, noise)

	// Nor does it add up when delays make it look like more.
	for range 100 {
		c.delays = []time.Duration{time.Minute}
		c.wantSeen(t, g, noise)
		c.lead -= noise - 1
		c.wantSeen(t, g, noise)
		c.lead += noise - 1
	}
}

// TestGapReadings: how often the clocks are read, each a system call.
func TestGapReadings(t *testing.T) {
	c, g := newClocks()
	for _, tt := range []struct {
		name   string
		happen func()
		want   int
	}{
		{"nothing", func() {}, 2},
		{"a delay", func() { c.delays = []time.Duration{time.Minute} }, 5},
		{"a jump", func() { c.lead += time.Minute }, 5},
		{"a step back", func() { c.lead -= time.Minute }, 5},
	} {
		tt.happen()
		c.readings = 0
		g.seen(c.mono())
		if c.readings != tt.want {
			t.Errorf("%s: %d readings, want %d", tt.name, c.readings, tt.want)
		}
	}
}

// TestGapBack: a clock that is set back does not take away what was counted, and
// does not hide the next jump. The largest difference so far would.
func TestGapBack(t *testing.T) {
	c, g := newClocks()
	c.lead += time.Hour
	c.wantSeen(t, g, time.Hour)
	c.lead -= 3 * time.Hour
	c.wantSeen(t, g, time.Hour)
	c.lead += time.Minute
	c.wantSeen(t, g, time.Hour+time.Minute)

	// The same within the noise: it is not taken off the next jump.
	c.lead -= noise / 2
	c.wantSeen(t, g, time.Hour+time.Minute)
	c.lead += time.Minute
	c.wantSeen(t, g, time.Hour+2*time.Minute)
}

// TestGapDelay: being off the processor between two readings is no suspend, no
// matter how many readings it disturbs.
func TestGapDelay(t *testing.T) {
	// The readings are: mono for seen, other in seen, then three per attempt.
	for disturbed := range 2 + 3*attempts + 5 {
		for _, each := range []bool{false, true} {
			c, g := newClocks()
			for i := range disturbed + 1 {
				var d time.Duration
				if each || i == disturbed {
					d = time.Minute
				}
				c.delays = append(c.delays, d)
			}
			c.wantSeen(t, g, 0)
			c.delays = nil
			c.wantSeen(t, g, 0)

			// Nothing of it is left over to be taken for a jump, or off one.
			c.lead += time.Second
			c.wantSeen(t, g, time.Second)
		}
	}
}

// TestGapJumpAmidDelay: a jump is seen through delays shorter than itself, and
// is never counted short.
func TestGapJumpAmidDelay(t *testing.T) {
	for disturbed := range 2 + 3*attempts {
		c, g := newClocks()
		for range disturbed {
			c.delays = append(c.delays, time.Second)
		}
		c.lead += time.Hour
		if got := g.seen(c.mono()); got < time.Hour || got > time.Hour+time.Second {
			t.Errorf("%d readings disturbed: seen %v, want an hour", disturbed, got)
		}
	}
}

// TestGapJumpHidden: a jump that is shorter than the delays is found as soon as
// there are none.
func TestGapJumpHidden(t *testing.T) {
	c, g := newClocks()
	for range 2 + 3*attempts {
		c.delays = append(c.delays, time.Minute)
	}
	c.lead += time.Second
	c.wantSeen(t, g, 0)
	c.wantSeen(t, g, time.Second)
}

func TestGapSaturates(t *testing.T) {
	c, g := newClocks()
	const century = 100 * 365 * 24 * time.Hour
	last := time.Duration(0)
	for range 5 {
		c.lead += century
		got := g.seen(c.mono())
		if got < last {
			t.Fatalf("seen %v after %v", got, last)
		}
		last = got
		c.lead -= century
		g.seen(c.mono())
	}
	if last != latest {
		t.Errorf("seen %v after five centuries, want the largest Duration", last)
	}
}
