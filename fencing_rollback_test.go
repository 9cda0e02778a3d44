// Counters that go back: a node is killed and comes up with an older snapshot.

package redlock_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

const (
	leastBound = 3 * time.Second              // that WithClockBound takes
	floorStep  = (1 << 20) * time.Microsecond // that a node's clock is rounded down to

	// timeOut is how long a node that has lost counters has to stay out: the clock
	// bound and the step of the floor, and some 50 ms for good measure. The clocks
	// here are one and the same.
	timeOut = leastBound + floorStep + 50*time.Millisecond
)

// A rollback is three nodes and a lock on them.
//
//	tokens 1..k     on all
//	node 1          SAVE
//	tokens k+1..m   on nodes 0 and 1
//	node 1          killed, restarted with the snapshot
//	token m+1       on nodes 1 and 2, which never heard of k+1..m
type rollback struct {
	*fleet
	ledger
	skew time.Duration // of the clients' clocks
}

func startRollback(t *testing.T, skew time.Duration) *rollback {
	t.Helper()
	return &rollback{fleet: startProxied(t, 3, redisproc.Persist(redisproc.RDB)), skew: skew}
}

// take locks n times with a client of its own: it knows of no earlier token.
func (r *rollback) take(n int) {
	r.t.Helper()
	c := r.open(redlock.WithClockBound(leastBound), redlock.WithNodeTimeout(500*time.Millisecond),
		redlock.WithClock(clock.NewSkewed(nil, clock.Skew{Offset: r.skew})))
	m := mutexOf(r.t, c, "m")
	for range n {
		mustUnlock(r.t, r.lock(r.t, m))
		r.free(0)
	}
	noErr(r.t, c.Close())
}

// lead moves the counters of two nodes as far ahead of their clocks as can be
// without being refused. No client does that by itself in less than millions of
// acquisitions, but one whose clock is ahead makes a good part of it.
func (r *rollback) lead() {
	r.t.Helper()
	n := strconv.FormatInt(clockOf(r.t, r.servers[0])+(leastBound-time.Millisecond).Microseconds(), 10)
	for _, s := range r.servers[:2] {
		ask(r.t, s, "SET", counterKey("m"), n, "EX", "36000")
	}
}

// crash is up to where node 1 is down. Nothing can be on its way to it.
func (r *rollback) crash(lead bool) (lost int64) {
	r.t.Helper()
	r.take(3)
	ask(r.t, r.servers[1], "SAVE")
	noErr(r.t, r.proxies[2].Refuse(true))
	if lead {
		r.lead()
	}
	r.take(20)
	lost = counter(r.t, r.servers[1], "m")
	if lost != r.highest() {
		r.t.Fatalf("node 1 has counted to %d, not to the last token %d", lost, r.highest())
	}
	noErr(r.t, r.proxies[1].Refuse(true))
	noErr(r.t, r.servers[1].Kill())
	return lost
}

// TestFencingRollback: tokens stay unique and in order if a node whose counter has
// gone back votes again only after the clock bound and 1.05 s. That holds however
// far its counter was ahead of its clock, and whatever clock the clients have, for
// it rests on the floor that the node itself puts under each step.
func TestFencingRollback(t *testing.T) {
	t.Parallel()
	for _, lead := range []bool{false, true} {
		for _, skew := range []time.Duration{0, -time.Hour, time.Hour} {
			t.Run(fmt.Sprintf("lead=%v clients off by %v", lead, skew), func(t *testing.T) {
				t.Parallel()
				r := startRollback(t, skew)
				lost := r.crash(lead)
				time.Sleep(timeOut)
				noErr(t, r.servers[1].Restart())
				back := counter(t, r.servers[1], "m")
				t.Logf("the counter of node 1 was %d, and is %d: back by %d", lost, back, lost-back)
				if back >= lost || back == 0 {
					t.Fatalf("the counter has not gone back")
				}
				noErr(t, r.proxies[0].Refuse(true))
				noErr(t, r.proxies[1].Refuse(false))
				noErr(t, r.proxies[2].Refuse(false))
				r.take(20)
				r.check(t)
			})
		}
	}
}

// TestFencingRollbackTooSoon: the time out is needed. Without it, the tokens of the
// same run are not in order.
func TestFencingRollbackTooSoon(t *testing.T) {
	t.Parallel()
	r := startRollback(t, -time.Hour)
	lost := r.crash(true)
	noErr(t, r.servers[1].Restart())
	noErr(t, r.proxies[0].Refuse(true))
	noErr(t, r.proxies[1].Refuse(false))
	noErr(t, r.proxies[2].Refuse(false))
	r.take(1)
	if err := disorder(r.list); err == nil {
		t.Errorf("there is order although the node that lost %d voted at once", lost)
	} else {
		t.Logf("as it should be: %v", err)
	}
}
