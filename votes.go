// Counting what the nodes said.

package redlock

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/redlock/quorum"
)

// votes counts the answers of one round.
type votes struct {
	need  int
	tally quorum.Tally

	granted   int // for a release: the token is gone
	taken     int // another token is there
	absent    int // no token is there
	failed    int
	forbidden int // of those
}

func newVotes(nodes int, o op) votes {
	need := quorum.Size(nodes)
	if o == opRelease {
		// So many nodes without the token leave no quorum that could hold it.
		need = quorum.Blocking(nodes)
	}
	return votes{need: need, tally: quorum.NewTally(nodes, need)}
}

// expect makes a place for the votes. Without it they are not waited for.
func (r *round) expect() {
	var late func(int, answer)
	if r.hold.client.set.trace.NodeDone != nil {
		late = func(node int, a answer) { r.trace(a.op, node, a, true) }
	}
	r.inbox = quorum.NewInbox(len(r.calls), late)
	r.left.Add(1) // collect, which may have more to ask
}

// collect counts votes until the outcome is certain, the node timeout has
// passed, or the caller's ctx ends.
func (r *round) collect(ctx context.Context) (quorum.Outcome, error) {
	defer r.leave()
	outcome, err := r.inbox.Collect(ctx, r.done, r.countOrGiveUp)
	if outcome == quorum.Pending && err == nil {
		r.timeout()
		outcome = quorum.Lost
	}
	return outcome, err
}

// countOrGiveUp adds one node's answer, and gives a vote up that has been split
// and waits only for nodes that have lately been silent: all contenders would wait
// for them, with the others' votes in hand, until their node timeouts.
func (r *round) countOrGiveUp(node int, a answer) quorum.Outcome {
	outcome := r.count(node, a)
	if r.op == opEnlist && outcome == quorum.Lost && !r.blocking(r.votes.taken) {
		outcome = quorum.Pending // it is not free, but whether it is taken the others know
	}
	if outcome != quorum.Pending || r.raising > 0 || r.op != opEnlist && (r.op != opAcquire || r.votes.taken == 0) {
		return outcome
	}
	for i := range r.calls {
		if r.unanswered(i) && !r.hold.client.lanes[i].silent.Load() {
			return outcome
		}
	}
	r.timeout()
	return quorum.Lost
}

func (r *round) unanswered(i int) bool {
	a := &r.calls[i].answer
	return a.Verdict == Unknown && a.err == nil
}

// vote counts an answer for those who are told the outcome.
func (r *round) vote(node int, a answer) {
	r.mu.Lock()
	if r.decided {
		r.mu.Unlock()
		r.trace(a.op, node, a, true)
		return
	}
	outcome := r.count(node, a)
	r.decided = outcome != quorum.Pending
	r.mu.Unlock()
	if outcome != quorum.Pending {
		r.tell(outcome)
	}
}

// count adds one node's answer.
func (r *round) count(node int, a answer) quorum.Outcome {
	r.trace(a.op, node, a, false)
	r.calls[node].answer = a
	if r.op == opAcquire && r.hold.sites[node].claim.Fence != "" {
		return r.countFenced(a)
	}
	v := &r.votes
	yes := false
	switch {
	case a.err != nil, a.Verdict == Buried:
		v.failed++
		if a.Verdict == Forbidden {
			v.forbidden++
		}
	case a.Verdict == Granted, a.Verdict == Released:
		yes = true
	case a.Verdict == Taken:
		v.taken++
		yes = r.op == opRelease
	default:
		v.absent++
		yes = r.op.bare()
	}
	if yes {
		v.granted++
		v.tally.Yes()
	} else {
		v.tally.No()
	}
	if r.op == opRelease {
		return r.releaseOutcome()
	}
	return v.tally.Outcome()
}

// releaseOutcome is certain when the token is gone from enough nodes, and it is
// known whether that was so before: then another may have held the lock, and the
// holder has to be told. It cannot have been so if enough nodes had the token
// until now.
func (r *round) releaseOutcome() quorum.Outcome {
	v := &r.votes
	waiting := len(r.calls) - v.granted - v.failed
	if o := v.tally.Outcome(); o != quorum.Won || r.goneBefore() ||
		r.blocking(v.granted-v.taken-v.absent) || !r.blocking(v.taken+v.absent+waiting) {
		return o
	}
	return quorum.Pending
}

// goneBefore reports whether so many nodes had lost the token before a release
// that another may have held the lock.
func (r *round) goneBefore() bool {
	v := &r.votes
	before := v.taken + v.absent
	return r.blocking(before) && !r.blocking(v.granted-before)
}

// timeout counts the nodes that have not answered as failed.
func (r *round) timeout() {
	for i := range r.calls {
		if r.unanswered(i) {
			a := &r.calls[i].answer
			a.err, a.op = ErrNodeTimeout, r.op
			r.votes.failed++
			r.hold.client.lanes[i].silent.Store(true)
		}
	}
}

// blocking reports whether n nodes are enough to put a quorum out of reach.
func (r *round) blocking(n int) bool { return n >= quorum.Blocking(len(r.calls)) }

// error describes a vote that ended with the given verdict.
func (r *round) error(verdict error) *QuorumError {
	v := &r.votes
	e := &QuorumError{
		Name: r.hold.name, Op: [...]string{opAcquire: "lock", opExtend: "extend", opRelease: "unlock", opEnlist: "lock"}[r.op],
		Need: v.need, Granted: v.granted, Denied: v.taken + v.absent, Failed: v.failed,
		Nodes: new(multierror.Error), verdict: verdict,
	}
	if r.op == opRelease {
		e.Denied = 0 // those were votes in favour
	}
	for i := range r.calls {
		a := r.calls[i].answer
		err := a.err
		switch {
		case err != nil:
		case a.Verdict == Taken:
			err = errOtherToken
		case a.Verdict == Absent:
			err = errNoToken
		case a.Verdict == Buried:
			err = errBuried
		default:
			continue
		}
		e.Nodes.Errors = append(e.Nodes.Errors, newNodeError(r.hold.nodeName(i), a.op.String(), err))
	}
	return e
}

// free returns how long it takes at least until the keys of other tokens have
// expired on so many nodes that a quorum is free, and 0 if that cannot be told.
// Nodes that have not answered may be free now.
func (r *round) free() time.Duration {
	times := make([]time.Duration, len(r.calls))
	for i := range r.calls {
		if a := &r.calls[i].answer; a.Verdict == Taken {
			times[i] = a.Remaining
			if a.Remaining <= 0 { // not known, or for ever
				times[i] = math.MaxInt64
			}
		}
	}
	slices.Sort(times)
	if t := times[r.votes.need-1]; t < math.MaxInt64 {
		return t
	}
	return 0
}
