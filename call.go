// One command for one node, and what came of it.

package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// A call is one command for one node.
type call struct {
	op    op
	round *round
	node  int

	number int64 // for a raise or rearm: the fencing token

	// For a release.
	bury  bool // leave a tombstone
	owed  bool // there may be a key
	quiet bool // nobody waits for the vote, or it was given

	behind *call // another acquire that waits for the same release; guarded by the lane's mutex

	// Guarded by the hold's mutex.
	absent bool  // an extend found no token
	next   *call // in a site's list of what is under way

	// For those who count the votes.
	answer  answer // the latest
	counter int64  // the fencing counter of a node that granted an acquire
}

// An answer is what came of a call.
type answer struct {
	Reply
	op      op
	number  int64 // of the call
	err     error
	elapsed time.Duration // since it was handed to the node
}

// sound returns a without what a Node must not say.
func (a answer) sound() answer {
	switch {
	case a.err == nil && (a.Verdict == Unknown || a.Verdict > Released):
		a.err = errNoVerdict
		fallthrough
	case a.err != nil && (a.Verdict <= Released || a.Verdict > Forbidden):
		a.Verdict = Unknown // an error vouches for nothing
	}
	return a
}

// run carries c out, in the goroutine of a lane.
func (c *call) run(n Node) {
	if !c.op.bare() && !c.round.hold.begin(c) {
		c.drop(errGivenUp)
		return
	}
	c.arrive(c.send(n))
}

// arrive accounts for what came of a call that has begun, and hands it on.
func (c *call) arrive(a answer) {
	if !c.op.bare() {
		c.round.hold.settle(c, a)
	}
	c.finish(a)
}

// unhurried reports that c has a node timeout of its own: nobody waits for it, or the
// round is over.
func (c *call) unhurried() bool {
	return c.quiet || c.round.inbox == nil && c.op == opRelease || c.round.Err() != nil
}

// until is when the time of c ends if it is sent now.
func (c *call) until(now time.Time) time.Time {
	if c.unhurried() {
		return now.Add(c.round.hold.set.nodeTimeout)
	}
	return c.round.deadline
}

// context bounds c.
func (c *call) context() (context.Context, context.CancelFunc) {
	if c.unhurried() {
		return context.WithTimeout(context.WithoutCancel(c.round), c.round.hold.set.nodeTimeout)
	}
	return c.round, func() {}
}

// unwanted reports that c is not to be sent, since nobody waits for it any more.
func (c *call) unwanted() bool { return c.op != opRelease && !c.quiet && c.round.Err() != nil }

// send makes the call.
func (c *call) send(n Node) answer {
	if c.unwanted() {
		return answer{Reply: Reply{Verdict: Unsent}, err: errGivenUp}
	}
	ctx, cancel := c.context()
	defer cancel()
	h := c.round.hold
	start := clock.System.Now()
	claim := &h.sites[c.node].claim
	var a answer
	switch {
	case c.op == opAcquire:
		a.Reply, a.err = n.Acquire(ctx, claim)
	case c.op == opRaise:
		a.Reply, a.err = n.Raise(ctx, claim, c.number)
	case c.op == opRearm:
		a.Reply, a.err = n.Rearm(ctx, claim, c.number)
	case c.op == opExtend:
		a.Reply, a.err = n.Extend(ctx, claim)
	case c.op == opEnlist, c.op == opDelist:
		a.Reply, a.err = c.stand(ctx, n)
	default:
		a.Reply, a.err = n.Release(ctx, claim, c.bury)
	}
	return c.heard(ctx, a, ctx.Err() != nil, clock.System.Now().Sub(start))
}

// heard returns what an answer is worth that took so long, where late is whether the
// time was over.
func (c *call) heard(ctx context.Context, a answer, late bool, elapsed time.Duration) answer {
	h := c.round.hold
	if (c.op == opAcquire || c.op == opRaise) && h.sites[c.node].claim.Fence != "" && a.Verdict == Granted && a.Counter <= 0 {
		a.Verdict = Unknown // a grant that does not count
	}
	l := h.client.lanes[c.node]
	l.hear(a, late)
	if c.op == opAcquire && a.Verdict == Granted && a.err == nil {
		if err := l.vouch(ctx); err != nil {
			a = answer{err: err} // the key may be of use later, and has to be released
		}
	}
	a = a.sound()
	a.elapsed = elapsed
	l.count.note(a)
	if c.op == opAcquire || c.op == opExtend {
		l.note(a.err)
	}
	return a
}

// drop ends c unsent.
func (c *call) drop(err error) {
	if a := (answer{Reply: Reply{Verdict: Unsent}, err: err}); errors.Is(err, errOverloaded) {
		c.round.hold.client.lanes[c.node].count.note(a)
	}
	c.finish(answer{Reply: Reply{Verdict: Unsent}, err: err})
}

// finish hands on what came of c. It takes no lock of a hold.
func (c *call) finish(a answer) {
	a.op, a.number = c.op, c.number
	if h := c.round.hold; a.Named && int(h.named.Add(1)) == quorum.Size(len(h.sites)) {
		h.client.crowd.mind(h.sites[c.node].claim.Lock) // fewer may have called one who has left
	}
	if c.op == opRelease {
		l := c.round.hold.client.lanes[c.node]
		l.freed(c)
		switch {
		case a.err == nil:
		case a.Verdict != Forbidden:
			l.repeat(c)
		case c.owed:
			l.abandon(c, a.err)
		}
	}
	switch {
	case !c.quiet && c.round.inbox != nil:
		c.round.inbox.Put(c.node, a)
	case !c.quiet && c.round.tell != nil:
		c.round.vote(c.node, a)
	default:
		c.round.trace(c.op, c.node, a, true)
	}
	if !c.quiet {
		c.round.leave()
	}
	if c.op == opEnlist {
		c.round.waiter.asked(c.node)
	}
}

// dead reports that nobody wants c sent any more.
func (c *call) dead() bool {
	switch c.op {
	case opRelease, opDelist:
		return false
	default:
		return c.unwanted() || c.round.hold.over.Load()
	}
}
