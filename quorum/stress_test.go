// Many rounds on the real scheduler, for the race detector.

package quorum_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/redlock/quorum"
)

// TestGatherStress ends rounds in all three ways while replies pour in, and
// checks that each reply goes to exactly one side, and to count never after
// Gather has returned.
func TestGatherStress(t *testing.T) {
	const rounds, nodes, need = 3000, 7, 4
	ends := map[string]int{}
	for i := range rounds {
		var replies sync.WaitGroup
		var seen [nodes]atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		timeout, returned := make(chan struct{}), make(chan struct{})
		end := []func(){cancel, func() { close(timeout) }}[rand.IntN(2)]
		ender := rand.IntN(2 * nodes) // often nobody
		tally := quorum.NewTally(nodes, need)

		o, err := quorum.Gather(ctx, timeout, nodes,
			func(node int, in *quorum.Inbox[int]) {
				replies.Go(func() {
					if node == ender {
						end()
					}
					if i%3 == 0 && node >= need-1 && ender < nodes {
						<-returned // so that the round cannot be won
					}
					in.Put(node, node)
				})
			},
			func(node, _ int) quorum.Outcome {
				select {
				case <-returned:
					t.Error("counted after Gather returned")
				default:
				}
				seen[node].Add(1)
				return tally.Yes()
			},
			func(node, _ int) { seen[node].Add(1) })
		close(returned)

		if yes, _ := tally.Votes(); (o == quorum.Won) != (yes == need) || yes > need {
			t.Fatalf("%v after counting %d replies", o, yes)
		}
		if o == quorum.Won && err != nil || err != nil && ctx.Err() == nil {
			t.Fatalf("%v, %v", o, err)
		}
		ends[fmt.Sprint(o, " ", err)]++
		replies.Wait()
		cancel()
		for node := range seen {
			if n := seen[node].Load(); n != 1 {
				t.Fatalf("the reply of node %d was seen %d times", node, n)
			}
		}
	}
	t.Log(ends)
	if len(ends) != 3 {
		t.Errorf("rounds ended as %v, want all three ways", ends)
	}
}
