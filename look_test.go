// Looks at nodes that come late, take long, are seldom, or are logged by somebody slow.

package redlock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// looks counts how often a node was asked about its server.
func looks(n *redlocktest.Node) int {
	count := 0
	for _, c := range n.Calls() {
		if c.Op == redlocktest.Probe {
			count++
		}
	}
	return count
}

// simulateOff makes three nodes, the clock of the first of which is off.
func simulateOff(t *testing.T, opts ...redlock.Option) *sim {
	s := simulateDurable(t, 3, append(opts, redlock.WithoutFencing())...)
	s.Node(0).Clock().Step(-11 * time.Second)
	return s
}

// TestAdmissionLogSeldom: what is wrong with a clock is logged once by a client that is
// used so seldom that it has no two readings of the same time.
func TestAdmissionLogSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		s := simulateOff(t, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for range 5 {
			turn(s)
			time.Sleep(3 * time.Minute)
		}
		if lines := log.lines(); len(lines) != 1 {
			t.Errorf("%d lines, want 1: %q", len(lines), lines)
		}
	})
}

// TestStrictNodesIdle: a node with a bad clock has no vote after the client was idle
// either, if it answers after the others were looked at.
func TestStrictNodesIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulateOff(t, redlock.WithStrictNodes())
		s.Node(0).Delay(5*time.Millisecond, 0)
		turn(s)
		time.Sleep(3 * time.Minute)
		if counts(s) {
			t.Error("an unfit node has a vote")
		}
	})
}

// TestStrictNodesOutage: a node with a bad clock does not get its vote back because of
// the outage of another, but it does when it is mended.
func TestStrictNodesOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulateOff(t, redlock.WithStrictNodes())
		turn(s)
		s.Node(1).Refuse(true)
		for range 200 {
			time.Sleep(time.Second)
			l, err := s.mutex("x").TryLock(t.Context())
			if err == nil {
				mustUnlock(t, l)
				t.Fatal("an unfit node has a vote")
			}
		}
		s.Node(0).Clock().Step(11 * time.Second)
		time.Sleep(time.Second)
		_, _ = s.mutex("x").TryLock(t.Context()) // has it looked at
		synctest.Wait()
		turn(s)
	})
}

// TestStrictNodesStepTogether: an even number of nodes, half of which were looked at
// before all clocks were stepped, is not without a quorum until the others' turn comes.
func TestStrictNodesStepTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulateDurable(t, 4, redlock.WithStrictNodes(), redlock.WithoutFencing())
		turn(s)
		time.Sleep(30 * time.Second)
		for _, n := range s.first(2) {
			n.Restart(true)
		}
		turn(s)
		for _, n := range s.all() {
			n.Clock().Step(12 * time.Second)
		}
		time.Sleep(31 * time.Second)
		for range 2 { // has the others looked at, and then all
			if l, err := s.mutex("x").TryLock(t.Context()); err == nil {
				mustUnlock(t, l)
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		turn(s)
	})
}

// A slowTeller takes its time after it has read its clock.
type slowTeller struct{ *redlocktest.Node }

func (n slowTeller) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	infos, err := n.Node.Probe(ctx)
	time.Sleep(20 * time.Second)
	return infos, err
}

// TestStrictNodesSlowMedian: a good clock is not held against its node because those of
// the others were read slowly.
func TestStrictNodesSlowMedian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := redlocktest.New(3)
		nodes := []redlock.Node{cl.Node(0), slowTeller{cl.Node(1)}, slowTeller{cl.Node(2)}}
		c, err := redlock.New(nodes, redlock.WithStrictNodes(), redlock.WithTTL(5*time.Minute), redlock.WithNodeTimeout(30*time.Second))
		noErr(t, err)
		s := &sim{Cluster: cl, t: t, client: c}
		turn(s)
		if !counts(s) {
			t.Error("a node with a good clock has no vote")
		}
		noErr(t, c.Close())
	})
}

// A slowLog takes its time for each record.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

