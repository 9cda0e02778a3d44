// Server clocks that are stepped forward while a lock is held, so that keys expire
// before their time: how many it takes until a second client gets the lock.

package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestClockStepForward holds both sides of the bound in docs/safety.md: with h of N
// nodes held, it takes Q-(N-h) that step past the TTL, and no fewer.
func TestClockStepForward(t *testing.T) {
	t.Parallel()
	var (
		wide     = redlock.WithClockBound(time.Hour)
		unfenced = redlock.WithoutFencing()
	)
	const hour, ttl = time.Hour, 10 * time.Second
	f := startClocks(t)
	for i, c := range []struct {
		held, stepped int
		by, ttl       time.Duration
		opt           redlock.Option
		want          error // nil: there are two holders
	}{
		{3, 0, hour, ttl, wide, redlock.ErrTaken},
		{3, 1, hour, ttl, wide, nil},
		{3, 1, hour, ttl, unfenced, nil},
		{3, 1, hour, ttl, asItIs, redlock.ErrNoQuorum}, // see below
		{3, 1, 6 * time.Second, 5 * time.Second, asItIs, nil},
		{3, 3, 6 * time.Second, ttl, asItIs, redlock.ErrTaken}, // not past the TTL
		{5, 2, hour, ttl, asItIs, redlock.ErrTaken},
		{5, 3, hour, ttl, asItIs, nil},
		{5, 2, 6 * time.Second, 5 * time.Second, asItIs, redlock.ErrTaken},
		{5, 3, 6 * time.Second, 5 * time.Second, asItIs, nil},
		{5, 5, 6 * time.Second, ttl, asItIs, redlock.ErrTaken},
	} {
		name := fmt.Sprintf("%d of %d held stepped by %v, TTL %v, %d", c.stepped, c.held, c.by, c.ttl, i)
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			opts := []redlock.Option{redlock.WithTTL(c.ttl), redlock.WithoutRenewal(), c.opt}
			nodes := []int{0, 1, 2, 3, 4}
			b := mutexOf(t, f.open(opts), name)
			a := f.lock(mutexOf(t, f.open(opts, nodes[:c.held]...), name))
			f.settled(a, c.held)

			f.set(c.by, nodes[:c.stepped]...)
			if c.want == nil {
				second, err := b.TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				f.both(a, second)
				f.unlock(second)
				return
			}
			err := f.refuses(b, c.want)
			if a.Err() != nil {
				t.Fatalf("the lease has ended, so this says nothing: %v", a.Err())
			}
			// The two that nobody had a lock on, and the one that stepped, would
			// make a quorum. But a token that the clock bound allows there is not
			// to be had from a clock that is far ahead.
			if c.want == redlock.ErrNoQuorum {
				tellsBound(t, err)
			}
		})
	}
}
