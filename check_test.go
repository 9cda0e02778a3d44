// What Check finds, on nodes that say so and on real servers.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// sound makes nodes say what a sound server says.
func sound(nodes ...*redlocktest.Node) {
	for _, n := range nodes {
		n.Tell(func(i *redlock.ServerInfo) { i.AppendOnly, i.AppendFsync = true, "always" })
	}
}

// TestCheck: one finding for each thing that is wrong, and none where nothing is.
func TestCheck(t *testing.T) {
	tell := func(f func(*redlock.ServerInfo)) func(*sim) {
		return func(s *sim) {
			s.Node(0).Tell(func(i *redlock.ServerInfo) {
				i.AppendOnly, i.AppendFsync = true, "always"
				f(i)
			})
		}
	}
	for name, c := range map[string]struct {
		nodes  int
		opts   []redlock.Option
		setup  func(s *sim)
		want   redlock.Severity
		node   string
		within string
	}{
		"nothing":              {5, nil, func(*sim) {}, 0, "", ""},
		"one node":             {1, nil, func(*sim) {}, redlock.Notice, "", "of 1 nodes none may fail"},
		"an even number":       {4, nil, func(*sim) {}, redlock.Notice, "", "there are 4 nodes, of which 1 may fail, as of 3"},
		"a replica":            {3, nil, tell(func(i *redlock.ServerInfo) { i.Role = "slave" }), redlock.Critical, "node-0", "is a slave"},
		"replicas":             {3, nil, tell(func(i *redlock.ServerInfo) { i.Replicas = 2 }), redlock.Warning, "node-0", "has replicas (2)"},
		"eviction":             {3, nil, tell(func(i *redlock.ServerInfo) { i.MaxMemory, i.MaxMemoryPolicy = 1, "volatile-lru" }), redlock.Warning, "node-0", "volatile-lru"},
		"a policy, no limit":   {3, nil, tell(func(i *redlock.ServerInfo) { i.MaxMemoryPolicy = "allkeys-lru" }), 0, "", ""},
		"a limit, no eviction": {3, nil, tell(func(i *redlock.ServerInfo) { i.MaxMemory = 1 }), 0, "", ""},
		"not durable":          {3, nil, tell(func(i *redlock.ServerInfo) { i.AppendFsync = "everysec" }), redlock.Warning, "node-0", "may forget locks"},
		"no file":              {3, nil, tell(func(i *redlock.ServerInfo) { i.AppendOnly = false }), redlock.Warning, "node-0", "WithCrashGuard"},
		"guarded":              {3, []redlock.Option{redlock.WithCrashGuard(guardTime)}, tell(func(i *redlock.ServerInfo) { i.AppendOnly = false }), 0, "", ""},
		"guarded, young":       {5, []redlock.Option{redlock.WithCrashGuard(guardTime)}, func(s *sim) { s.Node(1).Restart(true) }, redlock.Warning, "node-1", "started 0s ago, and has no vote until that is 12s"},
		"guarded, no rights":   {3, []redlock.Option{redlock.WithCrashGuard(guardTime)}, tell(func(i *redlock.ServerInfo) { i.RunID, i.Uptime, i.Refused = "", 0, errors.New("NOPERM") }), redlock.Warning, "node-0", "WithCrashGuard has no effect: NOPERM"},
		"twice": {3, nil, func(s *sim) {
			s.Node(2).Tell(func(i *redlock.ServerInfo) {
				i.RunID, i.AppendOnly, i.AppendFsync = s.Node(0).RunID(), true, "always"
			})
		}, redlock.Critical, "node-2", `is the same server as node "node-0"`},
		"no rights":                   {3, nil, tell(func(i *redlock.ServerInfo) { i.RunID, i.Refused = "", errors.New("NOPERM") }), redlock.Notice, "node-0", "NOPERM"},
		"clock ahead":                 {3, nil, func(s *sim) { s.Node(1).Clock().Step(5 * time.Second) }, redlock.Notice, "node-1", "its clock is 5s off"},
		"clock behind":                {3, nil, func(s *sim) { s.Node(1).Clock().Step(-5 * time.Second) }, redlock.Notice, "node-1", "its clock is -5s off"},
		"clock far ahead":             {3, nil, func(s *sim) { s.Node(1).Clock().Step(11 * time.Second) }, redlock.Warning, "node-1", "its clock is 11s off"},
		"clock far ahead, not fenced": {3, []redlock.Option{redlock.WithoutFencing()}, func(s *sim) { s.Node(1).Clock().Step(11 * time.Second) }, redlock.Notice, "node-1", "its clock"},
		"clock a little off":          {3, nil, func(s *sim) { s.Node(1).Clock().Step(time.Second) }, 0, "", ""},
		"down":                        {3, nil, func(s *sim) { s.Node(1).Refuse(true) }, redlock.Warning, "node-1", "no lock can be taken and released there: dial"},
		"silent":                      {3, nil, func(s *sim) { s.Node(1).Blackhole(true) }, redlock.Warning, "node-1", "node timed out"},
		"full":                        {3, nil, func(s *sim) { s.Node(1).FailWith(errors.New("OOM"), redlock.Rejected, redlocktest.Acquire) }, redlock.Warning, "node-1", "there: OOM"},
		"strict, says nothing":        {3, []redlock.Option{redlock.WithStrictNodes()}, func(s *sim) { s.Node(1).Tell(func(i *redlock.ServerInfo) { *i = redlock.ServerInfo{} }) }, redlock.Warning, "node-1", "WithStrictNodes knows only its clock; allow INFO"},
		"strict, mute": {3, []redlock.Option{redlock.WithStrictNodes()}, func(s *sim) {
			s.Node(1).Tell(func(i *redlock.ServerInfo) { *i = redlock.ServerInfo{Refused: errors.New("NOPERM")} })
		}, redlock.Warning, "node-1", "WithStrictNodes knows only its clock: NOPERM"},
		"no renewal": {3, nil, func(s *sim) { s.Node(1).FailWith(errors.New("NOPERM"), redlock.Forbidden, redlocktest.Extend) }, redlock.Warning, "node-1", "no lock can be renewed there: NOPERM"},
		"no release": {3, nil, func(s *sim) { s.Node(1).FailWith(errors.New("MISCONF"), redlock.Rejected, redlocktest.Release) }, redlock.Warning, "node-1", "there: MISCONF"},
		"no probe":   {3, nil, func(s *sim) { s.Node(1).FailWith(errors.New("LOADING"), redlock.Rejected, redlocktest.Probe) }, redlock.Warning, "node-1", "does not tell about its server: LOADING"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, c.nodes, c.opts...)
				sound(s.all()...)
				c.setup(s)
				r, err := s.client.Check(t.Context())
				noErr(t, err)
				if c.want == 0 {
					if len(r.Findings) > 0 || r.Worst() != 0 || r.String() != "" {
						t.Errorf("found:\n%v", r)
					}
					return
				}
				r.Findings = slices.DeleteFunc(r.Findings, func(f redlock.Finding) bool { return strings.Contains(f.Problem, "not a Prober") })
				if len(r.Findings) != 1 || r.Worst() != c.want || r.Findings[0].Node != c.node || r.Findings[0].Advice == "" || !strings.Contains(r.String(), c.within) {
					t.Errorf("found, worst %v:\n%vwant one %v of %q with %q", r.Worst(), r, c.want, c.node, c.within)
				}
				synctest.Wait()
				s.heal()
			})
		})
	}
}

