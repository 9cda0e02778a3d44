// How waiters of several clients follow each other, and what does not help them.

package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const (
	oneWay   = time.Millisecond
	pollEach = 256*time.Millisecond + 30*time.Millisecond // the default backoff, and a little
)

// distant makes nodes that are a millisecond away.
func distant(t testing.TB, n int, opts ...redlock.Option) *sim {
	t.Helper()
	s := simulate(t, n, opts...)
	for _, n := range s.all() {
		n.Delay(oneWay, oneWay)
	}
	return s
}

// TestWaitHandOver: a release calls the waiter, whatever its backoff is. Without the
// call it polls.
func TestWaitHandOver(t *testing.T) {
	hours := []redlock.Option{redlock.WithTTL(3 * time.Hour), pauseOf(time.Hour)}
	for _, c := range []struct {
		name  string
		opts  []redlock.Option
		deaf  bool
		plain bool // the holder is one that calls nobody
		most  time.Duration
	}{
		{"called", hours, false, false, 10 * 2 * oneWay},
		{"called, default backoff", nil, false, false, 10 * 2 * oneWay},
		{"calls are lost", nil, true, false, pollEach},
		{"holder calls nobody", nil, false, true, pollEach},
		{"calls are lost, long backoff", hours, true, false, 4 * time.Second},
	} {
		for _, n := range []int{1, 2, 3, 4, 5} {
			t.Run(fmt.Sprintf("%s/N=%d", c.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := distant(t, n, c.opts...)
					for _, n := range s.all() {
						n.DropWakes(c.deaf)
					}
					_, m := s.another(c.opts...)
					release := func() { drop("x", s.all()...) }
					if c.plain {
						occupy("x", 0, s.all()...)
					} else {
						l := mustLock(t, m)
						release = func() { noErr(t, l.Unlock(t.Context())) }
					}
					w := await(t.Context(), s.mutex("x"))
					time.Sleep(5 * time.Second)
					start := time.Now()
					release()
					noErr(t, w.within(t, start, c.most).Unlock(t.Context()))
					s.gone()
				})
			})
		}
	}
}

// TestWaitClose: Close ends those who wait, the first and those behind, and leaves
// nothing on the nodes.
func TestWaitClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3)
		c, m := s.another()
		occupy("x", 0, s.all()...)
		var all []*waiting
		for range 5 {
			all = append(all, await(t.Context(), m))
		}
		time.Sleep(time.Second)
		start := time.Now()
		noErr(t, c.Close())
		if d := time.Since(start); d > 10*oneWay {
			t.Errorf("Close took %v", d)
		}
		for _, w := range all {
			<-w.done
			is(t, w.err, redlock.ErrClosed, redlock.ErrTaken)
			if d := w.at.Sub(start); d > 0 {
				t.Errorf("Lock returned %v after Close", d)
			}
		}
		drop("x", s.all()...)
		s.gone()
	})
}

// stranger puts a waiter of another program in front of the line, on all nodes.
func (s *sim) stranger(ctx context.Context, key string, number int) {
	for _, n := range s.all() {
		_, err := n.Enlist(ctx, &redlock.Place{
			Lock: "lock:x", Queue: key, Waiter: fmt.Sprint("dead/", number),
			Ticket: time.Now().Add(-9 * time.Second).UnixMicro(), Life: 10 * time.Second,
		})
		noErr(s.t, err)
	}
}

// lineOf returns the key of the line in which somebody stands.
func (s *sim) lineOf() string {
	for _, key := range s.Node(0).Keys() {
		if strings.HasPrefix(key, "redlock:queue:") {
			return key
		}
	}
	s.t.Fatal("there is no line")
	return ""
}

// TestWaitDeadInFront: a waiter in front that does not listen costs nothing, and one
// that listens but does nothing costs a poll.
func TestWaitDeadInFront(t *testing.T) {
	for _, listens := range []bool{false, true} {
		t.Run(fmt.Sprint("listens=", listens), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := distant(t, 3)
				_, m := s.another()
				held := mustLock(t, m)
				w := await(t.Context(), s.mutex("x"))
				time.Sleep(3 * time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				most := 10 * 2 * oneWay
				if listens {
					most = pollEach
					for _, n := range s.all() {
						go func() { _ = n.Listen(ctx, "dead", func() {}, func(string) {}) }()
					}
				}
				s.stranger(ctx, s.lineOf(), 1)
				s.stranger(ctx, s.lineOf(), 2) // he does not stand in the way when the lock is free either
				start := time.Now()
				noErr(t, held.Unlock(t.Context()))
				l := w.within(t, start, most)
				noErr(t, l.Unlock(t.Context()))
				cancel()
				time.Sleep(10 * time.Second)
				s.gone()
			})
		})
	}
}

