// Drivers that ignore contexts: their calls last for as long as the node is silent,
// and nothing else waits for them.

package redlock_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestStallDeafDriver stalls a node whose driver ignores contexts, and whose calls
// therefore stay under way for as long as it lasts.
func TestStallDeafDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 32
		s := simulate(t, 3, redlock.WithNodeTimeout(100*time.Millisecond), redlock.WithTTL(time.Minute))
		for _, n := range s.all() {
			n.Delay(time.Millisecond, time.Millisecond)
		}
		goroutines := runtime.NumGoroutine()
		deaf := s.Node(0)
		deaf.IgnoreContext(true)
		deaf.Pause()
		k := startCrowd(t, s.client, callers)
		time.Sleep(time.Second)
		if n, bound := runtime.NumGoroutine()-goroutines, underWayBound+8*callers; n > bound {
			t.Errorf("%d goroutines, want at most %d", n, bound)
		}
		k.stop()
		k.wg.Wait()
		times, errs := k.take()
		for _, err := range errs {
			t.Error(err)
		}
		exactly(t, "lock and unlock", middle(times), 4*time.Millisecond)
		deaf.Resume()
		time.Sleep(200 * time.Millisecond)
		s.noLocks()
		if n, bound := len(deaf.Calls()), wakeBound; n > bound {
			t.Errorf("the node woke up to %d commands, want at most %d", n, bound)
		}
	})
}

// TestStallDeafDriverLosesReply: a call that never returns must not keep the
// releases that are to be repeated from a node that answers.
func TestStallDeafDriverLosesReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithNodeTimeout(100*time.Millisecond), redlock.WithTTL(time.Minute))
		deaf := s.Node(0)
		deaf.IgnoreContext(true)
		leases := []*redlock.Lease{s.lock("a"), s.lock("b"), s.lock("c")}
		synctest.Wait()
		deaf.FailWith(errors.New("BUSY"), redlock.Rejected, redlocktest.Release)
		for _, l := range leases {
			mustUnlock(t, l)
		}
		synctest.Wait() // the first releases have their answers
		deaf.DropReplies(true)
		time.Sleep(200 * time.Millisecond)
		deaf.DropReplies(false)
		deaf.FailWith(nil, 0)
		time.Sleep(200 * time.Millisecond)
		s.noLocks()
		deaf.Restart(true) // ends what waits for ever
	})
}

// TestStallDeafDriverLosesGrant: the acquire never returns, so the release cannot
// wait for it for longer than the node timeout.
func TestStallDeafDriverLosesGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithNodeTimeout(simNodeTimeout), redlock.WithTTL(time.Minute), redlock.WithoutRenewal())
		deaf := s.Node(0)
		deaf.IgnoreContext(true)
		deaf.DropReplies(true)
		l := s.lock("m")
		synctest.Wait()
		deaf.DropReplies(false)
		mustUnlock(t, l)
		time.Sleep(2 * simNodeTimeout)
		synctest.Wait()
		s.noLocks()
		deaf.Restart(true)
	})
}

// TestStallOverdue: a command that had to wait in the queue for longer than a node
// timeout is not sent, not even if its lease is still held.
func TestStallOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithNodeTimeout(simNodeTimeout), redlock.WithTTL(time.Minute), redlock.WithoutRenewal())
		full := s.Node(0)
		full.IgnoreContext(true)
		full.Pause()
		leases := make([]*redlock.Lease, underWayBound)
		for i := range leases {
			leases[i] = s.lock(fmt.Sprint(i))
		}
		synctest.Wait()
		last := s.lock("last")
		time.Sleep(2 * simNodeTimeout)
		full.Resume()
		synctest.Wait()
		for _, c := range full.Calls() {
			if c.Key == "lock:last" {
				t.Errorf("the node was sent %s of the lease that had to wait", c.Op)
			}
		}
		for _, l := range append(leases, last) {
			mustUnlock(t, l)
		}
		time.Sleep(2 * simNodeTimeout)
		s.noLocks()
	})
}
