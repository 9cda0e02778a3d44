// Very many names through one client.

package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// A willing node grants everything, and remembers nothing.
type willing struct{ name string }

func (n willing) Name() string { return n.name }

func (n willing) Acquire(context.Context, *redlock.Claim) (redlock.Reply, error) {
	return redlock.Reply{Verdict: redlock.Granted, Counter: 1}, nil
}

func (n willing) Raise(context.Context, *redlock.Claim, int64) (redlock.Reply, error) {
	return redlock.Reply{Verdict: redlock.Granted, Counter: 1}, nil
}

func (n willing) Extend(context.Context, *redlock.Claim) (redlock.Reply, error) {
	return redlock.Reply{Verdict: redlock.Granted}, nil
}

func (n willing) Rearm(context.Context, *redlock.Claim, int64) (redlock.Reply, error) {
	return redlock.Reply{Verdict: redlock.Granted, Counter: 1}, nil
}

func (n willing) Release(context.Context, *redlock.Claim, bool) (redlock.Reply, error) {
	return redlock.Reply{Verdict: redlock.Released}, nil
}

// TestManyNames: a client keeps nothing of names that were locked and unlocked.
func TestManyNames(t *testing.T) {
	names := 100_000
	if testing.Short() {
		names = 20_000
	}
	c, err := redlock.New([]redlock.Node{willing{"a"}, willing{"b"}, willing{"c"}})
	noErr(t, err)
	turns := func(from, to int) {
		for i := from; i < to; i++ {
			m, err := c.NewMutex(fmt.Sprint("name-", i))
			if err == nil {
				var l *redlock.Lease
				if l, err = m.Lock(t.Context()); err == nil {
					err = l.Unlock(t.Context())
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	used := func() (bytes, goroutines int) {
		for deadline := time.Now().Add(10 * time.Second); c.Freeing()+c.Waiting() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d releases under way, %d waiters remembered", c.Freeing(), c.Waiting())
			}
		}
		time.Sleep(100 * time.Millisecond) // timers of rounds that were stopped
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc), runtime.NumGoroutine()
	}
	turns(-1000, 0)
	before, some := used()
	turns(0, names)
	after, many := used()
	t.Logf("%d bytes more, %d goroutines after %d", after-before, many, some)
	if more := after - before; more > names*4+1<<20 { // a key alone would be more
		t.Errorf("%d names have left %d bytes", names, more)
	}
	if many > some+5 {
		t.Errorf("%d goroutines, %d before", many, some)
	}
	noErr(t, c.Close())
}
