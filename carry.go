// Extends of many leases in one round trip to a node.

package redlock

import (
	"errors"

	"github.com/quorumlock/redlock/clock"
)

// A carrier takes calls of opExtend for different leases to one node.
type carrier struct {
	calls []*call
}

// submitAll hands over calls of opExtend that were made at the same time and
// have the same time left.
func (l *lane) submitAll(calls []*call) {
	if _, ok := l.node.(BatchExtender); ok && len(calls) > 1 {
		l.submit(&carrier{calls})
		return
	}
	for _, c := range calls {
		l.submit(c)
	}
}

func (k *carrier) run(n Node) {
	live := make([]*call, 0, len(k.calls))
	claims := make([]*Claim, 0, len(k.calls))
	for _, c := range k.calls {
		if !c.round.hold.begin(c) {
			c.drop(errGivenUp)
			continue
		}
		live = append(live, c)
		claims = append(claims, c.claim())
	}
	if len(live) == 0 {
		return
	}
	first := live[0].round
	start := clock.System.Now()
	replies, errs := n.(BatchExtender).ExtendAll(first, claims)
	elapsed, lane := clock.System.Now().Sub(start), first.hold.client.lanes[live[0].node]
	for i, c := range live {
		a := answer{err: errShort, elapsed: elapsed}
		if i < len(replies) && i < len(errs) {
			a.Reply, a.err = replies[i], errs[i]
		}
		if a = a.sound(); i == 0 { // one for all, which were one trip
			lane.note(a.err)
		}
		lane.count.note(a)
		c.arrive(a)
	}
}

var errShort = errors.New("answered fewer claims than were asked for")

func (k *carrier) drop(err error) {
	for _, c := range k.calls {
		c.drop(err)
	}
}

func (k *carrier) dead() bool {
	for _, c := range k.calls {
		if !c.dead() {
			return false
		}
	}
	return true
}

func (k *carrier) rank() rank    { return ofHolder }
func (k *carrier) creates() bool { return false }
