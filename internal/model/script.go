// What a node does, as internal/script has it.

package model

// time is what the clock of a node says.
func (m *model) time(s *state, n *node) uint8 { return s.now - n.slow*m.skew }

// step returns what a node counts up to for an acquire with a hint.
func (m *model) step(s *state, n *node, hint uint8) uint8 {
	next := n.counter + 1
	if !m.clock {
		return max(next, hint)
	}
	t := m.time(s, n)
	floor := t - t%m.bucket
	switch {
	case m.seedOnly && n.counter > 0:
		return next
	case hint > floor+2*m.bucket:
		return max(next, floor)
	default:
		return max(next, hint, floor)
	}
}

// stores reports whether a node would store a counter.
func (m *model) stores(s *state, n *node, counter uint8) bool {
	if m.limit > 0 && counter > m.limit {
		return false // the end of the model
	}
	return !m.clock || counter <= m.time(s, n)+m.bound
}

// free reports whether an acquire or rearm may find no lock on n.
func (m *model) free(n *node) bool { return n.lock == 0 || !m.eager }

// take is an acquire that finds no lock.
func (m *model) take(s *state, a, i int) bool {
	n := &s.nodes[i]
	next := m.step(s, n, s.attempts[a].hint)
	if n.down > 0 || !m.free(n) || !m.stores(s, n, next) {
		return false
	}
	n.counter = next
	n.lock = m.value(a)
	return true
}

// holds reports whether a command of a that needs its lock finds it.
func (m *model) holds(s *state, a, i int) bool {
	n := &s.nodes[i]
	return n.down == 0 && n.lock == m.value(a)
}

// lift is a raise by an attempt whose lock is there.
func (m *model) lift(s *state, i int, number uint8) bool {
	n := &s.nodes[i]
	next := max(n.counter, number)
	if !m.stores(s, n, next) {
		return false
	}
	n.counter = next
	return true
}

// restore is a rearm that finds no lock.
func (m *model) restore(s *state, a, i int) bool {
	n := &s.nodes[i]
	token := s.attempts[a].token
	if n.down > 0 || !m.free(n) || n.lock == m.value(a) || !m.stores(s, n, token) {
		return false
	}
	if m.rearm == counted && n.counter > token {
		return false
	}
	n.counter = max(n.counter, token)
	n.lock = m.value(a)
	return true
}
