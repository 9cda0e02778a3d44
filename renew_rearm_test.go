// Nodes that lost the key of a lease: who gets it back, when, and who must not.

package redlock_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const (
	rearmTTL   = 3 * time.Second
	rearmEvery = rearmTTL / 3
)

// has reports whether node i holds the lease's token.
func has(n *redlocktest.Node, i int, l *redlock.Lease) bool {
	value, _, ok := n.Get("lock:" + l.Name())
	return ok && value == fmt.Sprintf("%s.%d", l.Token(), i)
}

// acquires returns how many acquires for the lease a node has executed.
func acquires(n *redlocktest.Node, i int, l *redlock.Lease) (count int) {
	for _, c := range n.Calls() {
		if (c.Op == redlocktest.Acquire || c.Op == redlocktest.Rearm) && c.Value == fmt.Sprintf("%s.%d", l.Token(), i) {
			count++
		}
	}
	return count
}

// TestRenewRearm: two of five nodes die in turn, at every phase of the renewals,
// and come back empty after a while. Each has the key again one renewal later,
// and the work outlives the TTL ten times.
func TestRenewRearm(t *testing.T) {
	step := 50 * time.Millisecond
	if testing.Short() {
		step = 230 * time.Millisecond
	}
	for phase := time.Duration(0); phase < rearmEvery && !t.Failed(); phase += step {
		synctest.Test(t, func(t *testing.T) {
			const way = 2 * time.Millisecond
			c := redlocktest.New(5)
			var book logbook
			holder := join(t, c, way, way, redlock.WithTTL(rearmTTL), book.trace())
			lease := holder.lock("a")
			start := time.Now()
			time.Sleep(phase)
			for down := time.Duration(0); time.Since(start) < 10*rearmTTL; down += 130 * time.Millisecond {
				for i := range 2 {
					n := c.Node(i)
					n.Refuse(true)
					n.Restart(false)
					time.Sleep(down)
					n.Refuse(false)
					time.Sleep(rearmEvery + 4*way)
					if !has(n, i, lease) {
						t.Errorf("phase %v: node %d, after %v down, still lacks the key one renewal later", phase, i, down)
					}
				}
			}
			noErr(t, lease.Err())
			if n := book.failed(); n > 0 {
				t.Errorf("%d renewals failed", n)
			}
			rearmed := 0
			for _, e := range book.read().nodes {
				if e.Op == "rearm" {
					rearmed++
					if !e.Late || e.Err != nil || e.Verdict != redlock.Granted {
						t.Errorf("%+v", e)
					}
				}
			}
			if rearmed == 0 {
				t.Error("no re-arming was traced")
			}
			mustUnlock(t, lease)
			time.Sleep(time.Second)
			for i := range c.Len() {
				if has(c.Node(i), i, lease) {
					t.Errorf("node %d has the key after Unlock", i)
				}
			}
		})
	}
}

// TestRenewRearmNotCounted: with two nodes out and one without the key, two
// confirm a renewal. It must not be won by giving the key to the third, and so
// the third does not get it either.
func TestRenewRearmNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(5)
		var book logbook
		holder := join(t, c, 0, 0, redlock.WithTTL(rearmTTL), book.trace())
		lease := holder.lock("a")
		deadline := lease.Deadline()
		synctest.Wait()
		holder.set(lineHanging, 2)
		c.Node(2).Restart(false)
		mustEnd(t, lease, time.Hour)
		if !time.Now().Equal(deadline) {
			t.Errorf("the lease ended %v after the deadline of its grant", time.Since(deadline))
		}
		wantLost(t, lease, redlock.ErrExpired, redlock.ErrNoQuorum)
		if n := acquires(c.Node(2), 2, lease); n != 1 {
			t.Errorf("the node without the key was sent %d acquires, want that of the grant", n)
		}
		for _, e := range book.read().renewals {
			if e.Err == nil || e.Granted > 2 {
				t.Errorf("a renewal with two confirmations: %+v", e)
			}
		}
		if len(book.read().renewals) == 0 {
			t.Error("nothing was renewed")
		}
		holder.set(lineIntact, 2)
		time.Sleep(2 * rearmTTL)
	})
}

// TestRenewRearmCounts: what one renewal restored is part of the next one's
// quorum.
func TestRenewRearmCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(5)
		var book logbook
		holder := join(t, c, 0, 0, redlock.WithTTL(rearmTTL), book.trace())
		lease := holder.lock("a")
		synctest.Wait()
		c.Node(0).Restart(false)
		c.Node(1).Restart(false)
		time.Sleep(rearmEvery)
		if n := len(book.read().renewals); n != 1 || book.read().renewals[0].Granted != 3 {
			t.Fatalf("renewals: %+v", book.read().renewals)
		}
		for _, l := range holder.lines[2:4] {
			l.set(lineHanging)
		}
		time.Sleep(10 * rearmTTL)
		noErr(t, lease.Err())
		if n := book.failed(); n > 0 {
			t.Errorf("%d renewals failed", n)
		}
		for _, l := range holder.lines[2:4] {
			l.set(lineIntact)
		}
		mustUnlock(t, lease)
		synctest.Wait()
	})
}

