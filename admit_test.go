// Nodes that are found unfit while they are in use: what is logged, and which have
// no vote.

package redlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

func durable(i *redlock.ServerInfo) { i.AppendOnly, i.AppendFsync = true, "always" }

// simulateDurable makes nodes that nothing is wrong with.
func simulateDurable(t testing.TB, n int, opts ...redlock.Option) *sim {
	s := simulate(t, n, opts...)
	for _, n := range s.all() {
		n.Tell(durable)
	}
	return s
}

func turn(s *sim) {
	s.t.Helper()
	l := s.lock("turn")
	synctest.Wait()
	mustUnlock(s.t, l)
	synctest.Wait()
}

// TestAdmissionLog: what is wrong with a node is logged when it is first used, and
// again when it is right and then wrong again. No vote waits for it.
func TestAdmissionLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		s := simulateDurable(t, 3, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		said := func(want ...string) {
			t.Helper()
			synctest.Wait()
			lines := log.lines()
			log.buf.Reset()
			if lines[0] == "" {
				lines = nil
			}
			if len(lines) != len(want) {
				t.Fatalf("%d lines, want %d: %q", len(lines), len(want), lines)
			}
			for i, w := range want {
				if !strings.Contains(lines[i], w) || !strings.Contains(lines[i], "node=node-1") {
					t.Errorf("logged %q, want %q of node-1", lines[i], w)
				}
			}
		}
		turn(s)
		said()
		replica := func(i *redlock.ServerInfo) { durable(i); i.Role = "slave" }
		s.Node(1).Tell(replica)
		turn(s)
		said() // it looked a moment ago
		time.Sleep(time.Minute)
		turn(s)
		said("level=ERROR msg=\"redlock: a node is not as it should be\"")
		time.Sleep(time.Minute)
		turn(s)
		said()
		s.Node(1).Tell(func(i *redlock.ServerInfo) { durable(i); i.MaxMemory, i.MaxMemoryPolicy = 1e6, "allkeys-lru" })
		time.Sleep(time.Minute)
		turn(s)
		said("allkeys-lru")
		s.Node(1).Tell(replica)
		time.Sleep(time.Minute)
		turn(s)
		said("is a slave")
		s.Node(1).Tell(func(i *redlock.ServerInfo) { *i = redlock.ServerInfo{Refused: errors.New("NOPERM")} })
		time.Sleep(time.Minute)
		turn(s)
		said("level=WARN")
	})
}

// TestAdmissionNoVotes: a node that never grants is logged too, once, and again when it
// has granted in between. Two failures are none.
func TestAdmissionNoVotes(t *testing.T) {
	refuse := func(err string) func(n *redlocktest.Node) {
		return func(n *redlocktest.Node) {
			n.FailWith(errors.New(err), redlock.Forbidden, redlocktest.Acquire, redlocktest.Probe)
		}
	}
	for name, c := range map[string]struct {
		harm  func(n *redlocktest.Node)
		turns int
		want  string
	}{
		"down":     {func(n *redlocktest.Node) { n.Refuse(true) }, 4, "gives no votes: dial"},
		"silent":   {func(n *redlocktest.Node) { n.Blackhole(true) }, 4, "gives no votes: node timed out"},
		"password": {refuse("NOAUTH"), 4, "gives no votes: NOAUTH"},
		"right": {func(n *redlocktest.Node) {
			n.FailWith(errors.New("NOPERM"), redlock.Forbidden, redlocktest.Acquire)
		}, 4, "gives no votes: NOPERM"},
		"replica": {func(n *redlocktest.Node) {
			n.FailWith(errors.New("READONLY"), redlock.Rejected, redlocktest.Acquire)
			n.Tell(func(i *redlock.ServerInfo) { durable(i); i.Role = "slave" })
		}, 2, "is a slave"},
		"hiccup": {refuse("NOAUTH"), 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logBuffer
				s := simulateDurable(t, 3, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				for round := range 2 {
					turn(s)
					time.Sleep(time.Minute)
					c.harm(s.Node(1))
					for range c.turns {
						turn(s)
						time.Sleep(2 * time.Second)
					}
					lines := 0
					for _, l := range log.lines() {
						if c.want != "" && strings.Contains(l, c.want) && strings.Contains(l, "node=node-1") {
							lines++
						} else if l != "" {
							t.Errorf("logged %s", l)
						}
					}
					if c.want != "" && lines != round+1 {
						t.Errorf("round %d: logged %d times", round, lines)
					}
					s.Node(1).Heal()
					s.Node(1).Tell(durable)
					time.Sleep(time.Minute)
					turn(s)
				}
			})
		})
	}
}

