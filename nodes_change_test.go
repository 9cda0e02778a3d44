// What docs/operations.md says about clients with different lists of nodes.

package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// bothHold reports whether a client of the nodes in one list and one of those in another
// can have the same lock at once, whichever nodes each of them cannot reach.
func bothHold(t *testing.T, one, other []int) (found bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(6)
		mutex := func(list []int) (*redlock.Client, *redlock.Mutex) {
			var nodes []redlock.Node
			for _, i := range list {
				nodes = append(nodes, cluster.Node(i))
			}
			c, err := redlock.New(nodes, redlock.WithoutRenewal())
			noErr(t, err)
			m, err := c.NewMutex("r")
			noErr(t, err)
			return c, m
		}
		a, first := mutex(one)
		b, second := mutex(other)
		reach := func(list []int, reached int) {
			for i, n := range list {
				cluster.Node(n).Refuse(reached&(1<<i) == 0)
			}
		}
		for x := range 1 << len(one) {
			for y := range 1 << len(other) {
				reach(one, x)
				if l, err := first.TryLock(t.Context()); err == nil {
					synctest.Wait()
					reach(one, 1<<len(one)-1)
					reach(other, y)
					if l, err := second.TryLock(t.Context()); err == nil {
						found = true
						l.Unlock(t.Context())
					}
					reach(other, 1<<len(other)-1)
					l.Unlock(t.Context())
				}
				reach(one, 1<<len(one)-1)
				synctest.Wait()
			}
		}
		a.Close()
		b.Close()
	})
	return found
}

// TestNodesChange: whatever number of nodes there is, a client of one node more, or one
// less, and one of the old list keep each other out. With one node replaced by another
// they do not, nor with two more.
func TestNodesChange(t *testing.T) {
	nodes := []int{0, 1, 2, 3, 4, 5}
	for n := 1; n <= 4; n++ {
		if bothHold(t, nodes[:n], nodes[:n+1]) || bothHold(t, nodes[:n+1], nodes[:n]) {
			t.Errorf("%d and %d nodes: two holders", n, n+1)
		}
	}
	for _, c := range [][2][]int{
		{{0, 1, 2}, {0, 1, 3}},       // one replaced
		{{0, 1, 2}, {0, 1, 2, 3, 4}}, // two more
		{{0, 1, 2, 3, 4}, {1, 2, 3}}, // two less
	} {
		if !bothHold(t, c[0], c[1]) {
			t.Errorf("%v and %v keep each other out: that was no test", c[0], c[1])
		}
	}
}

// TestNodesChangeToken: after a change of one node and the time that operations.md asks
// for, tokens are above the earlier ones, also if no node of the earlier quorum is asked.
func TestNodesChangeToken(t *testing.T) {
	const settled = 11050 * time.Millisecond // the clock bound, and a bucket; the clocks agree here
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(4)
		var last int64
		for step, list := range [][]int{{0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3}} {
			var nodes []redlock.Node
			for _, i := range list {
				nodes = append(nodes, cluster.Node(i))
			}
			c, err := redlock.New(nodes)
			noErr(t, err)
			m, err := c.NewMutex("r")
			noErr(t, err)
			if step == 0 {
				cluster.Node(2).Refuse(true) // so that 0 and 1 grant, and 2 and 3 after them
			}
			if step == 2 {
				cluster.Node(1).Refuse(true)
			}
			for range 100 * (step%2 ^ 1) { // nobody locks between the two changes
				l := mustLock(t, m)
				if l.FencingToken() <= last {
					t.Fatalf("%v: token %d after %d", list, l.FencingToken(), last)
				}
				last = l.FencingToken()
				mustUnlock(t, l)
			}
			cluster.Node(2).Refuse(false)
			c.Close()
			time.Sleep(settled)
		}
	})
}
