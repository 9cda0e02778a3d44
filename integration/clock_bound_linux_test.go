// Server clocks that are off by more than the clock bound, and fencing tokens.

package integration_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestClockBound: a minority that is an hour ahead has no say in the token, and is
// not missed, unless others are down. A majority has, and nobody can lock its names
// for an hour when its clocks are right again, but with a bound that is as wide.
func TestClockBound(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	all := []int{0, 1, 2, 3, 4}
	ahead := func(token int64) time.Duration {
		return time.Until(time.UnixMicro(token)).Round(time.Millisecond)
	}

	t.Run("minority", func(t *testing.T) {
		f := f.in(t)
		f.set(time.Hour, 0, 1)
		attempts := 0
		count := redlock.WithTrace(&redlock.Trace{AttemptDone: func(redlock.AttemptDone) { attempts++ }})
		m := mutexOf(t, f.open([]redlock.Option{count}), "minority")
		const times = 20
		for range times {
			l := f.lock(m)
			if d := ahead(l.FencingToken()); d > 10*time.Second {
				t.Fatalf("the fencing token %d is ahead by %v", l.FencingToken(), d)
			}
			f.unlock(l)
			f.settled(l, 0) // what is left would fail the next attempt
		}
		if attempts > 2*times {
			t.Errorf("%d attempts to lock %d times", attempts, times)
		}

		some := all[:4] // of those that are right, one is down
		err := f.refuses(mutexOf(t, f.open(nil, some...), "minority"), redlock.ErrNoQuorum)
		tellsBound(t, err)
		for _, opt := range []redlock.Option{redlock.WithClockBound(time.Hour), redlock.WithoutFencing()} {
			f.unlock(f.lock(mutexOf(t, f.open([]redlock.Option{opt}, some...), "minority, otherwise")))
		}
	})

	t.Run("majority", func(t *testing.T) {
		f := f.in(t)
		f.set(time.Hour, 0, 1, 2)
		client := f.open(nil)
		m := mutexOf(t, client, "majority")
		l := f.lock(m)
		if d := ahead(l.FencingToken()); d < 50*time.Minute {
			t.Errorf("the fencing token %d is ahead by %v only", l.FencingToken(), d)
		}
		f.settled(l, 5)

		f.set(0, all...)
		f.refuses(m, redlock.ErrTaken)
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		f.unlock(l)
		f.settled(l, 0)
		err := f.refuses(m, redlock.ErrNoQuorum)
		tellsBound(t, err)
		f.unlock(f.lock(mutexOf(t, client, "majority, another name")))
		next := f.lock(mutexOf(t, f.open([]redlock.Option{redlock.WithClockBound(time.Hour)}), "majority"))
		if next.FencingToken() <= l.FencingToken() {
			t.Errorf("the fencing token %d came after %d", next.FencingToken(), l.FencingToken())
		}
		f.unlock(next)
	})
}
