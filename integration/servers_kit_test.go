// What the tests on server processes share: nodes of any kind, clients of them, and
// looks at what they store.

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// A site is one node of some kind: how clients reach it, and how the test looks at
// what is stored there.
type site struct {
	dial func() redis.UniversalClient // a client with connections of its own
	eye  redis.UniversalClient        // may see all keys
}

// A farm is nodes on server processes of this machine.
type farm struct {
	*testing.T
	sites   []site
	servers []*redisproc.Server // of startFarm only
}

// startFarm starts n servers that keep all they have answered, so that Check finds
// nothing about them. change, if not nil, is what the clients' options differ in.
func startFarm(t *testing.T, n int, change func(*redis.Options), opts ...redisproc.Option) *farm {
	t.Helper()
	f := &farm{T: t, servers: redisproc.StartN(t, n, append([]redisproc.Option{redisproc.Persist(redisproc.AOFAlways)}, opts...)...)}
	for _, s := range f.servers {
		f.sites = append(f.sites, siteOf(t, s, change))
	}
	return f
}

func siteOf(t *testing.T, s *redisproc.Server, change func(*redis.Options)) site {
	return site{
		dial: func() redis.UniversalClient { return dialTo(t, s.Addr(), change) },
		eye:  dialTo(t, s.Addr(), nil),
	}
}

// dialTo makes a go-redis client that lives as long as the test, with default
// options but for those that change sets.
func dialTo(t *testing.T, addr string, change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: addr}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// nodes makes clients of their own.
func (f *farm) nodes() []redlock.Node {
	var clients []redis.UniversalClient
	for _, s := range f.sites {
		clients = append(clients, s.dial())
	}
	return redlock.Redis(clients...)
}

// open makes a client with connections of its own. It closes with the test.
func (f *farm) open(opts ...redlock.Option) *redlock.Client { return f.openOn(f.nodes(), opts...) }

func (f *farm) openOn(nodes []redlock.Node, opts ...redlock.Option) *redlock.Client {
	f.Helper()
	c, err := redlock.New(nodes, opts...)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() }) // fails where keys cannot be released
	return c
}

// warm connects a client to all nodes and teaches them the scripts.
func (f *farm) warm(c *redlock.Client) {
	f.Helper()
	m := mutexOf(f, c, "warm-up")
	for range 2 {
		l := f.lock(m)
		f.settled(l, len(f.sites))
		f.unlock(l)
		f.free("warm-up")
	}
}

func (f *farm) lock(m *redlock.Mutex) *redlock.Lease {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	l, err := m.Lock(ctx)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

func (f *farm) unlock(l *redlock.Lease) {
	f.Helper()
	if err := l.Unlock(context.WithoutCancel(f.Context())); err != nil {
		f.Error(err)
	}
}

// has reports whether site i stores the lease.
func (f *farm) has(i int, l *redlock.Lease) bool {
	value, err := f.sites[i].eye.Get(f.Context(), "lock:"+l.Name()).Result()
	return err == nil && value == fmt.Sprintf("%s.%d", l.Token(), i)
}

// settled waits until n sites store the lease: stragglers are on their way when Lock
// returns.
func (f *farm) settled(l *redlock.Lease, n int) {
	f.Helper()
	if !eventually(10*time.Second, func() bool {
		have := 0
		for i := range f.sites {
			if f.has(i, l) {
				have++
			}
		}
		return have == n
	}) {
		f.Fatalf("%q is not on %d nodes: %v", l.Name(), n, l.Err())
	}
}

// free waits until no site has the lock: when Unlock returns, a minority of releases
// is still on its way.
func (f *farm) free(name string) {
	f.Helper()
	if !eventually(10*time.Second, func() bool {
		for _, s := range f.sites {
			if err := s.eye.Get(f.Context(), "lock:"+name).Err(); !errors.Is(err, redis.Nil) {
				return false
			}
		}
		return true
	}) {
		f.Errorf("there is still something at %q", name)
	}
}

// noKeys fails the test if a site has anything but counters and tombstones, which
// must go by themselves.
func (f *farm) noKeys() {
	f.Helper()
	for i, s := range f.sites {
		for key, ttl := range f.keys(s.eye) {
			if !strings.HasPrefix(key, "redlock:") || ttl < 0 {
				f.Errorf("node %d keeps %q for %v", i, key, ttl)
			}
		}
	}
}

// keys returns all keys, of all masters of a cluster, and how long they will live.
func (f *farm) keys(eye redis.UniversalClient) map[string]time.Duration {
	f.Helper()
	var mu sync.Mutex
	all := make(map[string]time.Duration)
	look := func(ctx context.Context, c *redis.Client) error {
		keys, err := c.Keys(ctx, "*").Result()
		for _, key := range keys {
			ttl, e := c.PTTL(ctx, key).Result()
			err = errors.Join(err, e)
			mu.Lock()
			all[key] = ttl
			mu.Unlock()
		}
		return err
	}
	var err error
	switch c := eye.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(f.Context(), look)
	case *redis.Client:
		err = look(f.Context(), c)
	}
	if err != nil {
		f.Error(err)
	}
	return all
}

// tell runs a command on a server, which must not fail.
func tell(t testing.TB, s *redisproc.Server, args ...string) string {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %q: %v", s.Addr(), args, err)
	}
	return reply
}

// nodeErrors returns what each node said that had no vote to give.
func nodeErrors(t testing.TB, err error) []*redlock.NodeError {
	t.Helper()
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok {
		t.Fatalf("%v is no *QuorumError", err)
	}
	var found []*redlock.NodeError
	for _, e := range q.Nodes.WrappedErrors() {
		if n, ok := errors.AsType[*redlock.NodeError](e); ok {
			found = append(found, n)
		}
	}
	return found
}

// findings is what Check says, without that of which a part is as it should be.
func (f *farm) findings(c *redlock.Client, fine ...string) (rest []string) {
	f.Helper()
	r, err := c.Check(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(r.String()) {
		expected := false
		for _, part := range fine {
			expected = expected || part != "" && strings.Contains(line, part)
		}
		if !expected {
			rest = append(rest, strings.TrimSpace(line))
		}
	}
	return rest
}
