// Leases whose nodes fall silent, and waiters for a lock whose holder has crashed.

package integration_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/integration/internal/faultproxy"
)

// renewals counts the renewals of a client that failed and those that did not.
type renewals struct{ good, bad atomic.Int64 }

func (n *renewals) trace() redlock.Option {
	return redlock.WithTrace(&redlock.Trace{Renewal: func(r redlock.Renewal) {
		if r.Err == nil {
			n.good.Add(1)
		} else {
			n.bad.Add(1)
		}
	}})
}

// next waits for one more of what n counts.
func next(t *testing.T, what string, n *atomic.Int64) {
	t.Helper()
	before := n.Load()
	if !eventually(20*time.Second, func() bool { return n.Load() > before }) {
		t.Fatalf("there is no %s", what)
	}
}

// Half-open connections: with a minority of nodes no renewal fails, and a majority
// that does not answer for a while costs renewals but not the lease. What the nodes
// lost meanwhile they get back.
func TestProxyHalfOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, 5)
	p := r.network()
	var n renewals
	c := r.open(p.addrs(), redlock.WithTTL(8*time.Second), redlock.WithNodeTimeout(2*time.Second), n.trace())
	l := r.lock(mutexOf(t, c, "m"))
	r.settled(l, 5)

	for _, i := range []int{0, 3} {
		p[i].Silence()
		if _, err := r.servers[i].Do("DEL", "lock:m"); err != nil { // as its TTL would
			t.Fatal(err)
		}
	}
	next(t, "renewal", &n.good)
	if bad := n.bad.Load(); bad > 0 || l.Err() != nil {
		t.Errorf("%d renewals failed with two nodes silent: %v", bad, l.Err())
	}
	r.settled(l, 3)
	heal(p)
	next(t, "renewal", &n.good)
	r.settled(l, 5)

	for _, i := range []int{1, 2, 4} {
		p[i].Mute() // it renews, and nobody hears of it
	}
	next(t, "renewal that fails", &n.bad)
	before := l.Deadline()
	if err := l.Err(); err != nil {
		t.Errorf("lost by one renewal that failed: %v", err)
	}
	heal(p)
	next(t, "renewal", &n.good)
	if err := l.Err(); err != nil || !l.Deadline().After(before) {
		t.Errorf("%v, and the deadline went from %v to %v", err, before, l.Deadline())
	}
	r.unlock(l)
	r.free("lock:m", 10*time.Second)
}

// M12: from right after the grant all packets of the holder are dropped. Its context
// has ended before anybody else gets the lock.
func TestProxyHolderCutOff(t *testing.T) {
	t.Parallel()
	const holders, ttl = 8, 1500 * time.Millisecond
	r := newRig(t, 5)
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithBackoff(func(int, float64) time.Duration { return 5 * time.Millisecond })}
	rival := r.open(r.direct(), opts...)
	type holder struct {
		path  path[*faultproxy.Proxy]
		m, m2 *redlock.Mutex // of the same name; the second one is the rival's
	}
	var all []holder
	for i := range holders {
		p, name := r.network(), fmt.Sprint("m", i)
		all = append(all, holder{p, mutexOf(t, r.open(p.addrs(), opts...), name), mutexOf(t, rival, name)})
		defer heal(p)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var overlaps atomic.Int64
	margins := make([]time.Duration, holders)
	var wg sync.WaitGroup
	for i, h := range all {
		wg.Go(func() {
			l, err := h.m.Lock(ctx)
			for _, node := range h.path {
				node.Silence()
			}
			if err != nil {
				t.Error(err)
				return
			}
			next, err := h.m2.Lock(ctx)
			margins[i] = time.Since(l.Deadline())
			if l.Err() == nil || l.Context().Err() == nil {
				overlaps.Add(1)
			}
			if err != nil {
				t.Error(err)
				return
			}
			is(t, l.Err(), redlock.ErrLost)
			is(t, context.Cause(l.Context()), redlock.ErrLost)
			if next.FencingToken() <= l.FencingToken() {
				t.Errorf("token %d follows %d", next.FencingToken(), l.FencingToken())
			}
			_ = next.Unlock(ctx) // the nodes may be too busy to answer in time
		})
	}
	wg.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d of %d locks had two holders", n, holders)
	}
	t.Logf("%d of %d locks had two holders; the next one came %v to %v after the deadline of the first",
		overlaps.Load(), holders, round(quantile(margins, 0)), round(quantile(margins, 1)))
}

// M21: Lock outlives a holder that has crashed. redsync's patience ends, by default,
// before the eight seconds of its own default expiry.
func TestProxyCrashedHolder(t *testing.T) {
	t.Parallel()
	ttl := 8 * time.Second
	if testing.Short() {
		ttl = 2 * time.Second
	}
	r := newRig(t, 3)
	c := r.open(r.direct(), redlock.WithTTL(ttl))
	peer := r.peer(r.direct(), nil)
	start := time.Now()
	for _, s := range r.servers {
		for _, key := range []string{"lock:ours", "theirs"} {
			if _, err := s.Do("SET", key, "a holder that has crashed", "PX", fmt.Sprint(ttl.Milliseconds())); err != nil {
				t.Fatal(err)
			}
		}
	}
	var theirs sync.WaitGroup
	defer theirs.Wait()
	theirs.Go(func() {
		d, err := stopwatch(peer.NewMutex("theirs", redsync.WithExpiry(ttl)).Lock)
		t.Logf("redsync: %v after %v", brief(err), round(d))
	})
	l := r.lock(mutexOf(t, c, "ours"))
	d := time.Since(start)
	if d < ttl {
		t.Errorf("locked after %v although another holds it for %v", d, ttl)
	}
	t.Logf("redlock: locked %v after the other's TTL of %v", round(d-ttl), ttl)
	r.unlock(l)
}
