// How a lease ends: lost, or unlocked.

package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A lease is lost when so many nodes deny the token that no quorum can hold it,
// with what they said as the cause. What a minority still has is released.
func TestLeaseLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		taken   int // nodes that another holder has
		absent  int
		silent  int
		want    error // nil: it is not lost
		notThat error
	}{
		{"taken", 3, 0, 0, redlock.ErrTaken, redlock.ErrNotHeld},
		{"gone", 0, 3, 0, redlock.ErrNotHeld, redlock.ErrTaken},
		{"some of each", 2, 1, 0, redlock.ErrNotHeld, redlock.ErrTaken},
		{"some of each, and silence", 1, 2, 2, redlock.ErrNotHeld, redlock.ErrTaken},
		{"everywhere", 0, 5, 0, redlock.ErrNotHeld, redlock.ErrTaken},
		{"a minority", 1, 1, 0, nil, nil},
		{"silence", 0, 0, 3, nil, nil},
		{"a minority and silence", 2, 0, 1, nil, nil},
	} {
		for _, automatic := range []bool{false, true} {
			name := c.name
			if automatic {
				name += ", renewed by the client"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var opts []redlock.Option
					if !automatic {
						opts = append(opts, redlock.WithoutRenewal())
					}
					s := simulate(t, 5, opts...)
					l := s.lock("x")
					ctx := l.Context()
					synctest.Wait()
					nodes := s.all()
					occupy("x", 0, nodes[:c.taken]...)
					drop("x", nodes[c.taken:c.taken+c.absent]...)
					for _, n := range nodes[5-c.silent:] {
						n.Blackhole(true)
					}
					var err error
					if automatic {
						time.Sleep(6 * time.Second)
						err = l.Err()
					} else {
						err = l.Extend(t.Context())
					}
					if c.want == nil {
						held(t, l)
						s.heal()
						_ = l.Unlock(t.Context())
						return
					}
					is(t, err, c.want)
					isNot(t, err, c.notThat, redlock.ErrExpired)
					ended(t, l, redlock.ErrLost, c.want)
					isNot(t, l.Err(), c.notThat, redlock.ErrExpired)
					is(t, context.Cause(ctx), redlock.ErrLost)

					// Lost for good: whatever the nodes say later, nothing but
					// releases is sent.
					s.heal()
					synctest.Wait()
					drop("x", nodes[:c.taken]...)
					time.Sleep(2 * time.Second)
					s.noLocks()
					for _, n := range nodes {
						n.ResetCalls()
					}
					is(t, l.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrLost)
					time.Sleep(time.Minute)
					if n := s.executed(everyOp...); n > 0 {
						t.Errorf("%d commands after the loss", n)
					}
					is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
					ended(t, l, redlock.ErrLost, c.want)
				})
			})
		}
	}
}

// A failed extension costs nothing but time: the lease is held until its
// deadline, and the next extension may succeed.
func TestLeaseExtendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithoutRenewal())
		l := s.lock("x")
		synctest.Wait()
		for _, n := range s.first(3) {
			n.LoseReplies(1) // they renew it, and nobody hears
		}
		is(t, l.Extend(t.Context()), redlock.ErrNoQuorum)
		held(t, l)
		time.Sleep(time.Second)
		noErr(t, l.Extend(t.Context()))
		exactly(t, "remaining", l.Remaining(), 9898*time.Millisecond)
		noErr(t, l.Unlock(t.Context()))
	})
}

// The local state ends before the first release is sent: whoever the release lets
// in must not overlap with a holder who does not know yet.
func TestLeaseUnlockEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		l := s.lock("x")
		ctx := l.Context()
		synctest.Wait()
		var releases atomic.Int32
		for _, n := range s.all() {
			n.Observe(func(c redlocktest.Call) {
				if c.Op == redlocktest.Release {
					releases.Add(1)
					is(t, l.Err(), redlock.ErrUnlocked)
					is(t, ctx.Err(), context.Canceled)
					is(t, context.Cause(ctx), redlock.ErrUnlocked)
				}
			})
		}
		noErr(t, l.Unlock(t.Context()))
		synctest.Wait()
		if n := releases.Load(); n != 5 {
			t.Errorf("%d releases", n)
		}
		ended(t, l, redlock.ErrUnlocked)
		isNot(t, l.Err(), redlock.ErrLost)

		// Once is enough.
		is(t, l.Unlock(t.Context()), redlock.ErrNotHeld, redlock.ErrUnlocked)
		is(t, l.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrUnlocked)
		time.Sleep(time.Minute)
		if n := s.executed(redlocktest.Extend); n > 0 || releases.Load() != 5 {
			t.Errorf("%d extensions and %d releases", n, releases.Load())
		}
	})
}

