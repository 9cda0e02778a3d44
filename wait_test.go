// How those who wait in one client follow each other.

package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A waiting is a call of Lock under way.
type waiting struct {
	lease *redlock.Lease
	err   error
	at    time.Time // of its return
	done  chan struct{}
	leave context.CancelFunc
}

func await(ctx context.Context, m *redlock.Mutex) *waiting {
	ctx, leave := context.WithCancel(ctx)
	w := &waiting{done: make(chan struct{}), leave: leave}
	go func() {
		defer close(w.done)
		w.lease, w.err = m.Lock(ctx)
		w.at = time.Now()
	}()
	return w
}

// within checks that the lock is got in time, counted from since, and returns it. One that
// never gets it is a failure, and does not wait for ever.
func (w *waiting) within(t testing.TB, since time.Time, most time.Duration) *redlock.Lease {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(2*most + time.Minute):
		w.leave()
		<-w.done
	}
	noErr(t, w.err)
	if d := w.at.Sub(since); d > most {
		t.Errorf("it took %v to get the lock, want at most %v", d, most)
	}
	return w.lease
}

func (w *waiting) returned() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// another returns one more client of the nodes, and its mutex of x.
func (s *sim) another(opts ...redlock.Option) (*redlock.Client, *redlock.Mutex) {
	s.t.Helper()
	c, err := redlock.New(s.Nodes(), opts...)
	noErr(s.t, err)
	s.t.Cleanup(func() { noErr(s.t, c.Close()) })
	return c, mutexOf(s.t, c, "x")
}

// inLine returns who stands in the lines of the nodes, as "node waiter".
func (s *sim) inLine() []string {
	var found []string
	for _, n := range s.all() {
		for _, key := range n.Keys() {
			if waiters, _ := n.Line(key); len(waiters) > 0 {
				found = append(found, n.Name()+" "+strings.Join(waiters, " "))
			}
		}
	}
	return found
}

// gone checks that two seconds later nothing of anybody is left on the nodes.
func (s *sim) gone() {
	s.t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	s.noLocks()
	if left := s.inLine(); len(left) > 0 {
		s.t.Errorf("in line are still %q", left)
	}
}

// TestWaitFIFO: waiters of one client get the lock in the order of their calls.
func TestWaitFIFO(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const waiters = 50
				s := simulate(t, n)
				held := s.lock("x")
				var order []int
				var mu sync.Mutex
				var wg sync.WaitGroup
				for i := range waiters {
					wg.Go(func() {
						noErr(t, s.mutex("x").Do(t.Context(), func(context.Context, *redlock.Lease) error {
							mu.Lock()
							defer mu.Unlock()
							order = append(order, i)
							return nil
						}))
					})
					time.Sleep(time.Millisecond)
				}
				noErr(t, held.Unlock(t.Context()))
				wg.Wait()
				if !slices.IsSorted(order) || len(order) != waiters {
					t.Errorf("the order is %v", order)
				}
				s.gone()
			})
		})
	}
}

// TestWaitTryLockAlone: TryLock does not stand in line, nor let others go first.
func TestWaitTryLockAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(time.Hour))
		occupy("x", 0, s.all()...)
		w := await(t.Context(), s.mutex("x"))
		time.Sleep(time.Second)
		exactly(t, "TryLock", took(func() {
			_, err := s.mutex("x").TryLock(t.Context())
			is(t, err, redlock.ErrTaken)
		}), 0)
		drop("x", s.all()...)
		l := s.lock("x")
		time.Sleep(10 * time.Second)
		noErr(t, l.Unlock(t.Context()))
		noErr(t, w.within(t, time.Now(), time.Second).Unlock(t.Context()))
		s.gone()
	})
}