func (slowLog) Handle(context.Context, slog.Record) error {
	time.Sleep(1500 * time.Millisecond) // more than a node timeout
	return nil
}

// TestAdmissionSlowLog: no vote waits for the logger.
func TestAdmissionSlowLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithStrictNodes(), redlock.WithLogger(slog.New(slowLog{})))
		exactly(t, "a turn", took(func() { mustUnlock(t, s.lock("x")) }), 0)
	})
}

// TestAdmissionUnfit: a node that is unfit, and votes, is asked no more often than others.
func TestAdmissionUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulateOff(t, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		for range 50 {
			turn(s)
			time.Sleep(time.Second)
		}
		if n := looks(s.Node(0)); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
	})
}

// TestAdmissionHolder: nodes are looked at while a lock is held, however long.
func TestAdmissionHolder(t *testing.T) {
	for _, leases := range []int{1, 3} { // alone, and in one pipeline
		synctest.Test(t, func(t *testing.T) {
			s := simulateDurable(t, 3, redlock.WithLogger(slog.New(slog.DiscardHandler)))
			var held []*redlock.Lease
			for i := range leases {
				held = append(held, s.lock(string(rune('a'+i))))
			}
			time.Sleep(time.Hour)
			if n := looks(s.Node(1)); n < 50 || n > 61 {
				t.Errorf("asked %d times in an hour", n)
			}
			for _, l := range held {
				mustUnlock(t, l)
			}
		})
	}
}

// TestAdmissionHolderNoVotes: a node that does not renew is logged, once, also where
// nobody takes a lock.
func TestAdmissionHolderNoVotes(t *testing.T) {
	for _, leases := range []int{1, 3} { // alone, and in one pipeline
		synctest.Test(t, func(t *testing.T) {
			var log logBuffer
			// So short that what is due at about the same time is so always.
			s := simulateDurable(t, 3, redlock.WithTTL(200*time.Millisecond), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			var held []*redlock.Lease
			for i := range leases {
				held = append(held, s.lock(string(rune('a'+i))))
			}
			synctest.Wait()
			s.Node(1).Refuse(true)
			time.Sleep(5 * time.Minute)
			if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], `node=node-1 problem="gives no votes: dial`) {
				t.Errorf("logged %q", lines)
			}
			s.Node(1).Refuse(false)
			for _, l := range held {
				mustUnlock(t, l)
			}
		})
	}
}

// A cluster tells about several servers.
type cluster struct{ *redlocktest.Node }

func (n cluster) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	infos, err := n.Node.Probe(ctx)
	if err != nil {
		return nil, err
	}
	other := infos[0]
	other.RunID += "-2"
	return append(infos, other), nil
}

// TestAdmissionCluster: what is wrong with all servers of a node is logged once.
func TestAdmissionCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		cl := redlocktest.New(1)
		c, err := redlock.New([]redlock.Node{cluster{cl.Node(0)}}, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		noErr(t, err)
		turn(&sim{Cluster: cl, t: t, client: c})
		if lines := log.lines(); len(lines) != 1 {
			t.Errorf("%d lines, want 1: %q", len(lines), lines)
		}
		noErr(t, c.Close())
	})
}

// TestAdmissionOnce: what is known of a node is not said again in other words where it has
// no vote for that, nor after it was down for a while.
func TestAdmissionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		s := simulateDurable(t, 3, redlock.WithStrictNodes(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		s.Node(0).Tell(func(i *redlock.ServerInfo) { durable(i); i.Role = "slave" })
		several := func() {
			for range 6 {
				turn(s)
				time.Sleep(2 * time.Second)
			}
		}
		several()
		if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "is a slave") {
			t.Fatalf("logged %q", lines)
		}
		s.Node(0).Refuse(true)
		several()
		s.Node(0).Refuse(false)
		if counts(s) {
			t.Error("it was down, and has a vote")
		}
		several()
		if lines := log.lines(); len(lines) != 2 || !strings.Contains(lines[1], "gives no votes: dial") {
			t.Fatalf("logged %q", lines)
		}
	})
}
