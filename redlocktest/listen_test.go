// Listening: who hears what, and when.

package redlocktest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		one, two, other := listen(t, n, "x"), listen(t, n, "x"), listen(t, n, "y")
		calls(t, n, true, "x/1", "x/2", "y/1", "x/3")
		one.heard(t, "x/1", "x/2", "x/3")
		two.heard(t, "x/1", "x/2", "x/3")
		other.heard(t, "y/1")
		takes(t, 0, func() {
			one.end()
			one.ends(t, nil)
		})
		calls(t, n, true, "x/4")
		one.heard(t, "x/1", "x/2", "x/3")
		two.heard(t, "x/1", "x/2", "x/3", "x/4")
		two.end()
		two.ends(t, nil)
		calls(t, n, false, "x/5") // the node knows that nobody is left
		if c := n.Calls()[0]; c.Op != redlocktest.Listen || c.Value != "x" {
			t.Errorf("recorded %+v", c)
		}
	})
}

// Who listens may be slow, and may use the node.
func TestListenerMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		done := make(chan error, 1)
		go func() {
			done <- n.Listen(ctx, "x", func() { n.Calls() }, func(waiter string) {
				time.Sleep(time.Minute)
				n.Keys()
				answers(t, redlock.Absent)(n.Extend(t.Context(), claim(waiter, ttl)))
				got = append(got, waiter)
			})
		}()
		synctest.Wait()
		takes(t, 0, func() { calls(t, n, true, "x/1", "x/2", "x/3") })
		time.Sleep(2*time.Minute + time.Second)
		cancel()
		time.Sleep(time.Hour)
		if err := <-done; err == nil || !slices.Equal(got, []string{"x/1", "x/2", "x/3"}) {
			t.Errorf("heard %q, ended with %v", got, err)
		}
	})
}

func TestListenDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Delay(30*ms, 20*ms)
		start := time.Now()
		e := listens(t, n, "x")
		time.Sleep(50*ms - 1)
		e.isReady(t, false)
		time.Sleep(time.Nanosecond)
		e.isReady(t, true)

		calls(t, n, true, "x/1") // executed after 80ms, and back after 100
		n.Delay(0, 20*ms)
		both := background(func() (redlock.Reply, error) { calls(t, n, true, "x/2", "x/3"); return redlock.Reply{}, nil })
		time.Sleep(10 * ms)
		n.Delay(0, 0)
		<-both
		e.heard(t, "x/1", "x/2", "x/3")
		e.set(func() {
			for i, want := range []time.Duration{100 * ms, 120 * ms, 120 * ms} {
				if got := e.at[i].Sub(start); got != want {
					t.Errorf("heard %s after %v, want %v", e.waiters[i], got, want)
				}
			}
		})
	})
}

// What is sent later does not overtake, however short its way.
func TestWakesKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e := listen(t, n, "x")
		var want []string
		for i := range 50 {
			waiter := "x/" + string(rune('A'+i))
			want = append(want, waiter)
			n.Delay(0, time.Duration(50-i)*ms)
			background(func() (redlock.Reply, error) { calls(t, n, true, waiter); return redlock.Reply{}, nil })
			synctest.Wait()
		}
		n.Delay(0, 0)
		calls(t, n, true, "x/last")
		e.heard(t)
		time.Sleep(50*ms - 1)
		e.heard(t)
		time.Sleep(time.Nanosecond)
		e.heard(t, append(want, "x/last")...)
	})
}
