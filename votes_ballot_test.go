// A second way to count votes, naive on purpose, for votes_test.go.

package redlock_test

import (
	"errors"
	"strings"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// What a node does, as a letter of a pattern with a letter for each node.
const (
	own    = 'o' // the lock is free, or held by the lease in question: it agrees
	taken  = 't' // the lock is somebody else's
	absent = 'a' // the lock is gone
	broken = 'e' // answers with an error
	silent = 's' // does not answer
)

// A ballot is a second, naive way to count. It knows nothing of package quorum.
type ballot struct {
	op                          redlocktest.Op
	nodes                       int
	own, taken, absent, refused int
}

// add counts the vote of one node. A silent one has none.
func (b ballot) add(letter byte) ballot {
	switch letter {
	case own:
		b.own++
	case taken:
		b.taken++
	case absent:
		b.absent++
	case broken:
		b.refused++
	}
	return b
}

// need returns how many nodes must agree: a majority, or for a release so many
// that the others are none.
func (b ballot) need() int {
	if b.op == redlocktest.Release {
		return b.nodes - b.nodes/2
	}
	return b.nodes/2 + 1
}

// counts returns what a QuorumError should say.
func (b ballot) counts() (granted, denied, failed int) {
	if b.op == redlocktest.Release {
		return b.own + b.taken + b.absent, 0, b.refused
	}
	return b.own, b.taken + b.absent, b.refused
}

func (b ballot) decided() bool {
	granted, denied, failed := b.counts()
	if b.op == redlocktest.Release && granted >= b.need() {
		// The token is gone. Whether it was gone before must be certain too.
		before, left := b.taken+b.absent, b.nodes-granted-failed
		return b.own >= b.need() || before >= b.need() || before+left < b.need()
	}
	return granted >= b.need() || denied+failed > b.nodes-b.need()
}

func (b ballot) verdict() error {
	enough := b.nodes - b.nodes/2 // so many nodes are in every majority
	granted, _, _ := b.counts()
	switch {
	case b.op != redlocktest.Release && granted >= b.need():
		return nil
	case b.op != redlocktest.Release && b.taken >= enough:
		return redlock.ErrTaken
	case b.op == redlocktest.Release && b.own >= enough:
		return nil // nobody else can have had a majority
	case b.taken+b.absent >= enough:
		return redlock.ErrNotHeld
	case granted >= b.need():
		return nil
	}
	return redlock.ErrNoQuorum
}

// ends returns all ballots that a vote can end with when the answers left come
// in any order.
func (b ballot) ends(left string) []ballot {
	if b.decided() || strings.Trim(left, string(silent)) == "" {
		return []ballot{b}
	}
	var all []ballot
	for _, letter := range "otae" {
		if i := strings.IndexRune(left, letter); i >= 0 {
			all = append(all, b.add(left[i]).ends(left[:i]+left[i+1:])...)
		}
	}
	return all
}

// fits reports whether err is what the ballot should end with.
func (b ballot) fits(err error) bool {
	verdict := b.verdict()
	if verdict == nil || err == nil {
		return verdict == err
	}
	for _, other := range []error{redlock.ErrTaken, redlock.ErrNotHeld, redlock.ErrNoQuorum, redlock.ErrExpired, redlock.ErrLost} {
		if errors.Is(err, other) != (other == verdict) {
			return false
		}
	}
	e, ok := errors.AsType[*redlock.QuorumError](err)
	granted, denied, failed := b.counts()
	// At the end of its time, a silent node may have failed before the others
	// were counted as failed.
	return ok && e.Granted == granted && e.Denied == denied && (e.Failed == failed || !b.decided() && e.Failed > failed)
}
