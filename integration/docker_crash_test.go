// Nodes that come back empty, and do no harm.

package integration_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

const (
	crashTTL = 15 * time.Second
	none     = dockernode.None
	rdb      = dockernode.RDB
	everysec = dockernode.EverySec
	always   = dockernode.Always
)

// TestDockerCrash: of a lock that all five nodes hold two may forget, and a node that
// waits for the longest TTL before it comes back does no harm. TestDockerGuard has what
// happens otherwise.
func TestDockerCrash(t *testing.T) {
	t.Parallel()
	f := startFleet(t, none, none, none, none, none)
	t.Run("all held", func(t *testing.T) {
		f := f.in(t)
		c := f.open(redlock.WithTTL(crashTTL), redlock.WithoutRenewal())
		a := f.lock(mutexOf(t, c, "all"))
		f.settled(a, 5)
		for n, node := range []int{0, 4} { // one less than a quorum
			f.crash(node)
			f.settled(a, 4-n)
			_, err := mutexOf(t, f.open(), "all").TryLock(t.Context())
			is(t, err, redlock.ErrTaken)
		}
		f.unlock(a)
		f.free("all", quick)
	})

	t.Run("bare quorum, away for the TTL", func(t *testing.T) {
		if testing.Short() {
			t.Skip("NOT TESTED with -short: a node that stays away")
		}
		const ttl = 4 * time.Second
		f := f.in(t)
		a := f.bareQuorum("away", ttl, 0, 1, 2)
		f.nodes[0].Kill()
		m := mutexOf(t, f.open(redlock.WithoutRenewal(), redlock.WithNodeTimeout(time.Second)), "away")
		for a.Err() == nil {
			before := a.Deadline()
			if b, err := m.TryLock(t.Context()); err == nil {
				if time.Now().Before(before) {
					t.Fatal("two holders")
				}
				f.unlock(b)
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		<-a.Done()
		f.nodes[0].Restart()
		is(t, a.Err(), redlock.ErrLost, redlock.ErrExpired)
		b := f.lock(m)
		if b.FencingToken() <= a.FencingToken() {
			t.Errorf("fencing token %d after %d", b.FencingToken(), a.FencingToken())
		}
		f.unlock(b)
		f.free("away", quick)
	})
}

// in returns the fleet for a test within the one that it belongs to.
func (f *fleet) in(t *testing.T) *fleet { return &fleet{T: t, nodes: f.nodes, eyes: f.eyes} }

// bareQuorum takes a lock that only three nodes hold, and that nobody renews: the
// two others are down at that moment, and come back without it.
func (f *fleet) bareQuorum(name string, ttl time.Duration, held ...int) *redlock.Lease {
	f.Helper()
	var others []int
	for i := range f.nodes {
		if i != held[0] && i != held[1] && i != held[2] {
			others = append(others, i)
		}
	}
	c := f.open(redlock.WithTTL(ttl), redlock.WithoutRenewal())
	f.warm(c)
	f.each((*dockernode.Node).Kill, others...)
	l := f.lock(mutexOf(f, c, name))
	f.each((*dockernode.Node).Restart, others...)
	for i := range f.nodes {
		if want := i == held[0] || i == held[1] || i == held[2]; f.has(i, l) != want {
			f.Fatalf("node %d holds the lock: %t, want %t", i, !want, want)
		}
	}
	return l
}

// crash kills a node and starts it again.
func (f *fleet) crash(node int) {
	f.nodes[node].Kill()
	f.nodes[node].Restart()
}
