// What was measured to go wrong with other lock libraries, as M1 to M26 in the
// project's notes, on real servers with default go-redis clients. Each test says
// what went wrong there.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
)

// quick is far less than the node timeout of three seconds, or the five that a
// default go-redis client waits, and far more than a loaded machine needs.
const quick = 1500 * time.Millisecond

// onTime fails the test if f takes longer than quick.
func onTime(t testing.TB, what string, f func() error) {
	t.Helper()
	var err error
	if d := took(func() { err = f() }); err != nil || d > quick {
		t.Errorf("%s: %v after %v, want nil within %v", what, err, d, quick)
	}
}

// cycle locks, extends and unlocks, none of which may wait for a silent node.
func cycle(t testing.TB, m *redlock.Mutex) {
	t.Helper()
	var l *redlock.Lease
	onTime(t, "TryLock", func() (err error) { l, err = m.TryLock(t.Context()); return err })
	onTime(t, "Extend", func() error { return l.Extend(t.Context()) })
	onTime(t, "Unlock", func() error { return l.Unlock(t.Context()) })
}

// M1, M2: with one of five nodes silent, redsync took 5 s for each of Lock,
// Extend and Unlock, on a default client; with ContextTimeoutEnabled, for Extend
// and Unlock still.
func TestPeersM1(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 5} {
		for name, client := range clients {
			t.Run(fmt.Sprintf("nodes=%d/client=%s", nodes, name), func(t *testing.T) {
				t.Parallel()
				silentMinority(t, nodes, client)
			})
		}
	}
}

func silentMinority(t *testing.T, nodes int, client clientKind) {
	t.Helper()
	const nodeTimeout = 3 * time.Second
	f := startProxied(t, nodes)
	defer f.hangUp()
	c := openClient(t, f.nodes(client), redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(nodeTimeout))
	f.warm(c)
	m := mutexOf(t, c, "m")
	l := mustLock(t, m)
	f.settled(nodes)
	f.proxies[0].Blackhole(true) // it has granted the lock
	onTime(t, "Extend", func() error { return l.Extend(t.Context()) })
	onTime(t, "Unlock", func() error { return l.Unlock(t.Context()) })
	for range 3 {
		f.free(1)
		cycle(t, m)
	}
}

// M2: with too many nodes silent the node timeout decides, and not the driver's
// five seconds, on every path.
func TestPeersM2(t *testing.T) {
	t.Parallel()
	for name, client := range clients {
		t.Run("client="+name, func(t *testing.T) {
			t.Parallel()
			const nodeTimeout = 300 * time.Millisecond
			f := startProxied(t, 3)
			c := openClient(t, f.nodes(client), redlock.WithTTL(8*time.Second),
				redlock.WithNodeTimeout(nodeTimeout), redlock.WithoutRenewal())
			f.warm(c)
			l := mustLock(t, mutexOf(t, c, "held"))
			f.proxies[0].Blackhole(true)
			f.proxies[1].Blackhole(true)
			timesOut := func(what string, f func() error) {
				t.Helper()
				var err error
				d := took(func() { err = f() })
				if !errors.Is(err, redlock.ErrNoQuorum) || !errors.Is(err, redlock.ErrNodeTimeout) {
					t.Errorf("%s: %v, want ErrNoQuorum and ErrNodeTimeout", what, err)
				}
				isNot(t, err, context.DeadlineExceeded, context.Canceled, redlock.ErrTaken)
				if d < nodeTimeout || d > nodeTimeout+quick {
					t.Errorf("%s took %v, want the node timeout of %v", what, d, nodeTimeout)
				}
			}
			timesOut("TryLock", func() error { _, err := mutexOf(t, c, "m").TryLock(t.Context()); return err })
			timesOut("Extend", func() error { return l.Extend(t.Context()) })
			timesOut("Unlock", func() error { return l.Unlock(t.Context()) })
		})
	}
}

