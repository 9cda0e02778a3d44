// Renewals that are due together travel in one pipeline, also after the servers
// forgot the scripts and through a cluster client.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A tripMeter counts round trips of a go-redis client, and the commands in them.
type tripMeter struct {
	single    atomic.Int64 // commands on their own
	pipelines atomic.Int64
	piped     atomic.Int64 // commands in pipelines
	mixed     atomic.Int64 // of those, other than evalsha and eval
	largest   atomic.Int64
}

func (m *tripMeter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (m *tripMeter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		m.single.Add(1)
		return next(ctx, cmd)
	}
}

func (m *tripMeter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ours := 0
		for _, c := range cmds {
			switch c.Name() {
			case "evalsha", "eval":
				ours++
			case "hello", "client", "auth", "select": // of a new connection
			default:
				m.mixed.Add(1)
			}
		}
		if ours > 0 {
			m.pipelines.Add(1)
			m.piped.Add(int64(ours))
			for {
				n := m.largest.Load()
				if int64(ours) <= n || m.largest.CompareAndSwap(n, int64(ours)) {
					break
				}
			}
		}
		return next(ctx, cmds)
	}
}

func (m *tripMeter) reset() {
	for _, n := range []*atomic.Int64{&m.single, &m.pipelines, &m.piped, &m.mixed, &m.largest} {
		n.Store(0)
	}
}

