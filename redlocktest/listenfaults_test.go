// What listens, and what stands in line, meets faults.

package redlocktest_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func TestListenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e := listen(t, n, "x")
		n.Delay(0, 10*ms)
		calls(t, n, true, "x/1")
		n.Delay(10*ms, 10*ms)
		coming := listens(t, n, "x")
		flying := background(func() (redlock.Reply, error) { calls(t, n, false, "x/2"); return redlock.Reply{}, nil })
		synctest.Wait()
		n.Refuse(true)
		e.ends(t, io.EOF)
		coming.ends(t, io.EOF)
		<-flying // it goes on, but is not heard
		takes(t, 0, func() { listens(t, n, "x").ends(t, syscall.ECONNREFUSED) })
		n.Refuse(false)
		n.Delay(0, 0)
		calls(t, n, false, "x/3")
		e.heard(t, "x/1")
		coming.isReady(t, false)
		listen(t, n, "x")
	})
}

func TestListenRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e := listen(t, n, "x")
		n.Delay(0, 10*ms)
		n.Set("k", "a", 0)
		n.SetLine("line", "x/1 1", 0)
		background(func() (redlock.Reply, error) { return n.Release(t.Context(), inLine("a"), false) })
		synctest.Wait()
		coming := listens(t, n, "x")
		n.Restart(true) // what was on its way is lost
		e.ends(t, io.EOF)
		coming.ends(t, io.EOF)
		time.Sleep(time.Second)
		e.heard(t)
		calls(t, n, false, "x/2")
	})
}

func TestListenPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e := listen(t, n, "x")
		n.Pause()
		later := listens(t, n, "x")
		gone := background(func() (redlock.Reply, error) { calls(t, n, true, "x/1"); return redlock.Reply{}, nil })
		synctest.Wait()
		time.Sleep(time.Second)
		e.heard(t)
		later.isReady(t, false)
		n.Resume()
		<-gone
		later.isReady(t, true)
		e.heard(t, "x/1")
		later.heard(t, "x/1")
	})
}

func TestListenBlackhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Blackhole(true)
		soon := listens(t, n, "x")
		time.Sleep(ms)
		soon.isReady(t, false)
		soon.end()
		soon.ends(t, nil)
		n.IgnoreContext(true) // but this call does not
		soon = listens(t, n, "x")
		soon.end()
		soon.ends(t, nil)
		takes(t, 2*time.Second, func() {
			err := n.Listen(t.Context(), "x", func() { t.Error("ready") }, func(string) {})
			if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() {
				t.Errorf("%v, want a timeout", err)
			}
		})
		n.Heal()

		e := listen(t, n, "x")
		n.Delay(0, 10*ms)
		lost := background(func() (redlock.Reply, error) { return n.Release(within(t, 50*ms), inLine("a"), false) })
		n.Set("k", "a", 0)
		n.SetLine("line", "x/1 1", 0)
		synctest.Wait()
		n.Blackhole(true)
		<-lost
		n.Blackhole(false)
		calls(t, n, true, "x/2")
		e.heard(t, "x/2")
	})
}

func TestListenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		noPerm := errors.New("NOPERM")
		n.FailWith(noPerm, redlock.Forbidden, redlocktest.Listen)
		listens(t, n, "x").ends(t, noPerm)
		n.FailWith(nil, 0)
		n.LoseReplies(1)
		listens(t, n, "x").ends(t, io.EOF)
		n.DropReplies(true)
		deaf := listens(t, n, "x")
		deaf.isReady(t, false)
		n.DropReplies(false)
		calls(t, n, true, "x/1") // it listens as far as the node knows
		deaf.heard(t)
		time.Sleep(2 * time.Second)
		deaf.ends(t, nil)
		calls(t, n, false, "x/2")
	})
}

func TestDropWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e := listen(t, n, "x")
		n.DropWakes(true)
		calls(t, n, true, "x/1")
		n.DropWakes(false)
		calls(t, n, true, "x/2")
		n.DropWakes(true)
		n.Heal()
		calls(t, n, true, "x/3")
		e.heard(t, "x/2", "x/3")
	})
}

// Enlist and Delist meet the faults that all commands meet.
func TestLineFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(10*ms, 10*ms)
		takes(t, 20*ms, func() { enlists(t, n, 0, place("x/a", 0)) })
		n.Delay(0, 0)
		n.DropReplies(true)
		takes(t, 5*ms, func() { timesOut(t, redlock.Unknown)(n.Enlist(within(t, 5*ms), place("x/b", 0))) })
		n.DropReplies(false)
		n.LoseReplies(1)
		if err := n.Delist(t.Context(), place("x/a", 0)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
		stands(t, n, "x/b")
		oom := errors.New("OOM")
		n.FailWith(oom, redlock.Rejected, redlocktest.Enlist)
		fails(t, redlock.Rejected, oom)(n.Enlist(t.Context(), place("x/c", 0)))
		if err := n.Delist(t.Context(), place("x/b", 0)); err != nil {
			t.Error(err)
		}
		n.Refuse(true)
		fails(t, redlock.Unsent, syscall.ECONNREFUSED)(n.Enlist(t.Context(), place("x/c", 0)))
		stands(t, n)
	})
}
