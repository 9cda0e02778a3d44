// What a waiter leaves to others, and what it does not do.

package redlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// strangerLeaves takes one out of the line.
func (s *sim) strangerLeaves(key string, number int) {
	for _, n := range s.all() {
		noErr(s.t, n.Delist(s.t.Context(), &redlock.Place{Lock: "lock:x", Queue: key, Waiter: fmt.Sprint("dead/", number)}))
	}
}

// TestWaitGivesWay: a waiter that finds the lock free leaves it to those in front, but
// only as long as these come to something.
func TestWaitGivesWay(t *testing.T) {
	for _, moving := range []bool{false, true} {
		t.Run(fmt.Sprint("moving=", moving), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := distant(t, 3, pauseOf(time.Second))
				occupy("x", 0, s.all()...)
				w := await(t.Context(), s.mutex("x"))
				time.Sleep(4*time.Second + 200*time.Millisecond)
				key := s.lineOf()
				for i := range 3 {
					s.stranger(t.Context(), key, i)
				}
				looked, _ := s.nextLook()
				drop("x", s.all()...)
				start := <-looked
				if moving {
					for i := range 2 {
						time.Sleep(7 * time.Millisecond) // a look comes 8 to 16 ms after the other
						s.strangerLeaves(key, i)
					}
				}
				least, most := 8*time.Millisecond, 16*time.Millisecond+6*oneWay
				if moving {
					least, most = 2*least, 3*most
				}
				l := w.within(t, start, most)
				if d := w.at.Sub(start); d < least {
					t.Errorf("it did not leave the lock to those in front for more than %v", d)
				}
				noErr(t, l.Unlock(t.Context()))
				s.strangerLeaves(key, 2)
				s.gone()
			})
		})
	}
}

// nextLook tells when the first node has answered the next look, and counts the acquires
// that reach nodes from then on.
func (s *sim) nextLook() (looked chan time.Time, acquires *atomic.Int64) {
	looked, acquires = make(chan time.Time, 1), new(atomic.Int64)
	for i, n := range s.all() {
		n.Observe(func(c redlocktest.Call) {
			switch {
			case c.Key != "lock:x":
			case c.Op == redlocktest.Enlist && i == 0:
				select {
				case looked <- time.Now():
				default:
				}
			case c.Op == redlocktest.Acquire:
				acquires.Add(1)
			}
		})
	}
	return looked, acquires
}

// TestWaitFewCalls: less than a quorum of calls is no reason for an attempt, and calls
// from before a look do not add to those after it. Those of one release are waited for
// before a look.
func TestWaitFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, pauseOf(time.Hour))
		occupy("x", 0, s.all()...)
		w := await(t.Context(), s.mutex("x"))
		time.Sleep(2900 * time.Millisecond)
		waiters, _ := s.Node(0).Line(s.lineOf())
		looked, acquires := s.nextLook()
		for _, nodes := range [][]int{{0, 1}, {2, 3}, {4}, {0, 1}} {
			start := time.Now()
			for _, i := range nodes {
				call(t, s.Node(i), waiters[0])
			}
			if d := (<-looked).Sub(start); d < 2*time.Millisecond || d > 6*time.Millisecond {
				t.Errorf("a look came %v after the calls", d)
			}
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if acquires.Load() > 0 || w.returned() {
			t.Errorf("%d acquires", acquires.Load())
		}
		for i, n := range s.all() {
			time.AfterFunc(time.Duration(i)*100*time.Microsecond, func() { call(t, n, waiters[0]) })
		}
		time.Sleep(time.Second)
		if n := acquires.Load(); n < 3 || n > 5 { // of one attempt: it ends when three have answered
			t.Errorf("%d acquires after a quorum of calls", n)
		}
		drop("x", s.all()...)
		noErr(t, w.within(t, time.Now(), 4*time.Second).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitTurn: one whose turn comes since the one before has left only looks.
func TestWaitTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(time.Hour))
		occupy("x", 0, s.all()...)
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, s.mutex("x"))
		synctest.Wait()
		second := await(t.Context(), s.mutex("x"))
		synctest.Wait()
		_, acquires := s.nextLook()
		cancel()
		<-first.done
		time.Sleep(time.Second)
		if acquires.Load() > 0 {
			t.Errorf("%d acquires", acquires.Load())
		}
		drop("x", s.all()...)
		noErr(t, second.within(t, time.Now(), 4*time.Second).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitLateEnlist: who leaves while it is being listed is taken off the list after
// that, however late it is.
func TestWaitLateEnlist(t *testing.T) {
	for _, replies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 3)
			occupy("x", 0, s.all()...)
			ctx, cancel := context.WithCancel(t.Context())
			w := await(ctx, s.mutex("x"))
			time.Sleep(2 * time.Second)
			for _, n := range s.all() {
				n.Delay(50*time.Millisecond, 0)
				n.DropReplies(replies)
			}
			time.Sleep(300 * time.Millisecond) // less than 50 ms of which it does not look
			var delists [3]atomic.Int64
			for i, n := range s.all() {
				n.Delay(0, 0)
				n.Observe(func(c redlocktest.Call) {
					if c.Op == redlocktest.Delist {
						delists[i].Add(1)
					}
				})
			}
			cancel()
			<-w.done
			time.Sleep(30 * time.Millisecond)
			s.heal()
			drop("x", s.all()...)
			s.gone()
			for i := range delists {
				if n := delists[i].Load(); n != 1 {
					t.Errorf("it left the line of node %d %d times", i, n)
				}
			}
		})
	}
}

