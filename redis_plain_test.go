// Locks without a counter on real servers that run no scripts.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/redlocktest"
)

// noScripts are the ways in which a server may refuse to run scripts.
var noScripts = map[string]func(t *testing.T, n int) *fleet{
	"no such command": func(t *testing.T, n int) *fleet {
		t.Helper()
		return startFleet(t, n, redisproc.Args("--rename-command", "EVALSHA", "", "--rename-command", "EVAL", ""))
	},
	"not allowed": func(t *testing.T, n int) *fleet {
		t.Helper()
		f := startFleet(t, n)
		for _, s := range f.servers {
			ask(t, s, "ACL", "SETUSER", "default", "-@scripting")
		}
		return f
	},
}

// eachScriptless runs a test on three servers of each kind.
func eachScriptless(t *testing.T, test func(t *testing.T, f *fleet)) {
	t.Parallel()
	for name, start := range noScripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, 3))
		})
	}
}

// TestPlainLease takes a lock through its life, with a contender about.
func TestPlainLease(t *testing.T) {
	eachScriptless(t, func(t *testing.T, f *fleet) {
		m, rival := f.mutex("m", redlock.WithoutFencing()), f.mutex("m", redlock.WithoutFencing())
		l := mustLock(t, m)
		if l.FencingToken() != 0 {
			t.Errorf("the fencing token is %d", l.FencingToken())
		}
		f.settled(3)
		_, err := rival.TryLock(t.Context())
		is(t, err, redlock.ErrTaken)

		for _, s := range f.servers {
			ask(t, s, "PEXPIRE", "lock:m", "5000")
		}
		noErr(t, l.Extend(t.Context()))
		if !eventually(quick, func() bool {
			long := 0
			for _, s := range f.servers {
				if left := ask(t, s, "PTTL", "lock:m"); len(left) == 4 && left > "6000" || len(left) == 5 {
					long++
				}
			}
			return long == 3
		}) {
			t.Error("an Extend did not renew the lock everywhere")
		}

		mustUnlock(t, l)
		f.noLocks(quick)
		mustUnlock(t, mustLock(t, rival))
	})
}

// TestPlainRenewal: many leases are renewed although they cannot travel together,
// and nodes that lost a key get it back.
func TestPlainRenewal(t *testing.T) {
	eachScriptless(t, func(t *testing.T, f *fleet) {
		c := f.open(redlock.WithoutFencing(), redlock.WithTTL(2*time.Second))
		leases := make([]*redlock.Lease, 40)
		for i := range leases {
			leases[i] = mustLock(t, mutexOf(t, c, fmt.Sprint(i)))
		}
		ask(t, f.servers[1], "DEL", "lock:0", "lock:1", "lock:2")
		time.Sleep(5 * time.Second) // on servers, whose clocks are real
		for i, l := range leases {
			if err := l.Err(); err != nil {
				t.Errorf("lease %d ended: %v", i, err)
			}
		}
		if n := len(lockKeys(t, f.servers[1])); n != len(leases) {
			t.Errorf("%d locks are on the node that lost three of %d", n, len(leases))
		}
		noErr(t, c.Close())
		f.noLocks(quick)
	})
}

// TestPlainForeign: what another holds is neither renewed nor deleted, and a lock
// that has gone is not made anew by Extend.
func TestPlainForeign(t *testing.T) {
	eachScriptless(t, func(t *testing.T, f *fleet) {
		l := mustLock(t, f.mutex("m", redlock.WithoutFencing(), redlock.WithoutRenewal()))
		f.settled(3)
		for _, s := range f.servers[:2] {
			ask(t, s, "SET", "lock:m", "foreign", "PX", "7000")
		}
		ask(t, f.servers[2], "DEL", "lock:m")
		if err := l.Extend(t.Context()); !errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrNotHeld) {
			t.Errorf("Extend says %v", err) // by which answers were first
		}
		is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
		for _, s := range f.servers[:2] {
			if got := ask(t, s, "GET", "lock:m"); got != "foreign" {
				t.Errorf("the other's lock is now %q", got)
			}
			if left := ask(t, s, "PTTL", "lock:m"); left > "7000" || len(left) > 4 {
				t.Errorf("the other's lock lives %s ms", left)
			}
		}
		if keys := f.servers[2].Keys(); len(keys) > 0 {
			t.Errorf("there is %q where the lock had gone", keys)
		}
	})
}

