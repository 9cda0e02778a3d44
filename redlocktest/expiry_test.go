// The end of a key: to the millisecond, and by the clock of its node.

package redlocktest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A key is there in the whole of its last millisecond.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		time.Sleep(900 * time.Microsecond) // late in a millisecond: what is cut off shows
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", 10*ms)))
		time.Sleep(9*ms + 100*time.Microsecond)
		last := func() {
			t.Helper()
			reply, err := n.Acquire(t.Context(), claim("b", 10*ms))
			answers(t, redlock.Taken)(reply, err)
			if reply.Remaining != 0 {
				t.Errorf("remaining %v, want 0", reply.Remaining)
			}
			holds(t, n, "a")
		}
		last() // the first instant of that millisecond,
		time.Sleep(ms - 1)
		last() // and the last
		time.Sleep(time.Nanosecond)
		holds(t, n, "")
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("b", 10*ms)))
	})
}

func TestClockStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.New(2)
		n := c.Node(0)
		lock := func() { answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl))) }
		lock()
		n.Clock().Step(ttl)
		holds(t, n, "a")
		n.Clock().Step(ms)
		holds(t, n, "")
		lock()
		n.Clock().Step(-time.Hour)
		if _, left, _ := n.Get("k"); left != ttl+time.Hour {
			t.Errorf("%v left, want the hour in addition", left)
		}
		n.Clock().Suspend(time.Hour + ttl + ms)
		holds(t, n, "")
		if !c.Node(1).Clock().Now().Equal(time.Now()) {
			t.Error("the clock of another node moved")
		}
	})
}

func TestClockRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Clock().SetRate(2)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		time.Sleep(ttl / 2)
		holds(t, n, "a")
		time.Sleep(ms)
		holds(t, n, "")
		n.Clock().SetRate(0.5)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		time.Sleep(2*ttl - ms)
		holds(t, n, "a")

		// The network keeps the time of the base.
		n.Delay(10*ms, 10*ms)
		takes(t, 20*ms, func() { answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl))) })
	})
}

func TestWithClock(t *testing.T) {
	base := &manualClock{}
	base.set(5000)
	n := redlocktest.New(1, redlocktest.WithClock(base)).Node(0)
	answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", 10*ms)))
	if at := n.Calls()[0].At.UnixMilli(); at != 5000 {
		t.Errorf("executed at %d, want 5000", at)
	}
	base.set(5010)
	holds(t, n, "a")
	base.set(5011)
	holds(t, n, "")
}

// What a command has found expired is gone, even if the clock then steps back;
// looking at the node changes nothing.
func TestExpiredKeysAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Set("k", "a", ttl)
		n.Set("k2", "a", ttl)
		n.Clock().Step(time.Hour)
		if _, _, ok := n.Get("k2"); ok || len(n.Keys()) != 0 {
			t.Errorf("keys %q, want none", n.Keys())
		}
		answers(t, redlock.Absent)(n.Release(t.Context(), claim("a", ttl), false))
		n.Clock().Step(-time.Hour)
		if got := n.Keys(); !slices.Contains(got, "k2") || slices.Contains(got, "k") {
			t.Errorf("keys %q, want k2", got)
		}
	})
}

// Keys that nothing asks for do not pile up, and the others stay.
func TestExpiredKeysAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		const keys = 10_000
		for i := range keys {
			time.Sleep(ttl / 50)
			value := fmt.Sprint(i)
			answers(t, redlock.Granted)(n.Acquire(t.Context(), claim(value, ttl)))
			answers(t, redlock.Released)(n.Release(t.Context(), claim(value, ttl), true))
			if _, left, ok := n.Get("tomb:" + fmt.Sprint(i-50)); i >= 50 && (!ok || left != 0) {
				t.Fatalf("a tombstone in its last millisecond: %v, %v left", ok, left)
			}
		}
		n.Clock().Step(-keys * ttl) // everything that is still there is back alive
		if got := len(n.Keys()); got > 500 {
			t.Errorf("%d keys are there; 50 live at a time", got)
		}
	})
}
