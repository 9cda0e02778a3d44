// What is counted, and told, of calls of Lock and of leases.

package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A valuedContext ends with one context and has the values of another.
type valuedContext struct {
	context.Context
	values context.Context
}

func (c *valuedContext) Value(key any) any { return c.values.Value(key) }
func (c *valuedContext) cause() error      { return context.Cause(c.Context) }

// lockStart returns the context of a call that begins.
func (m *Mutex) lockStart(ctx context.Context, most int) context.Context {
	f := m.client.set.trace.LockStart
	if f == nil {
		return ctx
	}
	values := f(ctx, LockStart{Name: m.name, MaxAttempts: most})
	if values == nil {
		return ctx
	}
	return &valuedContext{ctx, values}
}

// causeOf is context.Cause, which would ask the values for it.
func causeOf(ctx context.Context) error {
	if c, ok := ctx.(*valuedContext); ok {
		return c.cause()
	}
	return context.Cause(ctx)
}

// lockDone accounts for a call that began at start.
func (m *Mutex) lockDone(ctx context.Context, start time.Time, attempts int, l *Lease, err error) {
	n := &m.client.count
	token := int64(0)
	switch {
	case err == nil:
		token = l.token
		n.wait.record(l.since.Sub(start))
	default:
		tick(failures[:], n.lockFailed[:], FailureOf(err))
	}
	if f := m.client.set.trace.LockDone; f != nil {
		f(LockDone{
			Context: eventContext(ctx), Name: m.name, Attempts: attempts,
			Elapsed: clock.System.Now().Sub(start), Token: token, Err: err,
		})
	}
}

// count accounts for an attempt that took so long.
func (m *Mutex) count(a *attempt, elapsed time.Duration) {
	n := &m.client.count
	n.attempts.Add(1)
	if a.err != nil {
		tick(failures[:], n.attemptFailed[:], a.failure())
		return
	}
	n.acquired.Add(1)
	n.acquire.record(elapsed)
	if m.set.renewal > 0 {
		lowerTo(&n.advisor.shortest, int64(m.set.ttl))
	}
}

func (a *attempt) failure() Failure {
	if a.cut {
		return FailedCanceled
	}
	return FailureOf(a.err)
}

// count accounts for a lease that has ended.
func (g *grant) count(reason error) {
	n := &g.hold.client.count
	n.hold.record(g.held)
	if errors.Is(reason, ErrUnlocked) {
		n.unlocked.Add(1)
		return
	}
	tick(lossCauses[:], n.lost[:], lossCause(reason))
}

// traceLost tells of a lease that was lost.
func (g *grant) traceLost(reason error) {
	if f := g.hold.client.set.trace.Lost; f != nil {
		f(Lost{Context: eventContext(g.values), Name: g.mutex.name, Held: g.held, Cause: lossCause(reason), Err: reason})
	}
}

// unlockDone accounts for an Unlock that began at start, of a lease that was held then
// or was not.
func (g *grant) unlockDone(start time.Time, held bool, err error) {
	elapsed := clock.System.Now().Sub(start)
	if held {
		g.hold.client.count.unlock.record(elapsed)
	}
	if f := g.hold.client.set.trace.Unlocked; f != nil {
		f(Unlocked{Context: eventContext(g.values), Name: g.mutex.name, Held: g.held, Elapsed: elapsed, Err: err})
	}
}

// account is for a renewal that took so long.
func (n *renewal) account(elapsed time.Duration, err error) {
	c := n.renewer.client
	behind := max(n.start-n.due, 0)
	c.paused(behind)
	if errors.Is(err, ErrUnlocked) || errors.Is(err, ErrClosed) {
		return // its lease is over, and was not lost: it has not failed
	}
	if err == nil {
		c.count.heartbeat.record(elapsed)
		c.renewed()
	} else {
		c.count.renewalFailed.Add(1)
	}
	if f := c.set.trace.Renewal; f != nil {
		f(Renewal{
			Context: eventContext(n.grant.values), Name: n.grant.mutex.name, Behind: behind, Elapsed: elapsed,
			Validity: n.grant.remaining(), Granted: n.round.votes.granted, Err: err,
		})
	}
}

// waits counts a Lock that waits, until what it returns is called.
func (c *Client) waits() (done func()) {
	c.count.waiting.Add(1)
	return c.waited
}

func (c *Client) waited() { c.count.waiting.Add(-1) }

// calledBy accounts for a call that a node has made.
func (w *waiter) calledBy(l *lane) {
	l.count.called.Add(1)
	if f := l.client.set.trace.Called; f != nil {
		f(Called{Context: eventContext(w.values), Name: w.mutex.name, Node: l.node.Name()})
	}
}

var errEnded = errors.New("it has ended")

// deaf accounts for a node that is heard no more.
func (c *Client) deaf(node int, err error) {
	l := c.lanes[node]
	l.count.deaf.Add(1)
	if f := c.set.trace.Deaf; f != nil {
		if err == nil {
			err = errEnded
		}
		f(Deaf{Node: l.node.Name(), Err: newNodeError(l.node.Name(), "listen", err)})
	}
}
