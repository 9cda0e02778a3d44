// Nodes of every kind that go-redis can reach, on real servers: the same body for each.

package integration_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

const (
	kindTTL   = 2 * time.Second
	guardTime = 4100 * time.Millisecond // the least that goes with the least clock bound
)

// TestKind: each kind of client, on five nodes or three.
func TestKind(t *testing.T) {
	t.Parallel()
	replicas := map[string]string{"sentinel": "has replicas (1)"} // of which Check warns
	for kind, start := range map[string]func(*testing.T) *farm{
		"RESP2": func(t *testing.T) *farm { return startFarm(t, 3, func(o *redis.Options) { o.Protocol = 2 }) },
		"RESP3": func(t *testing.T) *farm { return startFarm(t, 3, func(o *redis.Options) { o.Protocol = 3 }) },
		"unix":  startUnix,
		"TLS": func(t *testing.T) *farm {
			a := newAuthority(t)
			return startTLS(t, a, "no", &tls.Config{RootCAs: a.pool})
		},
		"TLS with client certificates": func(t *testing.T) *farm {
			a := newAuthority(t)
			return startTLS(t, a, "yes", &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageClientAuth)}})
		},
		"cluster": func(t *testing.T) *farm { return startCluster(t) },
		"sentinel": func(t *testing.T) *farm {
			f, _ := startSentinelFarm(t, 5, time.Minute)
			return f
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			f.testKind(nil, replicas[kind])
			f.testCalls()
		})
	}
}

// awkward are names that hash tags would be misread in.
var awkward = []string{"{a}b", "a}b", "}{", "{}", "{}{x}", "a{", "{{a}}", "plain"}

// hourly is a backoff after which nobody would come.
func hourly(int, float64) time.Duration { return time.Hour }

// handOver lets one release what another waits for, who is called.
func handOver(t testing.TB, holder, waiter *redlock.Mutex) {
	t.Helper()
	held, err := holder.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got time.Time
	done := make(chan error)
	go func() {
		l, err := waiter.Lock(t.Context())
		if got = time.Now(); err == nil {
			err = l.Unlock(t.Context())
		}
		done <- err
	}()
	time.Sleep(500 * time.Millisecond) // it looks every three seconds, or when the lock would expire
	start := time.Now()
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if d := got.Sub(start); d > 1500*time.Millisecond {
		t.Errorf("it took %v: nobody has called", d)
	}
}

// testCalls is what every kind of node that runs scripts must do for those who wait.
func (f *farm) testCalls(opts ...redlock.Option) {
	f.Helper()
	opts = append(opts, redlock.WithBackoff(hourly), redlock.WithTTL(2*kindTTL))
	holder, other := f.open(opts...), f.open(opts...)
	for _, name := range awkward {
		handOver(f, mutexOf(f, holder, name), mutexOf(f, other, name))
	}
}

// testKind is what every kind of node must do. fine are parts of what Check may say.
func (f *farm) testKind(opts []redlock.Option, fine ...string) {
	f.Helper()
	var renewed atomic.Int64
	opts = append(opts, redlock.WithTTL(kindTTL))
	holder := f.open(append(opts, redlock.WithTrace(&redlock.Trace{Renewal: func(r redlock.Renewal) {
		if r.Err == nil {
			renewed.Add(1)
		}
	}}))...)
	other := f.open(opts...)
	if said := f.findings(holder, fine...); len(said) > 0 {
		f.Errorf("Check: %q", said)
	}

	l := f.lock(mutexOf(f, holder, "a"))
	f.settled(l, len(f.sites))
	if _, err := mutexOf(f, other, "a").TryLock(f.Context()); err == nil {
		f.Fatal("two hold the lock")
	} else {
		is(f, err, redlock.ErrTaken)
	}
	before := l.Deadline()
	if err := l.Extend(f.Context()); err != nil || !l.Deadline().After(before) {
		f.Errorf("Extend: %v, and moves the deadline by %v", err, l.Deadline().Sub(before))
	}

	hold := 3 * kindTTL
	if testing.Short() {
		hold = 3 * kindTTL / 2
	}
	renewed.Store(0)
	for start := time.Now(); time.Since(start) < hold; time.Sleep(10 * time.Millisecond) {
		if err := l.Err(); err != nil {
			f.Fatalf("lost after %v: %v", time.Since(start), err)
		}
	}
	if n := renewed.Load(); n < int64(hold/kindTTL) {
		f.Errorf("%d renewals in %v", n, hold)
	}
	in, err := other.Inspect(f.Context(), "a")
	if err != nil || in.Holding != redlock.Held || in.Token != l.Token() || in.FencingToken != l.FencingToken() {
		f.Errorf("Inspect: %+v, %v of a lease with %q, %d", in, err, l.Token(), l.FencingToken())
	}
	for i, n := range in.Nodes {
		if n.Err != nil || n.Token != l.Token() {
			f.Errorf("Inspect of node %d: %+v", i, n)
		}
	}
	f.unlock(l)
	f.free("a")
	next := f.lock(mutexOf(f, other, "a"))
	if l.FencingToken() > 0 && next.FencingToken() <= l.FencingToken() || (l.FencingToken() > 0) != (next.FencingToken() > 0) {
		f.Errorf("fencing token %d after %d", next.FencingToken(), l.FencingToken())
	}
	f.settled(next, len(f.sites))
	f.unlock(next)
	for i, name := range awkward {
		l := f.lock(mutexOf(f, holder, fmt.Sprint(name, i)))
		f.settled(l, len(f.sites)) // all keys of a lock are in one slot, or a cluster refuses
		f.unlock(l)
		f.free(l.Name())
	}
	f.free("a")
	f.noKeys()
}
