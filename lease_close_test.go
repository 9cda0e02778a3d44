// Client.Close: what is held, waited for and under way when a client ends.

package redlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// Leases end with ErrClosed, and their keys are released, by the time Close
// returns. That is no loss: it was asked for.
func TestCloseEndsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		var leases []*redlock.Lease
		var contexts []context.Context
		for _, name := range []string{"a", "b", "c"} {
			l := s.lock(name)
			leases = append(leases, l)
			contexts = append(contexts, l.Context())
		}
		unlocked := s.lock("d")
		noErr(t, unlocked.Unlock(t.Context()))
		synctest.Wait()
		for _, n := range s.all() {
			n.Delay(10*time.Millisecond, 10*time.Millisecond)
			n.Observe(func(c redlocktest.Call) {
				if c.Op == redlocktest.Release {
					for _, l := range leases {
						is(t, l.Err(), redlock.ErrClosed)
					}
				}
			})
		}
		exactly(t, "close", took(func() { noErr(t, s.client.Close()) }), 20*time.Millisecond)
		s.noLocks()
		for i, l := range leases {
			ended(t, l, redlock.ErrClosed)
			isNot(t, l.Err(), redlock.ErrLost, redlock.ErrUnlocked)
			is(t, context.Cause(contexts[i]), redlock.ErrClosed)
			is(t, l.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrClosed)
			is(t, l.Unlock(t.Context()), redlock.ErrNotHeld, redlock.ErrClosed)
			is(t, l.Unlock(t.Context()), redlock.ErrNotHeld, redlock.ErrClosed)
		}
		ended(t, unlocked, redlock.ErrUnlocked)

		// From now on nothing is sent, ever.
		for _, n := range s.all() {
			n.ResetCalls()
		}
		m := s.mutex("x")
		_, err := m.Lock(t.Context())
		is(t, err, redlock.ErrClosed)
		_, err = m.TryLock(t.Context())
		is(t, err, redlock.ErrClosed)
		is(t, m.Do(t.Context(), func(context.Context, *redlock.Lease) error { t.Error("fn was called"); return nil }), redlock.ErrClosed)
		noErr(t, s.client.Close())
		time.Sleep(time.Hour)
		if n := s.executed(everyOp...); n > 0 {
			t.Errorf("%d commands after Close", n)
		}
	})
}

// A Lock that waits returns at once, and says why it waited.
func TestCloseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithBackoff(func(int, float64) time.Duration { return time.Hour }))
		occupy("x", 0, s.all()...)
		done := make(chan error)
		for range 3 {
			go func() { _, err := s.mutex("x").Lock(t.Context()); done <- err }()
		}
		time.Sleep(time.Minute)
		exactly(t, "close", took(func() {
			noErr(t, s.client.Close())
			for range 3 {
				err := <-done
				is(t, err, redlock.ErrClosed, redlock.ErrTaken)
				isNot(t, err, context.Canceled)
			}
		}), 0)
	})
}

// A lock that is granted when the client is closed already is nobody's.
func TestCloseMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		for _, n := range s.all() {
			n.Delay(100*time.Millisecond, 100*time.Millisecond)
		}
		done := make(chan error)
		go func() {
			l, err := s.mutex("x").Lock(t.Context())
			if l != nil {
				t.Error("a lease of a closed client")
			}
			done <- err
		}()
		time.Sleep(50 * time.Millisecond)
		closed := make(chan error)
		go func() { closed <- s.client.Close() }()
		is(t, <-done, redlock.ErrClosed)
		noErr(t, <-closed)
		s.noLocks()
	})
}

// Whoever calls Close twice, or at the same time, gets no second report.
func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		l := s.lock("x")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := s.client.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		ended(t, l, redlock.ErrClosed)
		s.noLocks()
	})
}

