// When renewals come: never later than planned, spread out where leases were
// taken together, sent again soon when they fail.

package redlock_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestRenewSpread: leases taken at one instant do not stay together, and none is
// renewed late.
func TestRenewSpread(t *testing.T) {
	const leases, ttl, every, periods = 200, 30 * time.Second, 10 * time.Second, 30
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(3)
		var mu sync.Mutex
		times := map[string][]time.Time{}
		holder := join(t, c, 0, 0, redlock.WithTTL(ttl), redlock.WithTrace(&redlock.Trace{
			Renewal: func(e redlock.Renewal) {
				if e.Behind != 0 || e.Err != nil || e.Elapsed != 0 {
					t.Errorf("%+v", e)
				}
				if e.Validity != ttl-ttl/100-2*time.Millisecond {
					t.Errorf("%v are left after a renewal that took no time", e.Validity)
				}
				mu.Lock()
				defer mu.Unlock()
				times[e.Name] = append(times[e.Name], time.Now())
			},
		}))
		var held []*redlock.Lease
		start := time.Now()
		for i := range leases {
			held = append(held, holder.lock(fmt.Sprint(i)))
		}
		exactly(t, "to take the leases", time.Since(start), 0)
		time.Sleep(periods * every)
		for _, l := range held {
			mustUnlock(t, l)
		}

		mu.Lock()
		defer mu.Unlock()
		var last []time.Duration // since start
		for name, at := range times {
			if len(at) < periods || len(at) > periods*10/9+2 {
				t.Errorf("lease %s was renewed %d times in %d periods", name, len(at), periods)
			}
			before := start
			for _, now := range at {
				// A tenth early at random, and 10 ms for company.
				if d := now.Sub(before); d > every || d < every-every/10-10*time.Millisecond {
					t.Errorf("lease %s: renewed after %v, want about %v, and not more", name, d, every)
				}
				before = now
			}
			last = append(last, at[periods-1].Sub(start))
		}
		if len(times) != leases {
			t.Errorf("%d leases were renewed, of %d", len(times), leases)
		}
		slices.Sort(last)
		if spread := last[len(last)*9/10] - last[len(last)/10]; spread < every/4 {
			t.Errorf("after %d periods, four fifths of the leases are within %v", periods, spread)
		}
	})
}

// TestRenewRetry: a failed renewal is sent again at once, and soon, and then less
// often; near the deadline more often again. In all it is a bounded number.
func TestRenewRetry(t *testing.T) {
	for _, f := range []fault{lineRefused, lineHanging} {
		synctest.Test(t, func(t *testing.T) {
			var book logbook
			holder := join(t, redlocktest.New(3), 0, 0, book.trace())
			lease := holder.lock("a")
			holder.set(f, 3)
			mustEnd(t, lease, time.Minute)
			n := len(book.read().renewals)
			if n < 8 || n > 100 {
				t.Fatalf("%v: %d renewals until the end", f, n)
			}
			// The last came when hardly anything was left, and still in time.
			left := lease.Deadline().Sub(book.read().at[n-1])
			if left < 0 || left > 10*time.Millisecond {
				t.Errorf("%v: the last try failed %v before the deadline", f, left)
			}
			for i := range n - 1 {
				gap := book.read().at[i+1].Sub(book.read().at[i])
				if gap > 1260*time.Millisecond { // a node timeout and the longest pause
					t.Errorf("%v: nothing was tried for %v", f, gap)
				}
			}
			holder.set(lineIntact, 3)
			time.Sleep(20 * time.Second)
		})
	}
}
