// Fencing tokens: one number that a quorum agrees on.
//
// A node confirms a token T for a claim when, in one step, its lock holds the
// claim's value and its counter equals T. A grant is legal when a quorum of the
// N nodes has confirmed the same T. Two quorums share a node; there the later
// grant's acquire came after the earlier one's confirmation and counted up. So
// tokens differ, and are in the order of the grants. "At least T" would not do:
// a node may have counted on for somebody else since.

package redlock

import "github.com/quorumlock/redlock/quorum"

// bucket is what nodes round their clocks down to for the floor of counters:
// 1.05 s in microseconds.
const bucket = 1 << 20

// hint returns a number for the next grant that all nodes are likely to accept,
// so that their counters agree at once: above all tokens that this client has
// seen, and in the bucket after the present one, which no node's floor is above
// unless its clock is fast. One number serves all names.
func (c *Client) hint() int64 {
	now := c.set.clock.Now().UnixMicro()
	return max(c.highest.Load()+1, now-now%bucket+bucket)
}

// countFenced counts the votes of an acquire with fencing. It is called after
// calls[].answer was set to the latest answer, and decides by all of them.
func (r *round) countFenced(latest answer) quorum.Outcome {
	if latest.op == opRaise {
		r.raising--
		r.rounds = 1 + r.raises // not before: a raise may turn out to be needless
		if latest.refused() && (r.refused == 0 || latest.number < r.refused) {
			r.refused = latest.number
		}
	}
	v := &r.votes
	v.granted, v.taken, v.absent, v.failed, v.forbidden = 0, 0, 0, 0, 0
	waiting := 0
	var few [8]int64 // on the stack, for as many nodes as there usually are
	counters := few[:0]
	for i := range r.calls {
		switch a := &r.calls[i].answer; {
		case a.Verdict == Granted:
			r.calls[i].counter = a.Counter
			fallthrough
		case a.refused():
			v.granted++
			counters = append(counters, r.calls[i].counter)
		case a.err != nil, a.Verdict == Buried:
			v.failed++
			if a.Verdict == Forbidden {
				v.forbidden++
			}
		case a.Verdict == Taken:
			v.taken++
		case a.Verdict == Absent:
			v.absent++
		default:
			waiting++
		}
	}
	if v.granted+waiting < v.need {
		return quorum.Lost
	}
	number, agreed := quorum.Agree(counters, v.need)
	switch {
	case agreed:
		r.token = number
		return quorum.Won
	case number == 0 || r.raising > 0:
		return quorum.Pending
	case r.refused == 0 || number < r.refused:
		r.raise(number)
		return quorum.Pending
	case waiting > 0:
		return quorum.Pending // another grant may bring a number that all accept
	default:
		return quorum.Lost
	}
}

// refused reports whether a node would not raise its counter, as it will not
// beyond its clock bound. Its grant stands, with the number it had.
func (a *answer) refused() bool { return a.op == opRaise && a.Verdict == Rejected }

// raise asks the granting nodes that are below number to go up to it.
func (r *round) raise(number int64) {
	r.raises++
	for i := range r.calls {
		c := &r.calls[i]
		if (c.answer.Verdict == Granted || c.answer.refused()) && c.counter < number {
			r.raising++
			r.left.Add(1)
			r.hold.client.lanes[i].submit(&call{op: opRaise, round: r, node: i, number: number})
		}
	}
}

// grant makes the token of r the hold's, and raises the nodes that granted the
// lock with a lower number: they can stand in when a node of the quorum is lost.
func (h *hold) grant(r *round) {
	if r.token == 0 {
		return
	}
	raiseTo(&h.client.highest, r.token)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fence = r.token
	for i := range h.sites {
		h.align(i, r)
	}
}

// align raises a node's counter to the token if it granted the lock with a lower
// number. It does not wait. The caller holds h.mu and keeps the client open.
func (h *hold) align(node int, r *round) {
	if s := &h.sites[node]; !h.over.Load() && s.counter > 0 && s.counter < h.fence {
		s.counter = h.fence // once is enough: renewals do not depend on it
		h.client.lanes[node].submit(&call{op: opRaise, round: r, node: node, number: h.fence, quiet: true})
	}
}
