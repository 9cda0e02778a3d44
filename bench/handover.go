// Hand-over: how long after an Unlock the next one has the lock.

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// queued is how long a lock is held in front of those that wait for it, besides
// the way to the nodes, so that they do wait when it is given up.
const queued = 20 * time.Millisecond

// A baton goes from holder to holder.
type baton struct {
	mu    sync.Mutex
	last  *caller
	freed time.Time     // right before the last Unlock was called; zero at first
	taken chan struct{} // closed when the next holder has the lock
}

// take passes the baton on to c, and returns how long the hand-over took: false if c
// had not been waiting when the lock was given up.
func (b *baton) take(c *caller, began, now time.Time) (took time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	took, ok = now.Sub(b.freed), b.last != nil && b.last != c && began.Before(b.freed)
	if b.taken != nil {
		close(b.taken)
	}
	b.last, b.taken = c, make(chan struct{})
	return took, ok
}

// free notes that the lock is given up right now, and returns what is closed when
// another holder has it.
func (b *baton) free() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freed = time.Now()
	return b.taken
}

// handOvers returns the work of callers who pass one lock around. Who has given it
// up comes back only when somebody else has it, so that each time it is one of
// those who wait who gets it. They go on until there was a hand-over.
func (s *slot) handOvers(ctx context.Context, over *atomic.Bool) func(context.Context, *caller, *atomic.Bool) int64 {
	b := &baton{}
	handOver := s.record("handover")
	held := max(s.setup.Hold, queued+2*s.maxDelay)
	var passed atomic.Int64
	done := func() bool { return over.Load() && passed.Load() > 0 }
	ended := make(chan struct{}) // closed when the first caller leaves
	leave := sync.OnceFunc(func() { close(ended) })
	return func(_ context.Context, c *caller, _ *atomic.Bool) (n int64) {
		defer leave()
		for l := c.locker(); ctx.Err() == nil; {
			began := time.Now()
			if err := l.Lock(ctx); err != nil {
				s.failed(ctx, err)
				if over.Load() {
					return n
				}
				continue
			}
			if took, ok := b.take(c, began, time.Now()); ok {
				handOver.Record(took)
				passed.Add(1)
				n++
			}
			if !done() {
				hold(ctx, held)
			}
			taken := b.free()
			if err := l.Unlock(ctx); err != nil {
				s.failed(ctx, err)
			}
			if done() {
				return n
			}
			select {
			case <-taken:
			case <-ended:
				return n
			case <-ctx.Done():
			}
			if done() {
				return n
			}
		}
		return n
	}
}
