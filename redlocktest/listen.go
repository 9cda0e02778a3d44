// Those who listen to a node, and the way of what it sends them.

package redlocktest

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
)

// A listener is one connection that hears a channel.
type listener struct {
	channel string
	coming  []*wakeup     // on their way, in the order of arrival
	heard   []string      // arrived
	ended   error         // why no more will come
	news    chan struct{} // of capacity 1: look at heard and ended
}

// A wakeup is a waiter that is told, on its way to those who hear of it.
type wakeup struct {
	waiter string
	due    time.Duration // of its arrival, on the base clock
}

// answersIn is how long Listen waits for the node to let it listen.
const answersIn = 2 * time.Second

// Listen implements [redlock.Waker]. What the node sends takes the time of a reply
// ([Node.Delay]) and gets lost if a [Node.Blackhole] is there when it arrives, but
// only [Node.Refuse] and [Node.Restart] end the connection, with io.EOF. If the
// node does not let it listen within two seconds, it returns a timeout, as also
// when ctx ends.
func (n *Node) Listen(ctx context.Context, channel string, ready func(), wake func(waiter string)) error {
	l := &listener{channel: channel, news: make(chan struct{}, 1)}
	defer n.hangUp(l)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := n.base.AfterFunc(answersIn, cancel)
	_, err := n.do(within, &command{op: Listen, claim: redlock.Claim{Value: channel}, listener: l})
	patience.Stop()
	if err != nil {
		return err
	}
	ready()
	for {
		waiters, err := n.take(l)
		for _, waiter := range waiters {
			if ctx.Err() != nil {
				break
			}
			wake(waiter)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return timeout("read")
		case <-l.news:
		}
	}
}

// A told is what a release has sent, to whom, and how long it takes.
type told struct {
	waiter string
	to     []*listener
	way    time.Duration
}

// tells returns what sends a waiter to all who hear its channel, and reports
// whether somebody does. n.mu is held.
func (n *Node) tells(t *told) func(channel, waiter string) bool {
	return func(channel, waiter string) bool {
		to := n.listeners[channel]
		if !n.faults.dropWakes {
			*t = told{waiter, slices.Clone(to), n.faults.toClient}
		}
		return len(to) > 0
	}
}

// take returns what the listener has heard since, and whether it is over.
func (n *Node) take(l *listener) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	waiters := l.heard
	l.heard = nil
	return waiters, l.ended
}

// subscribe makes a listener of the caller, if it has not left. n.mu is held.
func (n *Node) subscribe(c *command) {
	if _, ok := n.waiting[c]; ok {
		n.listeners[c.listener.channel] = append(n.listeners[c.listener.channel], c.listener)
	}
}

// hangUp is for a listener that leaves.
func (n *Node) hangUp(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end(l, io.EOF)
	rest := slices.DeleteFunc(n.listeners[l.channel], func(o *listener) bool { return o == l })
	if n.listeners[l.channel] = rest; len(rest) == 0 {
		delete(n.listeners, l.channel)
	}
}

// hangUpAll ends the connections of all who listen or are about to. n.mu is held.
func (n *Node) hangUpAll() {
	for _, all := range n.listeners {
		for _, l := range all {
			n.end(l, io.EOF)
		}
	}
	clear(n.listeners)
	for c := range n.waiting {
		if c.op == Listen {
			n.settle(c, answer{err: io.EOF})
		}
	}
}

// end loses what is on its way to the listener, and tells it why. n.mu is held.
func (n *Node) end(l *listener, why error) {
	l.coming, l.ended = nil, why
	l.look()
}

func (l *listener) look() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// carry sends a waiter to a listener. As on any connection, it overtakes nothing
// that was sent before. n.mu is held.
func (n *Node) carry(l *listener, waiter string, way time.Duration) {
	if l.ended != nil {
		return
	}
	now := n.base.Elapsed()
	w := &wakeup{waiter, now + way}
	if i := len(l.coming); i > 0 {
		w.due = max(w.due, l.coming[i-1].due)
	}
	if w.due <= now && len(l.coming) == 0 {
		n.hear(l, w)
		return
	}
	l.coming = append(l.coming, w)
	n.base.AfterFunc(w.due-now, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		due := slices.Index(l.coming, w) + 1 // 0 if it has arrived or is lost
		for _, w := range l.coming[:due] {
			n.hear(l, w)
		}
		l.coming = l.coming[due:]
	})
}

// hear is a waiter's arrival at the listener. n.mu is held.
func (n *Node) hear(l *listener, w *wakeup) {
	if !n.faults.blackhole {
		l.heard = append(l.heard, w.waiter)
		l.look()
	}
}
