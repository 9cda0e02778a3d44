// Extends of callers without end, which go first, and those who wait behind them.

package redlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestExtendFlood: callers of Extend that are never through keep nobody from
// unlocking, or from locking.
func TestExtendFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		for _, n := range s.all() {
			n.Delay(20*time.Millisecond, 20*time.Millisecond)
		}
		held, other := s.lock("held"), s.lock("other")
		ctx, stop := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		for range 600 { // more than two for each place
			flood.Go(func() {
				for ctx.Err() == nil {
					_ = held.Extend(ctx)
				}
			})
		}
		time.Sleep(time.Second)
		if err := other.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		l, err := s.mutex("third").TryLock(t.Context())
		if err != nil {
			t.Error(err)
		}
		stop()
		flood.Wait()
		_ = l.Unlock(t.Context())
		mustUnlock(t, held)
	})
}
