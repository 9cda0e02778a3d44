// Whether those who wait are called: it takes rights and connections of its own.

package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// A trial is what came of trying a node out, where a lock could be taken.
type trial struct {
	renewing error // of a lock
	calling  error // of one who waits
}

// tryCalls stands in line for a lock of a random name, as one who listens, while the
// lock is released.
func (c *Client) tryCalls(ctx context.Context, n Node) (err error) {
	w, ok := n.(Waker)
	if !ok {
		return errNoLine
	}
	claim := c.trial()
	claim.Fence = ""
	channel := wakePrefix + rand.Text()
	place := &Place{
		Lock: claim.Lock, Queue: claim.Queue, Waiter: channel + "/1",
		Ticket: c.set.clock.Now().UnixMicro(), Life: lineLife,
	}
	ctx, cancel := context.WithTimeout(ctx, c.set.nodeTimeout)
	defer cancel()
	ready, heard, deaf := make(chan struct{}, 1), make(chan struct{}, 1), make(chan error, 1)
	c.work.Go(func() {
		deaf <- w.Listen(ctx, channel, func() { notify(ready) }, func(string) { notify(heard) })
	})
	select {
	case <-ready:
	case err := <-deaf:
		return fmt.Errorf("listening: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("listening: %w", ErrNodeTimeout)
	}
	if _, err := n.Acquire(ctx, claim); err != nil {
		return err
	}
	_, err = w.Enlist(ctx, place)
	reply, e := n.Release(ctx, claim, false)
	if err = errors.Join(err, e); err == nil && !reply.Named {
		err = errors.New("a release calls nobody")
	}
	if err = errors.Join(err, w.Delist(ctx, place)); err != nil {
		return err
	}
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return errors.New("a call is not heard")
	}
}

// notify leaves word on a channel of one element.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