// A numb node does not do for its waiters what its fields say.
type numb struct {
	*redlocktest.Node
	mute, unready bool
}

func (n numb) Release(ctx context.Context, c *redlock.Claim, bury bool) (redlock.Reply, error) {
	r, err := n.Node.Release(ctx, c, bury)
	r.Named = r.Named && !n.mute
	return r, err
}

func (n numb) Listen(ctx context.Context, channel string, ready func(), wake func(string)) error {
	if n.unready {
		ready = func() {}
	}
	return n.Node.Listen(ctx, channel, ready, wake)
}

// TestCheckCalls: what keeps a node from calling those who wait is a finding, and the
// only one.
func TestCheckCalls(t *testing.T) {
	noperm := errors.New("NOPERM")
	for name, c := range map[string]struct {
		node   func(n *redlocktest.Node) redlock.Node
		want   redlock.Severity
		within string
	}{
		"no line":      {func(n *redlocktest.Node) redlock.Node { return lineless{n} }, redlock.Notice, "it keeps no line"},
		"not heard":    {func(n *redlocktest.Node) redlock.Node { n.DropWakes(true); return n }, redlock.Warning, "a call is not heard"},
		"nobody":       {func(n *redlocktest.Node) redlock.Node { return numb{n, true, false} }, redlock.Warning, "a release calls nobody"},
		"no listening": {func(n *redlocktest.Node) redlock.Node { return numb{n, false, true} }, redlock.Warning, "listening: " + redlock.ErrNodeTimeout.Error()},
		"listening refused": {func(n *redlocktest.Node) redlock.Node {
			n.FailWith(noperm, redlock.Forbidden, redlocktest.Listen)
			return n
		}, redlock.Warning, "listening: NOPERM"},
		"line refused": {func(n *redlocktest.Node) redlock.Node {
			n.FailWith(noperm, redlock.Forbidden, redlocktest.Enlist)
			return n
		}, redlock.Warning, "is not called there: NOPERM"},
		"leaving refused": {func(n *redlocktest.Node) redlock.Node {
			n.FailWith(noperm, redlock.Forbidden, redlocktest.Delist)
			return n
		}, redlock.Warning, "is not called there: NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := redlocktest.New(3)
				nodes := cl.Nodes()
				for i := range nodes {
					sound(cl.Node(i))
				}
				nodes[1] = c.node(cl.Node(1))
				client, err := redlock.New(nodes)
				noErr(t, err)
				r, err := client.Check(t.Context())
				noErr(t, err)
				r.Findings = slices.DeleteFunc(r.Findings, func(f redlock.Finding) bool { return strings.Contains(f.Problem, "not a Prober") })
				if len(r.Findings) != 1 || r.Worst() != c.want || r.Findings[0].Node != "node-1" || !strings.Contains(r.String(), c.within) {
					t.Errorf("found:\n%vwant one %v with %q", r, c.want, c.within)
				}
				noErr(t, client.Close())
				for i := range nodes {
					if keys := fmt.Sprint(cl.Node(i).Keys()); strings.Contains(keys, "[lock:") || name != "leaving refused" && strings.Contains(keys, "queue:") {
						t.Errorf("node %d keeps %v", i, keys)
					}
				}
			})
		})
	}
}

