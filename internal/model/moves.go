// What can happen next.

package model

import "math/bits"

// A move is one step of a client, a node, the network or the adversary.
type move struct {
	kind    kind
	attempt int
	node    int
	others  uint8 // for a hearing: the set of nodes
	number  uint8 // that it leaves behind
}

type kind uint8

const (
	begin   kind = iota
	expire       // only if the model is eager
	acquire      // and the reply, if it is awaited, is on its way
	again        // an acquire whose reply nobody awaits
	reread       // an acquire that finds its own value
	hear         // the first replies to an acquire
	arrive       // another
	raise
	raiseAgain
	raiseArrive
	raiseFail
	refuse
	giveBack
	crash
	tick
)

// moves calls f with everything that can happen in s, and what comes of it.
func (m *model) moves(s *state, f func(move, state)) {
	if m.granted(s) && !m.resume {
		return // nothing that can still happen could be a fault
	}
	for a := range s.attempts[:m.attempts] {
		if s.attempts[a].begun == 0 {
			m.begin(s, a, f)
			break // attempts that have not begun are all the same
		}
		for i := range s.nodes[:m.nodes] {
			m.acquires(s, a, i, f)
			m.raises(s, a, i, f)
		}
		m.hears(s, a, f)
	}
	for i := range s.nodes[:m.nodes] {
		m.faults(s, i, f)
	}
	if m.passes(s) {
		t := *s
		t.now++
		for i := range t.nodes[:m.nodes] {
			t.nodes[i].down -= min(t.nodes[i].down, 1)
		}
		f(move{kind: tick, number: t.now}, t)
	}
}

// passes reports whether time may go on. It need not go beyond the last tick at
// which a node may crash if none has: without crashes there is no need of a clock.
func (m *model) passes(s *state) bool {
	last := m.skew + m.ticks
	if s.crashes < m.crashes {
		last += m.gap + m.after
	}
	return m.clock && s.now < last
}

func (m *model) begin(s *state, a int, f func(move, state)) {
	t := *s
	at := &t.attempts[a]
	at.begun = 1
	for i := range s.attempts {
		at.floor = max(at.floor, s.attempts[i].token)
	}
	for i := range t.nodes[:m.nodes] {
		t.nodes[i].calls[a].sent = 1
	}
	f(move{kind: begin, attempt: a}, t)
	if m.hint > 0 {
		at.hint = m.hint
		f(move{kind: begin, attempt: a, number: m.hint}, t)
	}
}

func (m *model) acquires(s *state, a, i int, f func(move, state)) {
	c := &s.nodes[i].calls[a]
	counter := s.nodes[i].counter
	on := move{attempt: a, node: i}
	late := s.attempts[a].token > 0
	awaited := !late && (c.phase == waiting || c.phase == replied)
	if c.sent > 0 && !(late && m.onTime) {
		t := *s
		if m.take(&t, a, i) {
			tc := &t.nodes[i].calls[a]
			m.spend(tc)
			on.number = t.nodes[i].counter
			if c.phase != waiting || late {
				on.kind = again
				f(on, t)
			}
			if awaited {
				on.kind = acquire
				m.reply(&t, a, i)
				f(on, t)
			}
		}
		// If a reply with the same number is on its way, nothing would change.
		if awaited && m.holds(s, a, i) && (c.phase == waiting || c.reply != counter) {
			t := *s
			m.spend(&t.nodes[i].calls[a])
			m.reply(&t, a, i)
			on.kind, on.number = reread, counter
			f(on, t)
		}
	}
	if c.phase == replied && s.decides(a) {
		t := *s
		tc := &t.nodes[i].calls[a]
		tc.phase, tc.counter, tc.reply = granted, c.reply, 0
		m.count(&t, a)
		on.kind, on.number = arrive, c.reply
		f(on, t)
	}
}

