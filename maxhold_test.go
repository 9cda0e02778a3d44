// WithMaxHold and WithRenewal: the end of a lease that nobody unlocks, and which
// values are refused.

package redlock_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestMaxHold: the lease ends to the nanosecond, its keys are released, nothing is
// renewed any more. That holds for a hold time of less than a TTL too.
func TestMaxHold(t *testing.T) {
	const ttl = 3 * time.Second
	for _, hold := range []time.Duration{
		time.Millisecond, 700 * time.Millisecond, 2968 * time.Millisecond, ttl, ttl + 1, 5 * time.Second, 100*time.Second + 1,
	} {
		t.Run(hold.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := redlocktest.New(5)
				var book logbook
				holder := join(t, c, 0, 0, redlock.WithTTL(ttl), redlock.WithMaxHold(hold), book.trace())
				start := time.Now()
				lease := holder.lock("a")
				if left := lease.Remaining(); left > hold {
					t.Errorf("%v remain of %v", left, hold)
				}
				mustEnd(t, lease, time.Hour)
				exactly(t, "held", time.Since(start), hold)
				synctest.Wait()
				wantLost(t, lease, redlock.ErrMaxHold)
				isNot(t, lease.Err(), redlock.ErrExpired, redlock.ErrNoQuorum, redlock.ErrTaken)
				book.lost(t, 1)
				for i := range c.Len() {
					if keys := locksOn(c.Node(i)); len(keys) > 0 {
						t.Errorf("node %d still has %q", i, keys)
					}
				}
				if n := book.failed(); n > 0 {
					t.Errorf("%d renewals failed", n)
				}
				if n := len(book.read().dangers); n > 0 {
					t.Errorf("the end that was asked for was called a danger: %+v", book.read().dangers)
				}
				renewals := len(book.read().renewals)
				time.Sleep(3 * ttl)
				if n := len(book.read().renewals) - renewals; n > 0 {
					t.Errorf("%d renewals after the end", n)
				}
				if hold > ttl+1 && renewals == 0 {
					t.Error("it was never renewed")
				}
				is(t, lease.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrMaxHold)
			})
		})
	}
}

// TestMaxHoldExtend: Extend does not go beyond it, and renewals stop once they
// could do no more.
func TestMaxHoldExtend(t *testing.T) {
	const ttl, hold = 3 * time.Second, 4 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var book logbook
		holder := join(t, redlocktest.New(3), 0, 0, redlock.WithTTL(ttl), redlock.WithMaxHold(hold), book.trace())
		start := time.Now()
		lease := holder.lock("a")
		for time.Since(start) < hold-100*time.Millisecond {
			time.Sleep(99 * time.Millisecond)
			noErr(t, lease.Extend(t.Context()))
			if end := lease.Deadline(); end.After(start.Add(hold)) {
				t.Errorf("extended to %v after the start", end.Sub(start))
			}
		}
		renewals := len(book.read().renewals)
		if renewals > 0 {
			t.Errorf("%d renewals by the client, though Extend came first each time", renewals)
		}
		mustEnd(t, lease, time.Hour)
		exactly(t, "held", time.Since(start), hold)
		wantLost(t, lease, redlock.ErrMaxHold)
		time.Sleep(time.Second)
	})
}

// TestMaxHoldUnlocked: Unlock before it is an ordinary Unlock.
func TestMaxHoldUnlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logbook
		holder := join(t, redlocktest.New(3), 0, 0, redlock.WithMaxHold(time.Minute), book.trace())
		lease := holder.lock("a")
		time.Sleep(59 * time.Second)
		mustUnlock(t, lease)
		time.Sleep(2 * time.Minute)
		is(t, lease.Err(), redlock.ErrUnlocked)
		isNot(t, lease.Err(), redlock.ErrLost, redlock.ErrMaxHold)
		book.lost(t, 0)
	})
}

// TestMaxHoldUsedUp: an acquisition that took all of it grants nothing.
func TestMaxHoldUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(3)
		holder := join(t, c, 10*time.Millisecond, 10*time.Millisecond, redlock.WithMaxHold(15*time.Millisecond))
		l, err := mutexOf(t, holder.client, "a").TryLock(t.Context())
		if err == nil {
			t.Fatalf("a lease that has ended was granted: %v", l.Err())
		}
		is(t, err, redlock.ErrExpired)
		time.Sleep(time.Second)
		for i := range 3 {
			if keys := locksOn(c.Node(i)); len(keys) > 0 {
				t.Errorf("node %d still has %q", i, keys)
			}
		}
	})
}

// originClock is a clock with another origin.
type originClock struct {
	clock.Clock
	origin time.Duration
}

