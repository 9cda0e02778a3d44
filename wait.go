// How a waiter that contends waits for its next attempt.

package redlock

import (
	"context"
	"math"
	"math/bits"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

const (
	// lineLife is how long nodes keep a line that nobody asks about, and
	// standAgain how often a waiter asks at least.
	lineLife   = 10 * time.Second
	standAgain = 3 * time.Second

	// hearIn is how long a waiter waits at most until it is sure to hear calls.
	hearIn = 256 * time.Millisecond

	// lookEvery is about the least that a waiter lets pass after a look has shown that
	// the lock is taken, since it expects to be called. If it is not, it has still
	// waited no longer than redsync would, which tries every 50 to 250 ms.
	lookEvery = 64 * time.Millisecond

	// Being called is worth an attempt every callEvery, and some more at once: a
	// flood of calls, which may be false, must not become one of attempts. Most are
	// true: where turns are short, others take the lock before the one called does.
	callEvery = 10 * time.Millisecond
	callBurst = 7 * callEvery

	// grace is the most that a waiter leaves a free lock to those who stand in
	// front, of whom the first has been called. They may be dead.
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
		w.identify()
		w.hold = newHold(ctx, w.mutex, nil)
		w.place = &Place{
			Lock: w.mutex.lock, Queue: w.mutex.queue,
			Waiter: w.id, Ticket: w.ticket, Life: lineLife,
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

// taken reports whether the waiter who has asked has seen that the lock is taken.
func (r *round) taken() bool { return r != nil && r.blocking(r.votes.taken) }

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
	defer m.client.waits()()
	least := time.Duration(0)
	if a.looked {
		least = m.patiently()
	}
	d := m.delay(number, least, a.free)
	if f := m.client.set.trace.Wait; f != nil {
		f(Wait{Context: eventContext(ctx), Name: m.name, Attempt: number, Delay: d, Err: a.err})
	}
	return w.pause(ctx, d, a)
}

// patiently returns the least that one waits who expects to be called.
func (m *Mutex) patiently() time.Duration { return lookEvery/2 + m.set.upTo(lookEvery) }

// pause waits until an attempt is worthwhile, or the call of Lock has ended. a is the
// last one.
func (w *waiter) pause(ctx context.Context, d time.Duration, a attempt) error {
	w.until(ctx, d, a)
	return w.ended(ctx, a.err)
}

// until waits until w is called by a quorum, or finds that the lock has become free
// and nobody is in front who is about to take it. After d it looks again, and if the
// lock is taken then, that is how the next attempt ends: one that is made could only be
// in the way of others.
//
// If the lock was taken, it is news that it is free. Otherwise whatever the last attempt
// failed by is still there, and only a call is a reason to try before d is over. If
// nobody else was seen, there is nothing to look at.
func (w *waiter) until(ctx context.Context, d time.Duration, a attempt) {
	end, soon := time.NewTimer(d), time.NewTimer(standAgain)
	defer end.Stop()
	defer soon.Stop()
	look, taken := !a.looked && !a.alone, a.taken // who has looked need not do so again
	over, hurried := d <= 0, false
	if over && look {
		end.Stop() // the first look is the one at the end
	}
	front := int64(math.MaxInt64) // when the lock was seen free last
	for {
		if look {
			r := w.list(ctx, min(max(d, grace), hearIn))
			if w.ended(ctx, nil) != nil {
				return
			}
			soon.Reset(standAgain)
			switch ahead := r.ahead(); {
			case ahead < 0 && over:
				if r.taken() {
					w.refusal = r
				}
				return
			case ahead < 0:
				taken, front = taken || r.taken(), math.MaxInt64
			case !over && !taken:
			case ahead > 0 && ahead < front:
				front = ahead
				soon.Reset(grace/2 + w.mutex.set.upTo(grace/2))
			default: // those in front have not moved: they may be dead
				return
			}
		}
		switch w.news(ctx, end.C, soon.C) {
		case itsTime:
			if a.alone {
				return
			}
			over, look = true, true
		case isCalled:
			late := w.late()
			if w.calls() >= quorum.Size(len(w.crowd.client.lanes)) && late == 0 {
				w.spend()
				return
			}
			if look = false; !hurried { // the others may call too, or there is something wrong
				hurried = true
				soon.Reset(max(late, grace/8+w.mutex.set.upTo(grace/4)))
			}
		case itsSoon:
			if look = true; hurried {
				w.spend()
				hurried, taken = false, true
			}
		default:
			return
		}
	}
}

// Why a waiter goes on.
const (
	isCalled = iota
	itsTime
	itsSoon
	itsOver // its context has ended, or the client is closed
)

// news waits for the first of these. Of those that came while w was looking it returns
// the first in that order, and not any: what a call tells is worth more than a look, and
// a simulation can run twice in the same way.
func (w *waiter) news(ctx context.Context, end, soon <-chan time.Time) int {
	select {
	case <-w.called:
		return isCalled
	default:
	}
	select {
	case <-end:
		return itsTime
	default:
	}
	select {
	case <-w.called:
		return isCalled
	case <-end:
		return itsTime
	case <-soon:
		return itsSoon
	case <-ctx.Done():
	case <-w.mutex.client.closing:
	}
	return itsOver
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
