// Lines of waiters: who stands where, and who is told.

package redlocktest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// place is a place in the line of the lock "k", with a ticket that was drawn so
// long ago by the clock of the test.
func place(waiter string, ago time.Duration) *redlock.Place {
	return &redlock.Place{Lock: "k", Queue: "line", Waiter: waiter, Ticket: time.Now().Add(-ago).UnixMicro(), Life: ttl}
}

// inLine is claim by one who knows of the line.
func inLine(value string) *redlock.Claim {
	c := claim(value, ttl)
	c.Queue = "line"
	return c
}

// stands checks a line.
func stands(t *testing.T, n *redlocktest.Node, want ...string) {
	t.Helper()
	if got, _ := n.Line("line"); !slices.Equal(got, want) {
		t.Fatalf("line %q, want %q", got, want)
	}
}

// enlists puts waiters into the line, and checks how many are ahead of each.
func enlists(t *testing.T, n *redlocktest.Node, ahead int64, p *redlock.Place) {
	t.Helper()
	reply, err := n.Enlist(t.Context(), p)
	if err != nil || reply.Ahead != ahead {
		t.Fatalf("%d ahead, error %v; want %d", reply.Ahead, err, ahead)
	}
}

// releases takes the lock and releases it.
func releases(t *testing.T, n *redlocktest.Node, named bool) {
	t.Helper()
	answers(t, redlock.Granted)(n.Acquire(t.Context(), inLine("a")))
	reply, err := n.Release(t.Context(), inLine("a"), false)
	answers(t, redlock.Released)(reply, err)
	if reply.Named != named {
		t.Fatalf("named %v, want %v", reply.Named, named)
	}
}

func TestEnlist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Absent)(n.Enlist(t.Context(), place("x/b", 2*time.Second)))
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		time.Sleep(ms)
		reply, err := n.Enlist(t.Context(), place("x/c", time.Second))
		answers(t, redlock.Taken)(reply, err)
		if reply.Remaining != ttl-ms || reply.Ahead != 1 {
			t.Errorf("remaining %v, ahead %d; want %v, 1", reply.Remaining, reply.Ahead, ttl-ms)
		}
		enlists(t, n, 0, place("x/a", 3*time.Second))
		enlists(t, n, 2, place("x/c", 4*time.Second)) // it keeps its place
		enlists(t, n, 1, place("x/aa", 2*time.Second+ms))
		same := place("x/bb", 0)
		same.Ticket = place("", time.Second).Ticket - 1000
		enlists(t, n, 3, same)
		stands(t, n, "x/a", "x/aa", "x/b", "x/bb", "x/c")
		n.Set("k", "operator", 0)
		if reply, err := n.Enlist(t.Context(), place("x/c", 0)); err != nil || reply.Remaining >= 0 {
			t.Errorf("remaining %v, error %v; want negative for a lock without expiry", reply.Remaining, err)
		}
		c := n.Calls()[0]
		if c.Op != redlocktest.Enlist || c.Key != "k" || c.Value != "x/b" || c.TTL != ttl {
			t.Errorf("recorded %+v", c)
		}
	})
}

// A ticket counts for ten seconds at most, and not before its time, by the node's
// clock.
func TestTicketsAreBounded(t *testing.T) {
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode()
			n.Clock().Step(step)
			at := func(waiter string, ago time.Duration) *redlock.Place { return place(waiter, ago-step) }
			enlists(t, n, 0, at("x/old", time.Hour))
			time.Sleep(ms)
			enlists(t, n, 1, at("x/9.9s", 9900*ms))
			enlists(t, n, 1, at("x/ancient", 24*time.Hour)) // behind the old, since the clock has moved
			enlists(t, n, 3, at("x/future", -24*time.Hour))
			time.Sleep(ms)
			enlists(t, n, 4, at("x/now", 0))
			stands(t, n, "x/old", "x/ancient", "x/9.9s", "x/future", "x/now")
		})
	}
}

func TestEqualTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		for i, waiter := range []string{"x/B", "x/a", "w/z", "x/A"} {
			enlists(t, n, int64([]int{0, 1, 0, 1}[i]), place(waiter, time.Second))
		}
		stands(t, n, "w/z", "x/A", "x/B", "x/a")
	})
}

func TestDelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		if err := n.Delist(t.Context(), place("x/a", 0)); err != nil {
			t.Error(err)
		}
		enlists(t, n, 0, place("x/a", 2*ms))
		enlists(t, n, 1, place("x/b", ms))
		for _, c := range []struct {
			waiter string
			left   []string
		}{{"x/a", []string{"x/b"}}, {"x/a", []string{"x/b"}}, {"x/b", nil}} {
			if err := n.Delist(t.Context(), place(c.waiter, 0)); err != nil {
				t.Error(err)
			}
			stands(t, n, c.left...)
		}
		if keys := n.Keys(); len(keys) != 0 {
			t.Errorf("keys %q, want no empty line", keys)
		}
	})
}