// TestPlainNeverFenced: for a lock with a counter a server without scripts is a
// node that refuses for good.
func TestPlainNeverFenced(t *testing.T) {
	eachScriptless(t, func(t *testing.T, f *fleet) {
		c := f.open()
		plain := mustLock(t, mutexOf(t, c, "plain", redlock.WithoutFencing()))
		defer mustUnlock(t, plain)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := mutexOf(t, c, "fenced").Lock(ctx)
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, context.DeadlineExceeded)
		for _, s := range f.servers {
			for _, key := range s.Keys() {
				if key != "lock:plain" {
					t.Errorf("%q was left", key)
				}
			}
		}
	})
}

// plainNode is a node without scripts, and a client of its server.
func plainNode(t *testing.T) (redlock.Node, *redis.Client, *redisproc.Server) {
	t.Helper()
	s := noScripts["no such command"](t, 1).servers[0]
	c := dial(t, s.Addr(), nil)
	return redlock.NewRedisNode("plain", c), c, s
}

func plainClaim(value string) *redlock.Claim {
	return &redlock.Claim{Lock: "k", Tombstone: "tomb:" + value, Value: value, TTL: time.Minute}
}

// TestPlainAgainstMemory: without tombstones, plain commands answer as the
// scripts do.
func TestPlainAgainstMemory(t *testing.T) {
	t.Parallel()
	real, client, _ := plainNode(t)
	memory := redlocktest.New(1).Nodes()[0]
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	seen := make(map[string]int)
	for range 2000 {
		c := plainClaim(string("abc"[random.IntN(3)]))
		c.TTL = time.Duration(1+random.IntN(60)) * time.Minute // nothing expires
		step := []string{"acquire", "acquire", "extend", "release", "rearm"}[random.IntN(5)]
		ask := func(n redlock.Node) (r redlock.Reply, err error) {
			switch step {
			case "acquire":
				return n.Acquire(t.Context(), c)
			case "rearm":
				return n.Rearm(t.Context(), c, 0)
			case "extend":
				return n.Extend(t.Context(), c)
			}
			return n.Release(t.Context(), c, false)
		}
		got, err := ask(real)
		noErr(t, err)
		want, err := ask(memory)
		noErr(t, err)
		if got.Verdict != want.Verdict || (got.Remaining-want.Remaining).Abs() > 10*time.Second {
			t.Fatalf("%s %s: %+v, in memory %+v", step, c.Value, got, want)
		}
		seen[fmt.Sprint(step, got.Verdict)]++
	}
	if len(seen) != 10 {
		t.Errorf("this was no test: only %v came about", seen)
	}

	noErr(t, client.Set(t.Context(), "k", "a", time.Minute).Err())
	fresh := redlock.NewRedisNode("fresh", client).(redlock.BatchExtender) // does not know yet that there are no scripts
	for range 2 {
		replies, errs := fresh.ExtendAll(t.Context(), []*redlock.Claim{plainClaim("b"), plainClaim("a")})
		noErr(t, errors.Join(errs...))
		if replies[0].Verdict != redlock.Taken || replies[1].Verdict != redlock.Granted {
			t.Errorf("renewed together: %+v", replies)
		}
	}

	noErr(t, client.Del(t.Context(), "k").Err())
	noErr(t, client.RPush(t.Context(), "k", "precious").Err())
	for name, ask := range map[string]func() (redlock.Reply, error){
		"acquire": func() (redlock.Reply, error) { return real.Acquire(t.Context(), plainClaim("a")) },
		"extend":  func() (redlock.Reply, error) { return real.Extend(t.Context(), plainClaim("a")) },
		"release": func() (redlock.Reply, error) { return real.Release(t.Context(), plainClaim("a"), false) },
	} {
		if r, err := ask(); r.Verdict != redlock.Forbidden || !redis.HasErrorPrefix(err, "WRONGTYPE") {
			t.Errorf("%s of a list: %+v, %v", name, r, err)
		}
	}
}

// A meddler touches the lock when a transaction is on its way, after the lock was
// looked at.
type meddler struct {
	spy
	touch func()
}

func (m *meddler) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" && m.touch != nil {
			m.touch()
		}
		return next(ctx, cmds)
	}
}

