// What the tests on real servers share: servers, proxies before them, clients.

package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/internal/script"
)

// go-redis reports servers that are down, which these tests make them be.
func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// A fleet is some real servers, each perhaps behind a proxy.
type fleet struct {
	t       testing.TB
	servers []*redisproc.Server
	proxies []*netfault.Proxy // nil without
}

func startFleet(t testing.TB, n int, opts ...redisproc.Option) *fleet {
	t.Helper()
	return &fleet{t: t, servers: redisproc.StartN(t, n, opts...)}
}

func startProxied(t testing.TB, n int, opts ...redisproc.Option) *fleet {
	t.Helper()
	f := startFleet(t, n, opts...)
	for _, s := range f.servers {
		f.proxies = append(f.proxies, netfault.New(t, s.Addr()))
	}
	return f
}

// addr is where clients of node i connect to.
func (f *fleet) addr(i int) string {
	if f.proxies != nil {
		return f.proxies[i].Addr()
	}
	return f.servers[i].Addr()
}

// hangUp ends all connections for good, so that nothing waits for a silent node
// at the end of a test.
func (f *fleet) hangUp() {
	for _, p := range f.proxies {
		_ = p.Refuse(true)
	}
}

// dial makes a go-redis client that lives as long as the test, with default
// options but for those that change sets.
func dial(t testing.TB, addr string, change func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: addr}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// nodes makes a default go-redis client for each server, and a node of it.
func (f *fleet) nodes(change func(*redis.Options)) []redlock.Node {
	clients := make([]redis.UniversalClient, len(f.servers))
	for i := range clients {
		clients[i] = dial(f.t, f.addr(i), change)
	}
	return redlock.Redis(clients...)
}

// open makes a client of its own for the fleet, over default go-redis clients.
// It closes with the test.
func (f *fleet) open(opts ...redlock.Option) *redlock.Client {
	f.t.Helper()
	return openClient(f.t, f.nodes(nil), opts...)
}

func openClient(t testing.TB, nodes []redlock.Node, opts ...redlock.Option) *redlock.Client {
	t.Helper()
	c, err := redlock.New(nodes, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { c.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Error("Close hangs")
		}
	})
	return c
}

func mutexOf(t testing.TB, c *redlock.Client, name string, opts ...redlock.Option) *redlock.Mutex {
	t.Helper()
	m, err := c.NewMutex(name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mutex is open and mutexOf in one.
func (f *fleet) mutex(name string, opts ...redlock.Option) *redlock.Mutex {
	f.t.Helper()
	return mutexOf(f.t, f.open(opts...), name)
}

// warm connects the client to all nodes and teaches them the scripts, so that
// what follows costs one round trip, as in a process that has run for a while.
// Nothing of it is on its way any more when it returns.
func (f *fleet) warm(c *redlock.Client) {
	f.t.Helper()
	m := mutexOf(f.t, c, "warm-up")
	for range 20 {
		l := mustLock(f.t, m)
		all := f.locked(len(f.servers), time.Second)
		mustUnlock(f.t, l)
		f.noLocks(10 * time.Second)
		if all {
			return
		}
	}
	f.t.Fatal("there was never a lock on all nodes")
}

// warm is fleet.warm for a client whose servers are not at hand. It leaves time
// for the stragglers instead of looking for them.
func warm(t testing.TB, c *redlock.Client) {
	t.Helper()
	m := mutexOf(t, c, "warm-up")
	for range 2 {
		l := mustLock(t, m)
		time.Sleep(20 * time.Millisecond)
		mustUnlock(t, l)
		time.Sleep(20 * time.Millisecond)
	}
}

// settled waits until n servers have a lock: stragglers are on their way when
// Lock returns.
func (f *fleet) settled(n int) {
	f.t.Helper()
	if !f.locked(n, 10*time.Second) {
		f.t.Fatalf("there is no lock on %d nodes", n)
	}
}

func (f *fleet) locked(n int, within time.Duration) bool {
	f.t.Helper()
	return eventually(within, func() bool {
		have := 0
		for _, s := range f.servers {
			have += min(len(lockKeys(f.t, s)), 1)
		}
		return have == n
	})
}

func mustLock(t testing.TB, m *redlock.Mutex) *redlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustUnlock(t testing.TB, l *redlock.Lease) {
	t.Helper()
	if err := l.Unlock(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

var companions sync.Map // keys of the library's own that have been looked at

// lockKeys returns a server's keys without the library's own, tombstones and
// counters, each of which must have an expiry.
func lockKeys(t testing.TB, s *redisproc.Server) []string {
	t.Helper()
	return slices.DeleteFunc(s.Keys(), func(key string) bool {
		if !strings.HasPrefix(key, "redlock:") {
			return false
		}
		if _, seen := companions.LoadOrStore(s.Addr()+key, true); !seen {
			if ttl, err := s.Do("PTTL", key); err != nil || ttl == "-1" {
				t.Errorf("server %s: %q lives %s ms, %v", s.Addr(), key, ttl, err)
			}
		}
		return true
	})
}

// tombs returns how many tombstones a server has.
func tombs(s *redisproc.Server) int {
	n := 0
	for _, key := range s.Keys() {
		if strings.HasPrefix(key, "redlock:tomb:") {
			n++
		}
	}
	return n
}

// noLocks waits until no server has a lock, and fails if that takes longer.
func (f *fleet) noLocks(within time.Duration) {
	f.t.Helper()
	var left string
	if !eventually(within, func() bool {
		left = ""
		for i, s := range f.servers {
			if keys := lockKeys(f.t, s); len(keys) > 0 {
				left += fmt.Sprintf(" node %d: %.100q", i, keys)
			}
		}
		return left == ""
	}) {
		f.t.Errorf("after %v there are still locks on%s", within, left)
	}
}

// free waits until no server but the first n has a lock: when Unlock returns, a
// minority of releases is still on its way.
func (f *fleet) free(n int) {
	f.t.Helper()
	(&fleet{t: f.t, servers: f.servers[n:]}).noLocks(10 * time.Second)
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

// calls returns how often a server has executed, or refused, a command.
func calls(t testing.TB, s *redisproc.Server, command string) int {
	t.Helper()
	info, err := s.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(info, "cmdstat_"+command+":calls=")
	if !found {
		return 0
	}
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// scripts returns how many scripts a server was asked to run.
func scripts(t testing.TB, s *redisproc.Server) int {
	t.Helper()
	return calls(t, s, "evalsha") + calls(t, s, "eval")
}

// A clientKind is a change to a client's default options.
type clientKind = func(*redis.Options)

// clients are the options that decide whether a driver heeds deadlines.
var clients = map[string]clientKind{
	"default":               nil,
	"ContextTimeoutEnabled": func(o *redis.Options) { o.ContextTimeoutEnabled = true },
}

// isAcquire matches requests that may set a lock.
func isAcquire(request []byte) bool { return runs(request, &script.Acquire) }

func runs(request []byte, s *script.Script) bool {
	return bytes.Contains(request, []byte(s.SHA)) || bytes.Contains(request, []byte(s.Source))
}
