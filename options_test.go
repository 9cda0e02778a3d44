// What New and NewMutex refuse, before any I/O, and what holds without options.

package redlock_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// unreachable is a client that fails the test if it connects. It has nothing to
// close.
func unreachable(t testing.TB, addr string) *redis.Client {
	t.Helper()
	return redis.NewClient(&redis.Options{Addr: addr, Dialer: func(context.Context, string, string) (net.Conn, error) {
		t.Errorf("I/O: a connection to %s", addr)
		return nil, errors.New("no I/O")
	}})
}

// refuses checks that err names all of the faults, in one line.
func refuses(t testing.TB, err error, faults ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one with %q", faults)
		return
	}
	for _, f := range faults {
		if !strings.Contains(err.Error(), f) {
			t.Errorf("error %v; want it to say %q", err, f)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

// asItIs is an option that changes nothing.
var asItIs = redlock.WithKeyPrefix("lock:")

// TestOptionsSaidOnce: one fault is one part of the error, and durations in it are
// written as in the documentation.
func TestOptionsSaidOnce(t *testing.T) {
	nodes := redlocktest.New(3).Nodes()
	for want, o := range map[string]redlock.Option{
		"WithTTL(1ns): must be from 10ms to 24h":             redlock.WithTTL(1),
		"WithTTL(24h1m): must be from 10ms to 24h":           redlock.WithTTL(24*time.Hour + time.Minute),
		"WithClockBound(1h0m1s): must be from 3s to 1h":      redlock.WithClockBound(time.Hour + time.Second),
		"WithClockBound(2h): must be from 3s to 1h":          redlock.WithClockBound(2 * time.Hour),
		"WithNodeTimeout(10m): must be below the TTL of 10s": redlock.WithNodeTimeout(10 * time.Minute),
		"Option{}: is none; use a function that returns one": {},
	} {
		client, err := redlock.New(nodes, o)
		if want = "redlock: New: " + want; err == nil || err.Error() != want {
			t.Errorf("%v\nwant\n%s", err, want)
		}
		if client != nil {
			t.Error("a client and an error")
		}
	}
	client, err := redlock.New(nodes)
	noErr(t, err)
	_, err = client.NewMutex("x", redlock.Option{}, asItIs)
	refuses(t, err, "NewMutex: Option{}")
	noErr(t, client.Close())
}

func TestOptionsRefused(t *testing.T) {
	const ms = time.Millisecond
	nodes := redlock.Redis(unreachable(t, "a:1"), unreachable(t, "b:1"), unreachable(t, "c:1"))
	for _, c := range []struct {
		name string
		opts []redlock.Option
		want []string // parts of the error
	}{
		{"no TTL", []redlock.Option{redlock.WithTTL(0)}, []string{"WithTTL(0s)"}},
		{"negative TTL", []redlock.Option{redlock.WithTTL(-time.Second)}, []string{"WithTTL(-1s)"}},
		{"smallest TTL", []redlock.Option{redlock.WithTTL(math.MinInt64)}, []string{"WithTTL("}},
		{"part of a millisecond", []redlock.Option{redlock.WithTTL(10*ms + 1)}, []string{"WithTTL(10.000001ms)", "whole milliseconds"}},
		{"half a millisecond too much", []redlock.Option{redlock.WithTTL(10500 * time.Microsecond)}, []string{"WithTTL(10.5ms)", "whole milliseconds"}},
		{"1.5 ms", []redlock.Option{redlock.WithTTL(1500 * time.Microsecond)}, []string{"WithTTL(1.5ms)"}},
		{"9 ms", []redlock.Option{redlock.WithTTL(9 * ms)}, []string{"WithTTL(9ms)", "10ms"}},
		{"25 h", []redlock.Option{redlock.WithTTL(25 * time.Hour)}, []string{"WithTTL(25h): must be from 10ms to 24h"}},
		{"just above 24 h", []redlock.Option{redlock.WithTTL(24*time.Hour + ms)}, []string{"WithTTL(24h0m0.001s)"}},
		{"largest TTL", []redlock.Option{redlock.WithTTL(forever)}, []string{"WithTTL("}},

		{"factor 1", []redlock.Option{redlock.WithDrift(drift(1, 0))}, []string{"WithDrift(", "1"}},
		{"factor above 1", []redlock.Option{redlock.WithDrift(drift(1.5, 0))}, []string{"WithDrift(", "1.5"}},
		{"infinite factor", []redlock.Option{redlock.WithDrift(drift(math.Inf(1), 0))}, []string{"WithDrift(", "+Inf"}},
		{"factor NaN", []redlock.Option{redlock.WithDrift(drift(math.NaN(), 0))}, []string{"WithDrift(", "NaN"}},
		{"negative factor", []redlock.Option{redlock.WithDrift(drift(-0.01, 0))}, []string{"WithDrift(", "-0.01"}},
		{"negative floor", []redlock.Option{redlock.WithDrift(drift(0, -ms))}, []string{"WithDrift(", "-1ms"}},
		{"floor eats the TTL", []redlock.Option{redlock.WithTTL(time.Second), redlock.WithDrift(drift(0, time.Second))}, []string{"WithDrift(", "1s"}},
		{"drift eats the TTL", []redlock.Option{redlock.WithTTL(10 * ms), redlock.WithDrift(drift(0.8, 2*ms))}, []string{"WithDrift(", "0.8", "10ms"}},

		{"no node timeout", []redlock.Option{redlock.WithNodeTimeout(0)}, []string{"WithNodeTimeout(0s)"}},
		{"negative node timeout", []redlock.Option{redlock.WithNodeTimeout(-1)}, []string{"WithNodeTimeout(-1ns)"}},
		{"node timeout as long as the TTL", []redlock.Option{redlock.WithTTL(time.Second), redlock.WithNodeTimeout(time.Second)}, []string{"WithNodeTimeout(1s)", "TTL of 1s"}},
		{"node timeout longer than the default TTL", []redlock.Option{redlock.WithNodeTimeout(time.Minute)}, []string{"WithNodeTimeout(1m)", "TTL of 10s"}},

		{"negative minimum", []redlock.Option{redlock.WithMinValidity(-1)}, []string{"WithMinValidity(-1ns)"}},
		{"minimum that cannot be met", []redlock.Option{redlock.WithMinValidity(9898 * ms)}, []string{"WithMinValidity(9.898s)"}},
		{"renewal at once", []redlock.Option{redlock.WithRenewal(0)}, []string{"WithRenewal(0s)"}},
		{"negative renewal", []redlock.Option{redlock.WithRenewal(-time.Second)}, []string{"WithRenewal(-1s)"}},
		{"renewal too late for a second try", []redlock.Option{redlock.WithRenewal(4949 * ms)}, []string{"WithRenewal(4.949s)"}},
		{"no time to hold", []redlock.Option{redlock.WithMaxHold(0)}, []string{"WithMaxHold(0s)"}},
		{"no time that is left", []redlock.Option{redlock.WithMaxHold(time.Second), redlock.WithMinValidity(time.Second)}, []string{"WithMaxHold(1s)", "WithMinValidity(1s)"}},
		{"negative time to hold", []redlock.Option{redlock.WithMaxHold(-1)}, []string{"WithMaxHold(-1ns)"}},
		{"no attempts", []redlock.Option{redlock.WithMaxAttempts(0)}, []string{"WithMaxAttempts(0)"}},
		{"negative attempts", []redlock.Option{redlock.WithMaxAttempts(-1)}, []string{"WithMaxAttempts(-1)"}},
		{"no backoff", []redlock.Option{redlock.WithBackoff(nil)}, []string{"WithBackoff(nil)"}},

		{"all at once", []redlock.Option{
			redlock.WithTTL(0), redlock.WithDrift(drift(math.NaN(), -1)), redlock.WithNodeTimeout(0), redlock.WithMinValidity(-1),
			redlock.WithMaxAttempts(0), redlock.WithBackoff(nil), redlock.WithRenewal(0), redlock.WithMaxHold(0),
		}, []string{
			"WithTTL(0s)", "NaN", "-1ns", "WithNodeTimeout(0s)", "WithMinValidity(-1ns)",
			"WithMaxAttempts(0)", "WithBackoff(nil)", "WithRenewal(0s)", "WithMaxHold(0s)",
		}},
		{"the later one counts", []redlock.Option{redlock.WithTTL(time.Second), redlock.WithTTL(0)}, []string{"WithTTL(0s)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := redlock.New(nodes, c.opts...)
			refuses(t, err, c.want...)
			if client != nil {
				t.Error("a client and an error")
			}
			client, err = redlock.New(nodes)
			noErr(t, err)
			m, err := client.NewMutex("x", c.opts...)
			refuses(t, err, c.want...)
			if m != nil {
				t.Error("a mutex and an error")
			}
			noErr(t, client.Close())
		})
	}
}

func TestOptionsOfClientOnly(t *testing.T) {
	client, err := redlock.New(redlocktest.New(1).Nodes())
	noErr(t, err)
	_, err = client.NewMutex("", redlock.WithClock(clock.System), redlock.WithTrace(nil), redlock.WithLogger(nil),
		redlock.WithFenceRetention(0), redlock.WithClockBound(time.Minute), redlock.WithTTL(0))
	refuses(t, err, "WithClock: ", "WithTrace: ", "WithLogger: ", "WithFenceRetention: ", "WithClockBound: ", "NewMutex", "WithTTL(0s)", `""`)
	_, err = redlock.New(redlocktest.New(1).Nodes(), redlock.WithClock(nil))
	refuses(t, err, "WithClock(nil)")
	_, err = redlock.New(redlocktest.New(1).Nodes(), redlock.WithFenceRetention(time.Hour), redlock.WithClockBound(time.Second))
	refuses(t, err, "WithFenceRetention(1h)", "WithClockBound(1s)")
	// These turn something off.
	client, err = redlock.New(redlocktest.New(1).Nodes(), redlock.WithTrace(nil), redlock.WithLogger(nil))
	noErr(t, err)
	mustUnlock(t, mustLock(t, mutexOf(t, client, "x")))
	noErr(t, client.Close())
}

// Every TTL in the documented range is one that the other defaults allow.
func TestOptionsLongestTTL(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, 24 * time.Hour} {
		client, err := redlock.New(redlocktest.New(1).Nodes())
		noErr(t, err)
		if _, err := client.NewMutex("x", redlock.WithTTL(ttl)); err != nil {
			t.Errorf("WithTTL(%v): %v", ttl, err)
		}
		if _, err := redlock.New(redlocktest.New(1).Nodes(), redlock.WithTTL(ttl)); err != nil {
			t.Errorf("WithTTL(%v): %v", ttl, err)
		}
	}
}

// A mutex has the client's options but for its own, and what is derived from
// them is derived again.
func TestOptionsOverride(t *testing.T) {
	nodes := redlocktest.New(1).Nodes()
	client, err := redlock.New(nodes, redlock.WithTTL(time.Second))
	noErr(t, err)
	if _, err = client.NewMutex("x", redlock.WithTTL(50*time.Millisecond)); err != nil {
		t.Errorf("a shorter TTL has a shorter node timeout and renewal by default: %v", err)
	}
	client, err = redlock.New(nodes, redlock.WithNodeTimeout(2*time.Second), redlock.WithRenewal(3*time.Second))
	noErr(t, err)
	_, err = client.NewMutex("x", redlock.WithTTL(time.Second))
	refuses(t, err, "WithNodeTimeout(2s)", "WithRenewal(3s)", "TTL of 1s")
	_, err = client.NewMutex("x", redlock.WithTTL(time.Second), redlock.WithNodeTimeout(100*time.Millisecond), redlock.WithoutRenewal())
	noErr(t, err)
}

func TestNodesRefused(t *testing.T) {
	a, b := unreachable(t, "a:1"), unreachable(t, "b:1")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"s": "a:1"}, HeartbeatFn: func(context.Context, *redis.Client) bool { return true }})
	t.Cleanup(func() { ring.Close() })
	pipeliner, err := a.AutoPipeline()
	noErr(t, err)
	t.Cleanup(func() { pipeliner.Close() })
	memory := redlocktest.New(2)
	for _, c := range []struct {
		name  string
		nodes []redlock.Node
		want  []string
	}{
		{"none", nil, []string{"nodes"}},
		{"none in a list", []redlock.Node{}, []string{"nodes"}},
		{"nil", []redlock.Node{memory.Node(0), nil}, []string{"nodes[1]", "nil"}},
		{"typed nil", []redlock.Node{(*redlocktest.Node)(nil)}, []string{"nodes[0]", "nil"}},
		{"nil client", redlock.Redis(nil), []string{"nodes[0]", "nil"}},
		{"typed nil client", redlock.Redis((*redis.Client)(nil)), []string{"nodes[0]", "nil", "*redis.Client"}},
		{"typed nil cluster client", redlock.Redis((*redis.ClusterClient)(nil)), []string{"nodes[0]", "nil", "*redis.ClusterClient"}},
		{"typed nil ring", redlock.Redis((*redis.Ring)(nil)), []string{"nodes[0]"}},
		{"ring", redlock.Redis(ring), []string{"nodes[0]", "Ring"}},
		{"pipeliner", redlock.Redis(pipeliner), []string{"nodes[0]", "AutoPipeliner"}},
		{"a client twice", redlock.Redis(a, b, a), []string{"nodes[2]", "same client", "nodes[0]"}},
		{"a client under two names", []redlock.Node{redlock.NewRedisNode("p", a), redlock.NewRedisNode("q", a)}, []string{"nodes[1]", `"q"`, "same client"}},
		{"a node twice", []redlock.Node{memory.Node(0), memory.Node(1), memory.Node(0)}, []string{"nodes[2]", "node-0"}},
		{"a name twice", []redlock.Node{redlock.NewRedisNode("p", a), redlock.NewRedisNode("p", b)}, []string{"nodes[1]", `"p"`, "nodes[0]"}},
		{"no name", []redlock.Node{redlock.NewRedisNode("", a)}, []string{"nodes[0]", "name"}},
		{"all at once", []redlock.Node{nil, redlock.NewRedisNode("", ring), memory.Node(0), memory.Node(0)}, []string{"nodes[0]", "nodes[1]", "Ring", "nodes[3]", "WithTTL(0s)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []redlock.Option
			if c.name == "all at once" {
				opts = append(opts, redlock.WithTTL(0))
			}
			client, err := redlock.New(c.nodes, opts...)
			refuses(t, err, c.want...)
			if client != nil {
				t.Error("a client and an error")
			}
		})
	}

	// Clients of equal or meaningless addresses are told apart.
	client, err := redlock.New(redlock.Redis(unreachable(t, "a:1"), unreachable(t, "a:1"), unreachable(t, "b:1")))
	noErr(t, err)
	noErr(t, client.Close())
}

