// What the tests of server clocks share: five redis-server processes whose wall
// clocks the test sets, while they run as well, and looks at what they hold.

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// Clocks is five servers with a wall clock each.
type clocks struct {
	*testing.T
	walls   []*redisproc.WallClock
	servers []*redisproc.Server
	eyes    []*redis.Client // by which the test looks at the nodes
}

func startClocks(t *testing.T) *clocks {
	t.Helper()
	c := &clocks{T: t, walls: redisproc.WallClocks(t, 5)}
	for _, w := range c.walls {
		s := redisproc.Start(t, w.Serve())
		c.servers = append(c.servers, s)
		c.eyes = append(c.eyes, c.dial(s.Addr()))
	}
	return c
}

// in returns the same servers for a subtest, with their clocks right.
func (c *clocks) in(t *testing.T) *clocks {
	t.Helper()
	d := *c
	d.T = t
	d.set(0, 0, 1, 2, 3, 4)
	return &d
}

// dial makes a default go-redis client.
func (c *clocks) dial(addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	c.Cleanup(func() { _ = client.Close() })
	return client
}

// set makes the clocks of some nodes differ by off from the machine's, and looks
// whether they do: nothing else would show that they do not.
func (c *clocks) set(off time.Duration, nodes ...int) {
	c.Helper()
	for _, i := range nodes {
		if err := c.walls[i].Set(off); err != nil {
			c.Fatal(err)
		}
		before := time.Now().Truncate(time.Microsecond)
		at, err := c.eyes[i].Time(c.Context()).Result()
		at = at.Add(-off)
		if err != nil || at.Before(before) || at.After(time.Now()) {
			c.Fatalf("the clock of node %d is not %v off: %v, %v", i, off, at.Sub(before), err)
		}
	}
}

// open makes a client with connections of its own. It sees only some of the nodes
// if any are given, and otherwise is connected to them all.
func (c *clocks) open(opts []redlock.Option, sees ...int) *redlock.Client {
	c.Helper()
	if len(sees) == 0 {
		client := c.client(opts, func(s *redisproc.Server) string { return s.Addr() })
		if _, err := client.Check(c.Context()); err != nil {
			c.Fatal(err)
		}
		return client
	}
	return c.client(opts, func(s *redisproc.Server) string {
		if slices.Contains(sees, slices.Index(c.servers, s)) {
			return s.Addr()
		}
		p := netfault.New(c, s.Addr())
		_ = p.Refuse(true) // a failure has failed the test
		return p.Addr()
	})
}

// mortal makes a client that sends nothing any more once it dies.
func (c *clocks) mortal(opts []redlock.Option) (client *redlock.Client, die func()) {
	c.Helper()
	var lines []*netfault.Proxy
	client = c.client(opts, func(s *redisproc.Server) string {
		p := netfault.New(c, s.Addr())
		lines = append(lines, p)
		return p.Addr()
	})
	return client, func() {
		for _, p := range lines {
			_ = p.Refuse(true) // a failure has failed the test
		}
	}
}

func (c *clocks) client(opts []redlock.Option, addr func(*redisproc.Server) string) *redlock.Client {
	c.Helper()
	var nodes []redlock.Node
	for i, s := range c.servers {
		nodes = append(nodes, redlock.NewRedisNode(fmt.Sprint("node-", i), c.dial(addr(s))))
	}
	client, err := redlock.New(nodes, append([]redlock.Option{redlock.WithNodeTimeout(900 * time.Millisecond)}, opts...)...)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = client.Close() }) // fails where it was cut off
	return client
}

func (c *clocks) lock(m *redlock.Mutex) *redlock.Lease {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	l, err := m.Lock(ctx)
	if err != nil {
		c.Fatal(err)
	}
	return l
}

// unlock fails the test if that is not prompt.
func (c *clocks) unlock(l *redlock.Lease) {
	c.Helper()
	start := time.Now()
	if err := l.Unlock(c.Context()); err != nil || time.Since(start) > quick {
		c.Errorf("unlocked after %v: %v", time.Since(start), err)
	}
}

// refuses fails the test unless somebody else's try ends at once with the targets.
func (c *clocks) refuses(m *redlock.Mutex, targets ...error) error {
	c.Helper()
	start := time.Now()
	l, err := m.TryLock(c.Context())
	if d := time.Since(start); d > quick {
		c.Errorf("a try took %v", d)
	}
	if err == nil {
		c.Errorf("somebody else got the lock, with the fencing token %d", l.FencingToken())
		c.unlock(l)
		return nil
	}
	is(c, err, targets...)
	return err
}

// tellsBound fails the test unless an error says that a fencing counter would be
// ahead of a node's clock by more than the clock bound.
func tellsBound(t *testing.T, err error) {
	t.Helper()
	if !strings.Contains(fmt.Sprint(err), "REDLOCKAHEAD") {
		t.Errorf("the error does not tell about the clock bound: %v", err)
	}
	t.Log(err)
}

// on returns the nodes that hold the lease, and how long their keys live.
func (c *clocks) on(l *redlock.Lease) (nodes []int, lives []time.Duration) {
	c.Helper()
	for i, eye := range c.eyes {
		value, err := eye.Get(c.Context(), "lock:"+l.Name()).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			c.Fatal(err)
		}
		if value == fmt.Sprintf("%s.%d", l.Token(), i) {
			nodes = append(nodes, i)
			lives = append(lives, eye.PTTL(c.Context(), "lock:"+l.Name()).Val())
		}
	}
	return nodes, lives
}

// settled waits until the lease is on n nodes. After an unlock that is none: it does
// not wait for the last of them.
func (c *clocks) settled(l *redlock.Lease, n int) {
	c.Helper()
	if !eventually(10*time.Second, func() bool { nodes, _ := c.on(l); return len(nodes) == n }) {
		nodes, _ := c.on(l)
		c.Fatalf("the lease is on the nodes %v, not on %d: %v", nodes, n, l.Err())
	}
}

// A storage takes writes from holders, and checks their tokens.
type storage struct {
	guard fence.Memory
	last  string
}

func (s *storage) write(l *redlock.Lease, who string) error {
	if err := s.guard.Check(context.Background(), l.Name(), l.FencingToken()); err != nil {
		return err
	}
	s.last = who
	return nil
}

// both fails the test unless two clients trust their leases at this moment, of
// which the storage lets only the newer write, whoever comes first.
func (c *clocks) both(a, b *redlock.Lease) {
	c.Helper()
	if a.Err() != nil || b.Err() != nil {
		c.Fatalf("not two holders: %v, %v", a.Err(), b.Err())
	}
	c.Logf("TWO HOLDERS: the first has %v left, the second %v; fencing tokens %d and %d",
		a.Remaining().Round(time.Millisecond), b.Remaining().Round(time.Millisecond), a.FencingToken(), b.FencingToken())
	if a.FencingToken() == 0 {
		return // WithoutFencing: nothing helps
	}
	var s storage
	if err := errors.Join(s.write(a, "a"), s.write(b, "b")); err != nil {
		c.Errorf("the storage refused one after the other: %v", err)
	}
	is(c, s.write(a, "a again"), fence.ErrStale)
	if err := s.write(b, "b again"); err != nil || s.last != "b again" {
		c.Errorf("the storage has a write of %q: %v", s.last, err)
	}
}

// asItIs is an option that changes nothing.
var asItIs = redlock.WithKeyPrefix("lock:")
