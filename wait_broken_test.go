// What waiters did wrong once: found by trying to break them.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestWaitBackoffKept: an attempt that fails although nobody has the lock is made again
// after the backoff, and not at once since the lock is free.
func TestWaitBackoffKept(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []redlock.Option
		delay time.Duration
		fault func(s *sim)
	}{
		"young nodes": {opts: []redlock.Option{redlock.WithCrashGuard(30 * time.Second)}, fault: func(s *sim) {
			for _, n := range s.all() {
				n.Restart(false)
			}
		}},
		"expired":       {opts: []redlock.Option{redlock.WithTTL(time.Second), redlock.WithMinValidity(985 * time.Millisecond)}, delay: 10 * time.Millisecond},
		"slow nodes":    {opts: []redlock.Option{redlock.WithTTL(time.Second), redlock.WithNodeTimeout(50 * time.Millisecond)}, delay: 30 * time.Millisecond},
		"counter ahead": {fault: func(s *sim) { s.counters(time.Hour, time.Hour, time.Hour) }},
		"one young node, one key": {opts: []redlock.Option{redlock.WithCrashGuard(30 * time.Second)}, fault: func(s *sim) {
			s.Node(0).Restart(false)
			occupy("x", 0, s.Node(1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				s := simulate(t, 3, append(c.opts, pauseOf(time.Second), redlock.WithTrace(&redlock.Trace{
					AttemptStart: func(redlock.AttemptStart) { attempts++ },
				}))...)
				for _, n := range s.all() {
					n.Delay(c.delay, c.delay)
				}
				if c.fault != nil {
					c.fault(s)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := s.mutex("x").Lock(ctx)
				is(t, err, context.DeadlineExceeded)
				if attempts < 8 || attempts > 12 {
					t.Errorf("%d attempts in ten seconds", attempts)
				}
				for _, n := range s.all() {
					n.Del("lock:x")
				}
				s.heal()
				s.gone()
			})
		})
	}
}

// counters sets the counters of lock x so far ahead.
func (s *sim) counters(ahead ...time.Duration) {
	for i, n := range s.first(len(ahead)) {
		n.Set(counterKey("x"), fmt.Sprint(time.Now().Add(ahead[i]).UnixMicro()), time.Hour)
	}
}

// TestWaitHopeless: one who cannot succeed does not keep out those behind it who can,
// and these are not told that they have failed.
func TestWaitHopeless(t *testing.T) {
	for name, bad := range map[string][]redlock.Option{
		"node timeout": {redlock.WithNodeTimeout(50 * time.Millisecond)},
		"validity":     {redlock.WithMinValidity(930 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, redlock.WithTTL(time.Second))
				for _, n := range s.all() {
					n.Delay(30*time.Millisecond, 30*time.Millisecond)
				}
				ctx, cancel := context.WithCancel(t.Context())
				hopeless := await(ctx, s.mutex("x", bad...))
				time.Sleep(time.Millisecond)
				start := time.Now()
				for range 5 {
					l := await(t.Context(), s.mutex("x")).within(t, time.Now(), 20*time.Second)
					noErr(t, l.Unlock(t.Context()))
				}
				if d := time.Since(start); d > 20*time.Second {
					t.Errorf("five locks took %v", d)
				}
				cancel()
				<-hopeless.done
				if hopeless.err == nil {
					t.Error("it was not hopeless")
				}
				time.Sleep(3 * time.Second)
				s.gone()
			})
		})
	}
}

// A slowDelist is a node that Delist comes late to.
type slowDelist struct{ *redlocktest.Node }

func (s slowDelist) Delist(ctx context.Context, p *redlock.Place) error {
	time.Sleep(5 * time.Millisecond)
	return s.Node.Delist(ctx, p)
}

