// Inbox: where the replies of one round arrive, in time or late.

package quorum

import (
	"context"
	"sync"
)

// An Inbox collects the replies of one round of requests. Each reply goes to
// exactly one of two functions: count, while [Inbox.Collect] waits for a
// decision, or late, once it has stopped waiting. A grant that comes too late
// to matter is still a grant that somebody has to give back, so no reply is
// ever dropped.
//
// An Inbox is made by [NewInbox] and used for one Collect. A node may reply any
// number of times: the round may have several steps.
type Inbox[R any] struct {
	late   func(node int, r R)
	signal chan struct{} // one slot: something has arrived since it was emptied

	// A queue rather than a channel, since a channel needs its capacity before
	// the number of replies is known, and a full one would block the sender.
	mu     sync.Mutex
	queue  []reply[R]
	closed bool

	spare []reply[R] // Collect's: the memory of the queue before this one
}

type reply[R any] struct {
	node int
	r    R
}

// NewInbox returns an Inbox with room for one reply from each of nodes nodes;
// further replies make it grow. A nil late drops the late replies.
//
// late may be called from several goroutines at once: Collect's, and those that
// call Put. It should not block, since it holds up its caller, or panic.
func NewInbox[R any](nodes int, late func(node int, r R)) *Inbox[R] {
	n := max(nodes, 0)
	room := make([]reply[R], 2*n)
	return &Inbox[R]{
		late:   late,
		signal: make(chan struct{}, 1),
		queue:  room[:0:n],
		spare:  room[n:n],
	}
}

// Put delivers a reply. It never waits for Collect. If the round is over, it
// calls late instead.
func (b *Inbox[R]) Put(node int, r R) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.tell(node, r)
		return
	}
	b.queue = append(b.queue, reply[R]{node, r})
	b.mu.Unlock()

	// The slot is emptied before the queue is, never after it. So if the slot
	// is full now, Collect has yet to look, and will find this reply.
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// Collect passes replies to count, one at a time, in the order of arrival and
// in the caller's goroutine, until count returns [Won] or [Lost], timeout is
// closed, or ctx ends. Then it closes the inbox: what arrived but was not
// counted goes to late, and so does all that arrives from now on.
//
// The outcome is count's last if that is a decision, with a nil error. It is
// [Pending] if time ran out: with [context.Cause] of ctx if ctx has ended,
// otherwise with a nil error. Replies that have arrived by then are counted
// first, since a decision that has been made is worth more than the news that
// it was slow.
//
// count may call Put, or start requests that will. Collect panics when called
// for a second time.
func (b *Inbox[R]) Collect(ctx context.Context, timeout <-chan struct{}, count func(node int, r R) Outcome) (Outcome, error) {
	var batch []reply[R] // taken from the queue, not counted yet
	defer func() { b.shut(batch) }()

	for over := false; ; {
		// A batch is what is there now. Emptying the queue instead might never
		// end, and never look at the time, if count itself causes replies.
		batch = b.take()
		for len(batch) > 0 {
			next := batch[0]
			batch = batch[1:] // before count, which may panic: it has seen this one
			if o := count(next.node, next.r); o.decided() {
				return o, nil
			}
		}
		if over {
			return Pending, context.Cause(ctx)
		}
		select {
		case <-b.signal:
		case <-timeout:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
}

// take returns the replies in the queue and leaves it empty. They are valid
// until the next take, which reuses their memory.
func (b *Inbox[R]) take() []reply[R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		panic("quorum: Collect called twice on one Inbox")
	}
	b.queue, b.spare = b.spare[:0], b.queue
	return b.spare
}

// shut closes the inbox and hands on what nobody will count: rest, which was
// taken, and what is in the queue. Doing so again does nothing.
func (b *Inbox[R]) shut(rest []reply[R]) {
	b.mu.Lock()
	queue := b.queue
	b.closed, b.queue = true, nil
	b.mu.Unlock()

	for _, l := range rest {
		b.tell(l.node, l.r)
	}
	for _, l := range queue {
		b.tell(l.node, l.r)
	}
}

func (b *Inbox[R]) tell(node int, r R) {
	if b.late != nil {
		b.late(node, r)
	}
}
