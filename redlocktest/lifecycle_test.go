// Restarts, contexts, and the end of all faults.

package redlocktest_test

import (
	"context"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func TestRestartEndsCallsInFlight(t *testing.T) {
	hazards := map[string]func(*redlocktest.Node){
		"travelling": func(n *redlocktest.Node) { n.Delay(time.Hour, 0) },
		"paused":     (*redlocktest.Node).Pause,
		"late":       func(n *redlocktest.Node) { n.Late(0) },
		"blackhole":  func(n *redlocktest.Node) { n.Blackhole(true) },
		"unanswered": func(n *redlocktest.Node) { n.DropReplies(true) },
		"returning":  func(n *redlocktest.Node) { n.Delay(0, time.Hour) },
	}
	for name, hazard := range hazards {
		for _, ignores := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNode()
					n.IgnoreContext(ignores)
					hazard(n)
					call := background(func() (redlock.Reply, error) { return n.Acquire(t.Context(), claim("a", ttl)) })
					time.Sleep(time.Minute)
					takes(t, 0, func() {
						n.Restart(false)
						o := <-call
						fails(t, redlock.Unknown, io.EOF)(o.reply, o.err)
					})
					calls := len(n.Calls())
					n.Heal()
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					holds(t, n, "")
					if len(n.Calls()) != calls {
						t.Error("a command outlived the process")
					}
				})
			})
		}
	}
}

func TestRestartForgetsCommandsOfCallersThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Late(time.Minute)
		timesOut(t, redlock.Unknown)(n.Acquire(within(t, ms), claim("late", ttl)))
		n.Delay(time.Minute, 0)
		timesOut(t, redlock.Unknown)(n.Acquire(within(t, ms), claim("travelling", ttl)))
		n.Delay(0, 0)
		n.Pause()
		timesOut(t, redlock.Unknown)(n.Acquire(within(t, ms), claim("paused", ttl)))
		n.Restart(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		n.Resume()
		if calls := n.Calls(); len(calls) != 0 {
			t.Errorf("executed %v", calls)
		}
	})
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		first := n.RunID()
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", 100*ms)))
		n.Pause()
		n.Restart(true)
		if second := n.RunID(); first == "" || second == first {
			t.Errorf("run IDs %q and %q, want two", first, second)
		}
		time.Sleep(40 * ms)
		// It runs, with the key, whose life went on.
		reply, err := n.Acquire(t.Context(), claim("b", ttl))
		answers(t, redlock.Taken)(reply, err)
		if reply.Remaining != 60*ms {
			t.Errorf("remaining %v, want 60ms", reply.Remaining)
		}
		n.Restart(false)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("b", ttl)))
	})
}

// A crash, as the documentation has it: down, then up again and empty.
func TestDownAndUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		n.Refuse(true)
		n.Restart(false)
		fails(t, redlock.Unsent, syscall.ECONNREFUSED)(n.Extend(t.Context(), claim("a", ttl)))
		n.Refuse(false)
		answers(t, redlock.Absent)(n.Extend(t.Context(), claim("a", ttl)))
	})
}

func TestIgnoreContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.IgnoreContext(true)
		n.Delay(30*ms, 30*ms)
		takes(t, 60*ms, func() { answers(t, redlock.Granted)(n.Acquire(within(t, 10*ms), claim("a", ttl))) })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		takes(t, 60*ms, func() { answers(t, redlock.Granted)(n.Acquire(ended, claim("a", ttl))) })
		n.IgnoreContext(false)
		takes(t, 10*ms, func() { timesOut(t, redlock.Unknown)(n.Acquire(within(t, 10*ms), claim("a", ttl))) })
	})
}

func TestHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Pause()
		timesOut(t, redlock.Unknown)(n.Acquire(within(t, ms), claim("a", ttl)))
		n.Refuse(true)
		n.IgnoreContext(true)
		n.Late(time.Hour)
		n.Delay(time.Hour, time.Hour)
		n.Blackhole(true)
		n.FailWith(io.ErrUnexpectedEOF, redlock.Rejected)
		n.LoseReplies(1)
		n.DropReplies(true)
		n.Heal()
		holds(t, n, "a")
		takes(t, 0, func() {
			answers(t, redlock.Granted)(n.Acquire(within(t, ms), claim("a", ttl)))
			answers(t, redlock.Released)(n.Release(within(t, ms), claim("a", ttl), false))
		})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		timesOut(t, redlock.Unsent)(n.Acquire(ended, claim("a", ttl)))
	})
}

func TestContextEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		timesOut(t, redlock.Unsent)(n.Acquire(ctx, claim("a", ttl)))
		if len(n.Calls()) != 0 {
			t.Error("the command was sent")
		}
	})
}

// An answer that arrives in the instant in which the context ends is an answer.
func TestContextEndsWithTheAnswer(t *testing.T) {
	n := newNode()
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		n.Observe(func(redlocktest.Call) { cancel() })
		answers(t, redlock.Granted)(n.Acquire(ctx, claim("a", ttl)))
	}
}

// A node that is silent for long keeps nothing of the calls that gave up on it.
func TestCallersThatLeaveAreForgotten(t *testing.T) {
	const calls, size = 5000, 4096
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Blackhole(true)
		before := heap()
		for range calls {
			timesOut(t, redlock.Unknown)(n.Acquire(within(t, ms), claim(strings.Repeat("v", size), ttl)))
		}
		if grown := heap() - before; grown > calls*size/2 {
			t.Errorf("%d kB more in use after %d calls of %d kB", grown>>10, calls, size>>10)
		}
		n.Heal() // keeps n until here
	})
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestNew(t *testing.T) {
	c := redlocktest.New(3)
	var names []string
	for i, n := range c.Nodes() {
		if n != redlock.Node(c.Node(i)) {
			t.Errorf("Nodes()[%d] is not Node(%d)", i, i)
		}
		names = append(names, n.Name())
	}
	if want := []string{"node-0", "node-1", "node-2"}; c.Len() != 3 || !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if _, err := redlock.New(c.Nodes()); err != nil {
		t.Error(err)
	}
	answers(t, redlock.Granted)(c.Node(0).Acquire(t.Context(), claim("a", ttl)))
	answers(t, redlock.Granted)(c.Node(1).Acquire(t.Context(), claim("b", ttl)))

	defer func() {
		if recover() == nil {
			t.Error("New(0) did not panic")
		}
	}()
	redlocktest.New(0)
}
