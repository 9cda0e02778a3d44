// Waiting for locks on nodes that are silent, keep no lines, or are bad at it.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestWaitSilentNode: a vote that is split by a node that is known to be silent does
// not last a node timeout.
func TestWaitSilentNode(t *testing.T) {
	for _, deaf := range []bool{false, true} { // its driver ignores the node timeout
		synctest.Test(t, func(t *testing.T) { testSilentNode(t, deaf) })
	}
}

func testSilentNode(t *testing.T, deaf bool) {
	s := distant(t, 5, redlock.WithNodeTimeout(time.Second))
	s.Node(4).Blackhole(true)
	s.Node(4).IgnoreContext(deaf)
	m := s.mutex("x")
	for round := range 5 { // two votes are there, two are with somebody else
		occupy("x", 0, s.Node(0), s.Node(1))
		most := 2 * oneWay
		if round == 0 {
			most = time.Second
		}
		exactly(t, fmt.Sprint("TryLock ", round), took(func() {
			_, err := m.TryLock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
		}), most)
		drop("x", s.Node(0), s.Node(1))
		time.Sleep(3 * time.Second)
	}
	if deaf {
		s.Node(4).Restart(true)
	}
	s.heal()
	s.gone()
}

// A lineless node keeps no lines.
type lineless struct{ redlock.Node }

func (s *sim) linelessNodes() []redlock.Node {
	nodes := s.Nodes()
	for i, n := range nodes {
		nodes[i] = lineless{n}
	}
	return nodes
}

// TestWaitPlainNodes: where a minority keeps no lines, calls still do it; otherwise
// waiters poll.
func TestWaitPlainNodes(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for plain := range n + 1 {
			synctest.Test(t, func(t *testing.T) {
				s := distant(t, n)
				nodes := s.Nodes()
				most := 10 * 2 * oneWay
				if plain > (n-1)/2 {
					most = pollEach
				}
				for i := range plain {
					nodes[i] = lineless{nodes[i]}
				}
				client := func() *redlock.Mutex {
					c, err := redlock.New(nodes)
					noErr(t, err)
					t.Cleanup(func() { noErr(t, c.Close()) })
					return mutexOf(t, c, "a\x00/{}\xff/1")
				}
				held := mustLock(t, client())
				w := await(t.Context(), client())
				time.Sleep(2 * time.Second)
				start := time.Now()
				noErr(t, held.Unlock(t.Context()))
				noErr(t, w.within(t, start, most).Unlock(t.Context()))
				s.gone()
			})
		}
	}
}

// A badListener ends each hearing after some time, or never begins one.
type badListener struct {
	*redlocktest.Node
	life   time.Duration // negative: it never begins
	begins *[]time.Time
}

func (b badListener) Listen(ctx context.Context, _ string, ready func(), _ func(string)) error {
	*b.begins = append(*b.begins, time.Now())
	if b.life < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	ready()
	select {
	case <-time.After(b.life):
		return errors.New("it has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWaitBadListeners: the waiters poll. A node whose subscriptions do not last is soon
// listened to only now and then, and one that was good for a while at once again.
func TestWaitBadListeners(t *testing.T) {
	for _, life := range []time.Duration{-1, 0, 10 * time.Millisecond, time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := distant(t, 3)
			var nodes []redlock.Node
			begins := make([][]time.Time, s.Len())
			for i, n := range s.all() {
				nodes = append(nodes, badListener{n, life, &begins[i]})
			}
			c, err := redlock.New(nodes)
			noErr(t, err)
			occupy("x", 0, s.all()...)
			w := await(t.Context(), mutexOf(t, c, "x"))
			time.Sleep(30 * time.Second)
			start := time.Now()
			drop("x", s.all()...)
			noErr(t, w.within(t, start, pollEach).Unlock(t.Context()))
			noErr(t, c.Close())
			for _, all := range begins {
				if n := len(all); n > 20 {
					t.Errorf("life %v: it listened %d times", life, n)
				}
				for i := 1; i < len(all) && life > 4*time.Second; i++ {
					if d := all[i].Sub(all[i-1]) - life; d > 16*time.Millisecond {
						t.Errorf("life %v: it listened again %v later", life, d)
					}
				}
			}
			s.gone()
		})
	}
}

// TestWaitPanic: a Backoff or a hook that panics does not hold up the line.
func TestWaitPanic(t *testing.T) {
	for _, hook := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			panics := func(yes bool) {
				if yes {
					panic("test")
				}
			}
			s := distant(t, 3, redlock.WithTrace(&redlock.Trace{Wait: func(w redlock.Wait) { panics(hook && w.Attempt == 3) }}))
			occupy("x", 0, s.all()...)
			bad := s.mutex("x", redlock.WithBackoff(func(attempt int, _ float64) time.Duration {
				panics(!hook && attempt == 3)
				return 10 * time.Millisecond
			}))
			recovered := make(chan any)
			go func() {
				defer func() { recovered <- recover() }()
				_, _ = bad.Lock(t.Context())
			}()
			time.Sleep(time.Millisecond)
			w := await(t.Context(), s.mutex("x", pauseOf(5*time.Second)))
			if r := <-recovered; r != "test" {
				t.Errorf("recovered %v", r)
			}
			time.Sleep(time.Second)
			start := time.Now()
			drop("x", s.all()...)
			noErr(t, w.within(t, start, 6*time.Second).Unlock(t.Context()))
			s.gone()
		})
	}
}

// silence makes a node of five one that is known to be silent, and says nothing yet.
func (s *sim) silence(node int) {
	s.Node(node).Blackhole(true)
	occupy("y", 0, s.Node(0), s.Node(1))
	_, err := s.mutex("y").TryLock(s.t.Context())
	is(s.t, err, redlock.ErrNoQuorum)
	drop("y", s.Node(0), s.Node(1))
}

// TestWaitSlowNode: a node that was silent has a vote as before, unless the vote is split
// and it has said nothing since.
func TestWaitSlowNode(t *testing.T) {
	for name, fault := range map[string]func(s *sim){
		"it has spoken since": func(s *sim) {
			s.Node(4).Blackhole(false)
			time.Sleep(5 * time.Second) // its release is repeated, and answered
			s.Node(4).Delay(0, 300*time.Millisecond)
			occupy("x", 0, s.Node(0), s.Node(1))
		},
		"nobody else has a vote": func(s *sim) {
			s.Node(4).Blackhole(false)
			s.Node(4).Delay(0, 300*time.Millisecond)
			s.Node(0).Refuse(true)
			s.Node(1).Refuse(true)
		},
		"counters are raised": func(s *sim) {
			occupy("x", 0, s.Node(3))
			s.counters(3*time.Second, 4*time.Second, 5*time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := distant(t, 5, redlock.WithNodeTimeout(time.Second))
				s.silence(4)
				time.Sleep(20 * time.Millisecond) // the others have released
				fault(s)
				noErr(t, s.lock("x").Unlock(t.Context()))
				time.Sleep(time.Second)
				for _, n := range s.all() {
					n.Del("lock:x")
				}
				s.heal()
				s.gone()
			})
		})
	}
}
