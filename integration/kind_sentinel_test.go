// A master with a replica and a Sentinel as one node: it works, until the Sentinel
// fails over to a replica that lacks what the master had granted.

package integration_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// A sentinelNode is what is behind a node that can fail over.
type sentinelNode struct {
	site
	master, replica, sentinel *redisproc.Server
}

// startSentinel starts one, whose Sentinel takes the master for dead after so long.
func startSentinel(t *testing.T, patience time.Duration) sentinelNode {
	t.Helper()
	start := func(opts ...redisproc.Option) *redisproc.Server {
		return redisproc.Start(t, append([]redisproc.Option{redisproc.Persist(redisproc.AOFAlways)}, opts...)...)
	}
	n := sentinelNode{master: start()}
	host, port, _ := net.SplitHostPort(n.master.Addr())
	// The replica logs in, so that it can be shut out.
	tell(t, n.master, "ACL", "SETUSER", "replica", "on", ">"+password, "+psync", "+replconf", "+ping")
	n.replica = start(redisproc.Args("--replicaof", host, port, "--masteruser", "replica", "--masterauth", password))
	if !eventually(time.Minute, func() bool { return strings.Contains(tell(t, n.master, "INFO", "replication"), "state=online") }) {
		t.Fatal("the replica does not find the master")
	}
	// A Sentinel asks at once who the replicas are, and then every ten seconds.
	n.sentinel = redisproc.Start(t, redisproc.Args("--sentinel"), redisproc.File(fmt.Sprintf(
		"sentinel monitor m %s %s 1\nsentinel down-after-milliseconds m %d\nsentinel failover-timeout m 5000\n", host, port, patience.Milliseconds())))
	dial := func() redis.UniversalClient {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{n.sentinel.Addr()}})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	n.site = site{dial: dial, eye: dial()}
	if !eventually(time.Minute, func() bool { return strings.Contains(tell(t, n.sentinel, "INFO", "sentinel"), "slaves=1") }) {
		t.Fatal("the Sentinel does not find the replica")
	}
	return n
}

// startSentinelFarm makes node 0 of n such a node.
func startSentinelFarm(t *testing.T, n int, patience time.Duration) (*farm, sentinelNode) {
	t.Helper()
	s := startSentinel(t, patience)
	f := startFarm(t, n-1, nil)
	f.sites = append([]site{s.site}, f.sites...)
	f.servers = append([]*redisproc.Server{nil}, f.servers...)
	return f, s
}

// openTo makes a client that reaches only the nodes given.
func (f *farm) openTo(reachable []int, opts ...redlock.Option) *redlock.Client {
	f.Helper()
	var clients []redis.UniversalClient
	for i, s := range f.sites {
		clients = append(clients, dialTo(f.T, "127.0.0.1:1", nil)) // where nobody listens
		for _, r := range reachable {
			if r == i {
				clients[i] = s.dial()
			}
		}
	}
	nodes := make([]redlock.Node, len(clients))
	for i, c := range clients {
		nodes[i] = redlock.NewRedisNode(fmt.Sprint("node-", i), c)
	}
	return f.openOn(nodes, opts...)
}

// TestKindSentinelFailover: a lock rests on a bare quorum of three, one of which is
// a master whose replica has not got it. The master dies. Exclusion goes with it; a
// client with WithCrashGuard that knew the master keeps the replica out of its votes,
// but one that has just begun takes the replica for what it says it is: a server that
// has been up for long. Check had warned.
func TestKindSentinelFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED with -short: a failover")
	}
	const ttl = 20 * time.Second // a failover takes some five
	f, n := startSentinelFarm(t, 3, 2*time.Second)
	f.told(f.open(), 1, "has replicas (1); do not fail over to one")
	holder := f.openTo([]int{0, 1}, redlock.WithTTL(ttl), redlock.WithoutRenewal())
	plain := []redlock.Option{redlock.WithTTL(ttl)}
	guarded := []redlock.Option{redlock.WithTTL(ttl), redlock.WithCrashGuard(ttl)}
	seconds := []*second{
		{name: "no guard", opts: plain, knew: true, two: true},
		{name: "guard, knew the master", opts: guarded, knew: true, two: false},
		{name: "guard, new", opts: guarded, knew: false, two: true},
	}
	for _, s := range seconds {
		if s.knew {
			s.client = f.open(s.opts...)
			f.warm(s.client) // which waits until the guard is content
		}
	}
	tell(t, n.master, "ACL", "SETUSER", "replica", "reset")
	tell(t, n.master, "CLIENT", "KILL", "TYPE", "replica")
	for _, s := range seconds {
		s.first = f.lock(mutexOf(t, holder, s.name))
	}
	n.master.Kill()
	died := time.Now()
	if !eventually(time.Minute, func() bool {
		role, _ := n.replica.Do("ROLE") // the Sentinel cuts off its clients
		return strings.HasPrefix(role, "master")
	}) {
		t.Fatal("the Sentinel does not fail over")
	}
	t.Logf("the replica was promoted %v after the master died", round(time.Since(died)))
	for _, s := range seconds {
		if s.client == nil {
			s.client = f.open(s.opts...)
		}
		s.try(f)
	}
	// The first holder learns of it at the next renewal, and at its deadline at last.
	if err := seconds[0].first.Extend(t.Context()); err == nil {
		t.Error("the first holder extends what a quorum has not got")
	}
}

// A second is a client that asks for a lock that a first one holds.
type second struct {
	name string
	opts []redlock.Option
	knew bool // it had voted with the master
	two  bool // it gets the lock all the same

	client *redlock.Client
	first  *redlock.Lease
}

// try asks until the lock is granted, or refused on account of the guard: the driver
// has to hear of the new master before.
func (s *second) try(f *farm) {
	f.Helper()
	m := mutexOf(f, s.client, s.name)
	var l *redlock.Lease
	var err error
	decided := eventually(time.Minute, func() bool {
		l, err = m.TryLock(f.Context())
		return err == nil || strings.Contains(err.Error(), "WithCrashGuard")
	})
	switch {
	case s.first.Remaining() == 0:
		f.Fatalf("the first holder's lease has ended, so this says nothing: %v", s.first.Err())
	case !decided || (err == nil) != s.two:
		f.Errorf("%s: two holders: %t, want %t: %v", s.name, err == nil, s.two, err)
	case err != nil:
		is(f, err, redlock.ErrNoQuorum)
		f.Logf("%s: one holder: %v", s.name, err)
	default:
		f.Logf("%s: TWO HOLDERS, with fencing tokens %d and %d", s.name, s.first.FencingToken(), l.FencingToken())
		if l.FencingToken() <= s.first.FencingToken() {
			f.Errorf("%s: fencing token %d after %d", s.name, l.FencingToken(), s.first.FencingToken())
		}
	}
}
