// The end of a lease is seen everywhere at once, whatever the clock does meanwhile.

package redlock_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestLeaseEndToldAtOnce: whoever hears from Err that the lease has ended finds
// Done closed, and the other way round.
func TestLeaseEndToldAtOnce(t *testing.T) {
	t.Parallel()
	c := openClient(t, redlocktest.New(3).Nodes())
	const askers = 8
	for i := range 1000 {
		l := mustLock(t, mutexOf(t, c, fmt.Sprint(i)))
		done := l.Done()
		agree := make(chan bool)
		for range askers {
			go func() {
				for l.Err() == nil {
				}
				select {
				case <-done:
					agree <- true
				default:
					agree <- false
				}
			}()
			go func() {
				<-done
				agree <- l.Err() != nil
			}()
		}
		mustUnlock(t, l)
		for range 2 * askers {
			if !<-agree {
				t.Errorf("lease %d: Err and Done did not agree", i)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// A leaper is a clock that leaps when it is read for the leap-th time.
type leaper struct {
	clock.Clock
	leap  atomic.Int64 // readings left until then
	ahead atomic.Int64
}

func (c *leaper) Elapsed() time.Duration {
	if c.leap.Add(-1) == 0 {
		c.ahead.Store(int64(time.Hour))
	}
	return c.Clock.Elapsed() + time.Duration(c.ahead.Load())
}

// TestExtendLeap: the machine sleeps for an hour at each instant at which Extend
// looks at the clock. No renewal, however well the nodes confirm it, makes the
// lease held again.
func TestExtendLeap(t *testing.T) {
	leaps := 0
	for at := int64(1); ; at++ {
		leapt := false
		synctest.Test(t, func(t *testing.T) {
			c := &leaper{Clock: clock.System}
			s := simulate(t, 3, redlock.WithClock(c), redlock.WithoutRenewal())
			l := s.lock("x")
			synctest.Wait()
			c.leap.Store(at)
			err := l.Extend(t.Context())
			if leapt = c.ahead.Load() > 0; !leapt {
				noErr(t, err)
				c.leap.Store(0)
				return
			}
			if l.Err() == nil || l.Remaining() > 0 {
				t.Errorf("after a leap at reading %d the lease is held, for %v; Extend said %v", at, l.Remaining(), err)
			}
			synctest.Wait()
			s.noLocks()
		})
		if !leapt {
			break
		}
		leaps++
	}
	if leaps < 4 {
		t.Errorf("Extend looked at the clock only %d times", leaps)
	}
}

// TestExtendLeapUnderWay: the machine sleeps past the deadline while a renewal is under way,
// for so short that the renewal would be good for longer. It does not revive the lease.
func TestExtendLeapUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaper{Clock: clock.System}
		s := simulate(t, 3, redlock.WithClock(c), redlock.WithoutRenewal())
		l := s.lock("x")
		time.Sleep(5 * time.Second) // as much is left
		for _, n := range s.all() {
			n.Delay(time.Millisecond, 0) // all are sent before
			n.Observe(func(call redlocktest.Call) {
				if call.Op == redlocktest.Extend {
					c.ahead.Store(int64(6 * time.Second))
				}
			})
		}
		is(t, l.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrLost, redlock.ErrExpired)
		is(t, l.Err(), redlock.ErrLost)
		time.Sleep(time.Second)
		s.noLocks()
	})
}

// TestExtendAtTheDeadline: a renewal that is won a nanosecond before the deadline
// counts, one that is won at it does not.
func TestExtendAtTheDeadline(t *testing.T) {
	for _, early := range []time.Duration{1, 0, -1} {
		t.Run(fmt.Sprint(early), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, redlock.WithoutRenewal())
				l := s.lock("x")
				synctest.Wait()
				const underWay = 500 * time.Millisecond
				for _, n := range s.all() {
					n.Delay(underWay/2, underWay/2)
				}
				time.Sleep(l.Remaining() - underWay - early)
				err := l.Extend(t.Context())
				if early > 0 {
					noErr(t, err)
					noErr(t, l.Err())
					return
				}
				is(t, err, redlock.ErrNotHeld, redlock.ErrLost, redlock.ErrExpired)
				is(t, l.Err(), redlock.ErrLost)
			})
		})
	}
}

// TestLeaseAtTheDeadline: a lease is not held at its deadline, and is a nanosecond before
// it, although no timer has told.
func TestLeaseAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaper{Clock: clock.System}
		s := simulate(t, 3, redlock.WithClock(c), redlock.WithoutRenewal())
		l := s.lock("x")
		left := l.Remaining()
		c.ahead.Store(int64(left - 1))
		noErr(t, l.Err())
		c.ahead.Store(int64(left))
		if err := l.Err(); !errors.Is(err, redlock.ErrLost) {
			t.Errorf("at the deadline Err is %v", err)
			_ = l.Unlock(t.Context())
		}
		time.Sleep(time.Second)
		s.noLocks()
	})
}
