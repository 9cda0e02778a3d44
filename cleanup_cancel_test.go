// A cancelled or failed attempt leaves no lock behind: the caller leaves at every
// moment of a run, in simulated time, and at random ones on real servers.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const simNodeTimeout = 40 * time.Millisecond

// A leaver runs through all that a caller can wait for, with one context: an
// attempt that meets another holder, the wait, an attempt that wins, an extend
// and an unlock. One of five nodes is slower than the node timeout.
type leaver struct {
	*sim
	cancel context.CancelFunc
	hooks  redlock.Trace
}

var leaverDelays = []time.Duration{1 * time.Millisecond, 3 * time.Millisecond, 7 * time.Millisecond, 12 * time.Millisecond, 70 * time.Millisecond}

// run runs it once. prepare may arrange for the end of the context. It returns
// how long the caller's part took.
func (v *leaver) run(t *testing.T, prepare func(v *leaver)) (lasted time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		backoff := func(int, float64) time.Duration { return 5 * time.Millisecond }
		v.sim = simulate(t, len(leaverDelays), redlock.WithTTL(10*time.Second), redlock.WithNodeTimeout(simNodeTimeout),
			redlock.WithBackoff(backoff), redlock.WithTrace(&v.hooks))
		for i, n := range v.all() {
			n.Delay(leaverDelays[i]/2, leaverDelays[i]/2)
		}
		occupy("m", 10*time.Millisecond, v.first(3)...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		v.cancel = cancel
		prepare(v)

		lasted = took(func() {
			l, err := v.mutex("m").Lock(ctx)
			if err == nil {
				_ = l.Extend(ctx)
				_ = l.Unlock(ctx)
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("Lock: %v", err)
			}
		})
		// The slowest command is on its way for longer than its round.
		time.Sleep(2*simNodeTimeout + leaverDelays[len(leaverDelays)-1])
		synctest.Wait()
		v.noLocks()
		for i, n := range v.all() {
			for _, c := range n.Calls() {
				// A node that answers in time is not asked to let go before.
				if c.Bury && leaverDelays[i] < simNodeTimeout {
					t.Errorf("%s: a release came before the answer to the acquire", n.Name())
				}
			}
			for _, key := range n.Keys() {
				if _, ttl, _ := n.Get(key); ttl <= 0 {
					t.Errorf("%s: %s does not expire", n.Name(), key)
				}
			}
		}
	})
	return lasted
}

// TestCleanupCancelAtEachInstant cancels at each eighth of a millisecond.
func TestCleanupCancelAtEachInstant(t *testing.T) {
	t.Parallel()
	const step = time.Millisecond / 8
	whole := new(leaver).run(t, func(*leaver) {})
	if whole < 30*time.Millisecond {
		t.Fatalf("the run took %v only", whole)
	}
	for at := time.Duration(0); at <= whole && !t.Failed(); at += step {
		new(leaver).run(t, func(v *leaver) { time.AfterFunc(at, v.cancel) })
	}
	t.Logf("%d instants in %v", whole/step+1, whole)
}

// TestCleanupCancelAtEachStep cancels within each hook, and as each command is
// executed, before its answer is on its way.
func TestCleanupCancelAtEachStep(t *testing.T) {
	t.Parallel()
	for step, last := 0, 1; step <= last && !t.Failed(); step++ {
		v := new(leaver)
		var mu sync.Mutex
		seen := 0
		at := func() {
			mu.Lock()
			defer mu.Unlock()
			if seen++; seen == step {
				v.cancel()
			}
		}
		v.hooks = redlock.Trace{
			AttemptStart: func(redlock.AttemptStart) { at() },
			AttemptDone:  func(redlock.AttemptDone) { at() },
			NodeDone:     func(redlock.NodeDone) { at() },
			Wait:         func(redlock.Wait) { at() },
		}
		v.run(t, func(v *leaver) {
			for _, n := range v.all() {
				n.Observe(func(redlocktest.Call) { at() })
			}
		})
		if step == 0 { // nothing was cancelled, so these are all the steps there are
			last = seen
			t.Logf("%d steps", last)
		}
	}
}

// TestCleanupCancelAtTheLastVote: a lock granted to a caller who has left by then
// is nobody's.
func TestCleanupCancelAtTheLastVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		granted := 0
		s := simulate(t, 3, redlock.WithTrace(&redlock.Trace{NodeDone: func(d redlock.NodeDone) {
			if d.Verdict == redlock.Granted && !d.Late {
				if granted++; granted == 2 {
					cancel()
				}
			}
		}}))
		l, err := s.mutex("m").TryLock(ctx)
		is(t, err, context.Canceled)
		if l != nil || granted < 2 {
			t.Errorf("after %d grants the lease is %v", granted, l)
		}
		time.Sleep(time.Second)
		s.noLocks()
	})
}