// TestPlainChanged: a lock that changes hands after it was looked at is neither
// deleted nor renewed.
func TestPlainChanged(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(redlock.Node) (redlock.Reply, error){
		"extend":  func(n redlock.Node) (redlock.Reply, error) { return n.Extend(t.Context(), plainClaim("a")) },
		"release": func(n redlock.Node) (redlock.Reply, error) { return n.Release(t.Context(), plainClaim("a"), false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, client, s := plainNode(t)
			other := dial(t, s.Addr(), nil)
			m := &meddler{}
			client.AddHook(m)
			if r, err := n.Acquire(t.Context(), plainClaim("a")); err != nil || r.Verdict != redlock.Granted {
				t.Fatalf("%+v, %v", r, err)
			}
			noErr(t, other.PExpire(t.Context(), "k", time.Second).Err())
			m.touch = func() { noErr(t, other.Set(t.Context(), "k", "b", 30*time.Second).Err()) }
			if r, err := ask(n); r.Verdict != redlock.Rejected || err == nil {
				t.Errorf("%+v, %v", r, err)
			}
			m.touch = nil
			if got, left := other.Get(t.Context(), "k").Val(), other.PTTL(t.Context(), "k").Val(); got != "b" || left > 30*time.Second {
				t.Errorf("the other's lock is %q for %v", got, left)
			}
			if r, err := ask(n); r.Verdict != redlock.Taken || err != nil {
				t.Errorf("the second time: %+v, %v", r, err)
			}
		})
	}
}

// TestPlainLostReply: a SET whose reply is lost is sent once, its outcome is
// unknown, and asked again the lock is the claim's own. What could not be sent is
// known not to have been.
func TestPlainLostReply(t *testing.T) {
	t.Parallel()
	s := noScripts["no such command"](t, 1).servers[0]
	p := netfault.New(t, s.Addr())
	n := redlock.NewRedisNode("plain", dial(t, p.Addr(), nil))
	if r, err := n.Acquire(t.Context(), plainClaim("a")); err != nil || r.Verdict != redlock.Granted { // learns that there are no scripts
		t.Fatalf("%+v, %v", r, err)
	}
	ask(t, s, "DEL", "k")
	sets := calls(t, s, "set")
	p.CutReplyAfter(0)
	if r, err := n.Acquire(t.Context(), plainClaim("a")); err == nil || r.Verdict != redlock.Unknown {
		t.Errorf("with its reply lost: %+v, %v", r, err)
	}
	if got := calls(t, s, "set") - sets; got != 1 {
		t.Errorf("the SET was sent %d times", got)
	}
	if r, err := n.Acquire(t.Context(), plainClaim("a")); err != nil || r.Verdict != redlock.Granted {
		t.Errorf("asked again: %+v, %v", r, err)
	}
	noErr(t, p.Refuse(true))
	for name, ask := range map[string]func() (redlock.Reply, error){
		"acquire": func() (redlock.Reply, error) { return n.Acquire(t.Context(), plainClaim("b")) },
		"extend":  func() (redlock.Reply, error) { return n.Extend(t.Context(), plainClaim("b")) },
		"release": func() (redlock.Reply, error) { return n.Release(t.Context(), plainClaim("b"), false) },
	} {
		if r, err := ask(); r.Verdict != redlock.Unsent || err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("%s of a server that refuses: %+v, %v", name, r, err)
		}
	}
}

// A splitter sends what goes in one trip in two, with a pause between them.
type splitter struct {
	spy
	pause time.Duration
	at    int // how many commands go before it
}

func (s *splitter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		_ = next(ctx, cmds[:s.at])
		time.Sleep(s.pause)
		return next(ctx, cmds[s.at:])
	}
}

// TestPlainExpires: a lock that expires after its value was read, and before its
// life is, is no lock without an end.
func TestPlainExpires(t *testing.T) {
	t.Parallel()
	n, client, s := plainNode(t)
	if r, err := n.Acquire(t.Context(), plainClaim("a")); err != nil || r.Verdict != redlock.Granted { // learns that there are no scripts
		t.Fatalf("%+v, %v", r, err)
	}
	split := &splitter{pause: 200 * time.Millisecond}
	client.AddHook(split)

	ask(t, s, "SET", "k", "b", "PX", "100")
	split.at = 2 // SET NX, GET
	if r, err := n.Acquire(t.Context(), plainClaim("a")); err != nil || r.Verdict != redlock.Absent || r.Remaining != 0 {
		t.Errorf("an acquire: %+v, %v", r, err)
	}
	ask(t, s, "SET", "k", "b", "PX", "100")
	split.at = 1 // GET
	if state, err := n.(redlock.Inspector).Inspect(t.Context(), "k", ""); err != nil || state != (redlock.LockState{}) {
		t.Errorf("an inspection: %+v, %v", state, err)
	}
}
