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
