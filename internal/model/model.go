// What is searched: the bounds, the adversary's means, and the rules that are
// known to be wrong.

package model

import "github.com/quorumlock/redlock/quorum"

// A model is a protocol, an adversary, and how far the two are followed.
type model struct {
	nodes    int
	attempts int
	spread   uint8 // the nodes' counters are anything up to it at first

	rule  rule
	votes int // how many nodes have to agree; 0 for a quorum

	limit    uint8 // if not 0 there are copies of acquires until a counter is at it
	hint     uint8 // that an attempt may send; 0 for none
	refusals bool  // a node may refuse any raise, as if its clock were behind
	onTime   bool  // no acquire is carried out after its attempt was granted

	oneValue bool // all attempts write the same value
	rearm    rearm
	resume   bool // it is a fault if the first of two has a quorum again after the other

	repeats bool // it is none if a token is granted twice: to see what else there is

	crashes uint8 // how many there may be

	// With a clock, an acquire counts up to no less than a bucket's beginning, and
	// nothing is stored that is further ahead than bound.
	clock    bool
	bucket   uint8
	bound    uint8
	skew     uint8 // by which slow nodes are behind
	slow     int   // how many are
	gap      uint8 // for how long a node stays out of votes after one
	ticks    uint8 // in which a node may crash
	after    uint8 // ticks after the return of that node
	seedOnly bool  // the clock is asked only where there is no counter

	// To check the model itself: do without what makes it small.
	ordered bool // nodes are not interchangeable
	eager   bool // a lock goes when it wants to, not just before it is needed
}

// A rule is how an attempt draws a token from the counters.
type rule uint8

const (
	shipped rule = iota

	// raiseMax raises to the largest counter, not to the smallest that a quorum
	// can reach. It is sound too while no counter goes back.
	raiseMax

	// justMax takes the largest counter of a quorum and raises nobody.
	justMax

	// atLeast is content with counters that are not below the number which was
	// raised to.
	atLeast
)

// rearm is whether a lock is given back to nodes that have lost it.
type rearm uint8

const (
	never   rearm = iota
	counted       // unless the counter is above the token
	blind         // whatever the counter is
)

func (m *model) need() int {
	if m.votes > 0 {
		return m.votes
	}
	return quorum.Size(m.nodes)
}

// value is what attempt a writes into a lock.
func (m *model) value(a int) uint8 {
	if m.oneValue {
		return 1
	}
	return uint8(a) + 1
}

// starts calls f with every state in which a search begins. Counters that differ
// stand for all that has gone before.
func (m *model) starts(f func(*state)) {
	s := state{now: m.skew, crashes: m.crashes}
	for i := range m.slow {
		s.nodes[i].slow = 1
	}
	var set func(i int)
	set = func(i int) {
		if i == m.nodes {
			f(&s)
			return
		}
		for c := range m.spread + 1 {
			s.nodes[i].counter = c
			set(i + 1)
		}
	}
	set(0)
}