// A caller whose context has ended has no time to wait, but its lock is released
// everywhere all the same.
func TestLeaseUnlockCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		l := s.lock("x")
		synctest.Wait()
		for _, n := range s.all() {
			n.Delay(5*time.Millisecond, 5*time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		exactly(t, "unlock", took(func() { is(t, l.Unlock(ctx), context.Canceled) }), 0)
		ended(t, l, redlock.ErrUnlocked)
		time.Sleep(10 * time.Millisecond)
		s.noLocks()

		// Also if it ends meanwhile.
		l = s.lock("x")
		time.Sleep(10 * time.Millisecond)
		ctx, cancel = context.WithTimeout(t.Context(), 7*time.Millisecond)
		defer cancel()
		exactly(t, "unlock", took(func() { is(t, l.Unlock(ctx), context.DeadlineExceeded) }), 7*time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		s.noLocks()
		if n := s.executed(redlocktest.Release); n != 10 {
			t.Errorf("%d releases", n)
		}
	})
}

// A release that gets no answer is repeated until there is one, and so are all
// others for the same node.
func TestLeaseUnlockRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		leases := []*redlock.Lease{s.lock("x"), s.lock("y"), s.lock("z")}
		synctest.Wait()
		for _, n := range s.first(3) {
			n.Refuse(true)
		}
		for _, l := range leases {
			exactly(t, "unlock", took(func() { is(t, l.Unlock(t.Context()), redlock.ErrNoQuorum) }), 0)
		}
		time.Sleep(3 * time.Second)
		if n := len(s.locks()); n != 9 {
			t.Errorf("3 nodes hold %d locks", n)
		}
		s.heal()
		time.Sleep(time.Second)
		s.noLocks()
	})
}

// It ends when the key must have expired. Who listens is told.
func TestLeaseUnlockGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped atomic.Int32
		s := simulate(t, 3, redlock.WithTrace(&redlock.Trace{CleanupDropped: func(e redlock.CleanupDropped) {
			dropped.Add(1)
			if e.Name != "x" || e.Node != "node-0" || e.Err == nil {
				t.Errorf("%+v", e)
			}
		}}))
		l := s.lock("x")
		synctest.Wait()
		s.Node(0).Refuse(true)
		noErr(t, l.Unlock(t.Context()))
		time.Sleep(9 * time.Second)
		if n := dropped.Load(); n != 0 {
			t.Error("given up while the key was there")
		}
		time.Sleep(3 * time.Second)
		if n := dropped.Load(); n != 1 {
			t.Errorf("given up %d times", n)
		}
		s.heal()
		s.Node(0).ResetCalls()
		time.Sleep(time.Minute)
		if c := s.Node(0).Calls(); len(c) > 0 {
			t.Errorf("calls %+v", c)
		}
	})
}

// An Unlock while an extension is under way to the same node comes after it.
func TestLeaseUnlockAfterExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		l := s.lock("x")
		synctest.Wait()
		for _, n := range s.all() {
			n.Delay(100*time.Millisecond, 100*time.Millisecond)
		}
		done := make(chan error)
		go func() { done <- l.Extend(t.Context()) }()
		time.Sleep(50 * time.Millisecond)
		for _, n := range s.all() {
			n.Delay(0, 0) // the release would overtake
			n.Observe(func(c redlocktest.Call) {
				if c.Op == redlocktest.Release && n.Calls()[len(n.Calls())-2].Op != redlocktest.Extend {
					t.Errorf("%s: %v", n.Name(), n.Calls())
				}
			})
		}
		noErr(t, l.Unlock(t.Context()))
		is(t, <-done, redlock.ErrNotHeld, redlock.ErrUnlocked)
		ended(t, l, redlock.ErrUnlocked)
		time.Sleep(time.Second)
		s.noLocks()
	})
}

// A countingClock counts its readings.
type countingClock struct {
	clock.Clock
	readings *atomic.Int64
}

func (c countingClock) Elapsed() time.Duration {
	c.readings.Add(1)
	return c.Clock.Elapsed()
}

// Once all leases have ended, a client has nothing to look at the clock for.
func TestLeaseLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		s := simulate(t, 3, redlock.WithClock(countingClock{clock.System, &readings}))
		for _, name := range []string{"x", "y", "z"} {
			l := s.lock(name)
			time.Sleep(5 * time.Second)
			noErr(t, l.Unlock(t.Context()))
		}
		time.Sleep(10 * time.Second)
		before := readings.Load()
		time.Sleep(time.Hour)
		if n := readings.Load() - before; n > 0 {
			t.Errorf("%d readings of the clock in an hour without leases", n)
		}
	})
}
