// Server clocks that are stepped under a lease that the client renews.

package integration_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// A renewed lease counts what its client does for it.
type renewed struct {
	*redlock.Lease
	won, failed atomic.Int64 // renewals
	again       atomic.Int64 // nodes that were given the lease again
}

// renews returns a lease that is on all nodes, and a client that wants it too.
func (c *clocks) renews(name string, ttl, every time.Duration) (*renewed, *redlock.Mutex) {
	c.Helper()
	r := &renewed{}
	count := &redlock.Trace{
		Renewal: func(d redlock.Renewal) {
			if d.Err != nil {
				r.failed.Add(1)
			} else {
				r.won.Add(1)
			}
		},
		NodeDone: func(d redlock.NodeDone) {
			if d.Op == "rearm" && d.Verdict == redlock.Granted {
				r.again.Add(1)
			}
		},
	}
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithRenewal(every)}
	rival := mutexOf(c, c.open(opts), name)
	r.Lease = c.lock(mutexOf(c, c.open(append(opts, redlock.WithTrace(count))), name))
	c.settled(r.Lease, 5)
	return r, rival
}

// goesOn waits for n renewals, all of which must be won.
func (c *clocks) goesOn(r *renewed, n int64) {
	c.Helper()
	before := r.won.Load()
	if !eventually(time.Duration(n)*5*time.Second, func() bool { return r.won.Load() >= before+n || r.Err() != nil }) || r.Err() != nil || r.failed.Load() > 0 {
		c.Fatalf("%d renewals won, %d failed: %v", r.won.Load()-before, r.failed.Load(), r.Err())
	}
}

// TestClockStepRenewed: a minority that steps forward drops its keys and has them
// again within one renewal. So others may step after it, and the lease outlives it
// that more nodes have dropped it than it could do without at a time.
func TestClockStepRenewed(t *testing.T) {
	t.Parallel()
	const ttl, every = 3 * time.Second, time.Second
	f := startClocks(t)
	for _, by := range []time.Duration{6 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			f := f.in(t)
			l, rival := f.renews(by.String(), ttl, every)
			for _, nodes := range [][]int{{0, 1}, {2, 3}, {4, 0}} {
				off := by
				if nodes[0] == 4 {
					off += by // node 0 has stepped already
				}
				again := l.again.Load()
				f.set(off, nodes...)
				won := l.won.Load()
				if !eventually(10*time.Second, func() bool { return l.again.Load() == again+2 }) {
					have, _ := f.on(l.Lease)
					t.Fatalf("of the nodes %v, %d were given the lease again, which is on %v: %v", nodes, l.again.Load()-again, have, l.Err())
				}
				if n := l.won.Load() - won; n > 2 { // one may have been on its way
					t.Errorf("it took %d renewals until all had the lease again", n)
				}
				f.settled(l.Lease, 5)
			}
			f.goesOn(l, 1)
			f.refuses(rival, redlock.ErrTaken)
			f.unlock(l.Lease)
			f.settled(l.Lease, 0)
		})
	}

	t.Run("with a rival", func(t *testing.T) {
		// A try of somebody else counts up the nodes that have stepped, though it
		// fails, so they do not give the lease back. It rests on the others then.
		f := f.in(t)
		l, rival := f.renews("rival", ttl, every)
		f.set(time.Hour, 0, 1)
		f.refuses(rival, redlock.ErrTaken)
		for range 2 {
			f.goesOn(l, 1)
			f.refuses(rival, redlock.ErrTaken)
		}
		have, _ := f.on(l.Lease)
		t.Logf("the lease is on the nodes %v", have) // all, if it was renewed before the first try
		f.unlock(l.Lease)
		f.settled(l.Lease, 0)
	})

	t.Run("back", func(t *testing.T) {
		f := f.in(t)
		l, rival := f.renews("back", ttl, every)
		f.set(-time.Hour, 0, 1, 2)
		f.goesOn(l, 2)
		f.refuses(rival, redlock.ErrTaken)
		f.settled(l.Lease, 5)
		f.unlock(l.Lease)
		f.settled(l.Lease, 0)
	})
}

// TestClockStepRenewedLost: a majority steps forward. The holder is told by its next
// renewal, and not only at its deadline; until then there may be two.
func TestClockStepRenewedLost(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	for _, by := range []time.Duration{6 * time.Second, time.Hour} {
		for _, contended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, contended %v", by, contended), func(t *testing.T) {
				f := f.in(t)
				a, rival := f.renews(t.Name(), 5*time.Second, 2*time.Second)
				left, start := a.Remaining(), time.Now()
				f.set(by, 0, 1, 2)
				want := redlock.ErrNotHeld
				if contended {
					want = redlock.ErrTaken
					b, err := rival.TryLock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					f.both(a.Lease, b)
					defer f.unlock(b)
				}
				select {
				case <-a.Done():
				case <-time.After(left + quick):
				}
				told := time.Since(start)
				is(t, a.Err(), redlock.ErrLost, want)
				is(t, context.Cause(a.Context()), redlock.ErrLost)
				if told > left {
					t.Errorf("told after %v, when %v had been left", told, left)
				}
				t.Logf("told after %v, of %v that were left: %v", told.Round(time.Millisecond), left.Round(time.Millisecond), a.Err())
				f.settled(a.Lease, 0)
			})
		}
	}
}
