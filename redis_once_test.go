// Every command is sent once, and what was not sent is not cleaned up after.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/script"
)

// A spy is a hook of a user.
type spy struct{ commands atomic.Int64 }

func (*spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer s.count(cmd)
		return next(ctx, cmd)
	}
}

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer s.count(cmds...)
		return next(ctx, cmds)
	}
}

// count leaves out what was called off, in whose place something else is sent.
func (s *spy) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if n := cmd.Name(); (n == "evalsha" || n == "eval") && cmd.Args()[0] != "ping" {
			s.commands.Add(1)
		}
	}
}

// TestRedisHooks: what a user has hooked into a client sees each command once, alone
// or in a pipeline with others, if the client's own read timeout is within the node
// timeout. Otherwise the library works on a clone of the client with a shorter one, and
// hooks stay behind.
func TestRedisHooks(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	var spies []*spy
	var all []redis.UniversalClient
	for i := range f.servers {
		c := dial(t, f.addr(i), func(o *redis.Options) { o.ReadTimeout = 900 * time.Millisecond })
		s := new(spy)
		c.AddHook(s)
		spies, all = append(spies, s), append(all, c)
	}
	c := openClient(t, redlock.Redis(all...))
	for i := range 10 {
		l := mustLock(t, mutexOf(t, c, fmt.Sprint(i)))
		_ = l.Extend(t.Context()) // what comes of it does not matter here
		_ = l.Unlock(t.Context())
	}
	_ = c.Close()
	for i, s := range spies {
		if seen, sent := int(s.commands.Load()), scripts(t, f.servers[i]); seen != sent || sent < 10 {
			t.Errorf("node %d: the hook saw %d commands, the server %d", i, seen, sent)
		}
	}
}

// TestRedisSentOnce loses the replies to all commands of one kind. A default
// client would send each up to three times more.
func TestRedisSentOnce(t *testing.T) {
	t.Parallel()
	kinds := map[string]*script.Script{"acquire": &script.Acquire, "extend": &script.Extend, "release": &script.Release}
	for kind, s := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := startProxied(t, 3)
			c := f.open(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(2*time.Second), redlock.WithoutRenewal())
			f.warm(c)
			l := mustLock(t, mutexOf(t, c, "m"))
			f.settled(3)
			match := func(b []byte) bool { return runs(b, s) }
			var sent [3]atomic.Int64
			for i, p := range f.proxies {
				p.DropReplyTo(match)
				p.Tap(func(_ int, dir netfault.Direction, b []byte) {
					if dir == netfault.ToServer && match(b) {
						sent[i].Add(1)
					}
				})
			}
			var err error
			switch kind {
			case "acquire":
				_, err = mutexOf(t, c, "other").TryLock(t.Context())
			case "extend":
				err = l.Extend(t.Context())
			case "release":
				// Each is repeated by us, not before 10 ms have passed, until there
				// is an answer.
				for _, p := range f.proxies {
					p.DropReplyTo(netfault.First(1, match))
				}
				err = l.Unlock(t.Context())
				f.noLocks(quick)
			}
			is(t, err, redlock.ErrNoQuorum)
			time.Sleep(200 * time.Millisecond) // a driver's retries come within that
			want := int64(1)
			if kind == "release" {
				want = 2
			}
			for i := range sent {
				if n := sent[i].Load(); n > want || n < want && kind != "acquire" {
					t.Errorf("node %d was sent %d commands, want %d", i, n, want)
				}
			}
		})
	}
}

// TestRedisUnsent: a node that was never reached has nothing to be cleaned up. It
// costs no retries, and works once it is there.
func TestRedisUnsent(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(p *netfault.Proxy, on bool){
		"refused": func(p *netfault.Proxy, on bool) { p.Refuse(on) },
		"silent":  func(p *netfault.Proxy, on bool) { p.Blackhole(on) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const nodeTimeout = 300 * time.Millisecond
			f := startProxied(t, 3)
			var dropped, releases atomic.Int64
			c := f.open(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(nodeTimeout),
				redlock.WithTrace(&redlock.Trace{
					CleanupDropped: func(redlock.CleanupDropped) { dropped.Add(1) },
					NodeDone: func(d redlock.NodeDone) {
						if d.Op == "release" && d.Node == f.addr(0) && d.Err != nil {
							releases.Add(1)
						}
					},
				}))
			away(f.proxies[0], true)
			for i := range 5 {
				_ = mustLock(t, mutexOf(t, c, fmt.Sprint(i))).Unlock(t.Context())
			}
			time.Sleep(4 * nodeTimeout)
			before := releases.Load() // while it was not known that nothing was sent
			time.Sleep(2 * nodeTimeout)
			if n := releases.Load() - before; n > 0 {
				t.Errorf("%d releases were repeated, of commands that were never sent", n)
			}
			away(f.proxies[0], false)
			time.Sleep(2 * nodeTimeout)
			if n := scripts(t, f.servers[0]); n != 0 {
				t.Errorf("the server was sent %d commands of attempts that it never took part in", n)
			}
			if n := dropped.Load(); n > 0 {
				t.Errorf("%d releases were given up, of commands that were never sent", n)
			}
			// go-redis looks once a second whether a server that refused 20
			// times is back.
			if !eventually(10*time.Second, func() bool {
				l := mustLock(t, mutexOf(t, c, "later"))
				defer mustUnlock(t, l)
				return eventually(2*nodeTimeout, func() bool { return len(lockKeys(t, f.servers[0])) == 1 })
			}) {
				t.Error("the node is back and takes no part")
			}
			f.noLocks(10 * time.Second)
		})
	}
}

// TestRedisSameServer: two nodes that lead to one server have one vote.
func TestRedisSameServer(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 2)
	nodes := redlock.Redis(dial(t, f.addr(0), nil), dial(t, f.addr(0), nil), dial(t, f.addr(1), nil))
	m := mutexOf(t, openClient(t, nodes, redlock.WithNodeTimeout(500*time.Millisecond)), "m")
	mustUnlock(t, mustLock(t, m))
	f.servers[1].Kill()
	l, err := m.TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
	if l != nil {
		t.Error("one server of two has given a lock on its own")
	}
	if !eventually(quick, func() bool { return len(lockKeys(t, f.servers[0])) == 0 }) {
		t.Error("the lock was left")
	}
}

// TestRedisDown: with a quorum refused, Lock says so, and goes on until it is back.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	c := f.open()
	f.servers[0].Kill()
	f.servers[1].Kill()
	_, err := mutexOf(t, c, "m").TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
	isNot(t, err, context.DeadlineExceeded, redlock.ErrTaken)
	for _, e := range nodeErrors(t, err) {
		if _, ok := errors.AsType[net.Error](e); !ok {
			t.Errorf("%v wraps no network error", e)
		}
	}
	locked := make(chan error)
	go func() {
		l, err := mutexOf(t, c, "m").Lock(t.Context())
		if err == nil {
			err = l.Unlock(t.Context())
		}
		locked <- err
	}()
	time.Sleep(200 * time.Millisecond)
	f.servers[0].Restart()
	select {
	case err := <-locked:
		noErr(t, err)
	case <-time.After(20 * time.Second):
		t.Error("Lock does not notice that the quorum is back")
	}
}