func TestNamesRefused(t *testing.T) {
	client, err := redlock.New(redlock.Redis(unreachable(t, "a:1")))
	noErr(t, err)
	for _, c := range []struct{ prefix, name, want string }{
		{"lock:", "", `name ""`},
		{"", "", `name ""`},
		{"", "redlock:fence:{x}y", "redlock:fence:{"},
		{"", "redlock:fence:{", "redlock:fence:{"},
		{"", "redlock:tomb:{x}y", "redlock:tomb:{"},
		{"redlock:", "fence:{x", "redlock:fence:{"},
		{"redlock:tomb:{", "x", "redlock:tomb:{"},
	} {
		_, err := client.NewMutex(c.name, redlock.WithKeyPrefix(c.prefix))
		refuses(t, err, c.want)
	}
	_, err = client.NewMutex("redlock:fence:{"+strings.Repeat("long", 1000), redlock.WithKeyPrefix(""))
	refuses(t, err, "redlock:fence:{")
	if len(err.Error()) > 500 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	for _, name := range []string{"redlock:fence:{x", "x", " ", "\x00", "{}", "a}b", "}{", "\xff\xfe", strings.Repeat("x", 10_000)} {
		m, err := client.NewMutex(name)
		noErr(t, err)
		if m.Name() != name {
			t.Errorf("name %q became %q", name, m.Name())
		}
	}
	_, err = client.NewMutex("redlock:fenc", redlock.WithKeyPrefix(""))
	noErr(t, err)
}

