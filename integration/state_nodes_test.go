// Lists of nodes that are not what they seem: one server twice, another server behind
// an address, other lists for other clients; and connections that are not there yet.

package integration_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// TestStateDuplicate: one server under two names, or with two of its databases. Check
// says so in both cases. By two names it has one vote all the same; with two databases,
// which share no key, it has two, and New cannot know.
func TestStateDuplicate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addr  func(addr string) string
		db    int
		votes bool // both of its nodes vote
	}{
		"two names":     {func(addr string) string { return strings.Replace(addr, "127.0.0.1", "localhost", 1) }, 0, false},
		"two databases": {func(addr string) string { return addr }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFarm(t, 2, nil)
			client := f.openOn([]redlock.Node{
				redlock.NewRedisNode("a", dialTo(t, f.servers[0].Addr(), nil)),
				redlock.NewRedisNode("again", dialTo(t, c.addr(f.servers[0].Addr()), func(o *redis.Options) { o.DB = c.db })),
				redlock.NewRedisNode("b", dialTo(t, f.servers[1].Addr(), nil)),
			})
			if said := f.findings(client); len(said) != 1 || !strings.HasPrefix(said[0], `critical: node "again": is the same server as node "a"`) {
				t.Errorf("Check says %q", said)
			}
			f.unlock(f.lock(mutexOf(t, client, "m")))
			f.servers[1].Kill()
			l, err := mutexOf(t, client, "m").TryLock(t.Context())
			if (err == nil) != c.votes {
				t.Errorf("one server has granted the lock on its own: %t, want %t: %v", err == nil, c.votes, err)
			}
			if err == nil {
				f.unlock(l)
			} else {
				is(t, err, redlock.ErrNoQuorum)
			}
		})
	}
}

// A switchboard is a proxy that has the same clients talk to one server after another,
// on connections that they keep. It knows requests and answers by turns only.
type switchboard struct {
	net.Listener
	target atomic.Pointer[string]
	keep   bool // connections of clients, when the target changes

	mu    sync.Mutex
	conns []net.Conn // to clients
}

func newSwitchboard(t *testing.T, target string, keep bool) *switchboard {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &switchboard{Listener: l, keep: keep}
	s.target.Store(&target)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			work.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.hangUp()
		work.Wait()
	})
	return s
}

func (s *switchboard) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// turn makes another server the target.
func (s *switchboard) turn(target string) {
	s.target.Store(&target)
	if !s.keep {
		s.hangUp()
	}
}

func (s *switchboard) serve(client net.Conn) {
	defer client.Close()
	var target string
	var server net.Conn
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		if now := *s.target.Load(); now != target {
			if server != nil {
				_ = server.Close()
			}
			if server, err = net.Dial("tcp", now); err != nil {
				return
			}
			target = now
			go func(server net.Conn) { _, _ = io.Copy(client, server) }(server) // until it is closed
		}
		if _, err := server.Write(buf[:n]); err != nil {
			break
		}
	}
	if server != nil {
		_ = server.Close()
	}
}

