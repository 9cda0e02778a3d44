// Finding out what the monotonic clock has missed.

package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// A gap adds up the jumps of another clock ahead of the monotonic one.
//
// It does not simply take the largest difference of the two so far. If the wall
// clock was an hour fast and was set right, a suspend of less than an hour would
// then go unseen. So after each jump, and when the other clock falls back, the
// difference at that time is the level from which the next jump is measured.
type gap struct {
	mono, other func() time.Duration

	// noise is what the readings may be apart by chance. Smaller jumps do not
	// count, so that chance does not add up.
	noise time.Duration

	level atomic.Int64 // other minus mono: the least since the last jump
	total atomic.Int64 // of all jumps; never decreases

	mu sync.Mutex // held to change level or total
}

// newGap returns a gap that has seen no jump yet.
func newGap(mono, other func() time.Duration, noise time.Duration) *gap {
	g := &gap{mono: mono, other: other, noise: noise}
	before := mono()
	g.level.Store(int64(other() - before))
	return g
}

// seen returns the sum of all jumps up to now. mono is a reading of the
// monotonic clock taken just before; it saves one in the usual case.
//
// The other clock is read after mono, so a delay in between can only make it
// look further ahead than it is. If it looks close, nothing has happened. If it
// looks far ahead, that was a suspend or a delay, and settle finds out which.
func (g *gap) seen(mono time.Duration) time.Duration {
	if lead := g.other() - mono - time.Duration(g.level.Load()); lead >= 0 && lead < g.noise {
		return time.Duration(g.total.Load())
	}
	return g.settle()
}

// attempts is how often to repeat a reading that a delay has disturbed. One takes
// about a microsecond, so this many disturbed ones in a row are most unlikely.
const attempts = 10

// settle is seen for the unusual case. It takes readings of its own: those of seen
// may be older than what another call has settled since, or, in a synctest
// bubble, of another time.
func (g *gap) settle() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	level, total := time.Duration(g.level.Load()), time.Duration(g.total.Load())
	for range attempts {
		before := g.mono()
		other := g.other()
		after := g.mono()

		// The true difference lies between these, whatever the delays.
		least, most := other-after, other-before
		switch {
		case least-level >= g.noise: // a jump for certain
			total = saturatingAdd(total, most-level)
			g.total.Store(int64(total)) // before level: who sees the new level sees it
			g.level.Store(int64(most))
			return total
		case most < level: // fallen back
			g.level.Store(int64(most))
			return total
		case most-level < g.noise: // no jump for certain
			return total
		}
	}
	return total // the next call will look again
}