// A context of nil is refused by every method, without I/O.
func TestNilContext(t *testing.T) {
	client, err := redlock.New(redlock.Redis(unreachable(t, "a:1")))
	noErr(t, err)
	m := mutexOf(t, client, "x")
	_, err = m.Lock(nil) //nolint:staticcheck // that is the point
	refuses(t, err, `lock "x"`, "context is nil")
	_, err = m.TryLock(nil) //nolint:staticcheck // likewise
	refuses(t, err, `lock "x"`, "context is nil")
	err = m.Do(nil, func(context.Context, *redlock.Lease) error { t.Error("fn was called"); return nil }) //nolint:staticcheck // likewise
	refuses(t, err, `"x"`, "context is nil")
	refuses(t, m.Do(t.Context(), nil), `do "x"`, "fn is nil")
	noErr(t, client.Close())

	c := redlocktest.New(1)
	client, err = redlock.New(c.Nodes())
	noErr(t, err)
	l := mustLock(t, mutexOf(t, client, "x"))
	before := len(c.Node(0).Calls())
	refuses(t, l.Extend(nil), `extend "x"`, "context is nil") //nolint:staticcheck // likewise
	refuses(t, l.Unlock(nil), `unlock "x"`, "context is nil") //nolint:staticcheck // likewise
	if n := len(c.Node(0).Calls()); n != before || l.Err() != nil {
		t.Errorf("%d calls; the lease is %v", n-before, l.Err())
	}
	noErr(t, l.Unlock(t.Context()))
	noErr(t, client.Close())
}

// Options are values: one slice serves many clients and mutexes at once.
func TestOptionsReused(t *testing.T) {
	opts := []redlock.Option{redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(time.Second), redlock.WithKeyPrefix("p:"), redlock.WithMaxAttempts(3)}
	nodes := redlocktest.New(3).Nodes()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			client, err := redlock.New(nodes, opts...)
			if err != nil {
				t.Error(err)
				return
			}
			var inner sync.WaitGroup
			for range 8 {
				inner.Go(func() {
					if _, err := client.NewMutex("x", opts...); err != nil {
						t.Error(err)
					}
				})
			}
			inner.Wait()
		})
	}
	wg.Wait()
}
