// Whether those who wait are called: it takes rights and connections of its own.

package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// A trial is what came of trying a node out, where a lock could be taken.
type trial struct {
	renewing error // of a lock
	calling  error // of one who waits
}

// An ear is one who waits for the lock of a trial.
type ear struct {
	node         Waker // nil if it keeps no lines
	place        *Place
	patience     time.Duration // for what is under way
	ready, heard chan struct{}
	deaf         chan error // why it hears no more
	stop         context.CancelFunc
	enlisted     bool
	err          error // what went wrong first
}

// listen makes an ear that begins to listen. Others go on meanwhile.
func (c *Client) listen(ctx context.Context, n Node, claim *Claim) *ear {
	channel := wakePrefix + rand.Text()
	e := &ear{
		patience: c.set.nodeTimeout / 4,
		ready:    make(chan struct{}, 1), heard: make(chan struct{}, 1), deaf: make(chan error, 1),
		place: &Place{
			Lock: claim.Lock, Queue: claim.Queue, Waiter: channel + "/1",
			Ticket: c.set.clock.Now().UnixMicro(), Life: lineLife,
		},
	}
	ctx, e.stop = context.WithCancel(ctx)
	var ok bool
	if e.node, ok = n.(Waker); !ok {
		e.err = errNoLine
		return e
	}
	c.work.Go(func() {
		e.deaf <- e.node.Listen(ctx, channel, func() { notify(e.ready) }, func(string) { notify(e.heard) })
	})
	return e
}

// enlist stands in line, once it is sure to hear.
func (e *ear) enlist(ctx context.Context) {
	if e.err != nil {
		return
	}
	timer := time.NewTimer(e.patience)
	defer timer.Stop()
	select {
	case <-e.ready:
		e.enlisted = true
		_, e.err = e.node.Enlist(ctx, e.place)
	case err := <-e.deaf:
		e.err = fmt.Errorf("listening: %w", err)
	case <-timer.C:
		e.err = fmt.Errorf("listening: %w", ErrNodeTimeout)
	}
}

// called leaves the line, and tells whether a release has called it that says whether
// it has called somebody.
func (e *ear) called(ctx context.Context, named bool) error {
	if e.enlisted {
		if err := e.node.Delist(ctx, e.place); e.err == nil {
			e.err = err
		}
	}
	switch {
	case e.err != nil:
		return e.err
	case !named:
		return errors.New("a release calls nobody")
	}
	timer := time.NewTimer(e.patience)
	defer timer.Stop()
	select {
	case <-e.heard:
		return nil
	case <-timer.C:
		return errors.New("a call is not heard")
	}
}