// TestCheckLeavesNothing, but on nodes that keep it from releasing.
func TestCheckLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		s.Node(0).Late(5 * time.Second)
		_, err := s.client.Check(t.Context())
		noErr(t, err)
		s.noLocks()
		time.Sleep(10 * time.Second)
		s.noLocks() // nor what came late
		time.Sleep(time.Minute + time.Second)
		for _, n := range s.all() {
			if keys := n.Keys(); len(keys) > 0 {
				t.Errorf("%q is left", keys)
			}
		}
	})
}

// TestCheckOrder: the gravest is first, and without a quorum that is it.
func TestCheckOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 4)
		sound(s.all()...)
		s.Node(0).Refuse(true)
		s.Node(1).Refuse(true)
		r, err := s.client.Check(t.Context())
		noErr(t, err)
		var got []redlock.Severity
		for _, f := range r.Findings {
			got = append(got, f.Severity)
		}
		if fmt.Sprint(got) != "[critical warning warning notice]" || !strings.Contains(r.Findings[0].Problem, "2 of 4 nodes work, 3 are needed") {
			t.Errorf("found:\n%v", r)
		}

		young := simulate(t, 3, redlock.WithCrashGuard(guardTime))
		for _, n := range young.all()[:2] {
			n.Restart(false)
		}
		r, err = young.client.Check(t.Context())
		noErr(t, err)
		if r.Worst() != redlock.Critical || !strings.Contains(r.Findings[0].Problem, "1 of 3 nodes have a vote, 2 are needed") {
			t.Errorf("found:\n%v", r)
		}
		noErr(t, s.client.Close())
		_, err = s.client.Check(t.Context())
		is(t, err, redlock.ErrClosed)
	})
}

