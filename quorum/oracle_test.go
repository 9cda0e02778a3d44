// A second, naive Tally: it knows no arithmetic of majorities, only what
// "certain" means.

package quorum_test

import (
	"testing"

	"github.com/quorumlock/redlock/quorum"
)

// oracle tells the outcome by trying every way in which the outstanding nodes
// could vote. It is certain if all of them end alike.
func oracle(nodes, need int, votes []bool) quorum.Outcome {
	votes = votes[:min(nodes, len(votes))]
	silent := nodes - len(votes)

	ends := map[bool]bool{}
	for completion := range 1 << silent {
		yes := 0
		for _, v := range votes {
			if v {
				yes++
			}
		}
		for i := range silent {
			if completion>>i&1 == 1 {
				yes++
			}
		}
		ends[yes >= need] = true
	}
	switch {
	case ends[true] && ends[false]:
		return quorum.Pending
	case ends[true]:
		return quorum.Won
	default:
		return quorum.Lost
	}
}

// vote casts one vote.
func vote(t *quorum.Tally, yes bool) quorum.Outcome {
	if yes {
		return t.Yes()
	}
	return t.No()
}

// final returns the outcome after all votes.
func final(nodes, need int, votes []bool) quorum.Outcome {
	t := quorum.NewTally(nodes, need)
	for _, v := range votes {
		vote(&t, v)
	}
	return t.Outcome()
}

// sequences calls f with every sequence of votes of the given length.
func sequences(length int, f func(votes []bool)) {
	votes := make([]bool, length)
	for pattern := range 1 << length {
		for i := range votes {
			votes[i] = pattern>>i&1 == 1
		}
		f(votes)
	}
}

// TestTallyOracle compares every sequence of votes, two longer than there are
// nodes, for every number that may have to agree. Each vote is compared, so a
// decision that comes a vote too early or too late fails.
func TestTallyOracle(t *testing.T) {
	for nodes := range 8 {
		for need := 1; need <= nodes+1; need++ {
			sequences(nodes+2, func(votes []bool) {
				tally := quorum.NewTally(nodes, need)
				if got, want := tally.Outcome(), oracle(nodes, need, nil); got != want {
					t.Fatalf("nodes=%d need=%d, no votes: %v, want %v", nodes, need, got, want)
				}
				for i, v := range votes {
					got, want := vote(&tally, v), oracle(nodes, need, votes[:i+1])
					if got != want || tally.Outcome() != want {
						t.Fatalf("nodes=%d need=%d, votes %v: %v, then %v; want %v",
							nodes, need, votes[:i+1], got, tally.Outcome(), want)
					}
				}
			})
		}
	}
}

// FuzzTally extends the comparison to more nodes, any order and extra votes.
func FuzzTally(f *testing.F) {
	f.Add(uint8(5), uint8(3), []byte{1, 0, 1, 0, 1}, uint8(1))
	f.Add(uint8(4), uint8(3), []byte{0, 0, 1, 1}, uint8(2))
	f.Add(uint8(0), uint8(1), []byte{1}, uint8(0))
	f.Fuzz(func(t *testing.T, n, k uint8, cast []byte, turn uint8) {
		nodes := int(n) % 11
		need := 1 + int(k)%(nodes+2)
		votes := make([]bool, min(len(cast), 16))
		for i := range votes {
			votes[i] = cast[i]&1 == 1
		}

		want := oracle(nodes, need, votes)
		if got := final(nodes, need, votes); got != want {
			t.Fatalf("nodes=%d need=%d votes=%v: %v, want %v", nodes, need, votes, got, want)
		}
		// Only votes that count may change places with each other.
		counted := votes[:min(nodes, len(votes))]
		if len(counted) > 0 {
			by := int(turn) % len(counted)
			turned := append(append([]bool{}, counted[by:]...), counted[:by]...)
			if got := final(nodes, need, turned); got != want {
				t.Fatalf("nodes=%d need=%d votes=%v: %v in the order %v, else %v", nodes, need, votes, got, turned, want)
			}
		}
	})
}
