// The Redlock algorithm: one attempt, and how often it is made.
//
// The numbered steps are those of "Distributed Locks with Redis", section "The
// Redlock Algorithm".

package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// A Mutex is one resource and the policy for locking it. It holds no state of
// any acquisition, so it may be kept, shared and used concurrently; each grant
// is a [Lease] of its own. It is not reentrant: a holder that locks again waits
// for itself.
type Mutex struct {
	client *Client
	set    settings
	name   string

	lock      string // key
	fence     string // key; empty without fencing
	tombstone string // key, without the value
	queue     string // key
	limits    string // of the counter, packed
}

// Name returns the name of the resource.
func (m *Mutex) Name() string { return m.name }

// TryLock makes one attempt to lock. It returns as soon as the outcome is
// certain, at most a node timeout later.
//
// The error wraps [ErrTaken], [ErrNoQuorum] or [ErrExpired], and is a
// [*QuorumError] with what each node said; or it wraps ctx's error and cause
// if ctx ended first; or [ErrClosed]. In each of these cases the attempt leaves
// no key behind: nodes that cannot be reached now are seen to in the
// background.
//
// ctx bounds the acquisition only. It does not end the lease.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, 1)
}

// Lock makes attempts until one succeeds, ctx ends, or the number set by
// [WithMaxAttempts] is used up: for ever, if ctx has no end and there is no number. Between attempts it waits until a release calls
// it, or as [WithBackoff] says, or until the present holder's keys expire,
// whichever is first. It ends at once if so many nodes refuse for a reason that
// time does not heal (authentication, permission, a key of another type) that no
// quorum is left.
//
// Those who wait for one lock stand in line: within a client strictly, one at a
// time making attempts (waits in line count as attempts), and among clients in the
// line that nodes keep, see [Waker], by the time of their calls. Nobody is sure of
// his turn: a TryLock, or a Lock that finds the lock free when it is called, does
// not stand in line, and a client whose wall clock is slow by up to ten seconds
// gains that much. Where no quorum of nodes can call, whoever locks again as soon as he
// has unlocked may keep the others out.
//
// The error is that of the last attempt, as with [Mutex.TryLock]; if ctx ended,
// it wraps ctx's error and cause as well, and an attempt that this cut short does
// not hide what the one before it found. ctx bounds the acquisition only. It does
// not end the lease.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, m.set.maxAttempts)
}

// acquire makes attempts, at most the given number unless that is 0.
func (m *Mutex) acquire(ctx context.Context, most int) (*Lease, error) {
	if ctx == nil {
		return nil, m.error("lock", errNilContext)
	}
	if ctx.Err() != nil {
		return nil, callerEnded(ctx, "lock", m.name, nil)
	}
	if err := m.client.enter(); err != nil {
		return nil, m.error("lock", err)
	}
	defer m.client.work.Done()

	start := clock.System.Now()
	ctx = m.lockStart(ctx, most)
	l, attempts, err := m.attempts(ctx, most)
	m.lockDone(ctx, start, attempts, l, err)
	return l, err
}

// attempts is acquire for a client that is open. It also returns the number of
// attempts.
func (m *Mutex) attempts(ctx context.Context, most int) (*Lease, int, error) {
	var w *waiter
	defer func() { w.leave(ctx) }()
	var known error // of the last attempt that was not cut short
	for number := 1; ; number++ {
		if most != 1 && (w == nil || w.hopeless()) {
			w = w.anew(ctx, m)
			var err error
			if number, err = w.join(ctx, most, number); err != nil {
				return nil, number, err
			}
		}
		a := m.attempt(ctx, number, w)
		if !a.cut {
			known = a.err
			w.found(a)
		}
		switch {
		case a.err == nil:
			return a.lease, number, nil
		case ctx.Err() != nil:
			if known != nil { // else nothing is known but that there was no quorum yet
				a.err = known
			}
			return nil, number, callerEnded(ctx, "lock", m.name, a.err)
		case a.final, number == most:
			return nil, number, a.err
		}
		if err := w.wait(ctx, number, a); err != nil {
			return nil, number, err
		}
	}
}

// An attempt is what came of one.
type attempt struct {
	lease *Lease
	err   error
	free  time.Duration // until the holder's keys expire; 0 if not known
	taken bool          // somebody has the lock
	alone bool          // nobody else was seen
	final bool          // trying again is useless
	cut   bool          // the caller left before the votes were in, or counted

	looked bool // the nodes were only asked who has the lock
}