// M3: with a short TTL, one silent node made a lock impossible to extend.
func TestPeersM3(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	f := startProxied(t, 5)
	defer f.hangUp()
	c := f.open(redlock.WithTTL(ttl), redlock.WithoutRenewal())
	f.warm(c)
	l := mustLock(t, mutexOf(t, c, "m"))
	f.proxies[2].Blackhole(true)
	for end := time.Now().Add(ttl + ttl/2); time.Now().Before(end); time.Sleep(ttl / 8) {
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	onTime(t, "Unlock", func() error { return l.Unlock(t.Context()) })
}

// M6, M7: the context ended while nodes were slow. redsync left its key on all
// nodes for the whole TTL; on a default client it reported the lock acquired.
func TestPeersM6(t *testing.T) {
	t.Parallel()
	const nodeTimeout, wait, delay = time.Second, 50 * time.Millisecond, 100 * time.Millisecond
	f := startProxied(t, 3)
	c := f.open(redlock.WithTTL(8*time.Second), redlock.WithNodeTimeout(nodeTimeout))
	f.warm(c)
	m := mutexOf(t, c, "m")
	for _, p := range f.proxies[1:] {
		p.Delay(delay, delay)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var l *redlock.Lease
	var err error
	d := took(func() { l, err = m.TryLock(ctx) })
	if l != nil || !errors.Is(err, context.DeadlineExceeded) || d > 2*delay {
		t.Errorf("TryLock: %v, %v after %v, want the context's error after %v", l, err, d, wait)
	}
	f.noLocks(nodeTimeout + 2*delay)
	for _, p := range f.proxies {
		p.Delay(0, 0)
	}
	time.Sleep(2 * delay)
	f.noLocks(0)
	mustUnlock(t, mustLock(t, m))
}

// M8: a SET that the network delayed until after the attempt and its release,
// which went over another connection, left a key for the whole TTL.
func TestPeersM8(t *testing.T) {
	t.Parallel()
	const nodeTimeout = 200 * time.Millisecond
	f := startProxied(t, 3)
	c := f.open(redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(nodeTimeout))
	f.warm(c)
	var holds []*netfault.Hold
	for _, p := range f.proxies[1:] {
		holds = append(holds, p.HoldRequests(netfault.First(1, netfault.Containing("lock:m")), 0))
	}
	_, err := mutexOf(t, c, "m").TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
	for i := range holds {
		<-holds[i].Held()
		// The release has left its mark before the SET gets through.
		s := f.servers[1+i]
		if !eventually(4*nodeTimeout+quick, func() bool { return tombs(s) > 0 }) {
			t.Fatalf("node %d: there is no tombstone", 1+i)
		}
		executed := scripts(t, s)
		holds[i].Release()
		if !eventually(quick, func() bool { return scripts(t, s) > executed }) {
			t.Fatalf("node %d: the late SET was not executed", 1+i)
		}
	}
	f.noLocks(0)
	mustUnlock(t, mustLock(t, mutexOf(t, c, "m")))
}

// M9: the replies of two of three nodes got lost. go-redis sent the SET again,
// which met its own key, and a free lock was reported as taken.
func TestPeersM9(t *testing.T) {
	t.Parallel()
	const nodeTimeout = time.Second
	f := startProxied(t, 3)
	c := f.open(redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(nodeTimeout))
	f.warm(c)
	var sent [3]atomic.Int64 // acquires, as the proxy sees them
	for i, p := range f.proxies {
		p.Tap(func(_ int, dir netfault.Direction, b []byte) {
			if dir == netfault.ToServer && isAcquire(b) {
				sent[i].Add(1)
			}
		})
	}
	f.proxies[0].DropReplyTo(netfault.First(1, isAcquire))
	f.proxies[1].DropReplyTo(netfault.First(1, isAcquire))
	_, err := mutexOf(t, c, "m").TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
	isNot(t, err, redlock.ErrTaken)
	f.noLocks(2 * nodeTimeout)
	for i := range sent {
		if n := sent[i].Load(); n != 1 {
			t.Errorf("node %d: the acquire was sent %d times", i, n)
		}
	}
	mustUnlock(t, mustLock(t, mutexOf(t, c, "m")))
}
