// Faults of the network: commands and replies that are slow, lost or late.

package redlocktest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(30*ms, 20*ms)
		start := time.Now()
		takes(t, 50*ms, func() { answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl))) })
		if at := n.Calls()[0].At.Sub(start); at != 30*ms {
			t.Errorf("executed after %v, want 30ms", at)
		}
		if _, left, _ := n.Get("k"); left != ttl-20*ms {
			t.Errorf("the lock has %v left, want its life to begin at the node", left)
		}

		// The caller leaves, the command does not.
		takes(t, 10*ms, func() { timesOut(t, redlock.Unknown)(n.Release(within(t, 10*ms), claim("a", ttl), false)) })
		holds(t, n, "a")
		time.Sleep(20 * ms)
		synctest.Wait()
		holds(t, n, "")

		// The caller leaves while the reply is on its way.
		takes(t, 40*ms, func() { timesOut(t, redlock.Unknown)(n.Acquire(within(t, 40*ms), claim("b", ttl))) })
		holds(t, n, "b")
	})
}

func TestDelayKeepsOrder(t *testing.T) {
	const calls = 50
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(10*ms, 0)
		var want []string
		for i := range calls {
			value := string(rune('A' + i))
			want = append(want, value)
			background(func() (redlock.Reply, error) { return n.Acquire(t.Context(), claim(value, ttl)) })
			synctest.Wait() // so that they are sent in this order, in one instant
		}
		n.Delay(9*ms, 0)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("first", ttl)))
		time.Sleep(ms)
		synctest.Wait()

		var got []string
		for _, c := range n.Calls() {
			got = append(got, c.Value)
		}
		if want = append([]string{"first"}, want...); !slices.Equal(got, want) {
			t.Errorf("executed\n%q, want\n%q", got, want)
		}
	})
}

func TestBlackhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Blackhole(true)
		takes(t, 50*ms, func() { timesOut(t, redlock.Unknown)(n.Acquire(within(t, 50*ms), claim("a", ttl))) })
		n.Blackhole(false)
		time.Sleep(time.Hour)
		if len(n.Calls()) != 0 {
			t.Error("a lost command was executed")
		}

		// It stands between a command that is under way and the node,
		n.Delay(10*ms, 10*ms)
		sent := background(func() (redlock.Reply, error) { return n.Acquire(within(t, 50*ms), claim("b", ttl)) })
		time.Sleep(5 * ms)
		n.Blackhole(true)
		o := <-sent
		timesOut(t, redlock.Unknown)(o.reply, o.err)
		if len(n.Calls()) != 0 {
			t.Error("a command passed through")
		}

		// and between a reply that is under way and its caller.
		n.Blackhole(false)
		sent = background(func() (redlock.Reply, error) { return n.Acquire(within(t, 50*ms), claim("c", ttl)) })
		time.Sleep(15 * ms)
		holds(t, n, "c")
		n.Blackhole(true)
		o = <-sent
		timesOut(t, redlock.Unknown)(o.reply, o.err)
	})
}

func TestLate(t *testing.T) {
	for _, bury := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode()
			n.Late(30 * ms)
			answers(t, redlock.Absent)(n.Release(t.Context(), claim("x", ttl), false)) // not an Acquire
			takes(t, 10*ms, func() { timesOut(t, redlock.Unknown)(n.Acquire(within(t, 10*ms), claim("a", ttl))) })
			answers(t, redlock.Absent)(n.Release(t.Context(), claim("a", ttl), bury))

			time.Sleep(30*ms - 1)
			synctest.Wait()
			if got := len(n.Calls()); got != 2 {
				t.Fatalf("executed %d calls too early", got-2)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if bury {
				holds(t, n, "")
			} else {
				holds(t, n, "a")
				answers(t, redlock.Taken)(n.Acquire(t.Context(), claim("b", ttl))) // only one is late
			}
		})
	}
}

func TestLateCrossesTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Late(0)
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := background(func() (redlock.Reply, error) { return n.Acquire(ctx, claim("a", ttl)) })
		synctest.Wait()
		n.Pause()
		cancel()
		o := <-cancelled
		timesOut(t, redlock.Unknown)(o.reply, o.err)
		synctest.Wait()
		holds(t, n, "")
		n.Resume()
		holds(t, n, "a")
	})
}