// TestWaitOwnRelease: who has got the lock after a look, and releases it before the
// nodes have taken him out of the line, does not call himself.
func TestWaitOwnRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(time.Hour))
		var slow []redlock.Node
		for _, n := range s.all() {
			slow = append(slow, slowDelist{n})
		}
		occupy("x", 0, s.all()...)
		w := await(t.Context(), mutexOf(t, openClient(t, slow, pauseOf(time.Hour)), "x"))
		time.Sleep(1500 * time.Millisecond)
		next := await(t.Context(), s.mutex("x"))
		time.Sleep(1400 * time.Millisecond)
		drop("x", s.all()...)
		noErr(t, w.within(t, time.Now(), time.Second).Unlock(t.Context()))
		noErr(t, next.within(t, time.Now(), 10*time.Millisecond).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitUnheard: where nobody can listen, a waiter with a long backoff looks all the
// same.
func TestWaitUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		var nodes []redlock.Node
		for _, n := range s.all() {
			nodes = append(nodes, badListener{n, -1, new([]time.Time)})
		}
		occupy("x", 0, s.all()...)
		w := await(t.Context(), mutexOf(t, openClient(t, nodes, pauseOf(time.Hour)), "x"))
		time.Sleep(10 * time.Second)
		start := time.Now()
		drop("x", s.all()...)
		noErr(t, w.within(t, start, 4*time.Second).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitStepBack: nodes whose clocks are set back do not let those who come later go
// before one who waits.
func TestWaitStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3, redlock.WithoutFencing())
		_, m := s.another(redlock.WithoutFencing())
		held := mustLock(t, m)
		w := await(t.Context(), s.mutex("x"))
		time.Sleep(4 * time.Second)
		for _, n := range s.all() {
			n.Clock().Step(-time.Hour)
		}
		time.Sleep(4 * time.Second) // it asks again meanwhile
		var others []*waiting
		for range 5 {
			_, o := s.another(redlock.WithoutFencing())
			others = append(others, await(t.Context(), o))
		}
		time.Sleep(time.Second)
		noErr(t, held.Unlock(t.Context()))
		<-w.done
		for _, o := range others {
			if o.returned() {
				t.Error("one who came later was first")
			}
		}
		noErr(t, w.lease.Unlock(t.Context()))
		var all sync.WaitGroup
		for _, o := range others {
			all.Go(func() {
				<-o.done
				noErr(t, errors.Join(o.err, o.lease.Unlock(t.Context())))
			})
		}
		all.Wait()
		for _, n := range s.all() {
			n.Clock().Step(time.Hour)
		}
		s.gone()
	})
}

// TestWaitDeadContext: no attempt is begun for a caller who has left.
func TestWaitDeadContext(t *testing.T) {
	for at := range 300 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*100*time.Microsecond)
			defer cancel()
			s := distant(t, 3, pauseOf(5*time.Millisecond), redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) {
				if ctx.Err() != nil {
					t.Errorf("an attempt began %v after the deadline", at)
				}
			}}))
			occupy("x", 0, s.all()...)
			time.AfterFunc(15*time.Millisecond, func() { drop("x", s.all()...) })
			if l, err := s.mutex("x").Lock(ctx); err == nil {
				noErr(t, l.Unlock(t.Context()))
			}
			s.heal()
			time.Sleep(20 * time.Millisecond)
			s.gone()
		})
	}
}

// TestWaitFewAttempts: one in line who may make few attempts makes the last one in fact,
// and has waited as long as if it had made the others.
func TestWaitFewAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(0), redlock.WithNodeTimeout(time.Second))
		occupy("x", 0, s.all()...)
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, s.mutex("x"))
		time.Sleep(time.Second)
		start := time.Now()
		_, err := s.mutex("x", redlock.WithMaxAttempts(20)).Lock(t.Context())
		is(t, err, redlock.ErrTaken)
		if d := time.Since(start); d < 19*32*time.Millisecond || d > 19*96*time.Millisecond {
			t.Errorf("20 attempts took %v", d)
		}
		drop("x", s.all()...)
		for _, n := range s.all() {
			n.Blackhole(true)
		}
		_, err = s.mutex("x", redlock.WithMaxAttempts(3)).Lock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		cancel()
		<-first.done
		s.heal()
		time.Sleep(10 * time.Second) // nodes that were not reached have a line for as long
		s.gone()
	})
}
