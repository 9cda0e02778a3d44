// A fan-out whose replies are recorded, for the tests of Gather and Inbox.

package quorum_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// A round is a fan-out to nodes that answer after given delays, and the record
// of what became of each reply.
type round struct {
	delays []time.Duration // of node i's replies; negative: during ask itself
	count  func(node int) quorum.Outcome

	counted []int
	late    chan int
}

func newRound(count func(node int) quorum.Outcome, delays ...time.Duration) *round {
	return &round{delays: delays, count: count, late: make(chan int, 100)}
}

// gather runs the round. R is the node's own number, so that a reply that comes
// under the wrong node shows.
func (r *round) gather(ctx context.Context, timeout <-chan struct{}) (quorum.Outcome, error) {
	return quorum.Gather(ctx, timeout, len(r.delays),
		func(node int, in *quorum.Inbox[int]) {
			if r.delays[node] < 0 {
				in.Put(node, node)
				return
			}
			time.AfterFunc(r.delays[node], func() { in.Put(node, node) })
		},
		func(node, reply int) quorum.Outcome {
			if node != reply {
				panic(fmt.Sprintf("reply %d came from node %d", reply, node))
			}
			r.counted = append(r.counted, node)
			return r.count(node)
		},
		func(node, reply int) {
			if node != reply {
				panic(fmt.Sprintf("late reply %d came from node %d", reply, node))
			}
			r.late <- node
		})
}

// wantLate checks which replies came late so far, in any order.
func (r *round) wantLate(t *testing.T, want ...int) {
	t.Helper()
	var got []int
	for len(r.late) > 0 {
		got = append(got, <-r.late)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("late replies of nodes %v, want %v", got, want)
	}
}

func (r *round) wantCounted(t *testing.T, want ...int) {
	t.Helper()
	if !slices.Equal(r.counted, want) {
		t.Errorf("counted the replies of nodes %v, want %v", r.counted, want)
	}
}

// wins returns a count that is Won at the need-th reply.
func wins(nodes, need int) func(int) quorum.Outcome {
	tally := quorum.NewTally(nodes, need)
	return func(int) quorum.Outcome { return tally.Yes() }
}

func pending(int) quorum.Outcome { return quorum.Pending }

// after returns a channel that is closed once d has passed.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

const ms = time.Millisecond
