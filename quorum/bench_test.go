// What a round costs, next to the same round on a buffered channel.

package quorum_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

func BenchmarkTally(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		t := quorum.NewTally(5, 3)
		t.Yes()
		t.Yes()
		if t.Yes() != quorum.Won {
			b.Fatal(t.Outcome())
		}
	}
}

// answer is about as large as the reply of a lock node.
type answer [6]uint64

// BenchmarkGather: a round without any waiting, so what is left is the cost of
// the fan-out.
func BenchmarkGather(b *testing.B) {
	for _, nodes := range []int{3, 5, 7} {
		b.Run(fmt.Sprintf("nodes=%d/by=inbox", nodes), func(b *testing.B) {
			b.ReportAllocs()
			ask := func(node int, in *quorum.Inbox[answer]) { in.Put(node, answer{}) }
			late := func(int, answer) {}
			for b.Loop() {
				t := quorum.NewTally(nodes, quorum.Size(nodes))
				count := func(int, answer) quorum.Outcome { return t.Yes() }
				if o, err := quorum.Gather(b.Context(), nil, nodes, ask, count, late); o != quorum.Won || err != nil {
					b.Fatal(o, err)
				}
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/by=channel", nodes), func(b *testing.B) {
			b.ReportAllocs()
			type from struct {
				node  int
				reply answer
			}
			for b.Loop() {
				t := quorum.NewTally(nodes, quorum.Size(nodes))
				c := make(chan from, nodes)
				for node := range nodes {
					c <- from{node, answer{}}
				}
				for o := quorum.Pending; o == quorum.Pending; {
					select {
					case f := <-c:
						if f.reply == (answer{}) {
							o = t.Yes()
						}
					case <-b.Context().Done():
						b.Fatal("ended")
					}
				}
				// What is left in c is lost here; handing it on would take a
				// goroutine that waits for the stragglers.
			}
		})
	}
}

// BenchmarkGatherGo replies from a goroutine per node, as a real round does.
func BenchmarkGatherGo(b *testing.B) {
	const nodes = 5
	b.ReportAllocs()
	ask := func(node int, in *quorum.Inbox[answer]) { go in.Put(node, answer{}) }
	late := func(int, answer) {}
	for b.Loop() {
		t := quorum.NewTally(nodes, quorum.Size(nodes))
		count := func(int, answer) quorum.Outcome { return t.Yes() }
		if o, err := quorum.Gather(b.Context(), nil, nodes, ask, count, late); o != quorum.Won || err != nil {
			b.Fatal(o, err)
		}
	}
}

// TestGatherAllocs: a round makes its inbox, queue and signal, and nothing for
// each reply.
func TestGatherAllocs(t *testing.T) {
	for _, nodes := range []int{3, 5, 50} {
		tally := quorum.NewTally(nodes, nodes)
		ask := func(node int, in *quorum.Inbox[answer]) { in.Put(node, answer{}) }
		count := func(int, answer) quorum.Outcome { return tally.Yes() }
		late := func(int, answer) {}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got := testing.AllocsPerRun(100, func() {
			tally = quorum.NewTally(nodes, nodes)
			_, _ = quorum.Gather(ctx, nil, nodes, ask, count, late)
		})
		if got > 3 {
			t.Errorf("%d nodes: %v allocations, want at most 3", nodes, got)
		}

		// The same if replies come one by one.
		var in *quorum.Inbox[answer]
		first := func(node int, i *quorum.Inbox[answer]) {
			if in = i; node == 0 {
				in.Put(node, answer{})
			}
		}
		chain := func(node int, _ answer) quorum.Outcome {
			in.Put(node+1, answer{})
			return tally.Yes()
		}
		got = testing.AllocsPerRun(100, func() {
			tally = quorum.NewTally(nodes, nodes)
			_, _ = quorum.Gather(ctx, nil, nodes, first, chain, late)
		})
		if got > 3 {
			t.Errorf("%d nodes, one by one: %v allocations, want at most 3", nodes, got)
		}
		cancel()
	}
}