// TestWaitLoad: however many wait in a client, they send as much as one does, and
// that is at most one command to each node for each backoff.
func TestWaitLoad(t *testing.T) {
	const span, pause = 10 * time.Second, 100 * time.Millisecond
	sent := map[int]int{}
	for _, waiters := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 3, pauseOf(pause))
			occupy("x", 0, s.all()...)
			ctx, cancel := context.WithCancel(t.Context())
			var all []*waiting
			for range waiters {
				all = append(all, await(ctx, s.mutex("x")))
			}
			time.Sleep(time.Second)
			for _, n := range s.all() {
				n.ResetCalls()
			}
			time.Sleep(span)
			for _, op := range []redlocktest.Op{redlocktest.Acquire, redlocktest.Enlist, redlocktest.Delist, redlocktest.Release, redlocktest.Listen} {
				sent[waiters] += s.executed(op)
			}
			cancel()
			for _, w := range all {
				<-w.done
				is(t, w.err, context.Canceled, redlock.ErrTaken)
			}
			drop("x", s.all()...)
			s.gone()
		})
	}
	if most := 3 * (int(span/pause) + 5); sent[1] > most || sent[1000] > most || sent[1] == 0 {
		t.Errorf("one sent %d commands, a thousand %d, want at most %d", sent[1], sent[1000], most)
	}
}

// TestWaitCancelled: one who is cancelled returns at once, leaves nothing behind,
// and does not keep the next from going on.
func TestWaitCancelled(t *testing.T) {
	for leaves := range 3 {
		t.Run(fmt.Sprint(leaves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3)
				for _, n := range s.all() {
					n.Delay(time.Millisecond, time.Millisecond)
				}
				_, holder := s.another()
				held := mustLock(t, holder)
				ctx, cancel := context.WithCancel(t.Context())
				var all []*waiting
				for i := range 3 {
					c := t.Context()
					if i == leaves {
						c = ctx
					}
					all = append(all, await(c, s.mutex("x")))
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Second)
				start := time.Now()
				cancel()
				<-all[leaves].done
				exactly(t, "Lock", all[leaves].at.Sub(start), 0)
				is(t, all[leaves].err, context.Canceled, redlock.ErrTaken)
				time.Sleep(10 * time.Millisecond)
				for i, w := range all {
					if i != leaves && w.returned() {
						t.Errorf("%d has returned: %v", i, w.err)
					}
				}
				start = time.Now()
				noErr(t, held.Unlock(t.Context()))
				for i, w := range all {
					if i != leaves {
						noErr(t, w.within(t, start, 300*time.Millisecond).Unlock(t.Context()))
						start = time.Now()
					}
				}
				s.gone()
			})
		})
	}
}

// TestWaitMaxAttempts: the time in line counts as attempts.
func TestWaitMaxAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, pauseOf(time.Second))
		occupy("x", 0, s.all()...)
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, s.mutex("x"))
		synctest.Wait()
		exactly(t, "Lock", took(func() {
			_, err := s.mutex("x", redlock.WithMaxAttempts(5)).Lock(t.Context())
			is(t, err, redlock.ErrTaken)
		}), 4*time.Second)
		late := await(t.Context(), s.mutex("x", redlock.WithMaxAttempts(5)))
		time.Sleep(2500 * time.Millisecond)
		start := time.Now()
		cancel() // two of its five are used up
		<-first.done
		<-late.done
		is(t, late.err, redlock.ErrTaken)
		if d := late.at.Sub(start); d > 3*time.Second {
			t.Errorf("it gave up %v after its turn came", d)
		}
		drop("x", s.all()...)
		s.gone()
	})
}

// TestWaitCancelInstants: two wait, and both callers leave, at each millisecond of
// the way to the lock. Nothing is left.
func TestWaitCancelInstants(t *testing.T) {
	for at := range 60 {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 3, pauseOf(10*time.Millisecond), redlock.WithNodeTimeout(simNodeTimeout))
			for i, n := range s.all() {
				n.Delay(time.Duration(i+1)*time.Millisecond, time.Duration(i+1)*time.Millisecond)
			}
			_, m := s.another()
			held := mustLock(t, m)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*time.Millisecond)
			defer cancel()
			time.AfterFunc(30*time.Millisecond, func() { noErr(t, held.Unlock(context.WithoutCancel(t.Context()))) })
			a, b := await(ctx, s.mutex("x")), await(ctx, s.mutex("x"))
			for _, w := range []*waiting{a, b} {
				<-w.done
				if w.err == nil {
					noErr(t, w.lease.Unlock(t.Context()))
				}
			}
			s.gone()
		})
	}
}
