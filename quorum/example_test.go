package quorum_test

import (
	"context"
	"fmt"

	"github.com/quorumlock/redlock/quorum"
)

func ExampleSize() {
	for _, n := range []int{3, 4, 5} {
		fmt.Printf("%d nodes: %d decide, %d prevent\n", n, quorum.Size(n), quorum.Blocking(n))
	}
	// Output:
	// 3 nodes: 2 decide, 2 prevent
	// 4 nodes: 3 decide, 2 prevent
	// 5 nodes: 3 decide, 3 prevent
}

// The votes of five nodes, of which one is down. A real ask starts a goroutine
// and calls Put from there.
func ExampleGather() {
	const nodes = 5
	tally := quorum.NewTally(nodes, quorum.Size(nodes))

	outcome, err := quorum.Gather(context.Background(), nil, nodes,
		func(node int, in *quorum.Inbox[bool]) {
			in.Put(node, node != 1)
		},
		func(node int, granted bool) quorum.Outcome {
			fmt.Printf("node %d: %t\n", node, granted)
			if granted {
				return tally.Yes()
			}
			return tally.No()
		},
		func(node int, granted bool) {
			fmt.Printf("node %d: %t, late\n", node, granted)
		})
	fmt.Println(outcome, err)
	// Output:
	// node 0: true
	// node 1: false
	// node 2: true
	// node 3: true
	// node 4: true, late
	// Won <nil>
}
