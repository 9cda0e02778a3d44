// What a holder is told, and when: the local deadline, the clock, the context,
// and extensions.

package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

func TestLeaseNil(t *testing.T) {
	for name, l := range map[string]*redlock.Lease{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			if l.Name() != "" || l.Token() != "" || !l.Deadline().IsZero() || l.Remaining() != 0 {
				t.Errorf("name %q, token %q, deadline %v, remaining %v", l.Name(), l.Token(), l.Deadline(), l.Remaining())
			}
			is(t, l.Err(), redlock.ErrNotHeld)
			is(t, l.Extend(t.Context()), redlock.ErrNotHeld)
			is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
			is(t, l.Extend(nil), redlock.ErrNotHeld) //nolint:staticcheck // not even a context
			select {
			case <-l.Done():
			default:
				t.Error("not done")
			}
			is(t, l.Context().Err(), context.Canceled)
			is(t, context.Cause(l.Context()), redlock.ErrNotHeld)
		})
	}
}

// ended checks that l tells everybody that it has ended, and why.
func ended(t testing.TB, l *redlock.Lease, why ...error) {
	t.Helper()
	is(t, l.Err(), why...)
	exactly(t, "remaining", l.Remaining(), 0)
	is(t, l.Context().Err(), context.Canceled)
	if cause := context.Cause(l.Context()); cause != l.Err() {
		t.Errorf("the context's cause is %v, Err is %v", cause, l.Err())
	}
	select {
	case <-l.Done():
	default:
		t.Error("Done is still open")
	}
}

// held checks the opposite.
func held(t testing.TB, l *redlock.Lease) {
	t.Helper()
	noErr(t, l.Err())
	noErr(t, l.Context().Err())
	noErr(t, context.Cause(l.Context()))
	if l.Remaining() <= 0 {
		t.Errorf("held, with %v remaining", l.Remaining())
	}
	select {
	case <-l.Done():
		t.Error("held, and Done is closed")
	default:
	}
}

// The lease ends at its local deadline, on the client's own clock, and no node
// has a say in that.
func TestLeaseDeadline(t *testing.T) {
	for _, rate := range []float64{0.5, 1, 1.01, 2} {
		for _, silence := range []bool{false, true} {
			t.Run(fmt.Sprintf("rate=%v/silent=%t", rate, silence), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const ttl = 10 * time.Second
					clk := clock.NewSkewed(clock.System, clock.Skew{Rate: rate, Offset: 24 * time.Hour})
					opts := []redlock.Option{redlock.WithClock(clk), redlock.WithTTL(ttl)}
					if !silence {
						opts = append(opts, redlock.WithoutRenewal())
					}
					s := simulate(t, 5, opts...)
					start := clk.Elapsed()
					l := s.lock("x")
					ctx := l.Context()
					synctest.Wait()
					if silence { // then renewals change nothing
						for _, n := range s.all() {
							n.Blackhole(true)
						}
					}
					at := start + standard.Validity(ttl, 0)
					exactly(t, "deadline", l.Deadline().Sub(clk.Now()), at-clk.Elapsed())
					for clk.Elapsed() < at-time.Millisecond {
						held(t, l)
						exactly(t, "remaining", l.Remaining(), at-clk.Elapsed())
						time.Sleep(100 * time.Millisecond)
						if clk.Elapsed()+time.Duration(200*rate)*time.Millisecond > at {
							break
						}
					}
					<-ctx.Done()
					// Rounded up to what the underlying clock can count.
					if late := clk.Elapsed() - at; late < 0 || late > 4 {
						t.Errorf("the context ended %v after the deadline", late)
					}
					ended(t, l, redlock.ErrLost, redlock.ErrExpired)
				})
			})
		}
	}
}

// The lease ends with its TTL also if nobody looks at it or has asked for its
// context, and its keys are released then: a minority may still have them.
func TestLeaseEndsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithoutRenewal())
		l := s.lock("x")
		synctest.Wait()
		s.Node(0).Set("lock:x", l.Token()+".0", 0)
		time.Sleep(time.Minute)
		s.noLocks()
		ended(t, l, redlock.ErrLost, redlock.ErrExpired)
	})
}

// A process that was stopped, or a machine that was suspended, finds its timers
// where they were. Whoever asks is told the truth all the same.
func TestLeaseAsksClock(t *testing.T) {
	questions := map[string]func(l *redlock.Lease) bool{ // does it say that the lease is held?
		"Err":         func(l *redlock.Lease) bool { return l.Err() == nil },
		"Context.Err": func(l *redlock.Lease) bool { return l.Context().Err() == nil },
		"Remaining":   func(l *redlock.Lease) bool { return l.Remaining() > 0 },
		"Extend":      func(l *redlock.Lease) bool { return l.Extend(context.Background()) == nil },
	}
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clock.NewSkewed(clock.System, clock.Skew{})
				s := simulate(t, 5, redlock.WithClock(clk), redlock.WithoutRenewal())
				l := s.lock("x")
				left := l.Remaining()
				synctest.Wait()
				clk.Suspend(left - 1)
				held(t, l)
				clk.Suspend(1)
				if ask(l) {
					t.Error("it says that the lease is held")
				}
				ended(t, l, redlock.ErrLost, redlock.ErrExpired)
				// That is for ever, and nothing but releases was sent.
				clk.SetRate(0.001)
				is(t, l.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrLost, redlock.ErrExpired)
				time.Sleep(time.Second)
				if n := s.executed(redlocktest.Extend); n > 0 {
					t.Errorf("%d extensions were sent after the end", n)
				}
				s.noLocks()
			})
		})
	}
}

