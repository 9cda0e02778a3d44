// Acquires that wait for a release of their lock.

package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestAloneOvertaken: a release that is late on one node does not take its vote from the
// next attempt, nor does a late acquire that the release waits for itself.
func TestAloneOvertaken(t *testing.T) {
	const late = 20 * time.Millisecond
	for name, c := range map[string]struct{ before, locked func(n *redlocktest.Node) }{
		"release": {
			func(*redlocktest.Node) {},
			func(n *redlocktest.Node) { n.Delay(late, 0) },
		},
		"acquire, which the release waits for": {
			func(n *redlocktest.Node) { n.Delay(0, late) },
			func(*redlocktest.Node) {},
		},
		"release of what is not known to be there": {
			func(n *redlocktest.Node) { n.LoseReplies(1) },
			func(n *redlocktest.Node) { time.Sleep(time.Second); n.Delay(late, 0) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3)
				c.before(s.Node(2))
				l := s.lock("m")
				synctest.Wait()
				c.locked(s.Node(2))
				mustUnlock(t, l)
				synctest.Wait()        // the release is on its way
				s.Node(2).Delay(0, 0)  // what is sent from now on overtakes it
				s.Node(0).Refuse(true) // the two others are needed
				l, err := s.mutex("m").TryLock(t.Context())
				if err != nil {
					t.Fatalf("the lock is free, and its only user is told: %v", err)
				}
				s.heal()
				mustUnlock(t, l)
			})
		})
	}
}

// TestOvertakenSilent: a node that does not answer a release keeps attempts back no
// longer than this may take, and only its own vote.
func TestOvertakenSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithNodeTimeout(time.Second))
		l := s.lock("m")
		synctest.Wait()
		s.Node(2).Blackhole(true)
		mustUnlock(t, l)
		exactly(t, "TryLock", took(func() { mustUnlock(t, s.lock("m")) }), 0)
		time.Sleep(time.Second)
		s.Node(2).Blackhole(false)
		s.Node(0).Refuse(true)
		start := time.Now()
		l, err := s.mutex("m").Lock(t.Context())
		noErr(t, err)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("it took %v to have the vote of a node that answers", d)
		}
		s.heal()
		mustUnlock(t, l)
	})
}

// TestOvertakenFar: a node that takes more than half of the node timeout has its vote in
// an attempt that follows a release.
func TestOvertakenFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 320 * time.Millisecond
		s := simulate(t, 3, redlock.WithNodeTimeout(patience))
		s.Node(2).Delay(patience/4, patience/3)
		for i := range 10 {
			l := s.lock("m")
			time.Sleep(patience) // it has granted that
			mustUnlock(t, l)
			s.Node(i % 2).Refuse(true)
			l, err := s.mutex("m").TryLock(t.Context())
			if err != nil {
				t.Fatalf("attempt %d: %v", i, err)
			}
			s.Node(i % 2).Refuse(false)
			mustUnlock(t, l)
			time.Sleep(2 * time.Second)
		}
	})
}

// A deaf node does not return from a Release for long.
type deaf struct{ *redlocktest.Node }

func (d deaf) Release(ctx context.Context, c *redlock.Claim, bury bool) (redlock.Reply, error) {
	r, err := d.Node.Release(ctx, c, bury)
	time.Sleep(time.Hour)
	return r, err
}

// TestOvertakenDeaf: a release that does not return keeps nobody back for long.
func TestOvertakenDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 320 * time.Millisecond
		s := simulate(t, 3)
		nodes := s.Nodes()
		nodes[2] = deaf{s.Node(2)}
		c, err := redlock.New(nodes, redlock.WithNodeTimeout(patience))
		noErr(t, err)
		for range 3 {
			l := mustLock(t, mutexOf(t, c, "m"))
			synctest.Wait()
			mustUnlock(t, l)
			time.Sleep(time.Second) // the nodes have let go of it
			s.Node(0).Refuse(true)
			exactly(t, "TryLock", took(func() {
				l, err = mutexOf(t, c, "m").TryLock(t.Context())
				noErr(t, err)
			}), 0)
			s.Node(0).Refuse(false)
			_ = l.Unlock(t.Context())
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Hour)
		noErr(t, c.Close())
	})
}

// TestOvertakenMany: attempts that wait for a stalled node's release are bounded, and
// nothing is remembered of them.
func TestOvertakenMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		for i := range 10 {
			l := s.lock(fmt.Sprint("m", i))
			synctest.Wait()
			s.Node(2).Pause()
			mustUnlock(t, l)
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					if l, err := s.mutex(fmt.Sprint("m", i)).TryLock(t.Context()); err == nil {
						_ = l.Unlock(t.Context())
					}
				})
			}
			synctest.Wait()
			if n := s.client.Behind(); n == 0 || n > 64 {
				t.Errorf("%d attempts wait", n)
			}
			all.Wait()
			s.Node(2).Resume()
			time.Sleep(time.Minute)
		}
		if n := s.client.Freeing(); n > 0 {
			t.Errorf("it remembers %d locks", n)
		}
		s.noLocks()
	})
}

// TestOvertakenTwo: the release that an attempt waits for is the latest.
func TestOvertakenTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		s := simulate(t, 3, redlock.WithNodeTimeout(800*ms)) // an attempt waits for an eighth of it
		l := s.lock("m")
		time.Sleep(time.Second)
		start := time.Now()
		at := func(d time.Duration) { time.Sleep(d - time.Since(start)) }
		s.Node(2).Delay(0, 300*ms)
		mustUnlock(t, l)
		synctest.Wait() // the release is on its way
		s.Node(2).Delay(0, 0)
		l = s.lock("m") // with node 2 after 100 ms
		at(290 * ms)
		s.Node(2).Delay(30*ms, 0)
		mustUnlock(t, l)
		synctest.Wait() // the release is on its way
		s.Node(2).Delay(0, 0)
		s.Node(0).Refuse(true) // the two others are needed
		at(295 * ms)
		l, err := s.mutex("m").TryLock(t.Context())
		if err != nil {
			t.Fatalf("the answer to the release before the last let it go: %v", err)
		}
		exactly(t, "TryLock", time.Since(start), 320*ms)
		s.heal()
		mustUnlock(t, l)
	})
}

// TestOvertakenTimes: attempts with other node timeouts wait for as long as their own
// lets them, at most.
func TestOvertakenTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long, short = 8 * time.Second, 80 * time.Millisecond
		s := simulate(t, 3, redlock.WithNodeTimeout(long))
		l := s.lock("m")
		time.Sleep(time.Second)
		s.Node(2).Delay(long/2, 0)
		mustUnlock(t, l)
		synctest.Wait() // the release is on its way
		s.Node(2).Delay(0, 0)
		s.Node(0).Refuse(true)
		var all sync.WaitGroup
		try := func(patience time.Duration) time.Duration {
			m := mutexOf(t, s.client, "m", redlock.WithNodeTimeout(patience))
			return took(func() {
				if _, err := m.TryLock(t.Context()); err == nil {
					t.Error("two nodes of three have granted none, and it holds the lock")
				}
			})
		}
		all.Go(func() { exactly(t, "the patient one", try(long), long/8) })
		synctest.Wait() // it has the vote of node 1
		s.Node(0).Refuse(false)
		exactly(t, "the other", try(short), short/8)
		all.Wait()
		synctest.Wait()
		if f, b := s.client.Freeing(), s.client.Behind(); f != 1 || b != 0 {
			t.Errorf("%d locks are being released, want 1; %d attempts wait", f, b)
		}
	})
}