func (c originClock) Elapsed() time.Duration { return c.Clock.Elapsed() - c.origin }

// TestMaxHoldOrigin: a clock may begin anywhere, also below zero.
func TestMaxHoldOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, at := range []time.Duration{-100 * time.Hour, -30 * time.Second, -time.Millisecond, 0, math.MaxInt64 - time.Hour} {
			clk := originClock{clock.System, clock.System.Elapsed() - at}
			holder := join(t, redlocktest.New(3), 0, 0, redlock.WithClock(clk), redlock.WithMaxHold(time.Minute))
			start := time.Now()
			lease := holder.lock(fmt.Sprint(at))
			time.Sleep(59 * time.Second)
			noErr(t, lease.Err())
			select {
			case <-lease.Done():
			case <-time.After(time.Minute):
			}
			exactly(t, fmt.Sprintf("held, with a clock that begins at %v", at), time.Since(start), time.Minute)
			mustRelease(lease)
		}
	})
}

// mustRelease unlocks whatever state the lease is in.
func mustRelease(l *redlock.Lease) { _ = l.Unlock(context.Background()) }

// TestRenewalOptions: a value that cannot work is refused at construction, by
// New and by NewMutex, with the option's name and the value.
func TestRenewalOptions(t *testing.T) {
	const validity = 9898 * time.Millisecond // of the default TTL
	for _, c := range []struct {
		opts []redlock.Option
		want string // in the error; "" if there is none
	}{
		{[]redlock.Option{redlock.WithRenewal(validity/2 - 1)}, ""},
		{[]redlock.Option{redlock.WithRenewal(validity / 2)}, "WithRenewal(4.949s)"},
		{[]redlock.Option{redlock.WithRenewal(validity)}, "WithRenewal(9.898s)"},
		{[]redlock.Option{redlock.WithRenewal(10 * time.Second)}, "WithRenewal(10s)"},
		{[]redlock.Option{redlock.WithRenewal(math.MaxInt64)}, "WithRenewal(2562047h47m16.854775807s)"},
		{[]redlock.Option{redlock.WithRenewal(0)}, "WithRenewal(0s)"},
		{[]redlock.Option{redlock.WithRenewal(-1)}, "WithRenewal(-1ns)"},
		{[]redlock.Option{redlock.WithRenewal(math.MinInt64)}, "WithRenewal(-2562047h47m16.854775808s)"},
		{[]redlock.Option{redlock.WithRenewal(1)}, ""},
		{[]redlock.Option{redlock.WithRenewal(2 * time.Second), redlock.WithTTL(4 * time.Second)}, "WithRenewal(2s)"},
		{[]redlock.Option{redlock.WithTTL(4 * time.Second), redlock.WithRenewal(time.Second)}, ""},
		{[]redlock.Option{redlock.WithRenewal(0), redlock.WithRenewal(time.Second)}, ""},
		{[]redlock.Option{redlock.WithRenewal(0), redlock.WithoutRenewal()}, ""},
		{[]redlock.Option{redlock.WithoutRenewal(), redlock.WithRenewal(0)}, "WithRenewal(0s)"},
		{[]redlock.Option{redlock.WithTTL(10 * time.Millisecond)}, ""}, // the default adapts
		{[]redlock.Option{redlock.WithDrift(redlock.Drift{Factor: 0.6})}, ""},
		{[]redlock.Option{redlock.WithDrift(redlock.Drift{Factor: 0.6}), redlock.WithRenewal(2 * time.Second)}, "WithRenewal(2s)"},
		{[]redlock.Option{redlock.WithMaxHold(0)}, "WithMaxHold(0s)"},
		{[]redlock.Option{redlock.WithMaxHold(-time.Second)}, "WithMaxHold(-1s)"},
		{[]redlock.Option{redlock.WithMaxHold(1)}, ""},
		{[]redlock.Option{redlock.WithMaxHold(math.MaxInt64)}, ""},
		{[]redlock.Option{redlock.WithMaxHold(0), redlock.WithRenewal(0)}, "WithMaxHold(0s)"},
		{[]redlock.Option{redlock.WithMaxHold(0), redlock.WithRenewal(0)}, "WithRenewal(0s)"},
	} {
		plain, err := redlock.New(redlocktest.New(3).Nodes())
		noErr(t, err)
		_, asClient := redlock.New(redlocktest.New(3).Nodes(), c.opts...)
		_, asMutex := plain.NewMutex("a", c.opts...)
		for what, err := range map[string]error{"New": asClient, "NewMutex": asMutex} {
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: %v", what, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: the error does not name %q: %v", what, c.want, err)
			}
		}
	}
}
