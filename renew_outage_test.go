// Outages of a majority: one that ends while there is validity left is no loss,
// one that does not is.

package redlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestRenewOutage: lengths just below and above the remaining validity, at many
// phases of the renewals. A renewal needs a moment after the end of an outage.
func TestRenewOutage(t *testing.T) {
	const ttl = 3 * time.Second
	step := 70 * time.Millisecond
	if testing.Short() {
		step = 190 * time.Millisecond
	}
	for _, c := range []struct {
		fault  fault
		way    time.Duration // there, and back
		moment time.Duration // how much earlier than the deadline it must end
	}{
		{lineHanging, 0, 5 * time.Millisecond},
		{lineRefused, 0, 5 * time.Millisecond},
		{lineMute, 0, 5 * time.Millisecond},
		{lineBroken, 0, 5 * time.Millisecond},
		{lineHanging, 5 * time.Millisecond, 80 * time.Millisecond},
		{lineRefused, 5 * time.Millisecond, 80 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%v/way=%v", c.fault, c.way), func(t *testing.T) {
			t.Parallel()
			for phase := time.Duration(0); phase < ttl && !t.Failed(); phase += step {
				for _, short := range []time.Duration{c.moment, 2 * c.moment, ttl / 10, ttl / 4, ttl / 2} {
					synctest.Test(t, func(t *testing.T) {
						outage(t, ttl, phase, c.way, c.fault, -short)
					})
				}
				for _, over := range []time.Duration{0, time.Millisecond, ttl} {
					synctest.Test(t, func(t *testing.T) {
						outage(t, ttl, phase, c.way, c.fault, over)
					})
				}
				if t.Failed() {
					t.Errorf("the outage began after %v", phase)
				}
			}
		})
	}
}

// outage lets a majority fail after phase, until over after the deadline.
func outage(t *testing.T, ttl, phase, way time.Duration, f fault, over time.Duration) {
	t.Helper()
	c := redlocktest.New(5)
	var book logbook
	holder := join(t, c, way, way, redlock.WithTTL(ttl), book.trace())
	lease := holder.lock("a")
	time.Sleep(phase)
	holder.set(f, 3)

	// A renewal that was won before the outage may still move the deadline.
	time.Sleep(2 * way)
	length := lease.Remaining() + over
	if length <= 0 {
		holder.set(lineIntact, 3)
		mustUnlock(t, lease)
		return
	}
	time.Sleep(length)
	synctest.Wait() // at the deadline, the timer goes first
	holder.set(lineIntact, 3)
	time.Sleep(3 * ttl)
	switch {
	case over < 0:
		if err := lease.Err(); err != nil {
			t.Errorf("lost by an outage of %v, %v shorter than the validity left: %v", length, -over, err)
		}
		book.lost(t, 0)
		mustUnlock(t, lease)
	case lease.Err() == nil:
		t.Errorf("held in spite of an outage of %v, %v longer than the validity left", length, over)
		mustUnlock(t, lease)
	default:
		wantLost(t, lease, redlock.ErrExpired, redlock.ErrNoQuorum)
		book.lost(t, 1)
	}
	synctest.Wait()
}

// TestRenewOutageMinority: what happens to a minority does not even fail a
// renewal.
func TestRenewOutageMinority(t *testing.T) {
	for _, f := range []fault{lineHanging, lineRefused, lineMute, lineBroken} {
		synctest.Test(t, func(t *testing.T) {
			var book logbook
			holder := join(t, redlocktest.New(5), time.Millisecond, time.Millisecond, redlock.WithTTL(3*time.Second), book.trace())
			lease := holder.lock("a")
			holder.set(f, 2)
			time.Sleep(time.Minute)
			noErr(t, lease.Err())
			for _, e := range book.read().renewals {
				if e.Err != nil || e.Elapsed != 2*time.Millisecond || e.Granted != 3 {
					t.Fatalf("%v: %+v", f, e)
				}
			}
			if n := len(book.read().renewals); n < 60 || n > 67 {
				t.Errorf("%v: %d renewals in a minute, want one per second", f, n)
			}
			mustUnlock(t, lease)
		})
	}
}
