// How a waiter that contends waits for its next attempt.

package redlock

import (
	"context"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

const (
	// lineLife is how long nodes keep a line that nobody asks about, and
	// standAgain how often a waiter asks at least.
	lineLife   = 10 * time.Second
	standAgain = 3 * time.Second

	// Being called is worth an attempt every callEvery, and callBurst at once: a
	// flood of calls, which may be false, must not become one of attempts.
	callEvery = 50 * time.Millisecond
	callBurst = 3 * callEvery

	// grace is the most that a waiter leaves a free lock to those who stand in
	// front, or who have just been called. They may be dead.
	grace = 16 * time.Millisecond
)

// list makes w known to the nodes, and looks whether the lock is free. It returns
// nil if the nodes keep no lines. The first time it makes sure before that w will
// hear of it, if that takes no longer than patience.
func (w *waiter) list(ctx context.Context, patience time.Duration) *round {
	c := w.crowd
	if !c.able || ctx.Err() != nil {
		return nil
	}
	c.mu.Lock()
	fresh := w.place == nil
	if fresh {
		c.number++
		w.hold = newHold(w.mutex)
		w.place = &Place{
			Lock: w.mutex.lock, Queue: w.mutex.queue,
			Waiter: c.ears.channel + "/" + strconv.FormatUint(c.number, 10),
			Ticket: w.ticket, Life: lineLife,
		}
		w.called = make(chan struct{}, 1)
		w.asking = make([]int, len(c.client.lanes))
		c.listed[w.place.Waiter] = w
	}
	c.mu.Unlock()
	if fresh {
		timer := time.NewTimer(patience)
		select {
		case <-c.ears.join(): //nolint:contextcheck // all who wait share it
		case <-timer.C:
		case <-ctx.Done():
		case <-c.client.closing:
		}
		timer.Stop()
	}
	c.mu.Lock()
	w.callers = 0
	for node := range w.asking {
		w.asking[node]++
	}
	c.mu.Unlock()
	r := newRound(ctx, w.hold, opEnlist, w.hold.set.nodeTimeout)
	r.waiter = w
	r.expect()
	r.begin()
	for i := range r.calls {
		c.client.lanes[i].submit(&r.calls[i])
	}
	_, _ = r.collect(ctx)
	return r
}

// ahead returns how many stand in front of the waiter who has asked, if the lock is
// free, and otherwise -1.
func (r *round) ahead() int64 {
	if r == nil || r.votes.absent < r.votes.need {
		return -1
	}
	least := int64(math.MaxInt64)
	for i := range r.calls {
		if a := &r.calls[i].answer; a.Verdict == Absent && a.err == nil {
			least = min(least, a.Ahead)
		}
	}
	return least
}

// wait waits for the next attempt.
func (w *waiter) wait(ctx context.Context, number int, a attempt) error {
	m := w.mutex
	d := m.delay(number, a.free)
	if f := m.client.set.trace.Wait; f != nil {
		f(Wait{Name: m.name, Attempt: number, Delay: d, Err: a.err})
	}
	return w.pause(ctx, d, a.err, !a.looked, false)
}

// pause waits until an attempt is worthwhile: w is called by a quorum, or finds the
// lock free and nobody in front who is about to take it. After d it looks again, and
// if the lock is taken then, that is how the next attempt ends: one that is made
// could only be in the way of others.
//
// With look it looks at once. Whoever is polite lets others go first at that.
func (w *waiter) pause(ctx context.Context, d time.Duration, err error, look, polite bool) error {
	end, soon := time.NewTimer(d), time.NewTimer(standAgain)
	defer end.Stop()
	defer soon.Stop()
	over, hurried := d <= 0, false
	if over && look {
		end.Stop() // the first look is the one at the end
	}
	front := int64(math.MaxInt64) // when the lock was seen free last
	for {
		if look {
			r := w.list(ctx, d)
			ahead := r.ahead()
			switch {
			case polite, ahead > 0 && ahead < front:
				front = ahead
				soon.Reset(grace/2 + upTo(grace/2))
			case ahead >= 0: // those in front have not moved: they may be dead
				return nil
			case over:
				if r != nil && r.blocking(r.votes.taken) {
					w.refusal = r
				}
				return nil
			default:
				soon.Reset(standAgain)
			}
			polite = false
		}
		select {
		case <-end.C:
			over, look = true, true
		case <-w.called:
			late := w.late()
			if w.calls() >= quorum.Size(len(w.crowd.client.lanes)) && late == 0 {
				w.spend()
				return nil
			}
			if look = false; !hurried { // the others may call too, or there is something wrong
				hurried = true
				soon.Reset(max(late, upTo(grace/4)))
			}
		case <-soon.C:
			if look = true; hurried {
				w.spend()
				hurried = false
			}
		case <-ctx.Done():
			return callerEnded(ctx, "lock", w.mutex.name, err)
		case <-w.mutex.client.closing:
			return &endedError{op: "lock", name: w.mutex.name, errs: []error{ErrClosed, err}}
		}
	}
}

// refused returns what the next attempt has failed by already, once.
func (w *waiter) refused() (r *round) {
	if w != nil {
		r, w.refusal = w.refusal, nil
	}
	return r
}

// calls returns how many nodes have called w since it was listed.
func (w *waiter) calls() int {
	w.crowd.mu.Lock()
	defer w.crowd.mu.Unlock()
	return bits.OnesCount64(w.callers)
}

// late returns how long it is until a call may be answered, and spend uses that up.
func (w *waiter) late() time.Duration { return max(w.spent-w.now()-callBurst, 0) }

func (w *waiter) spend() { w.spent = max(w.spent, w.now()) + callEvery }

func (w *waiter) now() time.Duration { return w.mutex.client.set.clock.Elapsed() }
