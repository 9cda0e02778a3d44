// The record of calls, and its observer.

package redlocktest_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Clock().Step(time.Hour)
		start := n.Clock().Now()
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		time.Sleep(ms)
		answers(t, redlock.Taken)(n.Extend(t.Context(), claim("b", 2*ttl)))
		answers(t, redlock.Released)(n.Release(t.Context(), claim("a", ttl), true))
		want := []redlocktest.Call{
			{Node: "node-0", Op: redlocktest.Acquire, Key: "k", Value: "a", TTL: ttl, Verdict: redlock.Granted, At: start},
			{Node: "node-0", Op: redlocktest.Extend, Key: "k", Value: "b", TTL: 2 * ttl, Verdict: redlock.Taken, At: start.Add(ms)},
			{Node: "node-0", Op: redlocktest.Release, Key: "k", Value: "a", TTL: ttl, Bury: true, Verdict: redlock.Released, At: start.Add(ms)},
		}
		if got := n.Calls(); !slices.Equal(got, want) {
			t.Errorf("calls\n%+v, want\n%+v", got, want)
		}
		n.ResetCalls()
		if got := n.Calls(); len(got) != 0 {
			t.Errorf("calls %v after ResetCalls", got)
		}
	})
}

func TestCallsAreBounded(t *testing.T) {
	n := newNode()
	const calls, kept = 20_000, 4096
	for i := range calls {
		answers(t, redlock.Absent)(n.Release(t.Context(), claim(fmt.Sprint(i), ttl), false))
	}
	got := n.Calls()
	if len(got) != kept || got[0].Value != fmt.Sprint(calls-kept) || got[kept-1].Value != fmt.Sprint(calls-1) {
		t.Errorf("%d calls, from %q to %q; want the last %d", len(got), got[0].Value, got[len(got)-1].Value, kept)
	}
	n.ResetCalls()
	for range 2 {
		answers(t, redlock.Absent)(n.Release(t.Context(), claim("a", ttl), false))
	}
	if got := len(n.Calls()); got != 2 {
		t.Errorf("%d calls after a reset, want 2", got)
	}
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		var seen []redlock.Verdict
		n.Observe(func(c redlocktest.Call) {
			seen = append(seen, c.Verdict)
			// It may use the node. The call that it sees has been executed.
			n.Set("seen", c.Value, 0)
			n.Del("k")
			n.Calls()
		})
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		if v, _, _ := n.Get("seen"); v != "a" {
			t.Error("the caller had its answer before the observer saw the call")
		}
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("b", ttl)))
		n.Observe(nil)
		answers(t, redlock.Absent)(n.Release(t.Context(), claim("b", ttl), false))
		if want := []redlock.Verdict{redlock.Granted, redlock.Granted}; !slices.Equal(seen, want) {
			t.Errorf("saw %v, want %v", seen, want)
		}
	})
}

// The observer may stand for the worst moment: the command is executed, the
// reply is not sent.
func TestObserverMayRestartTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Observe(func(redlocktest.Call) { n.Restart(false) })
		if _, err := n.Acquire(t.Context(), claim("a", ttl)); err == nil {
			t.Error("a call that was in flight at the restart got an answer")
		}
		n.Observe(func(redlocktest.Call) { n.Pause() })
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		timesOut(t, redlock.Unknown)(n.Acquire(within(t, ms), claim("a", ttl)))
		n.Resume()
	})
}

// While the observer waits, so do the answers, but neither the network nor the
// callers' contexts.
func TestObserverMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Observe(func(c redlocktest.Call) {
			if c.Value == "slow" {
				time.Sleep(100 * ms)
			}
		})
		slow := background(func() (redlock.Reply, error) { return n.Acquire(t.Context(), claim("slow", ttl)) })
		synctest.Wait()
		takes(t, 20*ms, func() { timesOut(t, redlock.Unknown)(n.Acquire(within(t, 20*ms), claim("b", ttl))) })
		takes(t, 80*ms, func() { answers(t, redlock.Taken)(n.Acquire(t.Context(), claim("c", ttl))) })
		o := <-slow
		answers(t, redlock.Granted)(o.reply, o.err)
	})
}

// An observer that panics, as one does that fails its test, leaves a node that
// works.
func TestObserverMayPanic(t *testing.T) {
	n := newNode()
	n.Observe(func(redlocktest.Call) { panic("observer") })
	func() {
		defer func() { _ = recover() }()
		_, _ = n.Acquire(t.Context(), claim("a", ttl))
	}()
	n.Observe(nil)
	answers(t, redlock.Taken)(n.Acquire(t.Context(), claim("b", ttl)))
}

// Callers without number, and every switch flipped under them: each command is
// seen once, alone, in the order of the record, and at most one value holds the
// lock at a time.
func TestConcurrency(t *testing.T) {
	n := newNode()
	var seen []redlocktest.Call
	var inside atomic.Int32
	n.Observe(func(c redlocktest.Call) {
		if inside.Add(1) != 1 {
			t.Error("two calls are observed at once")
		}
		seen = append(seen, c)
		inside.Add(-1)
	})
	var callers, faults sync.WaitGroup
	done := make(chan struct{})
	for i := range 8 {
		callers.Go(func() {
			for j := range 200 {
				c := claim(fmt.Sprintf("%d.%d", i, j), time.Hour)
				ctx := within(t, 2*ms)
				_, _ = n.Acquire(ctx, c)
				_, _ = n.Extend(ctx, c)
				_, _ = n.Release(ctx, c, true)
			}
		})
	}
	switches := []func(on bool){
		n.Refuse, n.Blackhole, n.DropReplies, n.IgnoreContext,
		func(on bool) { n.Restart(on) },
		func(bool) { n.LoseReplies(1) },
		func(bool) { n.Late(ms) },
		func(on bool) {
			if on {
				n.Pause()
			} else {
				n.Resume()
			}
		},
		func(on bool) {
			if on {
				n.Delay(ms/10, ms/10)
			} else {
				n.Delay(0, 0)
			}
		},
		func(on bool) {
			if on {
				n.FailWith(errors.New("OOM"), redlock.Rejected)
			} else {
				n.FailWith(nil, 0)
			}
		},
		func(bool) { n.Clock().Step(ms); n.Keys(); n.Calls() },
	}
	faults.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				flip := switches[i%len(switches)]
				flip(true)
				time.Sleep(ms / 10)
				flip(false)
			}
		}
	})
	callers.Wait()
	close(done)
	faults.Wait()
	n.Restart(true)
	if calls := n.Calls(); len(seen) < len(calls) || !slices.Equal(seen[len(seen)-len(calls):], calls) {
		t.Errorf("saw %d calls, recorded %d, or in another order", len(seen), len(calls))
	}
}