// hears is the arrival of as many replies as it takes to decide anything. Before
// that it does not matter which have arrived.
func (m *model) hears(s *state, a int, f func(move, state)) {
	if s.attempts[a].token > 0 || s.decides(a) {
		return
	}
	for set := uint8(1); set < 1<<m.nodes; set++ {
		if bits.OnesCount8(set) != m.need() {
			continue
		}
		t, all := *s, true
		for i := range t.nodes[:m.nodes] {
			if c := &t.nodes[i].calls[a]; set>>i&1 == 1 {
				all = all && c.phase == replied
				c.phase, c.counter, c.reply = granted, c.reply, 0
			}
		}
		if all {
			m.count(&t, a)
			f(move{kind: hear, attempt: a, others: set}, t)
		}
	}
}

// decides reports whether attempt a has had its first replies.
func (s *state) decides(a int) bool {
	for i := range s.nodes {
		if s.nodes[i].calls[a].phase >= granted {
			return true
		}
	}
	return false
}

// granted reports whether every attempt has been.
func (m *model) granted(s *state) bool {
	for i := range s.attempts[:m.attempts] {
		if s.attempts[i].token == 0 {
			return false
		}
	}
	return true
}

// spend accounts for an acquire that was carried out.
func (m *model) spend(c *call) {
	if m.limit == 0 {
		c.sent = 0
	}
}

// reply sends a the counter of a node that has just granted it the lock.
func (m *model) reply(s *state, a, i int) {
	n := &s.nodes[i]
	n.calls[a].phase, n.calls[a].reply = replied, n.counter
}

func (m *model) raises(s *state, a, i int, f func(move, state)) {
	c := &s.nodes[i].calls[a]
	at := &s.attempts[a]
	counter := s.nodes[i].counter
	on := move{attempt: a, node: i}
	then := func(k kind, number uint8, change func(*state, *call)) {
		t := *s
		change(&t, &t.nodes[i].calls[a])
		if at.token == 0 {
			m.count(&t, a)
		}
		on.kind, on.number = k, number
		f(on, t)
	}
	if c.phase == raising {
		carried := *s
		stored := m.lift(&carried, i, c.target)
		if stored && m.holds(s, a, i) {
			number := carried.nodes[i].counter
			then(raise, number, func(t *state, c *call) {
				m.lift(t, i, c.target)
				c.phase, c.reply = raised, number
			})
		}
		if m.refusals || !stored {
			then(refuse, c.target, func(t *state, c *call) {
				c.phase = granted
				if r := &t.attempts[a].refused; *r == 0 || c.target < *r {
					*r = c.target
				}
			})
		}
	}
	if c.phase == raising || c.phase == raised {
		then(raiseFail, 0, func(_ *state, c *call) { c.phase, c.counter, c.reply = dropped, 0, 0 })
	}
	if c.phase == raised {
		then(raiseArrive, c.reply, func(_ *state, c *call) { c.phase, c.counter, c.reply = granted, c.reply, 0 })
	}
	if !m.holds(s, a, i) {
		return
	}
	for _, number := range [...]uint8{c.target, at.token} {
		t := *s
		if c.phase != raising && counter < number && m.lift(&t, i, number) {
			on.kind, on.number = raiseAgain, number
			f(on, t)
		}
	}
}

// faults are what a node suffers, and the return of a lock to its holder.
func (m *model) faults(s *state, i int, f func(move, state)) {
	n := &s.nodes[i]
	if m.eager && n.lock > 0 {
		t := *s
		t.nodes[i].lock = 0
		f(move{kind: expire, node: i}, t)
	}
	if s.crashes > 0 && n.counter > 0 {
		// Its lock is gone: the time out of votes is longer than a lock lives.
		t := *s
		t.crashes--
		t.nodes[i].lock = 0
		t.nodes[i].down = m.gap
		for c := range n.counter {
			t.nodes[i].counter = c
			f(move{kind: crash, node: i, number: c}, t)
		}
	}
	for a := range s.attempts[:m.attempts] {
		t := *s
		if m.rearm != never && s.attempts[a].token > 0 && m.restore(&t, a, i) {
			f(move{kind: giveBack, attempt: a, node: i, number: t.nodes[i].counter}, t)
		}
	}
}
