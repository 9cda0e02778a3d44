// Renewal of leases: one schedule for all leases of a client.

package redlock

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

const (
	// together is how much sooner than planned a renewal may go so as to share
	// a round trip with others.
	together = 10 * time.Millisecond

	// perTrip bounds the renewals in one pipeline, and with it how long the
	// first of them waits for the last.
	perTrip = 128
)

// A renewer has a schedule and a timer, but no goroutine: one starts when
// renewals are due, hands them to the nodes, and ends. What comes back is
// counted where it arrives. So neither goroutines nor timers of the renewer
// grow with the leases.
type renewer struct {
	client *Client

	mu    sync.Mutex
	queue queue
	timer clock.Timer
	armed bool
	wake  time.Duration // when the timer fires, on the client's clock, if it is armed

	watch   clock.Timer // nil while nothing is held
	watched time.Duration
}

// plan is the renewer's part of a grant, guarded by its mutex.
type plan struct {
	due      time.Duration
	index    int // in the queue, or one of the following
	failures int // renewals failed since the last success
}

const (
	unplanned = -1
	forgotten = -2
)

// A queue orders grants by when they are due.
type queue []*grant

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].plan.due < q[j].plan.due }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].plan.index, q[j].plan.index = i, j
}

func (q *queue) Push(x any) {
	g := x.(*grant)
	g.plan.index = len(*q)
	*q = append(*q, g)
}

func (q *queue) Pop() any {
	old := *q
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	g.plan.index = unplanned
	return g
}

// nextRenewal returns when to renew a lease that was renewed at start: a little
// early, at random, so that leases taken together do not stay together.
func (g *grant) nextRenewal(start time.Duration) time.Duration {
	every := g.mutex.set.renewal
	return start + every - g.mutex.set.upTo(every/10)
}

// plan sets when g is to be renewed, unless it is not to be or has ended.
func (r *renewer) plan(g *grant, due time.Duration) {
	g.mu.Lock()
	renews := g.renews()
	g.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case g.plan.index == forgotten:
		return
	case !renews:
		if g.plan.index >= 0 {
			heap.Remove(&r.queue, g.plan.index)
		}
		return
	case g.plan.index >= 0:
		g.plan.due = due
		heap.Fix(&r.queue, g.plan.index)
	default:
		g.plan.due = due
		heap.Push(&r.queue, g)
	}
	r.arm()
}

// forget takes g out of the schedule for good.
func (r *renewer) forget(g *grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.plan.index >= 0 {
		heap.Remove(&r.queue, g.plan.index)
	}
	g.plan.index = forgotten
}

// arm sets the timer for the first in the queue, if it is not set for earlier.
// The caller holds r.mu.
func (r *renewer) arm() {
	if len(r.queue) == 0 {
		return
	}
	due := r.queue[0].plan.due
	if r.armed && r.wake <= due {
		return
	}
	r.armed, r.wake = true, due
	d := due - r.client.set.clock.Elapsed()
	if r.timer == nil {
		r.timer = r.client.set.clock.AfterFunc(d, r.onTime)
	} else {
		r.timer.Reset(d)
	}
}

// onTime sends the renewals that are due.
func (r *renewer) onTime() {
	if r.client.enter() != nil {
		return
	}
	defer r.client.work.Done()
	now := r.client.set.clock.Elapsed()
	var due []*renewal
	r.mu.Lock()
	r.armed = false
	for len(r.queue) > 0 && r.queue[0].plan.due <= now+together {
		g := heap.Pop(&r.queue).(*grant)
		due = append(due, &renewal{renewer: r, grant: g, due: g.plan.due})
	}
	r.arm()
	r.mu.Unlock()

	due = slices.DeleteFunc(due, func(n *renewal) bool { return !n.prepare() })
	slices.SortFunc(due, func(a, b *renewal) int { return cmp.Compare(a.patience, b.patience) })
	for len(due) > 0 {
		n := 1 // those that have a similar time for it travel together
		for n < len(due) && n < perTrip && due[n].patience <= 2*due[0].patience {
			n++
		}
		r.send(due[:n])
		due = due[n:]
	}
}

// A renewal is one on its way.
type renewal struct {
	renewer  *renewer
	grant    *grant
	due      time.Duration // when it was planned
	patience time.Duration // how long a node may take
	start    time.Duration // when it was sent
	round    *round
}

// prepare reports whether the renewal is to be sent, and sets how long it may
// take.
func (n *renewal) prepare() bool {
	g := n.grant
	if g.check() != nil {
		return false
	}
	if g.handle.Value() == nil {
		g.hold.client.set.logger.Warn("redlock: a lease was dropped without Unlock; it is renewed no more and ends with its TTL",
			"mutex", g.mutex.name, "remaining", g.remaining())
		return false
	}
	// At most half of the validity that is left, so that there is always time
	// to try again: an outage that ends in time is survived even if it swallows
	// commands.
	n.patience = max(min(g.hold.set.nodeTimeout, g.remaining()/2), time.Millisecond)
	return true
}

func (r *renewer) send(group []*renewal) {
	patience := group[0].patience // the least of them
	for _, n := range group {
		n.start = r.client.set.clock.Elapsed()
		n.round = n.grant.hold.prepare(n.grant.values, opExtend, patience)
		n.round.tell = n.done
		n.round.begin()
	}
	for i, l := range r.client.lanes {
		calls := make([]*call, len(group))
		for j, n := range group {
			calls[j] = &n.round.calls[i]
		}
		l.submitAll(calls)
	}
}

// done is told the outcome.
func (n *renewal) done(outcome quorum.Outcome) {
	g, r := n.grant, n.renewer
	err := g.conclude(n.round, outcome, n.start, true)
	now := r.client.set.clock.Elapsed()
	n.account(now-n.start, err)
	r.mu.Lock()
	if err == nil {
		g.plan.failures = 0
	} else {
		g.plan.failures++
	}
	failures := g.plan.failures
	r.mu.Unlock()
	if err == nil {
		r.plan(g, g.nextRenewal(n.start))
		return
	}
	// Again soon, and the sooner the less validity is left. If the lease has
	// ended, plan does nothing.
	const first, last = 10 * time.Millisecond, 250 * time.Millisecond
	pause := min(first<<min(failures-1, 5), last, g.remaining()/4)
	r.plan(g, now+max(pause/2+g.mutex.set.upTo(pause/2), time.Millisecond))
}
