// What some nodes can do for those who wait: keep their line, and call the first.

package redlock

import (
	"context"
	"errors"
	"time"
)

// A Waker is a [Node] that keeps a line of waiters for each lock, and tells the
// first of them when the lock is released. A client with such nodes learns of a
// release at once; with others it tries again now and then, in no order. Nothing but
// that depends on it: whoever is told, or not told, still has to acquire.
type Waker interface {
	Node

	// Enlist puts p.Waiter into the line p.Queue, unless it stands there already,
	// behind all with a smaller Ticket. The line as a whole is kept for p.Life
	// after its last use. The Verdict is Absent if p.Lock is not there, else Taken
	// with the Remaining life of its value; in either case Ahead tells how many are
	// ahead in the line.
	//
	// A Ticket after the node's clock counts as that clock, and one that is more
	// than ten seconds before it as ten seconds: a client with a wrong clock shall
	// neither starve nor keep others out.
	Enlist(ctx context.Context, p *Place) (Reply, error)

	// Delist takes p.Waiter out of the line.
	Delist(ctx context.Context, p *Place) error

	// Listen hears what is sent on a channel of this node. It calls ready when
	// nothing that is sent from then on is missed, perhaps more than once, and then
	// wake with each waiter that a Release has sent there. It returns when it hears no
	// more, with the reason, and soon after ctx has ended.
	Listen(ctx context.Context, channel string, ready func(), wake func(waiter string)) error
}

// A Place is what a waiter asks for in the line of a lock.
type Place struct {
	Lock, Queue string // keys of one hash slot: of the lock, and of its line

	// Waiter is no other waiter's. It is the channel that its client listens to,
	// a '/', and more.
	Waiter string

	Ticket int64         // microseconds since 1970: when it came, by the client's clock
	Life   time.Duration // whole milliseconds

	_ struct{}
}

// stand takes the waiter into the line of a node, or out of it.
func (c *call) stand(ctx context.Context, n Node) (Reply, error) {
	w, ok := n.(Waker)
	switch {
	case !ok:
		return Reply{Verdict: Rejected}, errNoLine
	case c.op == opEnlist:
		return w.Enlist(ctx, c.round.waiter.place)
	default:
		return Reply{Verdict: Absent}, w.Delist(ctx, c.round.waiter.place)
	}
}

var errNoLine = errors.New("it keeps no line of those who wait")

// hear notes whether the node is silent, where late is whether the time was over.
func (l *lane) hear(a answer, late bool) {
	if late && a.err != nil && a.Verdict == Unknown {
		l.silent.Store(true)
	}
	if (a.err == nil || a.Verdict == Rejected || a.Verdict == Forbidden) && l.silent.Load() {
		l.silent.Store(false)
	}
}

// notify leaves word on a channel of one element.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
