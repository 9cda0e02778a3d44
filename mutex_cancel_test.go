// A caller who leaves, at whatever moment, leaves nothing behind.

package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// Whatever a caller's context ends in the middle of, the caller returns at that
// moment and no node keeps a lock.
func TestLockCancelledAnywhere(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for run := range 300 {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d, run %d", seed, run)
				}
			}()
			s := simulate(t, 1+rng.IntN(5), redlock.WithNodeTimeout(100*time.Millisecond), pauseOf(7*time.Millisecond))
			for _, n := range s.all() {
				n.Delay(time.Duration(rng.IntN(12))*time.Millisecond, time.Duration(rng.IntN(12))*time.Millisecond)
				switch rng.IntN(8) {
				case 0:
					occupy("x", 0, n)
				case 1:
					n.DropReplies(true)
				case 2:
					n.LoseReplies(rng.IntN(3))
				case 3:
					n.Pause()
				case 4:
					n.Late(time.Duration(rng.IntN(200)) * time.Millisecond)
				case 5:
					n.IgnoreContext(true)
					n.DropReplies(true)
				}
			}
			patience := time.Duration(rng.IntN(30)) * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var l *redlock.Lease
			var err error
			d := took(func() { l, err = s.mutex("x").Lock(ctx) })
			if err == nil {
				// The longest that the caller could wait, and was lucky.
				noErr(t, l.Unlock(t.Context()))
			} else {
				exactly(t, "lock", d, patience)
				is(t, err, context.DeadlineExceeded)
			}
			time.Sleep(100 * time.Millisecond)
			s.heal()
			time.Sleep(400 * time.Millisecond)
			for _, n := range s.all() {
				if v, _, ok := n.Get("lock:x"); ok && v != foreign {
					t.Errorf("%s holds %q", n.Name(), v)
				}
				n.Restart(true) // drivers that ignore their contexts return
			}
		})
	}
}

// A lock that is granted at the moment at which its caller leaves is nobody's.
func TestLockCancelledByAnswer(t *testing.T) {
	for range 100 { // what is noticed first is chance
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 1)
			ctx, cancel := context.WithCancel(t.Context())
			s.Node(0).Observe(func(redlocktest.Call) { cancel() })
			l, err := s.mutex("x").TryLock(ctx)
			if l != nil {
				t.Error("a lease for a caller who had left")
			}
			is(t, err, context.Canceled)
			time.Sleep(time.Second)
			s.noLocks()
		})
	}
}

// A command may be so late that its tombstone has expired. If its driver is still
// there to hear that it was granted, it is released then.
func TestLockGrantedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 1, redlock.WithTTL(10*time.Second))
		n := s.Node(0)
		n.IgnoreContext(true)
		n.Delay(15*time.Second, 0)
		time.AfterFunc(500*time.Millisecond, n.Heal) // the release is on time
		_, err := s.mutex("x").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if c := n.Calls(); len(c) != 3 || c[1].Op != redlocktest.Acquire || c[1].Verdict != redlock.Granted || c[2].Verdict != redlock.Released {
			t.Errorf("calls %+v", c)
		}
		s.noLocks()
	})
}

// TestLockCutShort: a waiter whose time ends amid an attempt is told what the one
// before it found, and not that there was no quorum, which sounds like an outage.
func TestLockCutShort(t *testing.T) {
	for _, attempts := range []int{0, 1, 2} { // before the one that is cut short
		t.Run(fmt.Sprint(attempts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *sim
				begun := 0
				s = simulate(t, 5, pauseOf(time.Second), redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) {
					if begun++; begun > attempts {
						for _, n := range s.all() {
							n.Blackhole(true)
						}
					}
				}}))
				occupy("x", time.Hour, s.all()...)
				// Half way from the last attempt to its node timeout.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(attempts)*time.Second+500*time.Millisecond)
				defer cancel()
				_, err := s.mutex("x").Lock(ctx)
				want, not := redlock.ErrTaken, redlock.ErrNoQuorum
				if attempts == 0 {
					want, not = not, want
				}
				is(t, err, context.DeadlineExceeded, want)
				isNot(t, err, not)
				if begun != attempts+1 {
					t.Errorf("%d attempts", begun)
				}
			})
		})
	}
}

// TestLockCutShortFree: the same where the lock was free since, so that the attempt that
// is cut short is one that was sent.
func TestLockCutShortFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *sim
		begun := 0
		s = simulate(t, 3, pauseOf(time.Second), redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) {
			if begun++; begun > 1 {
				for _, n := range s.all() {
					n.Blackhole(true)
				}
			}
		}}))
		occupy("x", 0, s.all()...)
		time.AfterFunc(900*time.Millisecond, func() { drop("x", s.all()...) })
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := s.mutex("x").Lock(ctx)
		is(t, err, context.DeadlineExceeded, redlock.ErrTaken)
		isNot(t, err, redlock.ErrNoQuorum)
		if begun != 2 {
			t.Errorf("%d attempts", begun)
		}
	})
}

// TestLockWonTooLate: a vote that is won when nothing is left of the validity is no lock,
// and its keys are given back.
func TestLockWonTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, way = 100 * time.Millisecond, 97 * time.Millisecond // drift takes 3 ms
		s := simulate(t, 3, redlock.WithTTL(ttl), redlock.WithNodeTimeout(ttl-time.Millisecond))
		for _, n := range s.all() {
			n.Delay(0, way)
		}
		l, err := s.mutex("x").TryLock(t.Context())
		if l != nil {
			t.Errorf("a lease of %v", l.Remaining())
		}
		is(t, err, redlock.ErrExpired)
		synctest.Wait()
		s.noLocks()
	})
}
