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
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, 5, redlock.WithNodeTimeout(time.Second))
		s.Node(4).Blackhole(true)
		s.Node(4).IgnoreContext(true) // its driver is no faster than the node timeout
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
		s.Node(4).Restart(true)
		s.heal()
		s.gone()
	})
}

// A lineless node keeps no lines.
type lineless struct{ redlock.Node }

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

// A badListener ends each hearing when it has begun, or never begins one.
type badListener struct {
	*redlocktest.Node
	never   bool
	listens *int
}

func (b badListener) Listen(ctx context.Context, _ string, ready func(), _ func(string)) error {
	*b.listens++
	if b.never {
		<-ctx.Done()
		return ctx.Err()
	}
	ready()
	return errors.New("it has ended")
}

// TestWaitBadListeners: the waiters poll, and listen no more than 125 times a second.
func TestWaitBadListeners(t *testing.T) {
	for _, never := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := distant(t, 3)
			var nodes []redlock.Node
			listens := make([]int, s.Len())
			for i, n := range s.all() {
				nodes = append(nodes, badListener{n, never, &listens[i]})
			}
			c, err := redlock.New(nodes)
			noErr(t, err)
			occupy("x", 0, s.all()...)
			w := await(t.Context(), mutexOf(t, c, "x"))
			time.Sleep(10 * time.Second)
			start := time.Now()
			drop("x", s.all()...)
			noErr(t, w.within(t, start, pollEach).Unlock(t.Context()))
			noErr(t, c.Close())
			for _, n := range listens {
				if n > 1300 {
					t.Errorf("never=%v: it listened %d times", never, n)
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
