// The state of a lease: until when it may be trusted, and why it ended.

package redlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// A grant is the state of a [Lease]. It does not refer to the handle, except
// weakly.
type grant struct {
	mutex  *Mutex
	hold   *hold
	token  int64 // fencing token
	handle weak.Pointer[Lease]
	values context.Context // of the ctx given to Lock
	start  time.Duration   // when the lock was asked for, on the client's clock
	since  time.Time       // when it was granted
	last   time.Duration   // when the lease ends however often it is renewed

	unlocked atomic.Bool // Unlock was called

	mu       sync.Mutex
	deadline time.Duration // on the client's clock
	wall     time.Time     // the same instant, for people
	timer    clock.Timer   // fires in the danger zone, and at the deadline
	warned   bool          // of the danger
	reason   error         // why the last renewal failed, if it did
	fires    time.Duration // when the timer was to fire
	err      error         // why the lease ended
	held     time.Duration // how long, once it has ended
	ctx      context.Context
	cancel   context.CancelCauseFunc // made when first asked for

	plan plan // the renewer's
}

// newLease makes a lease that is held until deadline, of a lock asked for at
// start.
func newLease(ctx context.Context, m *Mutex, h *hold, token int64, start, deadline time.Duration) *Lease {
	g := &grant{
		mutex: m, hold: h, token: token, values: ctx,
		start: start, last: saturatingAdd(start, m.set.maxHold), since: clock.System.Now(),
	}
	g.plan.index = unplanned
	l := &Lease{grant: g}
	g.handle = weak.Make(l)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trust(deadline)
	g.timer = m.client.set.clock.AfterFunc(g.nextEvent(), g.onTime)
	return l
}

func (g *grant) now() time.Duration { return g.hold.client.set.clock.Elapsed() }

// trust sets the deadline. The caller holds g.mu.
func (g *grant) trust(deadline time.Duration) {
	g.deadline = min(deadline, g.last)
	g.wall = g.hold.client.set.clock.Now().Add(g.deadline - g.now())
	g.hold.deadline.Store(int64(g.deadline))
	g.warned = !g.renews()
	g.reason = nil
}

// renews reports whether renewals can still move the deadline. The caller holds
// g.mu.
func (g *grant) renews() bool { return g.mutex.set.renewal > 0 && g.deadline < g.last }

// danger returns when a renewal is so much overdue that the holder should know:
// once a quarter of the time from when it was due to the deadline is gone.
func (g *grant) danger() time.Duration {
	left := g.mutex.set.drift.Validity(g.mutex.set.ttl, 0) - g.mutex.set.renewal
	return g.deadline - left + left/4
}

// nextEvent returns how long it is until the timer is needed. The caller holds
// g.mu.
func (g *grant) nextEvent() time.Duration {
	event, now := g.deadline, g.now()
	if !g.warned {
		event = g.danger()
	}
	g.fires = max(event, now)
	return event - now
}

// onTime is what the timer calls. It needs no answer from any node.
func (g *grant) onTime() {
	g.mu.Lock()
	late := g.now() - g.fires
	g.mu.Unlock()
	defer g.hold.client.paused(late) // after the holder has learned it: a logger may be told
	if g.check() != nil {
		return
	}
	g.mu.Lock()
	now := g.now()
	danger := !g.warned && now >= g.danger()
	g.warned = g.warned || danger
	event := Danger{Name: g.mutex.name, Remaining: g.deadline - now, Err: g.reason}
	if g.err == nil {
		g.timer.Reset(g.nextEvent()) // also if the deadline was moved meanwhile
	}
	g.mu.Unlock()
	if !danger {
		return
	}
	g.hold.client.count.dangers.Add(1)
	if f := g.hold.client.set.trace.Danger; f != nil {
		event.Context = eventContext(g.values)
		f(event)
	}
}

// resume sets the timer anew, or ends the lease if its time is over.
func (g *grant) resume() {
	if g.check() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.timer.Reset(g.nextEvent())
	}
}

