// The crash guard: what a restarted node may not vote for, and from when on.

package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const guardTime = 12 * time.Second

// TestCrashGuardDoubleHold: a lock rests on a bare quorum, one of whose nodes comes
// back empty within the TTL. Without the guard another client is granted it; with
// the guard it is not, until the holder's time is over.
func TestCrashGuardDoubleHold(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var opts []redlock.Option
			if guarded {
				opts = append(opts, redlock.WithCrashGuard(guardTime))
			}
			s := simulate(t, 5, opts...)
			for _, n := range s.all()[3:] {
				n.Refuse(true)
			}
			holder := s.lock("x", redlock.WithoutRenewal())
			synctest.Wait()
			s.heal()
			s.Node(2).Restart(false)
			other, err := redlock.New(s.Nodes(), opts...)
			noErr(t, err)
			defer func() { noErr(t, other.Close()) }()
			m := mutexOf(t, other, "x")
			_, err = m.TryLock(t.Context())
			if !guarded {
				if err != nil || holder.Err() != nil {
					t.Errorf("this is no test: without the guard there were no two holders: %v", err)
				}
				return
			}
			is(t, err, redlock.ErrNoQuorum)
			if !strings.Contains(err.Error(), "WithCrashGuard") {
				t.Errorf("the error does not say why: %v", err)
			}
			begun := time.Now()
			l, err := m.Lock(t.Context())
			noErr(t, err)
			if holder.Err() == nil || time.Since(begun) > 15*time.Second {
				t.Errorf("granted after %v, when the first lease says %v", time.Since(begun), holder.Err())
			}
			if l.FencingToken() <= holder.FencingToken() {
				t.Errorf("tokens %d and %d", holder.FencingToken(), l.FencingToken())
			}
		})
	}
}

// counts reports whether node 0 of three is counted, when node 1 is silent.
func counts(s *sim) bool {
	s.t.Helper()
	s.Node(1).Refuse(true)
	defer s.Node(1).Refuse(false)
	l, err := s.mutex("vote").TryLock(s.t.Context())
	if err == nil {
		mustUnlock(s.t, l)
	} else {
		is(s.t, err, redlock.ErrNoQuorum)
	}
	synctest.Wait()
	return err == nil
}

// TestCrashGuardTime: from when on a restarted node counts. A client that sees it
// for the first time takes its word for how long it has been up, with a second for
// the rounding; one that knew the process before counts for itself.
func TestCrashGuardTime(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *sim)  // the restart
		after  func(s *sim)  // it, and before the first look
		least  time.Duration // after the first look
		most   time.Duration
	}{
		"seen before":                {func(s *sim) { counts(s) }, func(*sim) {}, guardTime, guardTime},
		"seen before, looked late":   {func(s *sim) { counts(s) }, func(*sim) { time.Sleep(5 * time.Second) }, guardTime, guardTime},
		"seen before, clock stepped": {func(s *sim) { counts(s) }, func(s *sim) { s.Node(0).Clock().Step(time.Hour) }, guardTime, guardTime},
		"new":                        {func(*sim) {}, func(*sim) {}, guardTime, guardTime + time.Second},
		"new, looked late":           {func(*sim) {}, func(*sim) { time.Sleep(5 * time.Second) }, guardTime - 5*time.Second, guardTime - 4*time.Second},
		"new, rounded": {
			func(*sim) { time.Sleep(900 * time.Millisecond) }, func(*sim) { time.Sleep(5100 * time.Millisecond) },
			guardTime - 5100*time.Millisecond, guardTime - 5*time.Second,
		},
		"new, clock stepped back": {func(*sim) {}, func(s *sim) { s.Node(0).Clock().Step(-time.Hour) }, guardTime, guardTime + time.Second},
		"new, up for long":        {func(*sim) {}, func(*sim) { time.Sleep(guardTime + time.Second) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, redlock.WithCrashGuard(guardTime), redlock.WithoutFencing()) // which a wrong clock would stop
				c.before(s)
				s.Node(0).Restart(false)
				c.after(s)
				begun := time.Now()
				for !counts(s) {
					if time.Sleep(10 * time.Millisecond); time.Since(begun) > time.Minute {
						t.Fatal("it never votes again")
					}
				}
				if took := time.Since(begun); took < c.least || took > c.most+50*time.Millisecond {
					t.Errorf("it votes again after %v, want %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}

// TestCrashGuardAsksOnce: the server is asked once, and again after a restart.
func TestCrashGuardAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithCrashGuard(guardTime))
		for range 20 {
			l := s.lock("x")
			synctest.Wait()
			mustUnlock(t, l)
			synctest.Wait()
		}
		if n := s.executed(redlocktest.Probe); n != 3 {
			t.Errorf("3 nodes were asked %d times", n)
		}
		s.Node(0).Restart(true)
		for range 20 {
			l := s.lock("x")
			synctest.Wait()
			mustUnlock(t, l)
			synctest.Wait()
		}
		if n := s.executed(redlocktest.Probe); n != 4 {
			t.Errorf("after a restart, 3 nodes were asked %d times", n)
		}
	})
}