// A tardy node takes its time to tell about its server.
type tardy struct{ *redlocktest.Node }

func (n tardy) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestAdmissionNotWaitedFor: a node that does not tell about its server has its vote at
// once, unless what it tells matters.
func TestAdmissionNotWaitedFor(t *testing.T) {
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			nodes := redlocktest.New(3).Nodes()
			for i, n := range nodes {
				nodes[i] = tardy{n.(*redlocktest.Node)}
			}
			opts := []redlock.Option{redlock.WithLogger(slog.New(slog.DiscardHandler))}
			if strict {
				opts = append(opts, redlock.WithStrictNodes())
			}
			c, err := redlock.New(nodes, opts...)
			noErr(t, err)
			start := time.Now()
			l, err := mutexOf(t, c, "x").TryLock(t.Context())
			if strict {
				is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
			} else if d := time.Since(start); err != nil || d > 0 {
				t.Errorf("%v after %v", err, d)
			}
			l.Unlock(t.Context())
			noErr(t, c.Close())
		})
	}
}

// TestAdmissionAsksSeldom: nobody is asked without a reader, and then once a minute.
func TestAdmissionAsksSeldom(t *testing.T) {
	for _, logger := range []*slog.Logger{nil, slog.New(slog.DiscardHandler)} {
		synctest.Test(t, func(t *testing.T) {
			s := simulateDurable(t, 3, redlock.WithLogger(logger))
			asked := func() int {
				n := 0
				for _, c := range s.Node(0).Calls() {
					if c.Op == redlocktest.Probe {
						n++
					}
				}
				return n
			}
			want := 0
			for range 3 {
				if logger != nil {
					want++
				}
				for range 20 {
					turn(s)
				}
				if n := asked(); n != want {
					t.Errorf("asked %d times, want %d", n, want)
				}
				time.Sleep(time.Minute)
			}
		})
	}
}

// TestStrictNodes: which nodes have no vote, and that they have one again soon after
// they are mended.
func TestStrictNodes(t *testing.T) {
	step := func(d time.Duration) func(s *sim) { return func(s *sim) { s.Node(0).Clock().Step(d) } }
	tell := func(f func(i *redlock.ServerInfo)) func(s *sim) { return func(s *sim) { s.Node(0).Tell(f) } }
	for name, c := range map[string]struct {
		harm, mend func(s *sim)
		counts     bool
		why        string
	}{
		"nothing":      {harm: func(*sim) {}, counts: true},
		"replica":      {harm: tell(func(i *redlock.ServerInfo) { i.Role = "slave" }), why: "is a slave"},
		"no rights":    {harm: tell(func(i *redlock.ServerInfo) { *i = redlock.ServerInfo{Refused: errors.New("NOPERM")} }), counts: true},
		"clock ahead":  {harm: step(11 * time.Second), mend: step(-11 * time.Second), why: "its clock is 11s off"},
		"clock behind": {harm: step(-11 * time.Second), mend: step(11 * time.Second), why: "its clock is -11s off"},
		"clock within": {harm: step(9 * time.Second), counts: true},
		"memory":       {harm: tell(func(i *redlock.ServerInfo) { i.MaxMemory, i.MaxMemoryPolicy = 1, "allkeys-lru" }), counts: true},
	} {
		for _, strict := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := []redlock.Option{redlock.WithoutFencing()} // which a wrong clock would stop
					if strict {
						opts = append(opts, redlock.WithStrictNodes())
					}
					s := simulate(t, 3, opts...)
					turn(s)
					c.harm(s)
					time.Sleep(time.Minute)
					turn(s) // has them looked at
					if got, want := counts(s), c.counts || !strict; got != want {
						t.Errorf("strict %v: counts %v, want %v", strict, got, want)
					}
					if c.counts || !strict {
						return
					}
					s.Node(1).Refuse(true)
					_, err := s.mutex("x").TryLock(t.Context())
					if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), "WithStrictNodes") {
						t.Errorf("the error does not say %q: %v", c.why, err)
					}
					s.Node(1).Refuse(false)
					s.Node(0).Tell(nil)
					if c.mend != nil {
						c.mend(s)
					}
					time.Sleep(time.Second)
					turn(s)
					if !counts(s) {
						t.Error("it was mended, and has no vote")
					}
				})
			})
		}
	}
}

