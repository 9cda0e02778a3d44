// The ends of many leases at once, and of those whose nodes are stuck: every key
// is released, and nothing waits for ever.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestRenewCloseMany: Close releases the keys of all leases, also if there are
// more than the client keeps waiting for a node.
func TestRenewCloseMany(t *testing.T) {
	const leases = 5000
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(3)
		for i := range c.Len() {
			c.Node(i).Delay(time.Millisecond, time.Millisecond)
		}
		client, err := redlock.New(c.Nodes())
		noErr(t, err)
		m := make([]*redlock.Lease, leases)
		for i := range m {
			m[i] = mustLock(t, mutexOf(t, client, fmt.Sprint(i)))
		}
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for i := range c.Len() {
			if n := len(locksOn(c.Node(i))); n > 0 {
				t.Errorf("node %d still has %d keys", i, n)
			}
		}
		for _, l := range m {
			is(t, l.Err(), redlock.ErrClosed)
			isNot(t, l.Err(), redlock.ErrLost)
			if !isDone(l) {
				t.Fatal("a context has not ended")
			}
		}
	})
}

// TestRenewOverload: far more calls than a node takes, one node that does not
// answer, and everybody still gets an outcome.
func TestRenewOverload(t *testing.T) {
	const callers = 2000
	c := redlocktest.New(3)
	c.Node(0).Blackhole(true)
	client, err := redlock.New(c.Nodes(), redlock.WithNodeTimeout(500*time.Millisecond), redlock.WithTTL(30*time.Second))
	noErr(t, err)
	mutexes := make([]*redlock.Mutex, callers)
	for i := range mutexes {
		mutexes[i] = mutexOf(t, client, fmt.Sprint(i))
	}
	var cycles atomic.Int64
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		var wg sync.WaitGroup
		end := time.Now().Add(3 * time.Second)
		for _, m := range mutexes {
			wg.Go(func() {
				for time.Now().Before(end) {
					l, err := m.TryLock(context.Background())
					if err != nil {
						continue
					}
					l.Extend(context.Background())
					l.Unlock(context.Background())
					cycles.Add(1)
				}
			})
		}
		wg.Wait()
	}()
	select {
	case <-finished:
		t.Logf("%d cycles", cycles.Load())
	case <-time.After(time.Minute):
		t.Fatalf("stuck for good after %d cycles", cycles.Load())
	}
	c.Node(0).Heal()
	client.Close() // it may say that it had to give up some keys
}

// A stuckNode is one whose driver does not return from its first Extend, whatever
// its context says, and takes a while for the next.
type stuckNode struct {
	redlock.Node
	extends atomic.Int64
	free    chan struct{}
}

func (n *stuckNode) Extend(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	if n.extends.Add(1) == 1 {
		<-n.free
		return redlock.Reply{}, errors.New("broken")
	}
	time.Sleep(20 * time.Millisecond)
	return n.Node.Extend(ctx, c)
}

// TestRenewUnlockStuck: a release waits for the renewals that are under way, but
// not for one whose time is over, even if a younger one has its answer.
func TestRenewUnlockStuck(t *testing.T) {
	const timeout = 100 * time.Millisecond
	for name, extends := range map[string]int{"one": 1, "two": 2, "three": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := redlocktest.New(3)
				stuck := &stuckNode{Node: c.Node(0), free: make(chan struct{})}
				client, err := redlock.New([]redlock.Node{stuck, c.Node(1), c.Node(2)},
					redlock.WithNodeTimeout(timeout), redlock.WithoutRenewal())
				noErr(t, err)
				lease := mustLock(t, mutexOf(t, client, "a"))
				synctest.Wait() // for the third grant
				noErr(t, lease.Extend(t.Context()))
				time.Sleep(2 * timeout)
				for range extends - 1 {
					noErr(t, lease.Extend(t.Context()))
				}
				mustUnlock(t, lease)
				time.Sleep(2 * timeout)
				if has(c.Node(0), 0, lease) {
					t.Error("the key was not released")
				}
				close(stuck.free)
				noErr(t, client.Close())
			})
		})
	}
}