// TestCrashGuardExtend: a young node has no vote for a new lock, but what it still
// holds counts for the lease.
func TestCrashGuardExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithCrashGuard(guardTime))
		l := s.lock("x", redlock.WithoutRenewal())
		synctest.Wait()
		s.Node(0).Restart(true)
		s.Node(1).Blackhole(true)
		noErr(t, l.Extend(t.Context()))
		_, err := s.mutex("y").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
	})
}

// TestCrashGuardReleases: what a young node has granted is released again.
func TestCrashGuardReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithCrashGuard(guardTime))
		for _, n := range s.all() {
			n.Restart(false)
		}
		_, err := s.mutex("x").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		synctest.Wait()
		s.noLocks()
	})
}

// TestCrashGuardLeaves: what a young node has granted, and then refuses to release, is
// told: it is a key that stays.
func TestCrashGuardLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []redlock.CleanupDropped
		s := simulate(t, 1, redlock.WithCrashGuard(guardTime), redlock.WithTrace(&redlock.Trace{
			CleanupDropped: func(d redlock.CleanupDropped) { dropped = append(dropped, d) },
		}))
		s.Node(0).Restart(false)
		s.Node(0).FailWith(errors.New("NOPERM"), redlock.Forbidden, redlocktest.Release)
		_, err := s.mutex("x").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		synctest.Wait()
		if len(dropped) != 1 || dropped[0].Name != "x" {
			t.Errorf("told: %v", dropped)
		}
		s.heal()
		time.Sleep(time.Minute) // the key has expired
	})
}

// TestCrashGuardUnanswered: a node that does not tell when it started, because it
// does not answer, has no vote. One that may not tell has, and the log says so once.
func TestCrashGuardUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := simulate(t, 3, redlock.WithCrashGuard(guardTime), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		s.Node(0).FailWith(errors.New("LOADING"), redlock.Rejected, redlocktest.Probe)
		if counts(s) {
			t.Error("a node counts that did not say when it started")
		}
		s.Node(0).Heal()
		s.Node(0).Tell(func(i *redlock.ServerInfo) { i.RunID, i.Uptime, i.Refused = "", 0, errors.New("NOPERM for INFO") })
		for range 3 {
			if !counts(s) {
				t.Error("a node that may not tell has no vote")
			}
			s.Node(0).Restart(true)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "NOPERM for INFO") {
			t.Errorf("the log is %q", &log)
		}
	})
}

// mute is a Node and nothing else.
type mute struct{ redlock.Node }