// Those who only wait for the context hear of a suspend soon after it.
func TestLeaseSuspendEndsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewSkewed(clock.System, clock.Skew{})
		s := simulate(t, 5, redlock.WithClock(clk), redlock.WithTTL(time.Hour))
		l := s.lock("x")
		done := l.Done()
		time.Sleep(10 * time.Second)
		clk.Suspend(2 * time.Hour)
		if d := took(func() { <-done }); d > time.Second {
			t.Errorf("the context ended %v after the suspend", d)
		}
		ended(t, l, redlock.ErrLost, redlock.ErrExpired)
	})
}

// The context has the values of the one given to Lock. The end of that one is
// not the lease's.
func TestLeaseContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		for _, withDeadline := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Minute)
			l, err := s.mutex("x").Lock(ctx)
			noErr(t, err)
			if v := l.Context().Value(key{}); v != "value" {
				t.Errorf("value %v", v)
			}
			if _, ok := l.Context().Deadline(); ok {
				t.Error("the context has Lock's deadline")
			}
			if l.Context() != l.Context() {
				t.Error("two contexts of one lease")
			}
			if withDeadline {
				time.Sleep(2 * time.Minute)
			} else {
				cancel()
				synctest.Wait()
			}
			held(t, l)
			noErr(t, l.Extend(t.Context()))
			child, stop := context.WithCancel(l.Context())
			noErr(t, l.Unlock(t.Context()))
			is(t, child.Err(), context.Canceled)
			is(t, context.Cause(child), redlock.ErrUnlocked)
			ended(t, l, redlock.ErrUnlocked)
			stop()
			cancel()
		}
	})
}

// An extension that began earlier and ended later than another must not take the
// deadline back.
func TestLeaseExtendNeverShortens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		s := simulate(t, 3, redlock.WithTTL(ttl), redlock.WithoutRenewal())
		l := s.lock("x")
		synctest.Wait()
		s.Node(0).Set("lock:x", l.Token()+".0", time.Hour) // somebody meant well
		for _, n := range s.all() {
			n.Delay(0, 800*time.Millisecond)
		}
		done := make(chan error)
		go func() { done <- l.Extend(t.Context()) }()
		time.Sleep(500 * time.Millisecond)
		for _, n := range s.all() {
			n.Delay(0, 0)
		}
		noErr(t, l.Extend(t.Context()))
		want := standard.Validity(ttl, 0)
		exactly(t, "remaining", l.Remaining(), want)
		exactly(t, "the slow one", took(func() { noErr(t, <-done) }), 300*time.Millisecond)
		exactly(t, "remaining", l.Remaining(), want-300*time.Millisecond)
		if _, left, _ := s.Node(0).Get("lock:x"); left < 59*time.Minute {
			t.Errorf("the key was shortened to %v", left)
		}
		noErr(t, l.Unlock(t.Context()))
	})
}

// A node that lost the lock gets it back after a renewal that others won. But
// where another token was seen, somebody may have held the lock in between: then
// only a node that counts can know better, and redsync does not count.
func TestLeaseGivenBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   []redlock.Option
		prefix string
		seen   bool // another token
		want   bool
	}{
		{"lost", nil, "lock:", false, true},
		{"lost, another was seen", nil, "lock:", true, true},
		{"lost, not fenced", []redlock.Option{redlock.WithoutFencing()}, "lock:", false, true},
		{"lost, not fenced, another was seen", []redlock.Option{redlock.WithoutFencing()}, "lock:", true, false},
		{"lost, shared with redsync", []redlock.Option{redlock.WithKeyPrefix("")}, "", false, true},
		{"lost, shared with redsync, another was seen", []redlock.Option{redlock.WithKeyPrefix("")}, "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 5, append(c.opts, redlock.WithoutRenewal())...)
				l := s.lock("x")
				synctest.Wait()
				key := c.prefix + "x"
				if c.seen {
					s.Node(0).Set(key, foreign, time.Minute)
					noErr(t, l.Extend(t.Context()))
					synctest.Wait()
				}
				s.Node(0).Del(key)
				for range 2 {
					noErr(t, l.Extend(t.Context()))
					synctest.Wait()
				}
				if _, _, ok := s.Node(0).Get(key); ok != c.want {
					t.Errorf("the node holds the lock: %t", ok)
				}
				noErr(t, l.Unlock(t.Context()))
			})
		})
	}
}

// An acquisition that leaves less than the minimum is none.
func TestLeaseMinValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 100 * time.Millisecond
		s := simulate(t, 3)
		for _, n := range s.all() {
			n.Delay(0, roundTrip)
		}
		left := standard.Validity(10*time.Second, roundTrip)
		_, err := s.mutex("x", redlock.WithMinValidity(left+1)).TryLock(t.Context())
		is(t, err, redlock.ErrExpired)
		time.Sleep(time.Second)
		s.noLocks()
		l := s.lock("x", redlock.WithMinValidity(left))
		noErr(t, l.Unlock(t.Context()))
	})
}

// TestLeaseConcurrent is for the race detector: all methods at once.
func TestLeaseConcurrent(t *testing.T) {
	c := redlocktest.New(3)
	client := openClient(t, c.Nodes(), redlock.WithRenewal(50*time.Millisecond))
	m := mutexOf(t, client, "x")
	for range 200 {
		l := mustLock(t, m)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = l.Extend(t.Context()) })
			wg.Go(func() { _, _, _ = l.Err(), l.Remaining(), l.Deadline() })
			wg.Go(func() { <-l.Done() })
			wg.Go(func() { _, _ = l.Context().Err(), context.Cause(l.Context()) })
			wg.Go(func() { _ = l.Unlock(t.Context()) })
		}
		wg.Wait()
		ended(t, l, redlock.ErrUnlocked)
	}
}
