// What a client that died has left on some nodes.

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

var errDead = errors.New("the client is dead")

// A mortal connection sends nothing any more once its client is dead.
type mortal struct {
	net.Conn
	dead *atomic.Bool
}

func (m mortal) Write(b []byte) (int, error) {
	if m.dead.Load() {
		return 0, errDead
	}
	return m.Conn.Write(b)
}

// die has a client take the lock on the first nodes, and die when it has it there,
// while it waits for the others. It returns what it has left on each.
func (f *fleet) die(name string, ttl time.Duration, on int) map[int]string {
	f.Helper()
	if on == 0 {
		return nil
	}
	var dead atomic.Bool
	var grants atomic.Int64
	var clients []redis.UniversalClient
	for i := range f.nodes {
		c := redis.NewClient(&redis.Options{Addr: f.nodes[i].Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch {
			case dead.Load():
				return nil, errDead
			case i >= on: // is silent
				<-ctx.Done()
				return nil, ctx.Err()
			}
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, addr)
			return mortal{conn, &dead}, err
		}})
		f.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	c, err := redlock.New(redlock.Redis(clients...), redlock.WithTTL(ttl), redlock.WithoutRenewal(), redlock.WithNodeTimeout(ttl/4),
		redlock.WithTrace(&redlock.Trace{NodeDone: func(d redlock.NodeDone) {
			if d.Op == "acquire" && d.Verdict == redlock.Granted && grants.Add(1) == int64(on) {
				dead.Store(true)
			}
		}}))
	if err != nil {
		f.Fatal(err)
	}
	_, _ = mutexOf(f, c, name).TryLock(f.Context())
	left := make(map[int]string)
	for i, eye := range f.eyes {
		value, err := eye.Get(f.Context(), "lock:"+name).Result()
		if (err == nil) != (i < on) {
			f.Fatalf("node %d: %q, %v; the client was to die with the lock on %d nodes", i, value, err, on)
		}
		if err == nil {
			left[i] = value
		}
	}
	go func() { _ = c.Close() }() // it has nobody to say so to
	return left
}

// TestDockerLeftover: leftovers on a minority of five keep nobody from locking, not
// even once, and are not touched; on a majority they do until they expire.
func TestDockerLeftover(t *testing.T) {
	t.Parallel()
	numbers := []int{0, 1, 2, 3}
	if testing.Short() {
		numbers = []int{2}
	}
	const ttl = 4 * time.Second
	f := startFleet(t, dockernode.Five(none)...)
	for _, guard := range []bool{false, true} {
		opts := []redlock.Option{redlock.WithTTL(ttl)}
		if guard {
			opts = append(opts, redlock.WithCrashGuard(guardTime), redlock.WithClockBound(3*time.Second))
		}
		c := f.open(opts...)
		f.warm(c)
		for _, on := range numbers {
			t.Run(fmt.Sprintf("on %d, guard=%t", on, guard), func(t *testing.T) {
				f := f.in(t)
				name := strings.ReplaceAll(t.Name(), " ", "-")
				m := mutexOf(t, c, name)
				before := f.lock(m)
				f.unlock(before)
				f.free(name, quick)

				left := f.die(name, ttl, on)
				died := time.Now()
				if on >= 3 {
					_, err := m.TryLock(t.Context())
					is(t, err, redlock.ErrTaken)
				}
				l := f.lock(m)
				took := time.Since(died)
				t.Logf("locked %v after a client had died; fencing tokens %d and %d", round(took), before.FencingToken(), l.FencingToken())
				if l.FencingToken() <= before.FencingToken() {
					t.Errorf("fencing token %d after %d", l.FencingToken(), before.FencingToken())
				}
				if on >= 3 {
					// It had died by a node timeout before that was noticed here.
					if took < ttl/2 || took > ttl+quick {
						t.Errorf("locked %v after a client had died, want %v at most", took, ttl)
					}
				} else if took > quick {
					t.Errorf("locked only %v after a client had died", took)
				}
				f.unlock(l)
				for i, value := range left {
					got := f.eyes[i].Get(t.Context(), "lock:"+name).Val()
					if on < 3 && got != value && got != "" { // of three the new lease may be on its way out
						t.Errorf("node %d has %q in place of what was left, %q", i, got, value)
					}
				}
				f.free(name, ttl+quick) // by itself
			})
		}
	}
}