// TestRenewRearmForeign, without a counter that would tell: between the lease and a node's next state, somebody
// else held the lock there. That node is left alone.
func TestRenewRearmForeign(t *testing.T) {
	for name, show := range map[string]func(n *redlocktest.Node, asked func()){
		"before the grant": nil, // see below
		"while held": func(n *redlocktest.Node, asked func()) {
			n.Restart(false)
			occupy("a", 0, n)
			asked()
			drop("a", n)
		},
		"after a restart, before it expires": func(n *redlocktest.Node, asked func()) {
			n.Restart(false)
			occupy("a", rearmEvery+rearmEvery/2, n)
			asked()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := redlocktest.New(5)
				n := c.Node(4)
				if show == nil {
					occupy("a", rearmEvery/2, n)
				}
				holder := join(t, c, 0, 0, redlock.WithTTL(rearmTTL), redlock.WithoutFencing())
				lease := holder.lock("a")
				synctest.Wait()
				before := acquires(n, 4, lease)
				if show != nil {
					show(n, func() { time.Sleep(rearmEvery) })
				}
				time.Sleep(10 * rearmTTL)
				noErr(t, lease.Err())
				if n := acquires(n, 4, lease) - before; n > 0 {
					t.Errorf("it was re-armed, %d times", n)
				}
				mustUnlock(t, lease)
				synctest.Wait()
			})
		})
	}
}

// TestRenewRearmLate: a node says, long after the others won the renewal, that it
// has no key. While the lease lasts it gets one, and afterwards it does not.
func TestRenewRearmLate(t *testing.T) {
	for _, c := range []struct {
		name   string
		back   time.Duration
		unlock bool // before the answer comes
		want   bool
	}{
		{"within the validity", 2 * time.Second, false, true},
		{"after the deadline", 4 * time.Second, false, false},
		{"after Unlock", 2 * time.Second, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := redlocktest.New(3)
				client, err := redlock.New(cluster.Nodes(), redlock.WithTTL(rearmTTL), redlock.WithoutRenewal())
				noErr(t, err)
				lease := mustLock(t, mutexOf(t, client, "a"))
				synctest.Wait()
				slow := cluster.Node(0)
				slow.Restart(false)
				slow.IgnoreContext(true)
				slow.Delay(0, c.back)
				noErr(t, lease.Extend(t.Context()))
				time.Sleep(time.Second)
				if c.unlock {
					slow.Delay(0, 0)
					mustUnlock(t, lease)
				}
				time.Sleep(c.back - time.Second)
				synctest.Wait()
				if got := acquires(slow, 0, lease) > 1; got != c.want {
					t.Errorf("re-armed: %v, want %v", got, c.want)
				}
				slow.Heal()
				time.Sleep(rearmTTL)
				noErr(t, client.Close())
				for i := range 3 {
					if has(cluster.Node(i), i, lease) {
						t.Errorf("node %d still has the key", i)
					}
				}
			})
		})
	}
}

// TestRenewRearmUnlock: Unlock comes while a re-arming is on its way, which then
// arrives after everything. It must not leave a lock behind.
func TestRenewRearmUnlock(t *testing.T) {
	for wait := time.Duration(0); wait < 200*time.Millisecond && !t.Failed(); wait += 7 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			c := redlocktest.New(3)
			client, err := redlock.New(c.Nodes(), redlock.WithTTL(rearmTTL), redlock.WithoutRenewal(), redlock.WithNodeTimeout(100*time.Millisecond))
			noErr(t, err)
			lease := mustLock(t, mutexOf(t, client, "a"))
			synctest.Wait()
			lost := c.Node(0)
			lost.Restart(false)
			lost.Late(150 * time.Millisecond) // the re-arming travels until 150 ms after its time
			noErr(t, lease.Extend(t.Context()))
			time.Sleep(wait)
			mustUnlock(t, lease)
			time.Sleep(600 * time.Millisecond)
			if has(lost, 0, lease) {
				t.Errorf("unlocked %v after the renewal: the node has the key for good", wait)
			}
			noErr(t, client.Close())
		})
	}
}

// TestRenewRearmUnlocked: a re-arming that is about to be sent when Unlock is called is
// not sent after the release. With one processor it is Unlock that goes first.
func TestRenewRearmUnlocked(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := redlocktest.New(3)
			client, err := redlock.New(c.Nodes(), redlock.WithTTL(rearmTTL), redlock.WithoutRenewal())
			noErr(t, err)
			lease := mustLock(t, mutexOf(t, client, "a"))
			synctest.Wait()
			lost := c.Node(2) // the last: its release is the first to go
			lost.Restart(false)
			lost.Delay(0, 0)
			for i := range 2 {
				c.Node(i).Delay(0, time.Millisecond) // it is known to lack the key by then
			}
			noErr(t, lease.Extend(t.Context()))
			mustUnlock(t, lease)
			synctest.Wait()
			released := false
			for _, call := range lost.Calls() {
				if call.Op == redlocktest.Rearm && released {
					t.Error("the lock was given back after the release")
				}
				released = released || call.Op == redlocktest.Release
			}
			noErr(t, client.Close())
		})
	}
}