// TestRenewUnlockFirst: at the instant of Unlock nothing else is sent any more,
// whatever the phase of the renewals. What was sent before may arrive later.
func TestRenewUnlockFirst(t *testing.T) {
	const ttl, way = 900 * time.Millisecond, 10 * time.Millisecond
	for phase := 200 * time.Millisecond; phase < ttl && !t.Failed(); phase += 3 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			c := redlocktest.New(3)
			var book logbook
			holder := join(t, c, way, way, redlock.WithTTL(ttl), book.trace())
			lease := holder.lock("a")
			time.Sleep(phase)
			at := time.Now()
			exactly(t, "Unlock", took(func() { mustUnlock(t, lease) }).Truncate(2*way), 2*way)
			time.Sleep(2 * ttl)
			for i := range 3 {
				for _, call := range c.Node(i).Calls() {
					if call.Op != redlocktest.Release && call.At.After(at.Add(way)) {
						t.Errorf("phase %v: node %d was sent %s %v after Unlock was called", phase, i, call.Op, call.At.Add(-way).Sub(at))
					}
				}
				if keys := locksOn(c.Node(i)); len(keys) > 0 {
					t.Errorf("phase %v: node %d still has %q", phase, i, keys)
				}
			}
			book.lost(t, 0)
			if err := lease.Err(); !errors.Is(err, redlock.ErrUnlocked) {
				t.Error(err)
			}
		})
	}
}

// TestRenewFirst: however many lock and unlock, the leases that are held are
// renewed. The nodes are slow, so that what waits in the client waits for seconds.
func TestRenewFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(3)
		var lost, renewed, failed, waits atomic.Int64
		client, err := redlock.New(c.Nodes(), redlock.WithTTL(4*time.Second), redlock.WithTrace(&redlock.Trace{
			Lost: func(redlock.Lost) { lost.Add(1) },
			Wait: func(redlock.Wait) { waits.Add(1) },
			Renewal: func(e redlock.Renewal) {
				if renewed.Add(1); e.Err != nil {
					failed.Add(1)
				}
			},
		}))
		noErr(t, err)
		lock := func(n int, opts ...redlock.Option) []*redlock.Lease {
			leases := make([]*redlock.Lease, n)
			for i := range leases {
				leases[i] = mustLock(t, mutexOf(t, client, fmt.Sprint(n, "-", i), opts...))
			}
			return leases
		}
		many := lock(6000, redlock.WithTTL(time.Hour), redlock.WithoutRenewal())
		held := lock(50)
		for i := range c.Len() {
			c.Node(i).Delay(100*time.Millisecond, 300*time.Millisecond)
		}

		var wg sync.WaitGroup
		start := time.Now()
		for _, l := range many {
			wg.Go(func() { l.Unlock(t.Context()) })
		}
		for len(locksOn(c.Node(0))) > len(held) {
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		if d := time.Since(start); d < 4*time.Second {
			t.Errorf("all were unlocked within %v: that was no overload", d)
		}
		check := func(flood string) {
			if lost.Load() > 0 || failed.Load() > 0 || renewed.Load() < int64(len(held)) {
				t.Errorf("many %s: %d of %d leases were lost, %d of %d renewals failed",
					flood, lost.Load(), len(held), failed.Load(), renewed.Swap(0))
			}
		}
		check("unlock")

		ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
		defer stop()
		for i := range 1500 {
			m := mutexOf(t, client, fmt.Sprint(i))
			wg.Go(func() {
				for ctx.Err() == nil {
					if l, err := m.Lock(ctx); err == nil {
						l.Unlock(context.WithoutCancel(ctx))
					}
				}
			})
		}
		wg.Wait()
		if waits.Load() < 1500 {
			t.Errorf("%d attempts failed: that was no overload", waits.Load())
		}
		check("lock")
		for _, l := range held {
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		noErr(t, client.Close())
	})
}
