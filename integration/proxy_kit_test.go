// What the tests behind proxies share: real servers, several ways to each of them,
// and clients of both libraries with default options of go-redis.

package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	driver "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/integration/internal/faultproxy"
)

// A rig is some servers. Whoever is to have faults of his own gets a path of his
// own, of one proxy for each server; paths do not disturb each other.
type rig struct {
	*testing.T
	servers []*redisproc.Server
}

func newRig(t *testing.T, n int) *rig {
	t.Helper()
	return &rig{T: t, servers: redisproc.StartN(t, n)}
}

// network is a path whose faults are those of a network.
func (r *rig) network() path[*faultproxy.Proxy] {
	r.Helper()
	var p path[*faultproxy.Proxy]
	for _, s := range r.servers {
		p = append(p, faultproxy.New(r, s.Addr()))
	}
	return p
}

// wire is a path whose faults hit single requests.
func (r *rig) wire() path[*netfault.Proxy] {
	r.Helper()
	var p path[*netfault.Proxy]
	for _, s := range r.servers {
		p = append(p, netfault.New(r, s.Addr()))
	}
	return p
}

type path[P interface{ Addr() string }] []P

func (p path[P]) addrs() []string {
	var a []string
	for i := range p {
		a = append(a, p[i].Addr())
	}
	return a
}

// direct is the path without proxies.
func (r *rig) direct() []string { return path[*redisproc.Server](r.servers).addrs() }

// heal ends the faults of a network, so that clients can clean up as they close.
func heal(p path[*faultproxy.Proxy]) {
	for i := range p {
		p[i].Heal()
	}
}

// dialed makes a client of go-redis for each address.
func (r *rig) dialed(addrs []string, change func(*redis.Options)) []redis.UniversalClient {
	var clients []redis.UniversalClient
	for _, addr := range addrs {
		o := &redis.Options{Addr: addr}
		if change != nil {
			change(o)
		}
		c := redis.NewClient(o)
		r.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	return clients
}

// open makes a client of ours, which is connected everywhere and has its scripts
// there. No fault may be on.
func (r *rig) open(addrs []string, opts ...redlock.Option) *redlock.Client {
	r.Helper()
	c, err := redlock.New(redlock.Redis(r.dialed(addrs, nil)...), opts...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() }) // fails if it cannot clean up
	m, err := c.NewMutex("warm-up", redlock.WithTTL(30*time.Second), redlock.WithNodeTimeout(5*time.Second))
	if err != nil {
		r.Fatal(err)
	}
	for range 2 {
		l := r.lock(m)
		r.settled(l, len(r.servers))
		r.unlock(l)
		r.free("lock:warm-up", 10*time.Second)
	}
	return c
}

// peer makes a client of redsync, connected everywhere.
func (r *rig) peer(addrs []string, change func(*redis.Options)) *redsync.Redsync {
	r.Helper()
	var pools []driver.Pool
	for _, c := range r.dialed(addrs, change) {
		pools = append(pools, goredis.NewPool(c))
	}
	peer := redsync.New(pools...)
	for range 2 { // the second one has its scripts there
		m := peer.NewMutex("warm-up of redsync")
		if err := m.Lock(); err != nil {
			r.Fatal(err)
		}
		if ok, err := m.Unlock(); !ok {
			r.Fatal(err)
		}
	}
	return peer
}

// heedful has go-redis heed the deadlines of contexts, which it does not by default.
func heedful(o *redis.Options) { o.ContextTimeoutEnabled = true }

func (r *rig) lock(m *redlock.Mutex) *redlock.Lease {
	r.Helper()
	return (&fleet{T: r.T}).lock(m)
}

func (r *rig) unlock(l *redlock.Lease) {
	r.Helper()
	(&fleet{T: r.T}).unlock(l)
}

// value returns what a server holds under a key, or "(nil)".
func (r *rig) value(server int, key string) string {
	r.Helper()
	v, err := r.servers[server].Do("GET", key)
	if err != nil {
		r.Fatal(err)
	}
	return v
}

// has reports whether a server holds the lease.
func (r *rig) has(server int, l *redlock.Lease) bool {
	r.Helper()
	return r.value(server, "lock:"+l.Name()) == fmt.Sprintf("%s.%d", l.Token(), server)
}

// settled waits until n servers hold the lease.
func (r *rig) settled(l *redlock.Lease, n int) {
	r.Helper()
	if !eventually(10*time.Second, func() bool {
		have := 0
		for i := range r.servers {
			if r.has(i, l) {
				have++
			}
		}
		return have == n
	}) {
		r.Fatalf("the lease is not on %d servers: %v", n, l.Err())
	}
}

// free waits until no server has a key that begins with prefix, and fails if that
// takes longer.
func (r *rig) free(prefix string, within time.Duration) {
	r.Helper()
	var left []string
	if !eventually(within, func() bool {
		left = r.keys(prefix)
		return len(left) == 0
	}) {
		r.Errorf("after %v there is still %.300q", within, left)
	}
}

// keys returns the keys of all servers that begin with prefix, each with its server.
func (r *rig) keys(prefix string) []string {
	var have []string
	for i, s := range r.servers {
		for _, key := range s.Keys() {
			if strings.HasPrefix(key, prefix) {
				have = append(have, fmt.Sprintf("%d: %s", i, key))
			}
		}
	}
	return slices.Sorted(slices.Values(have))
}

// isNot fails the test if err is any of the targets.
func isNot(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("%v is %q", err, target)
		}
	}
}

// stopwatch returns how long f took, and its error.
func stopwatch(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}