// attempt is the algorithm, for a call of Lock that has waited if w is not nil.
func (m *Mutex) attempt(ctx context.Context, number int, w *waiter) attempt {
	clk := m.client.set.clock
	if f := m.client.set.trace.AttemptStart; f != nil {
		f(AttemptStart{Context: eventContext(ctx), Name: m.name, Attempt: number})
	}

	// 0. Who has waited has asked before who has the lock.
	if r := w.refused(); r != nil {
		a := attempt{err: r.error(ErrTaken), free: r.free(), taken: true, looked: true}
		m.count(&a, 0)
		if f := m.client.set.trace.AttemptDone; f != nil {
			f(AttemptDone{Context: eventContext(ctx), Name: m.name, Attempt: number, Failure: a.failure(), Err: a.err})
		}
		return a
	}

	// 1. Get the current time. A value of this attempt's own: a late release of
	// an earlier one must not delete its keys.
	h := newHold(ctx, m, w)
	start := clk.Elapsed()

	// 2. Try to acquire the lock on all nodes, with a timeout that is small
	// against the TTL.
	r := h.ask(ctx, opAcquire)
	outcome, ended := r.collect(ctx)

	// 3. and 4. The lock is held if a majority granted it and its validity, the
	// TTL less the time that took and the drift, is not used up.
	elapsed := clk.Elapsed() - start
	validity := max(min(m.set.drift.Validity(m.set.ttl, elapsed), m.set.maxHold-elapsed), 0)

	var a attempt
	switch {
	case ended != nil || ctx.Err() != nil:
		// A lock granted to a caller who has left is nobody's.
		a.err, a.cut = r.error(ErrNoQuorum), true
	case outcome != quorum.Won && r.blocking(r.votes.taken):
		a.err = r.error(ErrTaken)
		a.free, a.taken = r.free(), true
	case outcome != quorum.Won && r.votes.granted >= r.votes.need:
		a.err = r.error(errNoAgreement)
	case outcome != quorum.Won:
		a.err = r.error(ErrNoQuorum)
		a.final = r.blocking(r.votes.forbidden)
	case validity == 0 || validity < m.set.minValidity:
		a.err = r.error(ErrExpired)
	default:
		h.grant(r)
		a.lease = newLease(ctx, m, h, r.token, start, start+elapsed+validity)
		if !m.client.register(a.lease.grant) {
			a.lease.stop(ErrClosed)
			a.err, a.final = m.error("lock", ErrClosed), true
		}
	}

	a.alone = r.votes.taken == 0

	// 5. If it is not, unlock on all nodes, even those that seemed to refuse.
	if a.err != nil {
		a.lease, validity, r.token = nil, 0, 0
		h.abandon(ctx)
	}
	m.count(&a, elapsed)
	if f := m.client.set.trace.AttemptDone; f != nil {
		f(AttemptDone{
			Context: eventContext(ctx), Name: m.name, Attempt: number, Elapsed: elapsed, Validity: validity,
			Granted: r.votes.granted, Rounds: r.rounds, Token: r.token, Failure: a.failure(), Err: a.err,
		})
	}
	return a
}

// Do locks, calls fn, and unlocks, also if fn panics. The context that fn gets
// ends when ctx ends or the lease does, with the cause of whichever was first.
//
// The error joins what fn returned and what Unlock did, which tells of a lease
// that was lost before fn returned. So a nil error says that fn succeeded and the
// lock was held throughout. The reverse does not hold: fn may have succeeded, and
// the lock been held, when the release could not be confirmed. That error is a
// [*QuorumError] with the Op "unlock", and wraps neither [ErrLost] nor [ErrNotHeld]: with
// one of these the lock was lost. So nothing is to be done again because of an error; let
// fn record that it is done.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context, l *Lease) error) (err error) {
	if fn == nil {
		return m.error("do", errors.New("fn is nil"))
	}
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(l.Context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		stop()
		if !errors.Is(l.Err(), ErrUnlocked) { // by fn, which has seen the outcome
			err = join(err, l.Unlock(context.WithoutCancel(ctx)))
		}
		cancel(context.Canceled)
	}()
	return fn(&doContext{leaseContext{inner, l}, ctx}, l) //nolint:contextcheck // it ends with ctx too
}

// A doContext ends with the lease or the caller's context.
type doContext struct {
	leaseContext
	caller context.Context
}

func (c *doContext) Deadline() (time.Time, bool) { return c.caller.Deadline() }

// error is err with the operation and the name in front.
func (m *Mutex) error(op string, err error) error {
	return fmt.Errorf("redlock: %s %q: %w", op, abbreviate(m.name), err)
}
