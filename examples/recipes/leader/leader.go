// One of several processes leads, and resigns when it is told to stop.

package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/quorumlock/redlock"
)

// campaign stands for election until ctx ends, and calls lead for each term that is
// won. Lead has to return when its context ends, which is when the term does: it was
// lost, or ctx has ended. In the latter case the lock is released as soon as lead has
// returned, and the next in line is called. The number of a term grows from leader to
// leader, whichever process that is. Let whatever a leader writes to check it, since
// one that was stopped does not know yet that its term is over (package fence).
func campaign(ctx context.Context, mutex *redlock.Mutex, lead func(ctx context.Context, term int64) error) error {
	for {
		err := mutex.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
			return lead(ctx, l.FencingToken())
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, redlock.ErrClosed):
			return err
		}
		log.Printf("the term has ended: %v", err)
		select {
		case <-time.After(time.Second): // an error that does not pass must not be a busy loop
		case <-ctx.Done():
		}
	}
}