// TestWaitForgotten: a client remembers nothing of locks that nobody waits for.
func TestWaitForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3)
		other, _ := s.another()
		for i := range 200 {
			name := fmt.Sprint("x", i)
			l := mustLock(t, mutexOf(t, other, name))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			w, late := await(ctx, s.mutex(name)), await(t.Context(), s.mutex(name))
			<-w.done
			noErr(t, l.Unlock(t.Context()))
			<-late.done
			noErr(t, late.err)
			noErr(t, late.lease.Unlock(t.Context()))
			cancel()
		}
		time.Sleep(time.Second)
		if a, b := s.client.Waiting(), other.Waiting(); a > 0 || b > 0 {
			t.Errorf("they remember %d and %d", a, b)
		}
		s.gone()
	})
}

// TestWaitLooksSeldom: a waiter that looks and expects to be called does so as seldom as
// that is worth, whatever its backoff is, and not twice at a time.
func TestWaitLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3, pauseOf(0))
		occupy("x", 0, s.all()...)
		w := await(t.Context(), s.mutex("x"))
		time.Sleep(time.Second)
		looks := s.looks(0)
		const each = 64*time.Millisecond + 2*oneWay // on an average
		time.Sleep(100 * each)
		if n := looks.Load(); n < 80 || n > 125 {
			t.Errorf("%d looks in the time of a hundred", n)
		}
		drop("x", s.all()...)
		noErr(t, w.within(t, time.Now(), time.Second).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitLookFails: a look at the end of a wait that cannot tell is followed by an
// attempt, and says nothing of a holder.
func TestWaitLookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(time.Second))
		occupy("x", 0, s.all()...)
		time.AfterFunc(500*time.Millisecond, func() {
			for _, n := range s.all() {
				n.Refuse(true)
			}
		})
		_, err := s.mutex("x", redlock.WithMaxAttempts(2)).Lock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, redlock.ErrTaken)
		drop("x", s.all()...)
	})
}

// TestWaitKnown: those in line are told what the first of them has found.
func TestWaitKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(time.Hour)) // or the first would give way, and the other ask for himself
		for _, n := range s.first(2) {
			n.Refuse(true)
		}
		ofFirst, leave := context.WithCancel(t.Context())
		first := await(ofFirst, s.mutex("x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.mutex("x").Lock(ctx)
		is(t, err, context.DeadlineExceeded, redlock.ErrNoQuorum)
		leave()
		<-first.done
		s.heal()
		s.gone()
	})
}

// TestWaitAgain: a client goes on listening for somebody who came before it had left off.
func TestWaitAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3, pauseOf(time.Hour))
		_, m := s.another(redlock.WithTTL(time.Hour))
		held := mustLock(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.mutex("x").Lock(ctx)
		is(t, err, context.DeadlineExceeded, redlock.ErrTaken)
		time.Sleep(500 * time.Millisecond)
		w := await(t.Context(), s.mutex("x"))
		time.Sleep(2500 * time.Millisecond)
		start := time.Now()
		noErr(t, held.Unlock(t.Context()))
		noErr(t, w.within(t, start, 10*oneWay).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitExpiry: a waiter is there when a holder that died expires, whether its backoff
// is longer or shorter.
func TestWaitExpiry(t *testing.T) {
	for _, backoff := range []time.Duration{time.Hour, 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := distant(t, 3, pauseOf(backoff))
			occupy("x", 10*time.Second, s.all()...)
			start := time.Now()
			w := await(t.Context(), s.mutex("x"))
			noErr(t, w.within(t, start, 10*time.Second+20*time.Millisecond).Unlock(t.Context()))
			s.gone()
		})
	}
}

// TestWaitCloseInstants: Close comes at each millisecond of the way of one who waits.
func TestWaitCloseInstants(t *testing.T) {
	for at := range 40 {
		synctest.Test(t, func(t *testing.T) {
			s := distant(t, 3)
			c, m := s.another(pauseOf(5 * time.Millisecond))
			occupy("x", 0, s.all()...)
			w, behind := await(t.Context(), m), await(t.Context(), m)
			time.Sleep(time.Duration(at) * time.Millisecond)
			if d := took(func() { noErr(t, c.Close()) }); d > 10*oneWay {
				t.Errorf("at %d ms Close took %v", at, d)
			}
			<-w.done
			<-behind.done
			is(t, w.err, redlock.ErrClosed)
			is(t, behind.err, redlock.ErrClosed)
			drop("x", s.all()...)
			s.gone()
		})
	}
}
