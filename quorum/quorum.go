// Package quorum decides votes among a fixed number of nodes.
//
// [Size] and [Blocking] say how many nodes decide, a [Tally] counts the votes
// and knows the outcome as soon as it is certain, and [Gather] asks all nodes
// at once and returns at that moment, handing on the replies that come later.
//
// The package knows nothing about locks, Redis or time. It does not check that
// a node votes once only; who counts a vote must know whose it is.
package quorum

import "strconv"

// Size returns the number of nodes in a quorum of n: floor(n/2)+1, the smallest
// for which any two quorums share a node. For n of zero or less it is 1, so that
// no quorum can be made of no votes.
//
// n is the number of configured nodes. Counting only those that can be reached
// would let the two sides of a partition each find a quorum.
func Size(n int) int {
	return max(n, 0)/2 + 1
}

// Blocking returns the smallest number of nodes that is sure to have one in
// every quorum of n: n-Size(n)+1. So many refusals put a quorum out of reach,
// and if so many nodes confirm that a lock is gone, nobody can hold it.
//
// For even n it is one less than Size(n): two of four nodes cannot grant a
// lock, but they can prevent it.
func Blocking(n int) int {
	n = max(n, 0)
	return n - Size(n) + 1
}

// An Outcome is what is known about a vote. The zero value is not an outcome.
type Outcome uint8

const (
	// Pending means that the outstanding votes can still turn it either way.
	Pending Outcome = 1 + iota

	// Won means that enough votes are for it, whatever the others will be.
	Won

	// Lost means that enough votes are against it, whatever the others will be.
	Lost
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	switch o {
	case Pending:
		return "Pending"
	case Won:
		return "Won"
	case Lost:
		return "Lost"
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}

// decided reports whether no further vote can change the outcome.
func (o Outcome) decided() bool {
	return o == Won || o == Lost
}