// call tells a waiter falsely that it is its turn, as the release of something else.
func call(t testing.TB, n *redlocktest.Node, waiter string) {
	t.Helper()
	n.Set("flood", "v", 0)
	_, err := n.Enlist(t.Context(), &redlock.Place{Lock: "flood", Queue: "flood-line", Waiter: waiter, Ticket: time.Now().UnixMicro(), Life: time.Second})
	noErr(t, err)
	_, err = n.Release(t.Context(), &redlock.Claim{Lock: "flood", Queue: "flood-line", Value: "v"}, false)
	noErr(t, err)
}

// TestWaitFlood: false calls, thousands of them, make no more than a hundred attempts
// or looks in a second, and the lock is still got when it is free.
func TestWaitFlood(t *testing.T) {
	for _, from := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const span = 5 * time.Second
				attempts := 0
				s := simulate(t, 5, pauseOf(time.Hour), redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) { attempts++ }}))
				occupy("x", 0, s.all()...)
				w := await(t.Context(), s.mutex("x"))
				time.Sleep(4 * time.Second)
				waiters, _ := s.Node(0).Line(s.lineOf())
				looks := map[string]int{}
				for _, n := range s.all() {
					n.Observe(func(c redlocktest.Call) {
						if c.Key == "lock:x" && n == s.Node(0) {
							looks[string(c.Op)]++
						}
					})
				}
				attempts = 0
				flood := func(span time.Duration) {
					for start := time.Now(); time.Since(start) < span && !w.returned(); time.Sleep(time.Millisecond) {
						for _, n := range s.first(from) {
							call(t, n, waiters[0])
						}
						synctest.Wait()
					}
				}
				flood(span)
				most := int(span/(10*time.Millisecond)) + 10
				if attempts > most || looks["enlist"] > most || looks["acquire"] > most || attempts+looks["enlist"] < 20 {
					t.Errorf("%d attempts, %v", attempts, looks)
				}
				drop("x", s.all()...)
				start := time.Now()
				flood(time.Second)
				noErr(t, w.within(t, start, 100*time.Millisecond).Unlock(t.Context()))
			})
		})
	}
}

// TestWaitPolite: who unlocks and locks again at once lets one of another client go
// first.
func TestWaitPolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 3)
		_, m := s.another()
		for range 20 {
			stop := make(chan struct{})
			ended := make(chan struct{})
			var turns, last atomic.Int64 // the time of the last release
			go func() {
				defer close(ended)
				for {
					select {
					case <-stop:
						return
					default:
					}
					l, err := m.Lock(t.Context())
					noErr(t, err)
					turns.Add(1)
					time.Sleep(300 * time.Millisecond)
					last.Store(time.Now().UnixNano())
					noErr(t, l.Unlock(t.Context()))
				}
			}()
			time.Sleep(50 * time.Millisecond)
			before := turns.Load()
			w := await(t.Context(), s.mutex("x"))
			<-w.done
			noErr(t, w.err)
			if more := turns.Load() - before; more > 1 {
				t.Errorf("it got the lock after %d turns of the other", more)
			}
			if d := w.at.Sub(time.Unix(0, last.Load())); d > 10*2*oneWay {
				t.Errorf("it got the lock %v after a release", d)
			}
			close(stop)
			noErr(t, w.lease.Unlock(t.Context()))
			<-ended
			time.Sleep(time.Second)
		}
		s.gone()
	})
}

// TestWaitSpread: those who see the same lock look at it at different times.
func TestWaitSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 20
		var mu sync.Mutex
		delays := map[time.Duration]bool{}
		s := simulate(t, 3)
		occupy("x", 0, s.all()...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var all []*waiting
		for range waiters {
			_, m := s.another(pauseOf(0), redlock.WithTrace(&redlock.Trace{Wait: func(w redlock.Wait) {
				if w.Attempt > 1 { // before, it has not looked
					mu.Lock()
					defer mu.Unlock()
					delays[w.Delay] = true
				}
			}}))
			all = append(all, await(ctx, m))
		}
		for _, w := range all {
			<-w.done
		}
		if n := len(delays); n < 100*waiters || n > 250*waiters {
			t.Errorf("%d different delays of %d waiters in ten seconds", n, waiters)
		}
		for d := range delays {
			if d < 32*time.Millisecond || d > 96*time.Millisecond {
				t.Errorf("delay %v", d)
			}
		}
		drop("x", s.all()...)
		s.gone()
	})
}
