// What a Node says that breaks its contract counts as no answer.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A liar executes its commands and then says something else of acquires.
type liar struct {
	*redlocktest.Node
	verdict redlock.Verdict
	err     error
}

func (l *liar) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	r, err := l.Node.Acquire(ctx, c)
	if err == nil {
		r.Verdict, err = l.verdict, l.err
	}
	return r, err
}

func TestVotesUnsound(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, c := range []struct {
		verdict redlock.Verdict
		err     error
	}{
		{redlock.Granted, broken}, // an error vouches for nothing
		{redlock.Taken, broken},
		{redlock.Absent, broken},
		{redlock.Released, broken},
		{redlock.Unknown, nil}, // no error, and nothing else
		{redlock.Unsent, nil},
		{redlock.Rejected, nil},
		{redlock.Forbidden, nil},
		{redlock.Forbidden + 1, nil},
		{255, nil},
		{255, broken},
	} {
		t.Run(fmt.Sprintf("verdict=%d/error=%v", c.verdict, c.err), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := redlocktest.New(3)
				nodes := cluster.Nodes()
				for i := range 2 {
					nodes[i] = &liar{cluster.Node(i), c.verdict, c.err}
				}
				client, err := redlock.New(nodes)
				noErr(t, err)
				var l *redlock.Lease
				exactly(t, "lock", took(func() { l, err = mutexOf(t, client, "x").TryLock(t.Context()) }), 0)
				if l != nil {
					t.Error("a lease that a quorum did not grant")
				}
				is(t, err, redlock.ErrNoQuorum)
				isNot(t, err, redlock.ErrTaken)
				if c.err != nil {
					is(t, err, broken)
				}
				time.Sleep(time.Second)
				(&sim{Cluster: cluster, t: t}).noLocks()
				for _, call := range cluster.Node(0).Calls() {
					if call.Op == redlocktest.Release && !call.Bury {
						t.Error("what may still be executed got no tombstone")
					}
				}
				noErr(t, client.Close())
			})
		})
	}
}

// An uncounting node grants locks with a number that is none.
type uncounting struct {
	*redlocktest.Node
	number int64
}

func (u *uncounting) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	r, err := u.Node.Acquire(ctx, c)
	r.Counter = u.number
	return r, err
}

// TestVotesUncounted: with fencing, a grant without a number does not count, and is given
// back.
func TestVotesUncounted(t *testing.T) {
	for _, number := range []int64{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			cluster := redlocktest.New(3)
			nodes := cluster.Nodes()
			for i := range 2 {
				nodes[i] = &uncounting{cluster.Node(i), number}
			}
			client, err := redlock.New(nodes)
			noErr(t, err)
			l, err := mutexOf(t, client, "x").TryLock(t.Context())
			if l != nil {
				t.Errorf("a lease with the token %d", l.FencingToken())
			}
			is(t, err, redlock.ErrNoQuorum)
			time.Sleep(time.Second)
			(&sim{Cluster: cluster, t: t}).noLocks()
			noErr(t, client.Close())
		})
	}
}
