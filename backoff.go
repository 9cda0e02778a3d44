// How long a waiter waits between two attempts.

package redlock

import (
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A Backoff returns how long to wait after the given attempt, the first being
// 1, has failed; random is uniform in [0, 1). A negative result counts as zero.
//
// It should be a pure function, since all calls of Lock share it, and use
// random: contenders that come back at the same moment split the votes again.
type Backoff func(attempt int, random float64) time.Duration

// fullJitter is the default Backoff: anywhere in a window that doubles from
// 16 ms to 256 ms. The specification asks for delays well above the time that
// a majority takes to answer, and the whole window, not a part of it, is random
// so that contenders spread out as widely as the delay allows.
func fullJitter(attempt int, random float64) time.Duration {
	const first, last = 16 * time.Millisecond, 256 * time.Millisecond
	window := first << min(max(attempt, 1)-1, 4)
	return time.Duration(random * float64(min(window, last)))
}

// delay returns how long to wait after attempt, at least so long. If the present
// holder's keys will have expired before the backoff ends, it is woken for that
// instead: free is when, and 0 if that is not known.
func (m *Mutex) delay(attempt int, least, free time.Duration) time.Duration {
	d := max(m.set.backoff(attempt, m.set.random()), least)
	if free <= 0 {
		return d
	}
	// A node drops a key up to a millisecond after its expiry. The rest is
	// jitter against the other waiters who see the same expiry.
	free += time.Millisecond + m.set.upTo(3*time.Millisecond)
	return min(d, free)
}

// upTo returns a random time of at most d.
func (s *settings) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random() * float64(max(d, 0)+1))
}

// A chancy is a clock that is also where chance comes from. A simulation brings one,
// since it must be able to run again as it ran before; owner tokens, which nobody may
// foresee, never come from it.
type chancy interface {
	clock.Clock
	Random() float64 // in [0, 1)
}

func dice(c clock.Clock) func() float64 {
	if r, ok := c.(chancy); ok {
		return r.Random
	}
	return rand.Float64
}
