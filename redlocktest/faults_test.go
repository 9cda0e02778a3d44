// Faults of the server and its connections.

package redlocktest_test

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(5*ms, 5*ms)
		flying := background(func() (redlock.Reply, error) { return n.Acquire(t.Context(), claim("a", ttl)) })
		synctest.Wait()

		n.Refuse(true)
		takes(t, 0, func() {
			fails(t, redlock.Unsent, syscall.ECONNREFUSED)(n.Acquire(t.Context(), claim("b", ttl)))
		})
		if o := <-flying; o.err != nil {
			t.Errorf("a call in flight failed: %v", o.err)
		}
		if calls := n.Calls(); len(calls) != 1 || calls[0].Value != "a" {
			t.Errorf("executed %v, want the first call only", calls)
		}
		n.Refuse(false)
		answers(t, redlock.Taken)(n.Acquire(t.Context(), claim("b", ttl)))
	})
}

func TestLoseReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(0, 20*ms)
		n.DropReplies(true) // of what still has a connection
		n.LoseReplies(2)
		takes(t, 0, func() {
			fails(t, redlock.Unknown, io.EOF)(n.Acquire(t.Context(), claim("a", ttl)))
			holds(t, n, "a")
			fails(t, redlock.Unknown, io.EOF)(n.Release(t.Context(), claim("a", ttl), false))
			holds(t, n, "")
		})
		n.DropReplies(false)
		takes(t, 20*ms, func() { answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("b", ttl))) })
		if v := n.Calls()[0].Verdict; v != redlock.Granted {
			t.Errorf("the record says %v, want what the node answered", v)
		}
		n.LoseReplies(1)
		n.LoseReplies(0)
		answers(t, redlock.Granted)(n.Extend(t.Context(), claim("b", ttl)))
	})
}

func TestDropReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.DropReplies(true)
		takes(t, 50*ms, func() { timesOut(t, redlock.Unknown)(n.Acquire(within(t, 50*ms), claim("a", ttl))) })
		holds(t, n, "a")
		n.DropReplies(false)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
	})
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("old", 20*ms)))
		n.Pause()
		timesOut(t, redlock.Unknown)(n.Acquire(within(t, 10*ms), claim("gone", ttl)))
		waits := background(func() (redlock.Reply, error) { return n.Acquire(t.Context(), claim("waits", ttl)) })
		synctest.Wait()
		timesOut(t, redlock.Unknown)(n.Release(within(t, 10*ms), claim("gone", ttl), false))
		holds(t, n, "old")

		time.Sleep(time.Minute)
		n.Resume()
		// The old lock has expired meanwhile. What nobody waits for is executed
		// in its turn, and has its whole life before it.
		o := <-waits
		answers(t, redlock.Taken)(o.reply, o.err)
		if o.reply.Remaining != ttl {
			t.Errorf("remaining %v, want %v", o.reply.Remaining, ttl)
		}
		var got []redlock.Verdict
		for _, c := range n.Calls()[1:] {
			got = append(got, c.Verdict)
		}
		if want := []redlock.Verdict{redlock.Granted, redlock.Taken, redlock.Released}; !slices.Equal(got, want) {
			t.Errorf("verdicts %v, want %v", got, want)
		}
		n.Resume() // again: nothing is executed twice
		if len(n.Calls()) != 4 {
			t.Errorf("executed %d calls, want 4", len(n.Calls()))
		}
	})
}

func TestFailWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(10*ms, 10*ms)
		oom, loading := errors.New("OOM command not allowed"), errors.New("LOADING")
		ops := []redlocktest.Op{redlocktest.Acquire}
		n.FailWith(oom, redlock.Rejected, ops...)
		ops[0] = redlocktest.Release
		takes(t, 20*ms, func() { fails(t, redlock.Rejected, oom)(n.Acquire(t.Context(), claim("a", ttl))) })
		answers(t, redlock.Absent)(n.Release(t.Context(), claim("a", ttl), true))

		n.FailWith(loading, redlock.Forbidden)
		fails(t, redlock.Forbidden, loading)(n.Acquire(t.Context(), claim("a", ttl)))
		fails(t, redlock.Forbidden, loading)(n.Extend(t.Context(), claim("a", ttl)))
		fails(t, redlock.Forbidden, loading)(n.Release(t.Context(), claim("b", ttl), true))
		if got := n.Keys(); !slices.Equal(got, []string{"tomb:a"}) {
			t.Errorf("keys %q, want the tombstone of the release that was executed", got)
		}
		if c := n.Calls()[0]; c.Err != oom || c.Verdict != redlock.Rejected {
			t.Errorf("recorded %+v", c)
		}

		n.FailWith(nil, redlock.Rejected)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("c", ttl)))
	})
}
