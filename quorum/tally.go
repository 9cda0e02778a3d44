// Tally: the votes of one question, counted.

package quorum

// A Tally counts votes and tells the outcome as soon as it is certain. It is
// made by [NewTally], may be copied, and is not safe for concurrent use.
//
// The zero Tally asks nobody: it ignores votes, and its Outcome is the zero
// Outcome, which is neither Won nor Lost.
type Tally struct {
	nodes, need int
	yes, no     int // yes+no <= nodes, or both 0
}

// NewTally returns a Tally in which need of nodes votes must be Yes to win. If
// need is more than nodes, it is lost from the start.
//
// NewTally panics if need is not positive: a vote that nobody has to agree to
// is won by nodes that were never asked, so it can only be a mistake.
func NewTally(nodes, need int) Tally {
	if need <= 0 {
		panic("quorum: a vote needs at least one node")
	}
	return Tally{nodes: nodes, need: need} // nodes < 0 works like 0
}

// Yes counts a vote in favour and returns the outcome.
func (t *Tally) Yes() Outcome {
	if t.outstanding() > 0 {
		t.yes++
	}
	return t.Outcome()
}

// No counts a vote against, or one that will never come, and returns the
// outcome.
func (t *Tally) No() Outcome {
	if t.outstanding() > 0 {
		t.no++
	}
	return t.Outcome()
}

// Outcome returns what the votes counted so far decide.
//
// It needs no memory of an earlier decision: yes and no only grow and never add
// up to more than nodes, so neither condition can cease to hold or be joined by
// the other. Votes after the decision are counted like those before it.
func (t *Tally) Outcome() Outcome {
	switch {
	case t.need == 0:
		return 0 // the zero Tally
	case t.yes >= t.need:
		return Won
	case t.yes+t.outstanding() < t.need:
		return Lost
	}
	return Pending
}

// Votes returns how many votes of either kind were counted. Those beyond the
// number of nodes were not.
func (t *Tally) Votes() (yes, no int) {
	return t.yes, t.no
}

// outstanding returns how many nodes have not voted.
func (t *Tally) outstanding() int {
	return t.nodes - t.yes - t.no
}