// TestRenewPipeline: 100 leases cost a round trip per node and period, not 100.
func TestRenewPipeline(t *testing.T) {
	const leases, every, periods = 100, 60 * time.Millisecond, 20 // a tenth of it is less than renewals wait for company
	f := startFleet(t, 5)
	meters := make([]*tripMeter, 5)
	clients := make([]redis.UniversalClient, 5)
	for i := range clients {
		meters[i] = &tripMeter{}
		// With a timeout of its own that is short, the client is used as it is.
		c := dial(t, f.addr(i), func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond })
		c.AddHook(meters[i])
		clients[i] = c
	}
	var book logbook
	client := openClient(t, redlock.Redis(clients...), redlock.WithRenewal(every), book.trace())
	warm(t, client)
	var held []*redlock.Lease
	for i := range leases {
		held = append(held, mustLock(t, mutexOf(t, client, fmt.Sprint(i))))
	}
	time.Sleep(3 * every)
	for _, m := range meters {
		m.reset()
	}
	before := len(book.read().renewals)
	time.Sleep(periods * every)
	renewals := len(book.read().renewals) - before
	for i, m := range meters {
		piped, pipelines, single := m.piped.Load(), m.pipelines.Load(), m.single.Load()
		t.Logf("node %d: %d renewals in %d pipelines of at most %d, and %d alone", i, piped, pipelines, m.largest.Load(), single)
		if piped < int64(renewals)*9/10 || piped < 10*pipelines || single > piped/20 {
			t.Errorf("node %d: of %d renewals %d came in %d pipelines and %d alone", i, renewals, piped, pipelines, single)
		}
		if m.largest.Load() > 128 {
			t.Errorf("node %d: a pipeline of %d", i, m.largest.Load())
		}
		if m.mixed.Load() > 0 {
			t.Errorf("node %d: other commands in pipelines", i)
		}
	}

	// A server that forgot the scripts, in the middle of it.
	for range 5 {
		for _, s := range f.servers {
			if _, err := s.Do("SCRIPT", "FLUSH"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * every)
	}
	for _, l := range held {
		noErr(t, l.Err())
	}
	if n := book.failed(); n > 0 {
		t.Errorf("%d renewals failed", n)
	}
	book.lost(t, 0)

	// One key that is not a string does not harm those that travel with it.
	for _, s := range f.servers[:3] {
		if _, err := s.Do("DEL", "lock:7"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do("RPUSH", "lock:7", "x"); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(4 * every)
	for _, e := range book.read().renewals {
		if e.Err != nil && e.Name != "7" {
			t.Errorf("lease %s: %v", e.Name, e.Err)
		}
		if e.Err != nil {
			is(t, e.Err, redlock.ErrNoQuorum)
		}
	}
	if book.failed() == 0 {
		t.Error("a lock of another type was renewed")
	}
	for _, s := range f.servers[:3] {
		if _, err := s.Do("DEL", "lock:7"); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range held {
		if i != 7 {
			mustUnlock(t, l)
		} else {
			mustRelease(l)
		}
	}
	f.noLocks(5 * time.Second)
}

// TestRenewPipelineHooks: the hooks that a user has given a client, for tracing
// say, see what the lock sends through it, if the client's read timeout is within
// the node timeout.
func TestRenewPipelineHooks(t *testing.T) {
	f := startFleet(t, 1)
	meter := &tripMeter{}
	c := dial(t, f.addr(0), func(o *redis.Options) { o.ReadTimeout = 900 * time.Millisecond })
	c.AddHook(meter)
	client := openClient(t, redlock.Redis(c))
	warm(t, client)
	meter.reset()
	mustUnlock(t, mustLock(t, mutexOf(t, client, "a")))
	if n := meter.single.Load(); n != 2 {
		t.Errorf("the hook saw %d commands of a lock and unlock, want 2", n)
	}
}

// startClusterNode starts a cluster of masters that share the slots.
func startClusterNode(t *testing.T, masters int) *redis.ClusterClient {
	t.Helper()
	servers := redisproc.StartN(t, masters, redisproc.Args("--cluster-enabled", "yes"))
	do := func(s *redisproc.Server, args ...string) string {
		t.Helper()
		reply, err := s.Do(args...)
		noErr(t, err)
		return reply
	}
	var addrs []string
	for i, s := range servers {
		addrs = append(addrs, s.Addr())
		from, to := i*16384/masters, (i+1)*16384/masters-1
		do(s, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(from), fmt.Sprint(to))
		do(s, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if host, port, err := net.SplitHostPort(servers[0].Addr()); i > 0 && err == nil {
			do(s, "CLUSTER", "MEET", host, port)
		}
	}
	if !eventually(30*time.Second, func() bool {
		for _, s := range servers {
			info := do(s, "CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", masters)) {
				return false
			}
		}
		return true
	}) {
		t.Fatal("the cluster does not come up")
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestRenewPipelineCluster: a node may be a cluster. Leases whose keys are on
// different shards are renewed together.
func TestRenewPipelineCluster(t *testing.T) {
	const leases, every = 60, 100 * time.Millisecond
	clients := []redis.UniversalClient{startClusterNode(t, 2), startClusterNode(t, 1), startClusterNode(t, 1)}
	meter := &tripMeter{}
	clients[0].AddHook(meter)
	var book logbook
	client := openClient(t, redlock.Redis(clients...), redlock.WithRenewal(every), book.trace())
	warm(t, client)
	var held []*redlock.Lease
	for i := range leases {
		held = append(held, mustLock(t, mutexOf(t, client, fmt.Sprint(i))))
	}
	time.Sleep(5 * every)
	for range 3 {
		if err := errors.Join(
			clients[0].(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
				return c.ScriptFlush(ctx).Err()
			}),
		); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * every)
	}
	for i, l := range held {
		if err := l.Err(); err != nil {
			t.Errorf("lease %d: %v", i, err)
		}
	}
	if n := book.failed(); n > 0 {
		t.Errorf("%d renewals failed", n)
	}
	for _, e := range book.read().nodes {
		if e.Op == "extend" && e.Err != nil {
			t.Fatalf("%+v", e)
		}
	}
	t.Logf("%d renewals in %d pipelines, %d alone", meter.piped.Load(), meter.pipelines.Load(), meter.single.Load())
	if meter.piped.Load() < 4*meter.pipelines.Load() || meter.pipelines.Load() == 0 {
		t.Errorf("%d renewals in %d pipelines", meter.piped.Load(), meter.pipelines.Load())
	}
	for _, l := range held {
		mustUnlock(t, l)
	}
}