// TestStrictNodesSameServer: of two nodes that are one server the second has no vote.
// A server does not tell two of them apart by their values alone where the first did
// not answer.
func TestStrictNodesSameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithStrictNodes())
		for _, n := range s.first(2) {
			n.Tell(func(i *redlock.ServerInfo) { i.RunID = "one" })
		}
		turn(s)
		s.Node(2).Refuse(true)
		turn(s)
		s.Node(3).Refuse(true)
		_, err := s.mutex("x").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		if err == nil || !strings.Contains(err.Error(), `node "node-1": acquire: it has no vote (WithStrictNodes): is the same server as node "node-0"`) {
			t.Error(err)
		}
		synctest.Wait()
		s.Node(2).Refuse(false)
		s.Node(3).Refuse(false)
		synctest.Wait()
		s.noLocks()
	})
}

// TestStrictNodesNew: the first vote is waited for, and a restarted server's too.
func TestStrictNodesNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithStrictNodes())
		s.Node(0).Tell(func(i *redlock.ServerInfo) { i.Role = "slave" })
		if counts(s) {
			t.Error("a replica had the first vote")
		}
		s.Node(0).Tell(nil)
		time.Sleep(time.Second)
		turn(s)
		if !counts(s) {
			t.Error("a master has no vote")
		}
		s.Node(0).Restart(false)
		s.Node(0).Tell(func(i *redlock.ServerInfo) { i.Role = "slave" })
		if counts(s) {
			t.Error("it restarted as a replica, and had a vote")
		}
	})
}

// TestStrictNodesOwnClock: steps of this machine's wall clock, and a long time between
// two looks with a clock that runs at another rate, are not held against the nodes.
func TestStrictNodesOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := clock.NewSkewed(clock.System, clock.Skew{Rate: 1.001})
		s := simulate(t, 3, redlock.WithStrictNodes(), redlock.WithClock(own))
		turn(s)
		// What the node would find after this machine's clock was set back.
		s.Node(0).Tell(func(i *redlock.ServerInfo) { i.Offset += time.Hour })
		s.Node(0).Restart(true) // looked at again, alone
		if !counts(s) {
			t.Error("after a step of this machine's wall clock")
		}
		time.Sleep(24 * time.Hour)
		s.Node(0).Restart(true)
		if !counts(s) {
			t.Error("after a day")
		}
	})
}

func TestStrictNodesRefused(t *testing.T) {
	nodes := redlocktest.New(3).Nodes()
	nodes[1] = mute{nodes[1]}
	_, err := redlock.New(nodes, redlock.WithStrictNodes())
	if err == nil || !strings.Contains(err.Error(), `nodes[1]: "node-1"`) || !strings.Contains(err.Error(), "WithStrictNodes") {
		t.Error(err)
	}
}
