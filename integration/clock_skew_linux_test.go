// Server clocks that are off from the start.

package integration_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	driver "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

// TestClockSkew: clocks that are off by any amount, on any number of nodes, change
// nothing. A lock lives for its TTL, one client has it at a time, and tokens go up.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	for _, off := range []time.Duration{6 * time.Second, -6 * time.Second, time.Hour, -time.Hour} {
		for _, n := range []int{2, 3, 5} {
			if testing.Short() && (n == 5 || off.Abs() < time.Hour) {
				continue
			}
			t.Run(fmt.Sprintf("%v on %d", off, n), func(t *testing.T) {
				f := f.in(t)
				f.set(off, []int{0, 1, 2, 3, 4}[:n]...)
				f.testLife()
				f.testExpiry()
				f.testContention()
			})
		}
	}
}

// testLife looks at how long the keys of a lease live.
func (c *clocks) testLife() {
	c.Helper()
	const ttl = 10 * time.Second
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithoutRenewal()}
	a, b := mutexOf(c, c.open(opts), c.Name()), mutexOf(c, c.open(opts), c.Name())
	start := time.Now()
	l := c.lock(a)
	c.settled(l, 5)
	c.lives(l, start, ttl)
	c.refuses(b, redlock.ErrTaken)
	start = time.Now()
	if err := l.Extend(c.Context()); err != nil {
		c.Error(err)
	}
	if !eventually(quick, func() bool { _, lives := c.on(l); return slices.Min(lives) > ttl-time.Since(start) }) {
		c.Error("not all nodes have extended the lease")
	}
	c.lives(l, start, ttl)
	c.refuses(b, redlock.ErrTaken)
	c.unlock(l)
	next := c.lock(b)
	if next.FencingToken() <= l.FencingToken() {
		c.Errorf("the fencing token %d came after %d", next.FencingToken(), l.FencingToken())
	}
	c.unlock(next)
}

// lives checks that keys, set at start or later, live for the TTL and no longer.
func (c *clocks) lives(l *redlock.Lease, start time.Time, ttl time.Duration) {
	c.Helper()
	nodes, lives := c.on(l)
	if len(nodes) != 5 || slices.Min(lives) < ttl-time.Since(start)-time.Millisecond || slices.Max(lives) > ttl {
		c.Errorf("the keys on the nodes %v live for another %v", nodes, lives)
	}
}

// testExpiry looks at who gets the lock of a holder that died, and when.
func (c *clocks) testExpiry() {
	c.Helper()
	const ttl = 500 * time.Millisecond
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithNodeTimeout(ttl / 2), redlock.WithoutRenewal()}
	b := mutexOf(c, c.open(opts), c.Name())
	client, die := c.mortal(opts)
	start := time.Now()
	a := c.lock(mutexOf(c, client, c.Name()))
	die()
	l := c.lock(b)
	if a.Err() == nil {
		c.Errorf("two holders: the first has %v left", a.Remaining())
	}
	if d := time.Since(start); d > ttl+5*time.Second { // a clock that is 6 s behind would add that
		c.Errorf("a holder that died kept others out for %v", d)
	}
	_ = l.Unlock(c.Context()) // it may be over
}

// testContention has clients take turns.
func (c *clocks) testContention() {
	c.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex // only for the race detector: the lock is what keeps them apart
	inside, times, last := 0, 0, int64(0)
	enter := func(by int, token int64) {
		mu.Lock()
		defer mu.Unlock()
		inside += by
		times++
		if inside > 1 || by > 0 && token <= last {
			c.Errorf("%d are inside, with the fencing token %d after %d", inside, token, last)
		}
		last = token
	}
	for range 3 {
		m := mutexOf(c, c.open(nil), c.Name())
		wg.Go(func() {
			for range 5 {
				l, err := m.Lock(c.Context())
				if err != nil {
					c.Error(err)
					return
				}
				enter(1, l.FencingToken())
				enter(-1, l.FencingToken())
				c.unlock(l)
			}
		})
	}
	wg.Wait()
	if times != 3*5*2 {
		c.Errorf("came and went %d times", times)
	}
}

// TestClockM13: a library that sends absolute expiries gives a lock of 5 s to two
// clients at once where servers are 6 s ahead, shortens it where they are 3 s ahead,
// and leaves it there for 25 s where they are 20 s behind.
func TestClockM13(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	const ttl = 5 * time.Second
	for _, off := range []time.Duration{6 * time.Second, 3 * time.Second, -20 * time.Second} {
		t.Run(off.String(), func(t *testing.T) {
			f := f.in(t)
			f.set(off, 0, 1, 2, 3, 4)
			opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithoutRenewal()}
			a, b := mutexOf(t, f.open(opts), off.String()), mutexOf(t, f.open(opts), off.String())
			start := time.Now()
			l := f.lock(a)
			f.settled(l, 5)
			f.lives(l, start, ttl)
			f.refuses(b, redlock.ErrTaken)

			var pools []driver.Pool
			for _, s := range f.servers {
				pools = append(pools, goredis.NewPool(f.dial(s.Addr())))
			}
			peer := func() *redsync.Mutex {
				return redsync.New(pools...).NewMutex("redsync"+off.String(), redsync.WithExpiry(ttl))
			}
			first, second := peer().TryLockContext(t.Context()), peer().TryLockContext(t.Context())
			if first != nil || second == nil {
				t.Errorf("redsync: %v, %v", first, second)
			}

			// What rueidislock sends, from two clients.
			twice := [2]bool{}
			for i := range twice {
				ok, err := f.eyes[0].SetArgs(t.Context(), "absolute"+off.String(), i, redis.SetArgs{Mode: "NX", ExpireAt: time.Now().Add(ttl)}).Result()
				twice[i] = err == nil && ok == "OK"
			}
			life := max(f.eyes[0].PTTL(t.Context(), "absolute"+off.String()).Val(), 0)
			t.Logf("a lock of %v lives for %v with PXAT, given to two clients: %v", ttl, life, twice[1])
			if want := max(ttl-off, 0); !twice[0] || twice[1] != (off > ttl) || life > want || life < want-2*time.Second {
				t.Errorf("PXAT: granted %v, lives for %v, want %v: this test shows nothing", twice, life, want)
			}
		})
	}
}
