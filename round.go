// One question to all nodes, and the calls that carry it.

package redlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// A round asks every node the same about one token, and counts the votes.
//
// It is also the context of its calls. It ends at the node timeout and takes
// only the values of the caller's context: neither a caller who has left nor an
// early decision may cut off calls under way, whose outcomes still matter.
type round struct {
	hold  *hold
	op    op
	calls []call       // by node
	left  atomic.Int32 // calls without an outcome

	// One of the two, if anybody wants the votes: where they are collected, or
	// who is told the outcome, in the goroutine of the vote that decided it.
	inbox *quorum.Inbox[answer]
	tell  func(quorum.Outcome)

	waiter *waiter // of an enlist or delist

	values   context.Context
	patience time.Duration // how long the calls may take
	deadline time.Time
	timer    *time.Timer
	done     chan struct{}

	mu      sync.Mutex // for votes, if there is tell
	decided bool
	votes   votes

	// Of an acquire with fencing; for those who count the votes.
	token   int64 // agreed upon
	rounds  int   // round trips that have had an answer
	raises  int   // times that counters were raised
	raising int   // raises without an outcome
	refused int64 // the least number that a node would not be raised to; 0 if there is none

	won bool // guarded by the hold's mutex
}

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
	elapsed time.Duration // since it was handed to the node, if that is traced
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

func newRound(ctx context.Context, h *hold, o op, patience time.Duration) *round {
	n := len(h.sites)
	r := &round{
		hold: h, op: o, calls: make([]call, n), votes: newVotes(n, o), rounds: 1,
		values: ctx, patience: patience, done: make(chan struct{}),
	}
	r.left.Store(int32(n))
	for i := range r.calls {
		r.calls[i] = call{op: o, round: r, node: i}
	}
	return r
}

// begin starts the time of the calls. Nothing is submitted before.
func (r *round) begin() {
	r.deadline = clock.System.Now().Add(r.patience)
	r.timer = time.AfterFunc(r.patience, r.expire)
}

// expire ends the time of the calls.
func (r *round) expire() {
	close(r.done)
	r.hold.overdue()
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	decided := r.decided
	if !decided {
		r.decided = true
		r.timeout()
	}
	r.mu.Unlock()
	if !decided {
		r.tell(quorum.Lost)
	}
}

// leave ends the round when the last call has its outcome.
func (r *round) leave() {
	if r.left.Add(-1) == 0 && r.timer.Stop() {
		close(r.done)
	}
}

func (r *round) Deadline() (time.Time, bool) { return r.deadline, true }
func (r *round) Done() <-chan struct{}       { return r.done }
func (r *round) Value(key any) any           { return r.values.Value(key) }

func (r *round) Err() error {
	select {
	case <-r.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// run carries c out, in the goroutine of a lane.
func (c *call) run(n Node) {
	if c.op.bare() {
		c.finish(c.send(n))
		return
	}
	if !c.round.hold.begin(c) {
		c.drop(errGivenUp)
		return
	}
	c.settle(c.send(n))
}

// settle ends a call that its hold has counted as under way.
func (c *call) settle(a answer) {
	c.round.hold.settle(c, a)
	c.finish(a)
}

// send makes the call. Its time is bounded by the round's, or by a node timeout
// of its own where the round is over.
func (c *call) send(n Node) answer {
	h := c.round.hold
	var ctx context.Context = c.round
	if c.op != opRelease && !c.quiet && ctx.Err() != nil {
		return answer{Reply: Reply{Verdict: Unsent}, err: errGivenUp}
	}
	if c.quiet || c.round.inbox == nil && c.op == opRelease || ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), h.set.nodeTimeout)
		defer cancel()
	}
	start := h.traceStart()
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
	if (c.op == opAcquire || c.op == opRaise) && claim.Fence != "" && a.Verdict == Granted && a.Counter <= 0 {
		a.Verdict = Unknown // a grant that does not count
	}
	l := h.client.lanes[c.node]
	l.hear(a, ctx.Err() != nil)
	if c.op == opAcquire && a.Verdict == Granted && a.err == nil {
		if err := l.vouch(ctx); err != nil {
			a = answer{err: err} // the key may be of use later, and has to be released
		}
	}
	a = a.sound()
	a.elapsed = h.traceSince(start)
	if c.op == opAcquire || c.op == opExtend {
		l.note(a.err)
	}
	return a
}

// drop ends c unsent.
func (c *call) drop(err error) {
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
		c.round.hold.trace(c.op, c.node, a, true)
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
		return c.round.Err() != nil || c.round.hold.over.Load()
	}
}
