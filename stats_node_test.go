// Stats of nodes: what each of them did, and did not do.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestStatsNodeFailed: what is wrong with one node is counted there, and not elsewhere.
func TestStatsNodeFailed(t *testing.T) {
	for fault, c := range map[redlock.NodeFault]struct {
		opts  []redlock.Option
		setup func(n *redlocktest.Node)
	}{
		redlock.NodeTimeout:    {nil, func(n *redlocktest.Node) { n.Blackhole(true) }},
		redlock.NodeUnanswered: {nil, func(n *redlocktest.Node) { n.LoseReplies(1) }},
		redlock.NodeUnsent:     {nil, func(n *redlocktest.Node) { n.Refuse(true) }},
		redlock.NodeRejected:   {nil, func(n *redlocktest.Node) { n.FailWith(errors.New("OOM"), redlock.Rejected) }},
		redlock.NodeForbidden:  {nil, func(n *redlocktest.Node) { n.FailWith(errors.New("NOPERM"), redlock.Forbidden) }},
		redlock.NodeUnfit:      {[]redlock.Option{redlock.WithCrashGuard(time.Minute)}, func(n *redlocktest.Node) { n.Restart(true) }},
	} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, c.opts...)
				time.Sleep(2 * time.Minute)
				c.setup(s.Node(1))
				l := s.lock("x")
				time.Sleep(2 * time.Second)
				if fault == redlock.NodeUnfit && s.client.Stats().Nodes[1].Latency.Count == 0 {
					noErr(t, l.Extend(t.Context())) // it has renewals
				}
				s.heal()
				noErr(t, l.Unlock(t.Context()))
				time.Sleep(2 * time.Second)
				for i, n := range s.client.Stats().Nodes {
					failed := int64(0)
					for k, count := range n.Failed {
						failed += count
						if want := i == 1 && k == fault; want != (count > 0) || len(n.Failed) != 6 {
							t.Errorf("%s: %s: %d", n.Name, k, count)
						}
					}
					if n.Name != s.Node(i).Name() || n.Calls != n.Latency.Count+failed || i != 1 && n.Latency.Count == 0 {
						t.Errorf("%s: %d calls, %d answered, %d failed", n.Name, n.Calls, n.Latency.Count, failed)
					}
				}
			})
		})
	}
}

// TestStatsNodeOverload: what is not sent since too much waits for a node is its fault.
func TestStatsNodeOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		s.Node(2).IgnoreContext(true)
		s.Node(2).Pause()
		var wg sync.WaitGroup
		for i := range 1500 { // not so many at once that the others have too much
			m := s.mutex(fmt.Sprint(i))
			wg.Go(func() { mustLockFrom(m) })
			if i%500 == 499 {
				wg.Wait()
			}
		}
		nodes := s.client.Stats().Nodes
		if n := nodes[2].Failed[redlock.NodeUnsent]; n < 200 || n > 260 {
			t.Errorf("%d commands were not sent, want 220", n)
		}
		if n := nodes[0].Failed[redlock.NodeUnsent]; n != 0 {
			t.Errorf("%d commands were not sent to a node that answers", n)
		}
	})
}

// TestStatsDeaf: a node that is heard no more is counted, and told.
func TestStatsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := distant(t, 3, redlock.WithTrace(r.trace()))
		occupy("x", 0, s.all()...)
		ctx, cancel := context.WithCancel(t.Context())
		w := await(ctx, s.mutex("x"))
		time.Sleep(time.Second)
		if n := s.client.Stats(); n.Nodes[0].Deaf+n.Nodes[1].Deaf+n.Nodes[2].Deaf != 0 {
			t.Errorf("all are heard: %+v", n.Nodes)
		}
		s.Node(1).Restart(true)
		time.Sleep(time.Second)
		e := one[redlock.Deaf](t, &r)
		if node, ok := errors.AsType[*redlock.NodeError](e.Err); !ok || node.Op != "listen" || node.Node != e.Node || e.Node != s.Node(1).Name() {
			t.Errorf("%+v", e)
		}
		cancel()
		<-w.done
		time.Sleep(5 * time.Second) // nobody listens any more, which is as it should be
		if n := s.client.Stats(); n.Nodes[0].Deaf+n.Nodes[2].Deaf != 0 || n.Nodes[1].Deaf != 1 {
			t.Errorf("one was deaf: %+v", n.Nodes)
		}
	})
}

// TestStatsTrouble: renewals that fail, danger, and keys that are left behind.
func TestStatsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := simulate(t, 3, redlock.WithTTL(3*time.Second), redlock.WithTrace(r.trace()))
		l := s.lock("x")
		synctest.Wait()
		for _, n := range s.first(2) {
			n.Blackhole(true)
		}
		time.Sleep(2 * time.Second)
		n := s.client.Stats()
		if n.Dangers != 1 || n.RenewalFailed < 1 || n.Renewals != n.RenewalFailed || n.HeartbeatLatency.Count != 0 {
			t.Errorf("%d dangers, %d of %d renewals failed", n.Dangers, n.RenewalFailed, n.Renewals)
		}
		if e := one[redlock.Danger](t, &r); e.Context.Value(callKey{}) != "x" {
			t.Errorf("%+v", e)
		}
		s.Node(0).Heal()
		time.Sleep(2 * time.Second)
		n = s.client.Stats()
		if n.HeartbeatLatency.Count == 0 || n.Renewals != n.RenewalFailed+n.HeartbeatLatency.Count || int(n.Renewals) != len(of[redlock.Renewal](&r)) {
			t.Errorf("%d of %d renewals failed, %d did not", n.RenewalFailed, n.Renewals, n.HeartbeatLatency.Count)
		}
		noErr(t, l.Unlock(t.Context()))
		time.Sleep(10 * time.Second)
		if n := s.client.Stats(); n.CleanupsDropped != 1 {
			t.Errorf("%d keys were left behind", n.CleanupsDropped)
		}
		if e := one[redlock.CleanupDropped](t, &r); e.Context.Value(callKey{}) != "x" || e.Node != s.Node(1).Name() {
			t.Errorf("%+v", e)
		}
	})
}

// TestStatsDroppedOnce is that a key that was given up counts once, though the lease was
// lost first and then unlocked.
func TestStatsDroppedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithTTL(time.Second), redlock.WithoutRenewal())
		l := s.lock("m")
		for _, n := range s.first(3) {
			n.Blackhole(true)
		}
		time.Sleep(time.Second)
		is(t, l.Err(), redlock.ErrExpired)
		is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
		time.Sleep(10 * time.Second)
		if n := s.client.Stats().CleanupsDropped; n != 3 {
			t.Errorf("%d of three keys were left to their TTL", n)
		}
	})
}