// TestCrashGuardRefused: a guard that could not do its work.
func TestCrashGuardRefused(t *testing.T) {
	nodes := redlocktest.New(3).Nodes()
	for want, try := range map[string]func() error{
		"WithCrashGuard(0s): must be at least 11.048576s": func() error {
			_, err := redlock.New(nodes, redlock.WithCrashGuard(0))
			return err
		},
		"WithCrashGuard(11s): must be at least 11.048576s": func() error {
			_, err := redlock.New(nodes, redlock.WithCrashGuard(11*time.Second))
			return err
		},
		"WithCrashGuard(12s): must be at least 13s": func() error {
			_, err := redlock.New(nodes, redlock.WithCrashGuard(12*time.Second), redlock.WithTTL(13*time.Second))
			return err
		},
		"WithCrashGuard(9.999s): must be at least 10s": func() error {
			_, err := redlock.New(nodes, redlock.WithCrashGuard(9999*time.Millisecond), redlock.WithoutFencing())
			return err
		},
		"WithCrashGuard(12s): must be at least 20s": func() error {
			c := openClient(t, nodes, redlock.WithCrashGuard(guardTime))
			_, err := c.NewMutex("x", redlock.WithTTL(20*time.Second))
			return err
		},
		"WithCrashGuard: is an option of New": func() error {
			_, err := openClient(t, nodes).NewMutex("x", redlock.WithCrashGuard(guardTime))
			return err
		},
		`nodes[1]: "node-1": cannot tell when its server started`: func() error {
			_, err := redlock.New([]redlock.Node{nodes[0], mute{nodes[1]}, nodes[2]}, redlock.WithCrashGuard(guardTime))
			return err
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
	noErr(t, openClient(t, nodes, redlock.WithCrashGuard(11048576*time.Microsecond)).Close())
}

// TestCrashGuardReal: real servers that are young at first, and one of which
// forgets what it had. A clone of a client has its connections from that one, whose
// hooks it does not know: it has to ask each time.
func TestCrashGuardReal(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(c *redis.Client) redis.UniversalClient{
		"client": func(c *redis.Client) redis.UniversalClient { return c },
		"clone":  func(c *redis.Client) redis.UniversalClient { return c.WithTimeout(time.Second) },
		"other":  func(c *redis.Client) redis.UniversalClient { return struct{ redis.UniversalClient }{c} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCrashGuardReal(t, kind, name == "client")
		})
	}
}

func testCrashGuardReal(t *testing.T, kind func(c *redis.Client) redis.UniversalClient, watched bool) {
	const ttl, d = 2 * time.Second, 4100 * time.Millisecond
	f := startFleet(t, 3)
	var clients []redis.UniversalClient
	for i := range f.servers {
		clients = append(clients, kind(dial(t, f.addr(i), nil)))
	}
	c := openClient(t, redlock.Redis(clients...), redlock.WithTTL(ttl), redlock.WithClockBound(3*time.Second), redlock.WithCrashGuard(d))
	tries := 0
	granted := func() bool {
		tries++ // a new name: the one before may not be free everywhere yet
		l, err := mutexOf(t, c, fmt.Sprint(tries)).TryLock(t.Context())
		if err != nil {
			is(t, err, redlock.ErrNoQuorum)
			return false
		}
		mustUnlock(t, l)
		return true
	}
	if granted() {
		t.Error("servers that have just started have a vote")
	}
	if !eventually(20*time.Second, granted) {
		t.Fatal("the servers have no vote")
	}
	for range 20 {
		granted() // on all connections that there will be
	}
	asked := calls(t, f.servers[0], "info")
	for range 100 {
		if !granted() {
			t.Error("a lock was not granted")
		}
	}
	if n := calls(t, f.servers[0], "info") - asked; watched && n > 10 {
		t.Errorf("a server was asked %d times for 100 locks", n)
	}

	noErr(t, f.servers[1].Kill())
	noErr(t, f.servers[0].RestartEmpty())
	restarted := time.Now()
	if granted() {
		t.Error("a server that has forgotten has a vote")
	}
	if !eventually(20*time.Second, granted) {
		t.Fatal("the server has never a vote again")
	}
	if took := time.Since(restarted); took < d-100*time.Millisecond {
		t.Errorf("it has a vote again after %v, want %v", took, d)
	}
}

// unwatched is a node whose connections are not known.
type unwatched struct {
	*redlocktest.Node
	n *atomic.Uint64
}

func (u unwatched) Connections() uint64 { return u.n.Add(1) }

// TestCrashGuardBurst: many grants at once need few probes, even if each needs one
// that began after it.
func TestCrashGuardBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(3)
		nodes := cluster.Nodes()
		for i := range nodes {
			cluster.Node(i).Delay(20*time.Millisecond, 20*time.Millisecond)
			nodes[i] = unwatched{cluster.Node(i), new(atomic.Uint64)}
		}
		c, err := redlock.New(nodes, redlock.WithCrashGuard(guardTime), redlock.WithNodeTimeout(200*time.Millisecond))
		noErr(t, err)
		defer func() { noErr(t, c.Close()) }()
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				l, err := mutexOf(t, c, fmt.Sprint(i)).TryLock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				_ = l.Unlock(t.Context())
			})
		}
		wg.Wait()
		probes := 0
		for _, call := range cluster.Node(0).Calls() {
			if call.Op == redlocktest.Probe {
				probes++
			}
		}
		if probes < 3 || probes > 15 {
			t.Errorf("200 grants took %d probes", probes)
		}
	})
}

