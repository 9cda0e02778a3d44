// What the tests on containers share: five nodes, clients of them, and looks at
// what the nodes hold.

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

// quick is far less than the node timeout of three seconds that goes with it, or
// the five that a default go-redis client waits, and far more than a loaded
// machine needs.
const quick = 1500 * time.Millisecond

// A fleet is five nodes in containers.
type fleet struct {
	*testing.T
	nodes []*dockernode.Node
	eyes  []*redis.Client // by which the test looks at the nodes
}

func startFleet(t *testing.T, modes ...dockernode.Persistence) *fleet {
	t.Helper()
	f := &fleet{T: t, nodes: dockernode.Start(t, modes...)}
	for i := range f.nodes {
		f.eyes = append(f.eyes, f.dial(i))
	}
	return f
}

// dial makes a default go-redis client of node i.
func (f *fleet) dial(i int) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: f.nodes[i].Addr()})
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// open makes a client with connections of its own, whose goroutines and clean-ups
// end before the nodes do.
func (f *fleet) open(opts ...redlock.Option) *redlock.Client {
	f.Helper()
	var clients []redis.UniversalClient
	for i := range f.nodes {
		clients = append(clients, f.dial(i))
	}
	c, err := redlock.New(redlock.Redis(clients...), opts...)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() }) // fails if it cannot clean up on a node that is down
	return c
}

// warm connects the client to all nodes and teaches them the scripts.
func (f *fleet) warm(c *redlock.Client) {
	f.Helper()
	m := mutexOf(f, c, "warm-up")
	for range 2 {
		l := f.lock(m)
		f.settled(l, len(f.nodes))
		f.unlock(l)
		f.free("warm-up", quick)
	}
}

func mutexOf(t testing.TB, c *redlock.Client, name string) *redlock.Mutex {
	t.Helper()
	m, err := c.NewMutex(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (f *fleet) lock(m *redlock.Mutex) *redlock.Lease {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
	defer cancel()
	l, err := m.Lock(ctx)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

func (f *fleet) unlock(l *redlock.Lease) {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.Context()), 30*time.Second)
	defer cancel()
	if err := l.Unlock(ctx); err != nil {
		f.Error(err)
	}
}

// has reports whether node i holds the lease.
func (f *fleet) has(i int, l *redlock.Lease) bool {
	value, err := f.eyes[i].Get(f.Context(), "lock:"+l.Name()).Result()
	return err == nil && value == fmt.Sprintf("%s.%d", l.Token(), i)
}

// settled waits until n nodes hold the lease.
func (f *fleet) settled(l *redlock.Lease, n int) {
	f.Helper()
	if !eventually(10*time.Second, func() bool {
		have := 0
		for i := range f.nodes {
			if f.has(i, l) {
				have++
			}
		}
		return have == n
	}) {
		f.Fatalf("the lease is not on %d nodes: %v", n, l.Err())
	}
}

// free waits until no node has a lock of that name, and fails if that takes longer.
// All nodes must answer.
func (f *fleet) free(name string, within time.Duration) {
	f.Helper()
	var left string
	if !eventually(within, func() bool {
		left = ""
		for i, eye := range f.eyes {
			if value, err := eye.Get(f.Context(), "lock:"+name).Result(); !errors.Is(err, redis.Nil) {
				left += fmt.Sprintf(" node %d: %.60q %v", i, value, err)
			}
		}
		return left == ""
	}) {
		f.Errorf("after %v there is still something under %q:%s", within, name, left)
	}
}

// each does the same to some nodes at once.
func (f *fleet) each(what func(*dockernode.Node), nodes ...int) {
	f.Helper()
	var wg sync.WaitGroup
	for _, i := range nodes {
		wg.Go(func() { what(f.nodes[i]) })
	}
	wg.Wait()
	if f.Failed() {
		f.FailNow()
	}
}

// prompt fails the test if f fails or takes longer than quick.
func (f *fleet) prompt(what string, do func() error) time.Duration {
	f.Helper()
	start := time.Now()
	err := do()
	d := time.Since(start)
	if err != nil || d > quick {
		f.Errorf("%s: %v after %v, want nil within %v", what, err, d, quick)
	}
	return d
}

// is fails the test unless err is all of the targets.
func is(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%v is not %q", err, target)
		}
	}
}

// eventually asks again and again, and reports whether it heard yes in time.
func eventually(within time.Duration, yes func() bool) bool {
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		if yes() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// ours returns how many goroutines run the library or its driver.
func ours() int {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "quorumlock/redlock.") || strings.Contains(stack, "redis/go-redis") {
			n++
		}
	}
	return n
}
