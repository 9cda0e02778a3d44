// What Unlock tells, and what must not hold it up.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// Unlock tells whether the lock was held to the end, even if nobody had noticed
// that its time was over.
func TestLeaseUnlockTooLate(t *testing.T) {
	for range 20 { // the answers come in any order
		synctest.Test(t, func(t *testing.T) {
			clk := clock.NewSkewed(clock.System, clock.Skew{})
			s := simulate(t, 5, redlock.WithClock(clk), redlock.WithoutRenewal())
			l := s.lock("x")
			synctest.Wait()
			clk.Suspend(time.Minute)
			err := l.Unlock(t.Context())
			is(t, err, redlock.ErrNotHeld)
			ended(t, l, redlock.ErrLost, redlock.ErrExpired)
			time.Sleep(time.Second)
			s.noLocks()
		})
	}
}

// Where a majority had lost the lock before, the work may have overlapped with
// another holder's, and Unlock must say so, in whatever order the nodes answer.
func TestLeaseUnlockTellsOfLoss(t *testing.T) {
	for late := range 5 {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 5, redlock.WithoutRenewal())
			l := s.lock("x")
			synctest.Wait()
			occupy("x", 0, s.first(3)...)
			for i := range 5 {
				s.Node((late+i)%5).Delay(0, time.Duration(i)*time.Millisecond)
			}
			is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
		})
	}
}

// Of several Unlocks at the same time one succeeds. The others must not say that
// the lock is released before it is.
func TestLeaseUnlockAtOnce(t *testing.T) {
	const callers = 8
	c := redlocktest.New(3)
	m := mutexOf(t, openClient(t, c.Nodes()), "x")
	for range 500 {
		l := mustLock(t, m)
		var succeeded atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range callers {
			wg.Go(func() {
				<-start
				if err := l.Unlock(t.Context()); err == nil {
					succeeded.Add(1)
					is(t, l.Err(), redlock.ErrUnlocked)
				} else {
					is(t, err, redlock.ErrNotHeld)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := succeeded.Load(); n != 1 {
			t.Fatalf("%d of %d Unlocks succeeded", n, callers)
		}
	}
}

// A call that a driver never returns from holds up the release of its node until
// its time is over, and no longer, whatever else is under way there.
func TestLeaseUnlockPastStuckCall(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%t", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, redlock.WithoutRenewal())
				l := s.lock("x")
				synctest.Wait()
				stuck := s.Node(0)
				stuck.IgnoreContext(true)
				stuck.DropReplies(true)
				noErr(t, l.Extend(t.Context()))
				time.Sleep(2 * time.Second) // its time is over
				stuck.IgnoreContext(false)
				stuck.DropReplies(false)
				stuck.Delay(0, 100*time.Millisecond)
				if busy {
					noErr(t, l.Extend(t.Context()))
				}
				noErr(t, l.Unlock(t.Context()))
				time.Sleep(2 * time.Second)
				s.noLocks()
				stuck.Restart(true) // the driver returns at last
			})
		})
	}
}

// An Extend that its caller gave up says nothing about the nodes, so it is not
// why the lease ends later.
func TestLeaseReasonOfLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithoutRenewal())
		l := s.lock("x")
		synctest.Wait()
		for _, n := range s.all() {
			n.Delay(0, 500*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		is(t, l.Extend(ctx), context.DeadlineExceeded)
		<-l.Done()
		ended(t, l, redlock.ErrLost, redlock.ErrExpired)
		isNot(t, l.Err(), redlock.ErrNoQuorum)
	})
}

// TestLeaseUnlockInNestedDo: the context of an inner lock ends with the outer lease
// too, and still does not cut short the Unlock that ends it.
func TestLeaseUnlockInNestedDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		for _, n := range s.all() {
			n.Delay(5*time.Millisecond, 5*time.Millisecond)
		}
		a, b := s.mutex("a"), s.mutex("b")
		noErr(t, a.Do(t.Context(), func(ctx context.Context, outer *redlock.Lease) error {
			return b.Do(ctx, func(ctx context.Context, _ *redlock.Lease) error { return outer.Unlock(ctx) })
		}))
	})
}

// TestLeaseUnlockForbidden: a node that refuses for good to release what it may have
// is reported, by Close and to the hook. One that had nothing is not.
func TestLeaseUnlockForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(3)
		var dropped []string
		client, err := redlock.New(c.Nodes(), redlock.WithTrace(&redlock.Trace{CleanupDropped: func(d redlock.CleanupDropped) {
			dropped = append(dropped, d.Node+" "+d.Err.Error())
		}}))
		noErr(t, err)
		noPerm := errors.New("NOPERM")
		c.Node(2).FailWith(noPerm, redlock.Forbidden)
		l, err := mutexOf(t, client, "x").TryLock(t.Context())
		noErr(t, err)
		synctest.Wait()
		c.Node(0).FailWith(noPerm, redlock.Forbidden, redlocktest.Release)
		err = l.Unlock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		synctest.Wait()
		if len(dropped) != 1 || !strings.HasPrefix(dropped[0], "node-0 ") {
			t.Errorf("reported: %q", dropped)
		}
		noErr(t, client.Close()) // which counts only its own

		client, err = redlock.New(c.Nodes())
		noErr(t, err)
		c.Node(0).Heal()
		c.Node(0).Del("lock:x")
		_, err = mutexOf(t, client, "x").TryLock(t.Context())
		noErr(t, err)
		synctest.Wait()
		c.Node(0).FailWith(noPerm, redlock.Forbidden, redlocktest.Release)
		if err := client.Close(); err == nil || !strings.Contains(err.Error(), "1 keys were not released") {
			t.Errorf("Close: %v", err)
		}
	})
}