// TestStateSwitched: an address leads to another server than before, which has been up
// for as long and knows of no lock. Where the connections end with that, the guard sees
// the new process and leaves it out; behind a proxy that keeps them it does not, as
// docs/safety.md says.
func TestStateSwitched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ keep, guard, two bool }{
		"connections end, no guard": {false, false, true},
		"connections end, guard":    {false, true, false},
		"connections kept, guard":   {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 4 * time.Second
			f := startFarm(t, 3, func(o *redis.Options) { o.Protocol = 2 }) // the last server has got what is said in it
			spare := redisproc.Start(t)
			board := newSwitchboard(t, f.servers[0].Addr(), c.keep)
			f.sites[0].dial = func() redis.UniversalClient {
				return dialTo(t, board.Addr().String(), func(o *redis.Options) { o.Protocol, o.PoolSize = 2, 1 })
			}
			opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithoutRenewal(), redlock.WithClockBound(3 * time.Second)}
			holder := f.openTo([]int{0, 1}, opts...)
			if c.guard {
				opts = append(opts, redlock.WithCrashGuard(guardTime))
			}
			other := f.open(opts...)
			f.warm(other) // waits until the guard is content
			first := f.lock(mutexOf(t, holder, "m"))
			board.turn(spare.Addr())
			m := mutexOf(t, other, "m")
			var l *redlock.Lease
			var err error
			if !eventually(ttl, func() bool { // the driver has to notice that its connections have ended
				l, err = m.TryLock(t.Context())
				return err == nil || strings.Contains(err.Error(), "WithCrashGuard")
			}) {
				t.Fatal(err)
			}
			if first.Remaining() == 0 {
				t.Fatal("the first holder's lease has ended, so this says nothing")
			}
			if (err == nil) != c.two {
				t.Errorf("two holders: %t, want %t: %v", err == nil, c.two, err)
			}
			t.Logf("two holders: %t, %v", err == nil, err)
			if l != nil {
				_ = l.Unlock(t.Context())
			}
		})
	}
}

// TestStateOtherNodes: clients with other lists of nodes have quorums that do not meet,
// and both hold the lock. No server can tell them; the list must be the same for all.
func TestStateOtherNodes(t *testing.T) {
	t.Parallel()
	f := startFarm(t, 4, nil)
	for moved, two := range map[int]bool{0: false, 1: true} { // how many nodes of three the second list has not
		a, b := f.openOn(f.nodes()[:3], redlock.WithoutRenewal()), f.openOn(f.nodes()[moved:3+moved])
		name := fmt.Sprint("moved-", moved)
		l := f.lock(mutexOf(t, a, name))
		f.settled(l, 3)
		// The nodes 1 and 2 are in both lists; of those the second client may reach one.
		f.sites[1].eye.Del(t.Context(), "lock:"+name)
		_, err := mutexOf(t, b, name).TryLock(t.Context())
		if (err == nil) != two {
			t.Errorf("%d nodes moved: two holders: %t, want %t: %v", moved, err == nil, two, err)
		}
		if l.Err() != nil {
			t.Error(l.Err())
		}
	}
}

// TestStateFreshConnections: with 20 ms to each node and a node timeout of 50 ms, which
// is shorter than what a connection takes to be made, the first attempts fail; the
// connections are made all the same, and it is one round trip from then on.
func TestStateFreshConnections(t *testing.T) {
	t.Parallel()
	const trip = 20 * time.Millisecond
	for _, timeout := range []time.Duration{50 * time.Millisecond, time.Second} {
		f := startFarm(t, 3, nil)
		var attempts atomic.Int64
		for i, s := range f.servers {
			p := netfault.New(t, s.Addr())
			p.Delay(trip/2, trip/2)
			f.sites[i].dial = func() redis.UniversalClient { return dialTo(t, p.Addr(), nil) }
		}
		c := f.open(redlock.WithTTL(10*time.Second), redlock.WithNodeTimeout(timeout),
			redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) { attempts.Add(1) }}))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		l, err := mutexOf(t, c, "first").Lock(ctx)
		if err != nil {
			t.Fatalf("node timeout %v: never: %v", timeout, err)
		}
		first, tries := time.Since(start), attempts.Load()
		_ = l.Unlock(ctx) // may take longer than that, too
		var later []time.Duration
		for i := range 20 {
			start := time.Now()
			l := f.lock(mutexOf(t, c, fmt.Sprint(i)))
			later = append(later, time.Since(start))
			_ = l.Unlock(ctx)
		}
		t.Logf("node timeout %v: the first lock took %v and %d attempts, later ones %v (p50)", timeout, round(first), tries, round(quantile(later, 0.5)))
		if first <= quantile(later, 0.5) {
			t.Errorf("the first took %v, and later ones %v: connections cost nothing?", first, quantile(later, 0.5))
		}
	}
}
