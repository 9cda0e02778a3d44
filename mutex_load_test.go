// Many callers while a node is stalled.

package redlock_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A node that has stopped answering, over a driver that waits for it, fills the
// client's queue for that node. The others go on as if nothing had happened.
func TestMutexStalledNodeUnderLoad(t *testing.T) {
	const callers, rounds = 1200, 5 // with more, healthy nodes have full queues too
	c := redlocktest.New(3)
	c.Node(0).IgnoreContext(true)
	c.Node(0).Blackhole(true)
	client, err := redlock.New(c.Nodes(), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(2*time.Second))
	noErr(t, err)

	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		m := mutexOf(t, client, fmt.Sprint(i))
		wg.Go(func() {
			for range rounds {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	for last := int64(-1); ; {
		select {
		case <-finished:
			c.Node(0).Heal()
			c.Node(0).Restart(false) // the driver returns at last
			_ = client.Close()
			return
		case <-time.After(10 * time.Second):
			now := done.Load()
			if now == last {
				buf := make([]byte, 1<<20)
				t.Fatalf("stuck after %d of %d:\n%.4000s", now, callers*rounds, buf[:runtime.Stack(buf, true)])
			}
			last = now
		}
	}
}
