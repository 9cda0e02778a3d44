// Listening to what the nodes call: one subscription for each, while somebody waits.

package redlock

import (
	"context"
	"crypto/rand"
	"math/bits"
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

const (
	// linger is how long a client goes on listening when nobody waits any more:
	// where there was one there are others.
	linger = time.Second

	// How long after a subscription has failed it is tried again.
	firstListen, lastListen = 16 * time.Millisecond, 4 * time.Second
)

// The ears of a client are open while somebody listens.
type ears struct {
	client  *Client
	channel string // no other client's

	mu      sync.Mutex
	users   int
	hearing *hearing
}

// A hearing is a set of subscriptions.
type hearing struct {
	stop   context.CancelFunc
	ready  uint64        // by node; guarded by the ears' mutex
	enough chan struct{} // closed when a quorum was ready
}

func (e *ears) open(c *Client) { e.client, e.channel = c, wakePrefix+rand.Text() }

// join returns what is closed when so many nodes are heard that it is worthwhile.
// The caller keeps the client open, and calls leave later.
func (e *ears) join() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users++
	select {
	case <-e.client.closing: // close may have been there before
		return e.client.closing
	default:
	}
	if e.hearing == nil {
		ctx, stop := context.WithCancel(context.Background())
		h := &hearing{stop: stop, enough: make(chan struct{})}
		e.hearing = h
		for i, l := range e.client.lanes {
			if w, ok := l.node.(Waker); ok {
				e.client.work.Go(func() { e.listen(ctx, h, w, i) })
			}
		}
	}
	return e.hearing.enough
}

func (e *ears) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users--; e.users > 0 || e.hearing == nil {
		return
	}
	h := e.hearing
	time.AfterFunc(linger, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.users == 0 && e.hearing == h {
			h.stop()
			e.hearing = nil
		}
	})
}

// close ends it for good: nobody joins after the client was closed.
func (e *ears) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hearing != nil {
		e.hearing.stop()
		e.hearing = nil
	}
}

// listen hears one node until ctx ends.
func (e *ears) listen(ctx context.Context, h *hearing, w Waker, node int) {
	delay := firstListen
	for ctx.Err() == nil {
		start := e.client.set.clock.Elapsed()
		err := w.Listen(ctx, e.channel, func() { e.ready(h, node) }, func(id string) { e.client.crowd.call(node, id) })
		if ctx.Err() == nil {
			e.client.deaf(node, err)
		}
		if e.client.set.clock.Elapsed()-start > lastListen { // it was good for something
			delay = firstListen
		}
		timer := time.NewTimer(delay/2 + e.client.set.upTo(delay/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		delay = min(2*delay, lastListen)
	}
}

func (e *ears) ready(h *hearing, node int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h.ready |= 1 << node
	if bits.OnesCount64(h.ready) == quorum.Size(len(e.client.lanes)) {
		select {
		case <-h.enough:
		default:
			close(h.enough)
		}
	}
}
