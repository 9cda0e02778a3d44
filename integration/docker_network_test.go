// Containers are taken off the network under a lease that is held: a minority,
// which nobody notices, and a majority.

package integration_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

// TestDockerDisconnect: a lease outlives the absence of one node, which gets its
// key back when it returns.
func TestDockerDisconnect(t *testing.T) {
	const ttl = 2 * time.Second
	t.Parallel()
	f := startFleet(t, dockernode.Five(none)...)
	var lost, failed, rearmed atomic.Int64
	c := f.open(redlock.WithTTL(ttl), redlock.WithTrace(&redlock.Trace{
		Lost: func(redlock.Lost) { lost.Add(1) },
		Renewal: func(r redlock.Renewal) {
			if r.Err != nil {
				failed.Add(1)
			}
		},
		NodeDone: func(n redlock.NodeDone) {
			if n.Name == "a" && n.Op == "rearm" && n.Err == nil {
				rearmed.Add(1)
			}
		},
	}))
	f.warm(c)
	l := f.lock(mutexOf(t, c, "a"))
	f.settled(l, 5)
	f.nodes[2].Disconnect()
	start := time.Now()
	for time.Since(start) < ttl+ttl/2 { // its key has expired by then
		if err := l.Err(); err != nil {
			t.Fatalf("lost %v after one of five nodes had gone: %v", time.Since(start), err)
		}
		time.Sleep(ttl / 20)
	}
	f.nodes[2].Connect()
	back := time.Now()
	if !eventually(10*time.Second, func() bool { return f.has(2, l) }) {
		t.Fatalf("the node that was away has not got the key back: %v", l.Err())
	}
	t.Logf("away for %v; the key was back %v after the node was", round(back.Sub(start)), round(time.Since(back)))
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	if lost.Load() > 0 || failed.Load() > 0 || rearmed.Load() != 1 {
		t.Errorf("%d losses, %d renewals failed, %d re-armed; want 0, 0, 1", lost.Load(), failed.Load(), rearmed.Load())
	}
	f.unlock(l)
	f.free("a", quick)
}

// TestDockerDisconnectMajority: without a majority for longer than the validity a
// lease is lost, and says so not a moment after its deadline.
func TestDockerDisconnectMajority(t *testing.T) {
	const ttl = 3 * time.Second
	t.Parallel()
	f := startFleet(t, dockernode.Five(none)...)
	c := f.open(redlock.WithTTL(ttl))
	f.warm(c)
	l := f.lock(mutexOf(t, c, "a"))
	f.settled(l, 5)
	f.each((*dockernode.Node).Disconnect, 0, 1, 2)
	gone := time.Now()
	ended := make(chan time.Time, 1)
	go func() {
		<-l.Done()
		ended <- time.Now()
	}()
	var now, deadline time.Time
	for l.Err() == nil {
		// Nothing can move the deadline any more once an answer is overdue.
		now, deadline = time.Now(), l.Deadline()
		if l.Err() == nil && now.After(deadline) {
			t.Fatalf("still held %v after the deadline", now.Sub(deadline))
		}
		if now.Sub(gone) > 2*ttl {
			t.Fatalf("still held %v after the majority had gone", now.Sub(gone))
		}
		time.Sleep(time.Millisecond)
	}
	is(t, l.Err(), redlock.ErrLost, redlock.ErrNoQuorum)
	done := <-ended
	t.Logf("lost %v after the majority had gone; its context ended %v after the deadline", round(done.Sub(gone)), done.Sub(l.Deadline()))
	if late := done.Sub(l.Deadline()); late > quick {
		t.Errorf("the context ended %v after the deadline", late)
	}
	if _, err := mutexOf(t, c, "b").TryLock(t.Context()); err == nil {
		t.Error("locked on two of five nodes")
	} else {
		is(t, err, redlock.ErrNoQuorum)
	}

	f.each((*dockernode.Node).Connect, 0, 1, 2)
	next := f.lock(mutexOf(t, c, "a"))
	if next.FencingToken() <= l.FencingToken() {
		t.Errorf("fencing token %d after %d", next.FencingToken(), l.FencingToken())
	}
	is(t, l.Err(), redlock.ErrLost) // for good
	f.unlock(next)
	f.free("a", 10*time.Second)
	f.free("b", 10*time.Second)
}