// A line is there as long as somebody has come to it within its life.
func TestLineExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		enlists(t, n, 0, place("x/a", 0))
		time.Sleep(ttl - ms)
		enlists(t, n, 1, place("x/b", 0))
		time.Sleep(ms)
		enlists(t, n, 1, place("x/b", 0)) // again: this is a use, too
		time.Sleep(ttl)
		stands(t, n, "x/a", "x/b")
		if _, left := n.Line("line"); left != 0 {
			t.Errorf("%v left, want 0", left)
		}
		if err := n.Delist(t.Context(), place("x/b", 0)); err != nil {
			t.Error(err)
		}
		n.Clock().Step(ms) // its own clock counts
		stands(t, n)
		enlists(t, n, 0, place("x/c", 0))
		stands(t, n, "x/c")

		n.Restart(true)
		stands(t, n, "x/c")
		n.Restart(false)
		stands(t, n)
	})
}

func TestLineWrongType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		wrongType := func(reply redlock.Reply, err error) {
			t.Helper()
			if reply.Verdict != redlock.Forbidden || err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
				t.Errorf("got verdict %v, error %v; want Forbidden, WRONGTYPE", reply.Verdict, err)
			}
		}
		delist := func() (redlock.Reply, error) {
			return redlock.Reply{Verdict: redlock.Forbidden}, n.Delist(t.Context(), place("x/a", 0))
		}
		spoil := []func(key string){n.SetList, func(key string) { n.Set(key, "text", 0) }}
		for _, f := range spoil {
			f("line")
			wrongType(n.Enlist(t.Context(), place("x/a", 0)))
			wrongType(delist())
			releases(t, n, false) // the lock is free all the same
		}
		n.Del("line")
		n.SetList("k")
		wrongType(n.Enlist(t.Context(), place("x/a", 0)))
		if keys := n.Keys(); !slices.Equal(keys, []string{"k"}) {
			t.Errorf("keys %q, want no line", keys)
		}

		n.Del("k")
		enlists(t, n, 0, place("x/a", 0))
		c := claim("a", ttl)
		c.Lock, c.Queue = "line", "line"
		wrongType(n.Acquire(t.Context(), c))
		wrongType(n.Extend(t.Context(), c))
		wrongType(n.Release(t.Context(), c, false))
		if _, err := n.Inspect(t.Context(), "line", ""); err == nil {
			t.Error("a line was inspected as a lock")
		}
		if value, _, ok := n.Get("line"); ok {
			t.Errorf("Get of a line returned %q", value)
		}
		c = claim("a", ttl)
		c.Fence, c.ClockBound = "line", ttl
		if _, err := n.Acquire(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "REDLOCKCOUNTER") {
			t.Errorf("a line as a counter: %v", err)
		}
		stands(t, n, "x/a")
	})
}

func TestReleaseTellsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e := listen(t, n, "x")
		both := listen(t, n, "x/y")
		releases(t, n, false) // there is no line
		for i, waiter := range []string{"nobody/1", "none", "/", "x/y/2", "x/1", "x/2"} {
			enlists(t, n, int64(i), place(waiter, time.Second-time.Duration(i)*ms))
		}
		// Without a line to look at, with another's lock, or none, nobody is told.
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		answers(t, redlock.Taken)(n.Release(t.Context(), inLine("b"), true))
		answers(t, redlock.Released)(n.Release(t.Context(), claim("a", ttl), true))
		answers(t, redlock.Absent)(n.Release(t.Context(), inLine("c"), true))
		stands(t, n, "nobody/1", "none", "/", "x/y/2", "x/1", "x/2")

		n.Del("tomb:a")
		releases(t, n, true)
		stands(t, n, "x/y/2", "x/1", "x/2") // who was called stays in front, but is not called again
		releases(t, n, true)
		stands(t, n, "x/1", "x/2")
		enlists(t, n, 0, place("x/1", 0)) // unless he comes again, and then he has the place that he had
		enlists(t, n, 1, place("x/2", time.Hour))
		releases(t, n, true)
		releases(t, n, true)
		stands(t, n, "x/2")
		enlists(t, n, 1, place("x/3", time.Second)) // in front of whom one was called
		releases(t, n, true)
		releases(t, n, false)
		both.heard(t, "x/y/2")
		e.heard(t, "x/1", "x/1", "x/2", "x/3")
		if keys := n.Keys(); slices.Contains(keys, "line") {
			t.Error("an empty line was left")
		}
	})
}

// A release passes over so many who do not listen, and no more.
func TestReleaseGivesUp(t *testing.T) {
	for _, deaf := range []int{15, 16} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode()
			e := listen(t, n, "x")
			for i := range deaf {
				enlists(t, n, int64(i), place(fmt.Sprintf("deaf/%02d", i), time.Second))
			}
			enlists(t, n, int64(deaf), place("x/1", 0))
			releases(t, n, deaf < 16)
			if deaf == 16 {
				stands(t, n, "x/1")
				releases(t, n, true)
			}
			e.heard(t, "x/1")
		})
	}
}