// Nodes that do not answer hold Close up for a bounded time. It then says that
// keys were left to their TTL.
func TestCloseGivesUp(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 5, redlock.WithNodeTimeout(300*time.Millisecond))
			s.lock("x")
			synctest.Wait()
			for _, n := range s.first(2) {
				n.IgnoreContext(ignores)
				n.Blackhole(true)
			}
			var err error
			d := took(func() { err = s.client.Close() })
			if most := 4*300*time.Millisecond + time.Second; d > most || d < 300*time.Millisecond {
				t.Errorf("Close took %v", d)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "redlock: close: ") {
				t.Errorf("Close: %v", err)
			}
			if n := len(s.locks()); n != 2 {
				t.Errorf("%d nodes hold the lock", n)
			}
			noErr(t, s.client.Close())
			s.heal()
			for _, n := range s.first(2) {
				n.Restart(true) // the driver returns at last
			}
			time.Sleep(10*time.Second + time.Millisecond)
			s.noLocks()
		})
	}
}

// A stoppable clock runs a function when a timer of it is stopped.
type stoppable struct {
	clock.Clock
	onStop *func()
}

type stoppableTimer struct {
	clock.Timer
	onStop *func()
}

func (c stoppable) AfterFunc(d time.Duration, f func()) clock.Timer {
	return stoppableTimer{c.Clock.AfterFunc(d, f), c.onStop}
}

func (t stoppableTimer) Stop() bool {
	if f := *t.onStop; f != nil {
		*t.onStop = nil
		f()
	}
	return t.Timer.Stop()
}

// A lease that ends by itself while the client closes is released by one of the
// two. A lease stops its timer when it ends; Close comes just then.
func TestCloseWhileLeaseEnds(t *testing.T) {
	for _, how := range []string{"unlocked", "lost"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clock.NewSkewed(clock.System, clock.Skew{})
				var onStop func()
				var err error
				s := simulate(t, 3, redlock.WithClock(stoppable{clk, &onStop}), redlock.WithoutRenewal())
				other := s.mutex("y")
				l := s.lock("x")
				synctest.Wait()
				closed := make(chan error, 1)
				onStop = func() {
					go func() { closed <- s.client.Close() }()
					for !errors.Is(err, redlock.ErrClosed) { // until the client is closing
						_, err = other.TryLock(t.Context())
					}
				}
				if how == "lost" {
					clk.Suspend(time.Minute)
					is(t, l.Err(), redlock.ErrLost)
				} else {
					_ = l.Unlock(t.Context())
					is(t, l.Err(), redlock.ErrUnlocked)
				}
				noErr(t, <-closed)
				s.noLocks()
			})
		})
	}
}

// The same for a lease that is lost when Close has begun, but has not come to it.
func TestCloseWhileOtherLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewSkewed(clock.System, clock.Skew{})
		var onStop func()
		s := simulate(t, 3, redlock.WithClock(stoppable{clk, &onStop}), redlock.WithoutRenewal())
		leases := []*redlock.Lease{s.lock("x"), s.lock("y")}
		synctest.Wait()
		onStop = func() { // Close ends one of them
			clk.Suspend(time.Minute)
			done := make(chan struct{}, len(leases))
			for _, l := range leases {
				go func() {
					_ = l.Err() // of the other, that is its end
					done <- struct{}{}
				}()
			}
			<-done
		}
		noErr(t, s.client.Close())
		s.noLocks()
	})
}

// All leases end before the first key is released: the holders of the others must
// not go on while somebody else is let in.
func TestCloseEndsAllFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var onStop, hook func()
		s := simulate(t, 3, redlock.WithClock(stoppable{clock.System, &onStop}))
		for _, name := range []string{"x", "y", "z"} {
			s.lock(name)
		}
		synctest.Wait()
		ends := 0
		hook = func() { // when a lease ends
			ends++
			synctest.Wait()
			if n := s.executed(redlocktest.Release); n > 0 && ends <= 3 {
				t.Errorf("%d releases when %d of 3 leases had ended", n, ends-1)
			}
			onStop = hook
		}
		onStop = hook
		noErr(t, s.client.Close())
		if ends < 3 {
			t.Errorf("%d ends", ends)
		}
		s.noLocks()
	})
}
