// What the holder of a lock sees of its grant.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A Lease is one grant of a lock. The client renews it until Unlock is called
// (see [WithRenewal]), and it is held until then, or until its local deadline,
// or a renewal that finds it gone, whichever is first. Once it has ended it is
// never held again. All methods are safe for concurrent use. Those of a nil
// Lease return zero values and [ErrNotHeld].
//
// A Lease that is garbage collected is renewed no more and ends with its TTL.
type Lease struct {
	// The handle is apart from the state, so that the client can keep the
	// state without keeping the lease in use.
	*grant

	once sync.Once
	ctx  context.Context
}

// none reports whether there is no lease behind l.
func (l *Lease) none() bool { return l == nil || l.grant == nil }

// leaseContext asks the clock before it says that the lease is held, as
// [Lease.Err] does.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (c *leaseContext) Err() error {
	c.lease.Err() // ends the context if the deadline has passed
	return c.Context.Err()
}

// ofLease is the key under which a context tells whether it ends with a lease.
type ofLease struct{ *Lease }

func (c *leaseContext) Value(key any) any {
	if key == (ofLease{c.lease}) {
		return true
	}
	return c.Context.Value(key)
}

// Name returns the name of the resource.
func (l *Lease) Name() string {
	if l.none() {
		return ""
	}
	return l.mutex.name
}

// Token returns the random owner token. It proves to the nodes who holds the
// lock and has no order: it is no fencing token.
func (l *Lease) Token() string {
	if l.none() {
		return ""
	}
	return l.hold.token
}

// FencingToken returns the lease's number for the storage that it protects: no
// other lease of the same name has it, and every lease whose acquisition begins
// after this one was granted has a larger one. It stays the same for the life of
// the lease. It is 0 if fencing is off. See package fence for what to do with
// it, and docs/safety.md for what it rests on.
func (l *Lease) FencingToken() int64 {
	if l.none() {
		return 0
	}
	return l.token
}

// Deadline returns the local instant after which the lease must not be trusted
// unless it is extended. It has a monotonic reading; after the machine was
// suspended, ask Remaining or Err instead.
func (l *Lease) Deadline() time.Time {
	if l.none() {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wall
}

// Remaining returns how long the lease may still be trusted, and 0 once it has
// ended.
func (l *Lease) Remaining() time.Duration {
	if l.Err() != nil {
		return 0
	}
	return l.remaining()
}

// Err returns nil while the lease is held, and then why it ended: [ErrUnlocked];
// [ErrLost] joined with the reason, which is [ErrExpired], [ErrNoQuorum],
// [ErrTaken], [ErrNotHeld] or [ErrMaxHold]; or [ErrClosed]. It asks the clock at
// every call, so that a process that was stopped past the deadline is told at
// once.
func (l *Lease) Err() error {
	if l.none() {
		return ErrNotHeld
	}
	return l.check()
}

// Done returns a channel that is closed when the lease ends. It does not keep the
// lease: one that nothing else refers to any more is renewed no more.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Context returns a context with the values of the one given to Lock that ends
// when the lease does, with Err as its cause. The context of a nil Lease has
// ended.
func (l *Lease) Context() context.Context {
	if l.none() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrNotHeld)
		return ctx
	}
	l.once.Do(func() { l.ctx = &leaseContext{l.grant.context(), l} })
	return l.ctx
}

// ended returns an error for op if the lease has ended.
func (l *Lease) ended(op string) error {
	if l.none() {
		return fmt.Errorf("redlock: %s: %w", op, ErrNotHeld)
	}
	return l.grant.ended(op)
}

// Extend renews the lease for its TTL from now, as the client does by itself.
// It succeeds if a quorum still holds the token and says so before the present
// deadline. It never shortens the lease, or takes it beyond [WithMaxHold].
//
// If it fails with [ErrNoQuorum] or ctx's error, the lease is held until its
// deadline, and Extend may be tried again. If it finds that no quorum can hold
// the token any more, the lease is lost: the error wraps [ErrTaken], or
// [ErrNotHeld] where nobody else holds the lock. On a lease that has ended it
// does no I/O and wraps ErrNotHeld and the reason.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.ended("extend"); err != nil {
		return err
	}
	if ctx == nil {
		return l.mutex.error("extend", errNilContext)
	}
	if ctx.Err() != nil {
		return callerEnded(ctx, "extend", l.mutex.name, nil)
	}
	c := l.hold.client
	if err := c.enter(); err != nil {
		return l.mutex.error("extend", err)
	}
	defer c.work.Done()

	start := c.set.clock.Elapsed() // before the renewals are sent
	r := l.hold.ask(ctx, opExtend)
	outcome, left := r.collect(ctx)
	err := l.conclude(r, outcome, start, left == nil)
	if err == nil {
		c.renewer.plan(l.grant, l.nextRenewal(start))
		return nil
	}
	if left != nil && l.check() == nil {
		return callerEnded(ctx, "extend", l.mutex.name, err)
	}
	return err
}

// Unlock ends the lease, and then releases its keys on all nodes. It returns
// nil when so many nodes have confirmed that the token is gone that no quorum
// can hold it. It wraps [ErrNotHeld] when the lease was lost, with the reason,
// or when so many nodes say that the token was gone before: the work done under
// the lease may then have overlapped with another holder's. It also does so at
// every call after the first. Any other error leaves keys that the client goes
// on trying to release in the background until they expire, but for nodes that
// refuse for good, for want of rights for instance: those are reported to
// [WithTrace] and [WithLogger].
//
// The lease is over at once, whatever the outcome. ctx bounds only the wait, which is a
// node timeout at most: the releases are sent even if it has ended. The lease's own
// context, which Unlock ends, does not cut it short.
func (l *Lease) Unlock(ctx context.Context) error {
	if l.none() {
		return l.ended("unlock")
	}
	if ctx == nil {
		return l.mutex.error("unlock", errNilContext)
	}
	if !l.unlocked.CompareAndSwap(false, true) {
		return l.mutex.error("unlock", join(ErrNotHeld, l.check())) // even if the first call is not through
	}
	c, start := l.hold.client, clock.System.Now()
	if err := c.enter(); err != nil {
		err = l.mutex.error("unlock", join(ErrNotHeld, err)) // Close releases it
		l.unlockDone(start, false, err)
		return err
	}
	defer c.work.Done()
	l.check() // lost is lost, even if nobody had noticed until now
	held := l.end(ErrUnlocked)
	err := l.release(ctx)
	l.unlockDone(start, held, err)
	return err
}

// release is Unlock of a lease that has ended.
func (l *Lease) release(ctx context.Context) error {
	lost := l.check()
	if ctx.Value(ofLease{l}) != nil {
		ctx = context.WithoutCancel(ctx)
	}

	r := newRound(ctx, l.hold, opRelease, l.hold.set.nodeTimeout)
	r.expect()
	l.hold.release(r)
	_, left := r.collect(ctx)
	var err error
	switch {
	case errors.Is(lost, ErrLost):
		err = l.ended("unlock")
	case r.goneBefore():
		return r.error(ErrNotHeld)
	}
	switch {
	case r.votes.granted >= r.votes.need:
		return err
	case left != nil:
		return join(err, callerEnded(ctx, "unlock", l.mutex.name, r.error(ErrNoQuorum)))
	default:
		return join(err, r.error(ErrNoQuorum))
	}
}