func (g *grant) remaining() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.deadline-g.now(), 0)
}

// check returns why the lease ended, after asking the clock whether it has.
func (g *grant) check() error {
	g.mu.Lock()
	err := g.err
	late := err == nil && g.now() >= g.deadline
	reason := g.reason
	switch {
	case g.deadline >= g.last:
		reason = ErrMaxHold
	case reason != nil:
		reason = fmt.Errorf("%w: %w", ErrExpired, reason)
	default:
		reason = ErrExpired
	}
	g.mu.Unlock()
	if late {
		return g.lose(reason)
	}
	return err
}

// ended returns an error for op if the lease has ended.
func (g *grant) ended(op string) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("redlock: %s %q: %w: %w", op, abbreviate(g.mutex.name), ErrNotHeld, err)
	}
	return nil
}

// context returns what ends with the lease.
func (g *grant) context() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil {
		g.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(g.values))
		if g.err != nil {
			g.cancel(g.err)
		}
	}
	return g.ctx
}

// end ends the lease for the given reason, and reports whether it was held
// until now.
func (g *grant) end(reason error) bool {
	ended := g.stop(reason)
	if ended {
		g.count(reason)
	}
	return ended
}

// stop is end for a lease that nobody has seen.
func (g *grant) stop(reason error) bool {
	g.mu.Lock()
	if g.err != nil {
		g.mu.Unlock()
		return false
	}
	g.err, g.held = reason, clock.System.Now().Sub(g.since)
	g.timer.Stop()
	if g.cancel != nil {
		g.cancel(reason) // before anybody can read err; it calls no code of users
	}
	g.mu.Unlock()
	g.hold.client.renewer.forget(g)
	g.hold.client.unregister(g)
	return true
}

// lose ends the lease for a reason that is not its owner's, and returns why it
// ended, which may be another reason that was there before. Keys that are left
// on a minority are released: they could only keep others out.
func (g *grant) lose(reason error) error {
	lost := fmt.Errorf("redlock: %q: %w: %w", abbreviate(g.mutex.name), ErrLost, reason)
	open := g.hold.client.enter() == nil // before end: then Close releases it otherwise
	if open {
		defer g.hold.client.work.Done()
	}
	if g.end(lost) {
		if open {
			g.hold.abandon(g.values)
		}
		g.traceLost(lost)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// conclude draws the conclusion from a renewal that was sent at start: it moves
// the deadline, or ends the lease, or leaves it as it is and returns why. It is
// complete unless the caller left before the votes were in.
func (g *grant) conclude(r *round, outcome quorum.Outcome, start time.Duration, complete bool) error {
	switch v := &r.votes; {
	case outcome == quorum.Won:
		if err := g.prolong(start + g.mutex.set.drift.Validity(g.mutex.set.ttl, 0)); err != nil {
			return err
		}
		g.hold.rearm(r)
		return nil
	case r.blocking(v.taken):
		err := r.error(ErrTaken)
		g.lose(err)
		return err
	case r.blocking(v.taken + v.absent):
		err := r.error(ErrNotHeld)
		g.lose(err)
		return err
	}
	if err := g.ended("extend"); err != nil {
		return err
	}
	err := r.error(ErrNoQuorum)
	if complete {
		g.mu.Lock()
		g.reason = err
		g.mu.Unlock()
	}
	return err
}

// prolong moves the deadline after a renewal was won. That the old one has not
// passed must be asked last: a lease that has ended stays so, however well the
// nodes know it.
func (g *grant) prolong(deadline time.Duration) error {
	g.mu.Lock()
	held := g.err == nil && g.now() < g.deadline
	if held && deadline > g.deadline {
		g.trust(deadline)
		g.timer.Reset(g.nextEvent())
	}
	g.mu.Unlock()
	if held {
		return nil
	}
	return g.ended("extend")
}
