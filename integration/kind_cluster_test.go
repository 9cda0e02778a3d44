// A Redis Cluster of three masters as one node of five.

package integration_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/redis/go-redis/v9"
)

const masters = 3 // of the cluster in these tests

// owner returns which master of the cluster has a lock's keys.
func owner(name string) int { return int(slot.Of("lock:"+name)) * masters / slot.Count }

// named returns a name whose keys are on a master.
func named(master int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint("on-", i); owner(name) == master {
			return name
		}
	}
}

// startMasters starts a cluster of n masters that share the slots.
func startMasters(t *testing.T, n int) (addrs []string, servers []*redisproc.Server) {
	t.Helper()
	servers = redisproc.StartN(t, n, redisproc.Persist(redisproc.AOFAlways),
		redisproc.Args("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"))
	first := func(i int) int { return (i*slot.Count + n - 1) / n }
	for i, s := range servers {
		addrs = append(addrs, s.Addr())
		tell(t, s, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(first(i)), fmt.Sprint(first(i+1)-1))
		tell(t, s, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if host, port, err := net.SplitHostPort(servers[0].Addr()); i > 0 && err == nil {
			tell(t, s, "CLUSTER", "MEET", host, port)
		}
	}
	if !eventually(30*time.Second, func() bool {
		for _, s := range servers {
			info := tell(t, s, "CLUSTER", "INFO")
			for _, want := range []string{
				"cluster_state:ok", // without full coverage it is, before all slots are known
				fmt.Sprint("cluster_slots_ok:", slot.Count),
				fmt.Sprint("cluster_known_nodes:", n),
				fmt.Sprint("cluster_size:", n),
			} {
				if !strings.Contains(info, want+"\r") {
					return false
				}
			}
		}
		return true
	}) {
		t.Fatal("the cluster does not come up")
	}
	return addrs, servers
}

// startCluster makes node 0 of five a cluster, whose masters are the first servers.
func startCluster(t *testing.T) *farm {
	t.Helper()
	addrs, servers := startMasters(t, masters)
	dial := func() redis.UniversalClient {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	f := startFarm(t, 4, nil)
	f.servers = append(servers, f.servers...)
	f.sites = append([]site{{dial, dial()}}, f.sites...)
	return f
}

// TestKindClusterShardDown: with one master down the node has no vote for the names
// whose keys are there, and has it for all others. Check asks shard by shard.
func TestKindClusterShardDown(t *testing.T) {
	t.Parallel()
	f := startCluster(t)
	c := f.open(redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(time.Second))
	f.warm(c)
	for master := range masters { // the keys of each are where this test thinks
		l := f.lock(mutexOf(t, c, named(master)))
		f.settled(l, 5)
		if keys := f.servers[master].Keys(); !strings.Contains(fmt.Sprint(keys), "lock:"+l.Name()) {
			t.Errorf("master %d has no %q but %q", master, l.Name(), keys)
		}
		f.unlock(l)
	}

	tell(t, f.servers[1], "CONFIG", "SET", "appendfsync", "everysec")
	f.told(c, 1, "may forget locks")
	tell(t, f.servers[2], "CONFIG", "SET", "appendfsync", "everysec")
	f.told(c, 2, "may forget locks")

	f.servers[1].Kill()
	if said := strings.Join(f.findings(c), "\n"); !strings.Contains(said, "does not tell about its server") &&
		!strings.Contains(said, "no lock can be taken and released there") {
		t.Errorf("Check does not notice that a master is down:\n%s", said)
	}
	for master := range masters {
		l := f.lock(mutexOf(t, c, named(master)))
		want := 5
		if master == 1 {
			want = 4
		}
		f.settled(l, want)
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		f.unlock(l)
	}

	// Without two of the others as well, the names of that master have no quorum.
	f.servers[masters].Kill()
	f.servers[masters+1].Kill()
	_, err := mutexOf(t, c, named(1)).TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
	if told := nodeErrors(t, err); len(told) != 3 {
		t.Errorf("%d nodes are named, want 3: %v", len(told), err)
	}
	l, err := mutexOf(t, c, named(2)).TryLock(t.Context())
	if err != nil {
		t.Fatalf("a name of a master that is up has no quorum: %v", err)
	}
	f.unlock(l)
}

// clusterNode is a cluster as the only node of a client.
func clusterNode(t *testing.T, addrs []string) []redlock.Node {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = c.Close() })
	return redlock.Redis(c)
}

// TestKindClusterOne: a release on any of the masters calls exactly the first of two
// waiters, though that master may not know who listens.
func TestKindClusterOne(t *testing.T) {
	t.Parallel()
	addrs, _ := startMasters(t, masters)
	node, ok := clusterNode(t, addrs)[0].(redlock.Waker)
	if !ok {
		t.Fatal("it keeps no lines")
	}
	heard, ready := make(chan string, 10), make(chan struct{}, 1)
	go func() {
		_ = node.Listen(t.Context(), "ear", func() { ready <- struct{}{} }, func(w string) { heard <- w })
	}()
	<-ready
	for master := range masters {
		claim := &redlock.Claim{
			Lock: "lock:" + named(master), Queue: fmt.Sprintf("queue:{lock:%s}", named(master)),
			Value: "v", TTL: time.Minute, Tombstone: fmt.Sprintf("tombstone:{lock:%s}", named(master)),
		}
		if r, err := node.Acquire(t.Context(), claim); err != nil || r.Verdict != redlock.Granted {
			t.Fatal(r, err)
		}
		for i := range 2 {
			r, err := node.Enlist(t.Context(), &redlock.Place{
				Lock: claim.Lock, Queue: claim.Queue, Waiter: fmt.Sprintf("ear/%d%d", master, i),
				Ticket: time.Now().UnixMicro() + int64(i) - 100, Life: time.Minute,
			})
			if err != nil || r.Verdict != redlock.Taken || r.Ahead != int64(i) {
				t.Fatal(r, err)
			}
		}
		if r, err := node.Release(t.Context(), claim, false); err != nil || r.Verdict != redlock.Released || !r.Named {
			t.Errorf("master %d: the release: %+v, %v", master, r, err)
		}
		if got, want := <-heard, fmt.Sprintf("ear/%d0", master); got != want {
			t.Errorf("master %d called %q, want %q", master, got, want)
		}
	}
	select {
	case w := <-heard:
		t.Errorf("it called %q too", w)
	case <-time.After(100 * time.Millisecond):
	}
}

// TestKindClusterCalled: a waiter is called by a release on any of the masters, though
// it listens to one of them.
func TestKindClusterCalled(t *testing.T) {
	t.Parallel()
	addrs, _ := startMasters(t, masters)
	client := func() *redlock.Client {
		f := &farm{T: t}
		return f.openOn(clusterNode(t, addrs), redlock.WithTTL(3*time.Hour), redlock.WithBackoff(hourly))
	}
	holder, other := client(), client()
	for master := range masters {
		for range 3 {
			handOver(t, mutexOf(t, holder, named(master)), mutexOf(t, other, named(master)))
		}
	}
}
