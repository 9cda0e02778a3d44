// A holder's clock that leaps, as after the machine was suspended: timers are
// late by as much, and yet the lease ends.

package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

const (
	suspendTTL      = 10 * time.Second
	suspendValidity = suspendTTL - suspendTTL/100 - 2*time.Millisecond

	// noticed is how long after a leap, in time that the timers see, a lease that
	// nobody asks may still be held past its deadline.
	noticed = time.Second
)

// suspendable is a holder on a clock that can leap, and its nodes.
func suspendable(t *testing.T, opts ...redlock.Option) (*clock.Skewed, *party, *logbook) {
	t.Helper()
	clk := clock.NewSkewed(clock.System, clock.Skew{})
	book := &logbook{}
	opts = append(opts, redlock.WithTTL(suspendTTL), redlock.WithClock(clk), book.trace())
	return clk, join(t, redlocktest.New(3), 0, 0, opts...), book
}

// TestRenewSuspendAsked: past the deadline, everybody who asks is told at once.
func TestRenewSuspendAsked(t *testing.T) {
	for name, ask := range map[string]func(l *redlock.Lease) bool{
		"Err":       func(l *redlock.Lease) bool { return l.Err() != nil },
		"Remaining": func(l *redlock.Lease) bool { return l.Remaining() == 0 },
		"Context":   func(l *redlock.Lease) bool { return l.Context().Err() != nil },
		"Extend":    func(l *redlock.Lease) bool { return l.Extend(context.Background()) != nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, opt := range []redlock.Option{asItIs, redlock.WithoutRenewal()} {
				synctest.Test(t, func(t *testing.T) {
					clk, holder, book := suspendable(t, opt)
					lease := holder.lock("a")
					time.Sleep(suspendTTL / 10)
					if ask(lease) {
						t.Fatal("told that it is over while it is held")
					}
					clk.Suspend(lease.Remaining())
					if !ask(lease) {
						t.Error("not told that it is over")
					}
					wantLost(t, lease, redlock.ErrExpired)
					if !isDone(lease) {
						t.Error("Done is open")
					}
					book.lost(t, 1)
					_ = lease.Unlock(t.Context()) // whatever the nodes say
				})
			}
		})
	}
}

// TestRenewSuspendUnasked: leaps of many lengths at many phases, with nodes that
// answer and nodes that do not. Nobody asks the lease. If it cannot be renewed
// any more it ends, at most a second late.
func TestRenewSuspendUnasked(t *testing.T) {
	step := suspendTTL / 20
	if testing.Short() {
		step = suspendTTL / 7
	}
	for _, c := range []struct {
		name  string
		fault fault
		opt   redlock.Option
		renew bool // it can be
	}{
		{"renewed", lineIntact, asItIs, true},
		{"hanging", lineHanging, asItIs, false},
		{"without renewal", lineIntact, redlock.WithoutRenewal(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for phase := step / 3; phase < suspendValidity; phase += step {
				for length := step / 2; length < 2*suspendTTL; length += step {
					synctest.Test(t, func(t *testing.T) {
						suspended(t, phase, length, c.fault, c.renew, c.opt)
					})
					if t.Failed() {
						t.Fatalf("suspended after %v, for %v", phase, length)
					}
				}
			}
		})
	}
}

func suspended(t *testing.T, phase, length time.Duration, f fault, renew bool, opt redlock.Option) {
	clk, holder, book := suspendable(t, opt)
	lease := holder.lock("a")
	time.Sleep(phase)
	holder.set(f, 3)
	left := lease.Remaining()
	clk.Suspend(length) // from here on nobody asks
	start := time.Now()

	over := max(left-length, 0) // when the deadline passes
	select {
	case <-lease.Done():
	case <-time.After(4 * suspendTTL):
	}
	at := time.Since(start)
	synctest.Wait()
	switch {
	case !isDone(lease) && renew && left > length:
		book.lost(t, 0)
		mustUnlock(t, lease) // it was renewed in time
	case !isDone(lease):
		t.Error("never ended")
	case renew && left-length > noticed:
		t.Errorf("lost with %v left when the machine woke up: %v", left-length, lease.Err())
	case at < over:
		t.Errorf("ended %v early", over-at)
	case at > over+noticed:
		t.Errorf("ended %v after its deadline", at-over)
	default:
		wantLost(t, lease, redlock.ErrExpired)
		book.lost(t, 1)
	}
	holder.set(lineIntact, 3)
	time.Sleep(2 * suspendTTL)
}

// TestRenewSuspendOften: short suspends add up.
func TestRenewSuspendOften(t *testing.T) {
	for _, length := range []time.Duration{20, 60, 150, 300, 450, 700} {
		length *= time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			clk, holder, _ := suspendable(t, redlock.WithoutRenewal(), redlock.WithTTL(20*time.Second))
			lease := holder.lock("a", redlock.WithTTL(20*time.Second))
			deadline := clk.Elapsed() + 20*time.Second - 202*time.Millisecond
			stop := time.AfterFunc(0, func() {
				for !isDone(lease) {
					time.Sleep(250 * time.Millisecond)
					clk.Suspend(length)
				}
			})
			defer stop.Stop()
			<-lease.Done()
			if late := clk.Elapsed() - deadline; late > 2*noticed+2*length {
				t.Errorf("suspended for %v again and again: ended %v late", length, late)
			}
			time.Sleep(time.Second)
		})
	}
}

// TestRenewWallStep: a step of the wall clock, either way, changes nothing.
func TestRenewWallStep(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 1000 * time.Hour, -1000 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clk, holder, book := suspendable(t)
			lease := holder.lock("a")
			time.Sleep(suspendTTL / 10)
			before := lease.Remaining()
			clk.Step(step)
			exactly(t, fmt.Sprintf("remaining after a step of %v", step), lease.Remaining(), before)
			noErr(t, lease.Err())
			time.Sleep(3 * suspendTTL)
			noErr(t, lease.Err())
			holder.set(lineHanging, 3)
			left := lease.Remaining()
			clk.Step(-step)
			exactly(t, "end", took(func() { <-lease.Done() }), left)
			synctest.Wait()
			wantLost(t, lease, redlock.ErrExpired, redlock.ErrNoQuorum)
			book.lost(t, 1)
			holder.set(lineIntact, 3)
			time.Sleep(suspendTTL)
		})
	}
}