// TestCheckMute: a node of another driver cannot tell, but its lock works.
func TestCheckMute(t *testing.T) {
	nodes := redlocktest.New(3).Nodes()
	for i, n := range nodes {
		nodes[i] = mute{n}
	}
	r, err := openClient(t, nodes).Check(t.Context())
	noErr(t, err)
	if len(r.Findings) != 6 || r.Worst() != redlock.Notice { // nor does it call those who wait
		t.Errorf("found:\n%v", r)
	}
}

// TestCheckReal: real servers, each with something wrong.
func TestCheckReal(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	for _, s := range f.servers {
		ask(t, s, "CONFIG", "SET", "appendonly", "yes", "appendfsync", "always")
	}
	report := func(nodes []redlock.Node) string {
		t.Helper()
		r, err := openClient(t, nodes).Check(t.Context())
		noErr(t, err)
		return r.String()
	}
	for _, protocol := range []int{2, 3} {
		if got := report(f.nodes(func(o *redis.Options) { o.Protocol = protocol })); got != "" {
			t.Errorf("of sound servers, over RESP%d:\n%s", protocol, got)
		}
	}

	ask(t, f.servers[0], "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	ask(t, f.servers[1], "CONFIG", "SET", "appendfsync", "everysec")
	ask(t, f.servers[2], "ACL", "SETUSER", "default", "-info", "-config")
	ask(t, f.servers[3], "ACL", "SETUSER", "default", "resetkeys", "~others:*")
	nodes := f.nodes(nil)
	nodes[4] = redlock.NewRedisNode("again", dial(t, f.addr(1), nil))
	got := report(nodes)
	for i, want := range []string{
		"drops keys when its memory is full (allkeys-lru)",
		"may forget locks when it crashes and restarts",
		"does not tell everything: NOPERM",
		"no lock can be taken and released there: NOPERM",
		fmt.Sprintf("is the same server as node %q", f.addr(1)),
	} {
		if line := fmt.Sprintf("node %q: %s", nodes[i].Name(), want); !strings.Contains(got, line) {
			t.Errorf("nothing says %q in:\n%s", line, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 6 { // what is wrong with node 1 is so by its other name too
		t.Errorf("%d findings:\n%s", n, got)
	}

	ask(t, f.servers[0], "REPLICAOF", "127.0.0.1", "1")
	if got := report(f.nodes(nil)); !strings.Contains(got, "is a slave") {
		t.Errorf("nothing says that one is a replica:\n%s", got)
	}
}

// An alias is another name for a node, by which renewals take longer.
type alias struct{ *redlocktest.Node }

func (alias) Name() string { return "alias" }

func (n alias) Extend(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	time.Sleep(time.Millisecond)
	return n.Node.Extend(ctx, c)
}

// TestCheckTwice: of a server that is there twice Check says that, and not that one of
// its names cannot renew a lock, which the other has released.
func TestCheckTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := redlocktest.New(3)
		nodes := cl.Nodes()
		nodes[2] = alias{cl.Node(0)}
		c, err := redlock.New(nodes)
		noErr(t, err)
		r, err := c.Check(t.Context())
		noErr(t, err)
		if s := r.String(); strings.Contains(s, "no lock can be") || !strings.Contains(s, "is the same server") {
			t.Error(s)
		}
		noErr(t, c.Close())
	})
}