// TestCleanupCancelRandomly has callers on real servers leave at random moments.
func TestCleanupCancelRandomly(t *testing.T) {
	t.Parallel()
	const nodeTimeout = 500 * time.Millisecond
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	f := startProxied(t, 3)
	c := f.open(redlock.WithNodeTimeout(nodeTimeout), redlock.WithTTL(time.Minute))
	f.warm(c)
	for i, p := range f.proxies {
		p.Delay(time.Duration(i)*time.Millisecond, time.Millisecond)
	}
	won := 0
	for i := range rounds {
		wait := rand.N(6 * time.Millisecond)
		ctx, cancel := context.WithCancelCause(t.Context())
		left := errors.New("left")
		time.AfterFunc(wait, func() { cancel(left) })
		l, err := mutexOf(t, c, fmt.Sprintf("m%d", i)).TryLock(ctx)
		switch {
		case err != nil:
			is(t, err, context.Canceled, left)
		default:
			won++
			_ = l.Extend(ctx)
			_ = l.Unlock(ctx)
		}
	}
	f.noLocks(2*nodeTimeout + quick)
	t.Logf("%d of %d attempts won", won, rounds)
}

// TestCleanupLateGrant: a command is executed when its tombstone has gone as
// well, and its driver, which ignores contexts, still brings the answer.
func TestCleanupLateGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithTTL(time.Second), redlock.WithNodeTimeout(simNodeTimeout))
		s.Node(0).IgnoreContext(true)
		s.Node(0).Delay(3*time.Second, time.Millisecond)
		l := s.lock("m")
		synctest.Wait()
		s.Node(0).Delay(0, 0)
		mustUnlock(t, l)
		time.Sleep(2900 * time.Millisecond)
		if keys := s.Node(0).Keys(); len(keys) > 0 {
			t.Fatalf("before the late command there are %q", keys)
		}
		time.Sleep(100*time.Millisecond + 2*simNodeTimeout)
		if n := s.executed(redlocktest.Acquire); n != 3 {
			t.Fatalf("%d acquires were executed", n)
		}
		s.noLocks()
	})
}

// TestCleanupGivesUp: a node that never answers is given up when its key must be
// gone, and that is told once.
func TestCleanupGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 2 * time.Second
		dropped := make(chan redlock.CleanupDropped, 10)
		s := simulate(t, 3, redlock.WithTTL(ttl), redlock.WithNodeTimeout(simNodeTimeout), redlock.WithoutRenewal(),
			redlock.WithTrace(&redlock.Trace{CleanupDropped: func(d redlock.CleanupDropped) { dropped <- d }}))
		l := s.lock("m")
		synctest.Wait() // for the stragglers
		s.Node(1).Blackhole(true)
		mustUnlock(t, l)
		time.Sleep(ttl / 2)
		if n := len(dropped); n > 0 {
			t.Fatalf("%d releases were given up before the TTL had passed", n)
		}
		time.Sleep(ttl)
		if n := len(dropped); n != 1 {
			t.Fatalf("%d releases were given up, want 1", n)
		}
		d := <-dropped
		is(t, d.Err, redlock.ErrNodeTimeout)
		if d.Node != "node-1" || d.Name != "m" {
			t.Errorf("given up: %+v", d)
		}
		s.Node(1).Blackhole(false)
		s.Node(1).ResetCalls()
		time.Sleep(time.Minute)
		if calls := s.Node(1).Calls(); len(calls) > 0 {
			t.Errorf("after that the node was sent %v", calls)
		}
	})
}

// TestCleanupReleasesAll: the nodes that refused are asked to let go as well.
func TestCleanupReleasesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithNodeTimeout(simNodeTimeout))
		occupy("m", time.Minute, s.Node(0))
		s.Node(1).SetList("lock:m")
		s.Node(2).FailWith(errors.New("OOM"), redlock.Rejected, redlocktest.Acquire)
		s.Node(3).LoseReplies(1)
		_, err := s.mutex("m").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		time.Sleep(2 * simNodeTimeout)
		for _, n := range s.all() {
			asked, released := 0, 0
			for _, c := range n.Calls() {
				switch {
				case c.Op == redlocktest.Acquire:
					asked++
				case c.Op == redlocktest.Release:
					released++
				}
			}
			if asked != released {
				t.Errorf("%s was asked %d times for the lock, and %d times to let go", n.Name(), asked, released)
			}
		}
		if value, _, _ := s.Node(0).Get("lock:m"); value != foreign {
			t.Errorf("somebody else's lock now holds %q", value)
		}
	})
}