// TestCrashGuardCured: a server that may tell, at last, is not taken for a new one.
func TestCrashGuardCured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithCrashGuard(guardTime))
		s.Node(0).Tell(func(i *redlock.ServerInfo) { i.RunID, i.Uptime = "", 0 })
		if !counts(s) {
			t.Error("it does not count although it may not tell")
		}
		s.Node(0).Tell(nil)
		n := s.Node(0)
		c, err := redlock.New([]redlock.Node{unwatched{n, new(atomic.Uint64)}}, redlock.WithCrashGuard(guardTime))
		noErr(t, err)
		defer func() { noErr(t, c.Close()) }()
		for _, tells := range []bool{false, true} {
			if n.Tell(func(i *redlock.ServerInfo) { i.RunID, i.Uptime = "", 0 }); tells {
				n.Tell(nil)
			}
			l, err := mutexOf(t, c, fmt.Sprint(tells)).TryLock(t.Context())
			noErr(t, err)
			mustUnlock(t, l)
		}
	})
}

// taciturn tells nothing, without an error.
type taciturn struct{ *redlocktest.Node }

func (taciturn) Probe(context.Context) ([]redlock.ServerInfo, error) { return nil, nil }

// TestCrashGuardTaciturn: a node that says nothing has no vote.
func TestCrashGuardTaciturn(t *testing.T) {
	c := openClient(t, []redlock.Node{taciturn{redlocktest.New(1).Node(0)}}, redlock.WithCrashGuard(guardTime))
	_, err := mutexOf(t, c, "x").TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
}

// TestCrashGuardCountsFromNew: connections are counted before there is one, since a
// driver may know only of those that are made after it was asked.
func TestCrashGuardCountsFromNew(t *testing.T) {
	u := unwatched{redlocktest.New(1).Node(0), new(atomic.Uint64)}
	openClient(t, []redlock.Node{u}, redlock.WithCrashGuard(guardTime))
	if u.n.Load() == 0 {
		t.Error("New did not ask for the number of connections")
	}
	u.n.Store(0)
	openClient(t, []redlock.Node{u})
	if u.n.Load() != 0 {
		t.Error("New asked for it although there is no guard")
	}
}

// TestCrashGuardOneHook: a client of Redis that is used by one client of the lock
// after another has one hook, not one of each.
func TestCrashGuardOneHook(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1)
	var frames atomic.Int64
	rc := dial(t, f.addr(0), func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			frames.Store(int64(strings.Count(string(debug.Stack()), "dialHook")))
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	for range 30 {
		c, err := redlock.New(redlock.Redis(rc), redlock.WithCrashGuard(guardTime))
		noErr(t, err)
		noErr(t, c.Close())
	}
	noErr(t, rc.Ping(t.Context()).Err())
	if n := frames.Load(); n < 1 || n > 3 { // one call has up to three lines
		t.Errorf("a dial goes through %d lines of hooks", n)
	}
}

// A ponderer has its answer to a probe at once, and gives it when it is let to.
type ponderer struct {
	*redlocktest.Node
	let chan struct{}
}

func (p ponderer) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	infos, err := p.Node.Probe(ctx)
	<-p.let
	return infos, err
}

// TestCrashGuardStaleProbe: a probe that began before a grant was answered does not
// speak for it: the server may have restarted in between.
func TestCrashGuardStaleProbe(t *testing.T) {
	for name, during := range map[string]bool{"while it is under way": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := ponderer{redlocktest.New(1).Node(0), make(chan struct{})}
				c, err := redlock.New([]redlock.Node{p}, redlock.WithCrashGuard(guardTime), redlock.WithNodeTimeout(5*time.Second))
				noErr(t, err)
				defer func() { noErr(t, c.Close()) }()
				try := func(name string) <-chan error {
					done := make(chan error, 1)
					go func() {
						_, err := mutexOf(t, c, name).TryLock(t.Context())
						done <- err
					}()
					synctest.Wait()
					return done
				}
				before := try("before")
				p.Restart(false)
				var after <-chan error
				if during {
					after = try("after")
				}
				p.let <- struct{}{}
				noErr(t, <-before) // by the process that was there
				if !during {
					after = try("after")
				}
				select {
				case p.let <- struct{}{}:
				case <-time.After(time.Second):
					t.Error("the new process is not asked")
				}
				if err := <-after; err == nil || !strings.Contains(err.Error(), "WithCrashGuard") {
					t.Errorf("the new process has a vote by the word of the old one: %v", err)
				}
			})
		})
	}
}
