// Sizes, outcomes, and the edges of a Tally that scenarios do not reach.

package quorum_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/quorumlock/redlock/quorum"
)

// TestSize checks what a quorum is for, not how it is computed, on all sets of
// up to ten nodes.
func TestSize(t *testing.T) {
	for n := 1; n <= 10; n++ {
		size, blocking := quorum.Size(n), quorum.Blocking(n)
		if !meet(n, size, size) {
			t.Errorf("n=%d: two quorums of %d share no node", n, size)
		}
		if n > 1 && meet(n, size-1, size-1) {
			t.Errorf("n=%d: %d nodes would do for a quorum, not %d", n, size-1, size)
		}
		if !meet(n, blocking, size) {
			t.Errorf("n=%d: %d nodes leave a quorum of %d", n, blocking, size)
		}
		if meet(n, blocking-1, size) {
			t.Errorf("n=%d: %d nodes would do to block, not %d", n, blocking-1, size)
		}
	}
}

// meet reports whether every a of n nodes share one with every b of them.
func meet(n, a, b int) bool {
	for x := range uint(1) << n {
		for y := range uint(1) << n {
			if bits.OnesCount(x) == a && bits.OnesCount(y) == b && x&y == 0 {
				return false
			}
		}
	}
	return true
}

func TestSizeEdges(t *testing.T) {
	for _, tt := range []struct{ n, size, blocking int }{
		{math.MinInt, 1, 0},
		{-4, 1, 0},
		{-1, 1, 0},
		{0, 1, 0},
		{1, 1, 1},
		{2, 2, 1},
		{3, 2, 2},
		{4, 3, 2},
		{5, 3, 3},
		{6, 4, 3},
		{7, 4, 4},
		{math.MaxInt, math.MaxInt/2 + 1, math.MaxInt/2 + 1},
	} {
		if got := quorum.Size(tt.n); got != tt.size {
			t.Errorf("Size(%d) = %d, want %d", tt.n, got, tt.size)
		}
		if got := quorum.Blocking(tt.n); got != tt.blocking {
			t.Errorf("Blocking(%d) = %d, want %d", tt.n, got, tt.blocking)
		}
	}
}

// TestEvenDecidesEarly: with an even number of nodes, half of them refusing
// ends the vote, though only half have spoken. A count that waits for as many
// refusals as a quorum has nodes waits for a vote that cannot matter.
func TestEvenDecidesEarly(t *testing.T) {
	for n := 2; n <= 12; n += 2 {
		tally := quorum.NewTally(n, quorum.Size(n))
		for i := 1; i < n/2; i++ {
			if got := tally.No(); got != quorum.Pending {
				t.Errorf("n=%d: %v after %d refusals, want Pending", n, got, i)
			}
		}
		if got := tally.No(); got != quorum.Lost {
			t.Errorf("n=%d: %v after %d refusals, want Lost", n, got, n/2)
		}
	}
}

func TestZeroTally(t *testing.T) {
	var tally quorum.Tally
	if got := tally.Outcome(); got != 0 {
		t.Errorf("Outcome() = %v, want the zero Outcome", got)
	}
	if yes, no := tally.Yes(), tally.No(); yes != 0 || no != 0 {
		t.Errorf("Yes() = %v, No() = %v, want the zero Outcome", yes, no)
	}
	if yes, no := tally.Votes(); yes != 0 || no != 0 {
		t.Errorf("Votes() = %d, %d, want none", yes, no)
	}
}

func TestTallyOfNobody(t *testing.T) {
	for _, n := range []int{0, -3} {
		tally := quorum.NewTally(n, quorum.Size(n))
		if a, b, c := tally.Outcome(), tally.Yes(), tally.Yes(); a != quorum.Lost || b != quorum.Lost || c != quorum.Lost {
			t.Errorf("n=%d: %v, %v, %v, want Lost throughout", n, a, b, c)
		}
	}
}

func TestTallyVotes(t *testing.T) {
	tally := quorum.NewTally(3, 2)
	tally.Yes()
	tally.No()
	tally.Yes()
	tally.Yes() // of a fourth node
	tally.No()  // of a fifth
	if yes, no := tally.Votes(); yes != 2 || no != 1 {
		t.Errorf("Votes() = %d, %d, want 2, 1", yes, no)
	}
}

func TestNewTallyPanics(t *testing.T) {
	for _, need := range []int{0, -1, math.MinInt} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewTally(5, %d) did not panic", need)
				}
			}()
			quorum.NewTally(5, need)
		}()
	}
}

func TestOutcomeString(t *testing.T) {
	for o, want := range map[quorum.Outcome]string{
		0: "Outcome(0)", quorum.Pending: "Pending", quorum.Won: "Won", quorum.Lost: "Lost", 4: "Outcome(4)", 255: "Outcome(255)",
	} {
		if got := o.String(); got != want {
			t.Errorf("Outcome %d prints as %q, want %q", uint8(o), got, want)
		}
	}
}
