// Server clocks that are stepped back while a lock is held, so that keys outlive
// their TTL.

package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestClockStepBack: others are told at once that the lock is taken, and an unlock
// frees it at once. But a fencing counter that is ahead of the clocks of a majority
// by more than the clock bound keeps everybody out, from names used before.
func TestClockStepBack(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	for _, c := range []struct {
		by    time.Duration
		nodes []int
		opt   redlock.Option
		ahead bool // of the clock bound
	}{
		{-6 * time.Second, []int{0, 1}, asItIs, false},
		{-6 * time.Second, []int{0, 1, 2, 3, 4}, asItIs, false},
		{-time.Hour, []int{0, 1}, asItIs, false},
		{-time.Hour, []int{0, 1, 2}, asItIs, true},
		{-time.Hour, []int{0, 1, 2}, redlock.WithoutFencing(), false},
		{-time.Hour, []int{0, 1, 2, 3, 4}, asItIs, true},
	} {
		name := fmt.Sprintf("%v on %d, ahead %v", c.by, len(c.nodes), c.ahead)
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			client := f.open([]redlock.Option{c.opt})
			b := mutexOf(t, client, name)
			a := f.lock(mutexOf(t, f.open([]redlock.Option{c.opt}), name))
			f.settled(a, 5)
			f.set(c.by, c.nodes...)
			f.refuses(b, redlock.ErrTaken)
			err := f.waits(b)
			is(t, err, redlock.ErrTaken, context.DeadlineExceeded)
			if err := a.Extend(t.Context()); err != nil {
				t.Error(err)
			}
			f.unlock(a)
			f.settled(a, 0)

			if c.ahead {
				err = f.refuses(b, redlock.ErrNoQuorum)
				tellsBound(t, err)
				is(t, f.waits(b), redlock.ErrNoQuorum, context.DeadlineExceeded)
				f.unlock(f.lock(mutexOf(t, client, name+", new"))) // has no counters yet
				f.set(0, c.nodes...)
			}
			next := f.lock(b)
			if next.FencingToken() < a.FencingToken() {
				t.Errorf("the fencing token %d came after %d", next.FencingToken(), a.FencingToken())
			}
			f.unlock(next)
		})
	}
}

// waits fails the test if Lock waits for longer than it was told to.
func (c *clocks) waits(m *redlock.Mutex) error {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := m.Lock(ctx)
	if d := time.Since(start); err == nil || d > quick {
		c.Errorf("Lock returned %v after %v", err, d)
	}
	return err
}

// TestClockStepBackDead: the holder dies. A minority that was stepped back does not
// keep others out after the TTL. A majority does, for as long as it was stepped back
// or until its clocks are right again.
func TestClockStepBackDead(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithoutRenewal()}
	// lock takes the lock of a holder that dies, before some clocks are stepped.
	lock := func(f *clocks, by time.Duration, nodes ...int) (a *redlock.Lease, b *redlock.Mutex, start time.Time) {
		f.Helper()
		b = mutexOf(f, f.open(opts), "m")
		client, die := f.mortal(opts)
		start = time.Now()
		a = f.lock(mutexOf(f, client, "m"))
		f.settled(a, 5)
		die()
		f.set(by, nodes...)
		return a, b, start
	}

	t.Run("a minority by an hour", func(t *testing.T) {
		f := startClocks(t)
		a, b, start := lock(f, -time.Hour, 0, 1)
		l := f.lock(b)
		if a.Err() == nil {
			t.Errorf("two holders: the first has %v left", a.Remaining())
		}
		if d := time.Since(start); d > ttl+10*time.Second {
			t.Errorf("the lock was free after %v", d)
		}
		f.settled(l, 3)
		if nodes, lives := f.on(a); !slices.Equal(nodes, []int{0, 1}) || slices.Min(lives) < 50*time.Minute {
			t.Errorf("the dead holder's keys on the nodes %v live for another %v", nodes, lives)
		}
		f.unlock(l)
	})

	t.Run("a majority by an hour", func(t *testing.T) {
		f := startClocks(t)
		a, b, _ := lock(f, -time.Hour, 0, 1, 2)
		<-a.Done()
		is(t, f.waits(b), redlock.ErrTaken)
		nodes, lives := f.on(a) // the others' keys may be there for another moment
		if len(nodes) < 3 || slices.Max(lives) < 50*time.Minute {
			t.Errorf("the dead holder's keys on the nodes %v live for another %v", nodes, lives)
		}
		t.Logf("after its TTL the dead holder's keys live for another %v", lives)
		f.set(0, 0, 1, 2)
		f.unlock(f.lock(b))
	})

	t.Run("a majority by 6 s", func(t *testing.T) {
		if testing.Short() {
			t.Skip("NOT TESTED with -short: takes eight seconds")
		}
		const by = 6 * time.Second
		f := startClocks(t)
		a, b, start := lock(f, -by, 0, 1, 2)
		l := f.lock(b)
		d := time.Since(start)
		if a.Err() == nil || d < ttl+by || d > ttl+by+10*time.Second {
			t.Errorf("the lock was free after %v", d)
		}
		t.Logf("a lock of %v was free after %v", ttl, d)
		_ = l.Unlock(t.Context())
	})
}
