// What is news to a waiter whose last attempt failed by something else than a holder.

package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// split makes an attempt fail on three nodes though no quorum of them is taken, and lets
// somebody wait who would make the next one in an hour.
func split(t *testing.T) (*sim, *waiting) {
	s := distant(t, 3, pauseOf(time.Hour))
	s.Node(0).Refuse(true)
	occupy("x", 0, s.Node(1))
	w := await(t.Context(), s.mutex("x"))
	time.Sleep(time.Second)
	return s, w
}

// TestWaitNewsCalled: who is called by one node, and finds the lock free then, makes an
// attempt, though he has not seen that it was taken.
func TestWaitNewsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := split(t)
		s.Node(0).Refuse(false)
		drop("x", s.Node(1))
		time.Sleep(10 * time.Second)
		if w.returned() {
			t.Fatal("the backoff was not kept")
		}
		waiters, _ := s.Node(2).Line(s.lineOf())
		start := time.Now()
		call(t, s.Node(2), waiters[0])
		noErr(t, w.within(t, start, 10*time.Millisecond+10*oneWay).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitNewsFirst: who has failed once though nobody had the lock is still the first.
func TestWaitNewsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, first := split(t)
		second := await(t.Context(), s.mutex("x"))
		time.Sleep(time.Second)
		s.Node(0).Refuse(false)
		drop("x", s.Node(1))
		time.Sleep(4 * time.Second) // it is listed everywhere
		waiters, _ := s.Node(2).Line(s.lineOf())
		start := time.Now()
		call(t, s.Node(2), waiters[0])
		l := first.within(t, start, 10*time.Millisecond+10*oneWay)
		if second.returned() {
			t.Error("the second was before it")
		}
		noErr(t, l.Unlock(t.Context()))
		noErr(t, second.within(t, time.Now(), 4*time.Second).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitNewsTaken: the same if a look has shown that it was taken, also where a node
// fails and the others know.
func TestWaitNewsTaken(t *testing.T) {
	for name, seen := range map[string]func(s *sim){
		"by all":        func(s *sim) { s.Node(0).Refuse(false); occupy("x", 0, s.all()...) },
		"by the others": func(s *sim) { s.Node(2).Delay(oneWay, 10*oneWay); occupy("x", 0, s.Node(2)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w := split(t)
				seen(s)
				time.Sleep(4 * time.Second) // it looks every three
				s.Node(0).Refuse(false)
				drop("x", s.all()...)
				noErr(t, w.within(t, time.Now(), 4*time.Second).Unlock(t.Context()))
				s.gone()
			})
		})
	}
}

// TestWaitNewsAgain: a lock that was free, and taken since, is left to those in front
// again when it is free the next time.
func TestWaitNewsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3, pauseOf(time.Hour))
		occupy("x", 0, s.all()...)
		w := await(t.Context(), s.mutex("x"))
		time.Sleep(4 * time.Second)
		key := s.lineOf()
		s.stranger(t.Context(), key, 1)
		for again := range 2 {
			looked, acquires := s.nextLook()
			drop("x", s.all()...)
			start := <-looked
			if again == 0 {
				occupy("x", 0, s.all()...)
				time.Sleep(5 * time.Second)
				if acquires.Load() > 0 {
					t.Fatal("it did not leave the lock to the one in front")
				}
				continue
			}
			l := w.within(t, start, 16*time.Millisecond+6*oneWay)
			if d := w.at.Sub(start); d < 8*time.Millisecond {
				t.Errorf("it left the lock to the one in front for %v", d)
			}
			noErr(t, l.Unlock(t.Context()))
		}
		s.strangerLeaves(key, 1)
		s.gone()
	})
}

// looks counts those that reach a node from now on.
func (s *sim) looks(node int) *atomic.Int64 {
	n := new(atomic.Int64)
	s.Node(node).Observe(func(c redlocktest.Call) {
		if c.Op == redlocktest.Enlist {
			n.Add(1)
		}
	})
	return n
}

// TestWaitAtOnce: without a backoff there is one look before the next attempt.
func TestWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithMaxAttempts(2), pauseOf(0))
		occupy("x", 0, s.all()...)
		looks := s.looks(0)
		_, err := s.mutex("x").Lock(t.Context())
		is(t, err, redlock.ErrTaken)
		drop("x", s.all()...)
		s.gone()
		if n := looks.Load(); n != 1 {
			t.Errorf("it looked %d times", n)
		}
	})
}

// TestWaitTurnFree: one whose turn has come leaves a free lock to those in front as well.
func TestWaitTurnFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3, pauseOf(time.Hour))
		occupy("x", 0, s.all()...)
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, s.mutex("x"))
		time.Sleep(time.Second)
		w := await(t.Context(), s.mutex("x"))
		key := s.lineOf()
		s.stranger(t.Context(), key, 1)
		looked, _ := s.nextLook()
		drop("x", s.all()...)
		cancel()
		<-first.done
		start := <-looked
		l := w.within(t, start, 16*time.Millisecond+6*oneWay)
		if d := w.at.Sub(start); d < 8*time.Millisecond {
			t.Errorf("it left the lock to the one in front for %v", d)
		}
		noErr(t, l.Unlock(t.Context()))
		s.strangerLeaves(key, 1)
		s.gone()
	})
}

// TestWaitAlone: who has seen nobody else does not look, but waits for its backoff.
func TestWaitAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		s := simulate(t, 3, redlock.WithMaxAttempts(4), pauseOf(time.Second), redlock.WithTrace(&redlock.Trace{
			AttemptStart: func(redlock.AttemptStart) { attempts++ },
		}))
		looks := s.looks(0)
		s.Node(1).Refuse(true)
		s.Node(2).Refuse(true)
		exactly(t, "Lock", took(func() {
			_, err := s.mutex("x").Lock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
		}), 3*time.Second)
		if n := looks.Load(); n > 0 || attempts != 4 {
			t.Errorf("%d looks and %d attempts", n, attempts)
		}
		s.heal()
		s.gone()
	})
}

// TestWaitFewNamed: who has called somebody on less than a quorum of nodes is not polite
// to him.
func TestWaitFewNamed(t *testing.T) {
	for named := 1; named <= 2; named++ {
		synctest.Test(t, func(t *testing.T) {
			s := distant(t, 3)
			l := s.lock("x")
			for i := range named { // one who waits there, and hears, but will not come
				ready := make(chan struct{})
				go func() { _ = s.Node(i).Listen(t.Context(), "other", func() { close(ready) }, func(string) {}) }()
				<-ready
				_, err := s.Node(i).Enlist(t.Context(), &redlock.Place{
					Lock: "lock:x", Queue: "redlock:queue:{lock:x}lock:x", Waiter: "other/1", Life: time.Minute,
				})
				noErr(t, err)
			}
			noErr(t, l.Unlock(t.Context()))
			time.Sleep(oneWay) // the last node has answered too
			looks := s.looks(2)
			l, err := s.mutex("x").Lock(t.Context())
			noErr(t, err)
			noErr(t, l.Unlock(t.Context()))
			if n := looks.Load(); (n > 0) != (named >= 2) {
				t.Errorf("after %d nodes have called somebody it looked %d times", named, n)
			}
			time.Sleep(2 * time.Minute)
			s.gone()
		})
	}
}
