// The danger zone: a warning that a lease may soon be lost, once for each danger,
// early enough to act, and never for nothing.

package redlock_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestDanger: the warning comes when a quarter of the time between the planned
// renewal and the deadline is gone, to the nanosecond, with what went wrong; and
// again at the next danger.
func TestDanger(t *testing.T) {
	for _, c := range []struct {
		ttl, every time.Duration // every 0: the default
	}{
		{10 * time.Second, 0},
		{10 * time.Second, time.Second},
		{10 * time.Second, 4900 * time.Millisecond},
		{3 * time.Second, 0},
		{time.Minute, 10 * time.Second},
	} {
		for _, f := range []fault{lineHanging, lineMute, lineRefused, lineBroken} {
			t.Run(fmt.Sprintf("ttl=%v/every=%v/%v", c.ttl, c.every, f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { danger(t, c.ttl, c.every, f) })
			})
		}
	}
}

func danger(t *testing.T, ttl, every time.Duration, f fault) {
	opts := []redlock.Option{redlock.WithTTL(ttl)}
	if every != 0 {
		opts = append(opts, redlock.WithRenewal(every))
	} else {
		every = ttl / 3
	}
	validity := ttl - ttl/100 - 2*time.Millisecond
	left := validity - every
	want := left - left/4

	var book logbook
	holder := join(t, redlocktest.New(5), time.Millisecond, time.Millisecond, append(opts, book.trace())...)
	lease := holder.lock("a")
	dangers := func() int {
		return len(book.read().dangers)
	}
	time.Sleep(6 * ttl)
	if n := dangers(); n > 0 {
		t.Fatalf("%d warnings in a healthy run: %+v", n, book.read().dangers)
	}
	for round := 1; round <= 3; round++ {
		holder.set(f, 3)
		for dangers() < round && lease.Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
		if lease.Err() != nil {
			t.Fatalf("lost without a warning: %v", lease.Err())
		}
		e := book.read().dangers[round-1]
		if e.Name != "a" || e.Remaining != want {
			t.Errorf("%+v, want it at %v", e, want)
		}
		if e.Remaining < ttl/3/2 {
			t.Errorf("%v left is too late to act", e.Remaining)
		}
		// By now a renewal has failed, unless it is still waiting for an answer.
		if f == lineRefused || f == lineBroken || min(ttl/4, time.Second) < left/4 {
			is(t, e.Err, redlock.ErrNoQuorum)
		}
		time.Sleep(want / 2) // the danger lasts, and that is no news
		if n := dangers(); n != round {
			t.Errorf("warned %d times in danger %d", n, round)
		}
		noErr(t, lease.Err())
		holder.set(lineIntact, 3)
		time.Sleep(3 * ttl)
		noErr(t, lease.Err())
	}
	if n := dangers(); n != 3 {
		t.Errorf("%d warnings, want 3", n)
	}

	// The last danger ends in a loss, with one warning before it.
	holder.set(f, 3)
	mustEnd(t, lease, time.Hour)
	synctest.Wait()
	if n := dangers(); n != 4 {
		t.Errorf("%d warnings before the loss, want one", n-3)
	}
	book.lost(t, 1)
	holder.set(lineIntact, 3)
	time.Sleep(3 * ttl)
	if n := dangers(); n != 4 {
		t.Error("warned after the loss")
	}
}

// TestDangerNone: no warning where there is nothing to be warned of.
func TestDangerNone(t *testing.T) {
	for name, c := range map[string]struct {
		opt redlock.Option
		run func(p *party, l *redlock.Lease)
	}{
		"without renewal": {redlock.WithoutRenewal(), func(_ *party, l *redlock.Lease) { <-l.Done() }},
		"unlocked in danger": {asItIs, func(p *party, l *redlock.Lease) {
			p.set(lineHanging, 3)
			time.Sleep(4900 * time.Millisecond) // the warning is due at 4.974s
			p.set(lineIntact, 3)
			_ = l.Unlock(p.t.Context())
		}},
		"lost before it": {asItIs, func(p *party, l *redlock.Lease) {
			for _, line := range p.lines {
				line.FlushAll()
			}
			<-l.Done()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var book logbook
				holder := join(t, redlocktest.New(5), 0, 0, c.opt, book.trace())
				lease := holder.lock("a")
				c.run(holder, lease)
				runtime.KeepAlive(lease) // a case may keep its Done only
				time.Sleep(time.Minute)
				if len(book.read().dangers) > 0 {
					t.Errorf("%+v", book.read().dangers)
				}
			})
		})
	}
}

// TestDangerCause: a caller of Extend who left early is not what a lease was lost
// for.
func TestDangerCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holder := join(t, redlocktest.New(3), 50*time.Millisecond, 50*time.Millisecond, redlock.WithoutRenewal())
		lease := holder.lock("a")
		err := lease.Extend(timeout(t, 10*time.Millisecond))
		isNot(t, err, redlock.ErrNotHeld)
		mustEnd(t, lease, time.Hour)
		wantLost(t, lease, redlock.ErrExpired)
		isNot(t, lease.Err(), redlock.ErrNoQuorum)
		time.Sleep(time.Second)
	})
}
