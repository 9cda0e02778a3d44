// The search, breadth first, and the way to what it finds.

package model

import (
	"fmt"
	"slices"
)

// A finding is what a search ends with.
type finding struct {
	states int
	fault  string   // what went wrong; empty if nothing did
	moves  int      // that led there; as few as any
	trace  []string // the start and these moves
	all    bool     // there are no more states
	grants int      // states in which every attempt was granted
}

// A search holds every state that it has come across, in that order.
type search struct {
	*model
	words  []uint64 // the states, encoded
	parent []uint32 // of a start it is itself
	slots  []uint32 // by hash: the number of a state, plus one
}

// run searches until it finds a fault, or has seen all or most states.
func (m *model) run(most int) finding {
	s := &search{model: m, slots: make([]uint32, 1<<12)}
	var fault string
	var grants int
	m.starts(func(start *state) { s.add(start, len(s.parent)) })
	for at := 0; at < len(s.parent); at++ {
		if len(s.parent) >= most {
			return finding{states: len(s.parent), grants: grants}
		}
		from := s.state(at)
		m.moves(&from, func(_ move, to state) {
			if fault == "" && s.add(&to, at) {
				fault = m.fault(&to)
				if m.granted(&to) {
					grants++
				}
			}
		})
		if fault != "" {
			path := s.path()
			return finding{states: len(s.parent), fault: fault, moves: len(path) - 1, trace: s.trace(path), grants: grants}
		}
	}
	return finding{states: len(s.parent), all: true, grants: grants}
}

func (s *search) state(at int) state {
	w := s.model.words()
	return s.decode(s.words[at*w : (at+1)*w])
}

// add notes a state and reports whether it is new.
func (s *search) add(to *state, parent int) bool {
	w := s.model.words()
	from := len(s.words)
	s.words, _ = s.encode(s.words, to)
	added := s.words[from:]
	mask := uint64(len(s.slots) - 1)
	for h := hash(added) & mask; ; h = (h + 1) & mask {
		k := int(s.slots[h])
		if k == 0 {
			s.parent = append(s.parent, uint32(parent))
			s.slots[h] = uint32(len(s.parent))
			break
		}
		if slices.Equal(added, s.words[(k-1)*w:k*w]) {
			s.words = s.words[:from]
			return false
		}
	}
	if 2*len(s.parent) > len(s.slots) {
		s.grow()
	}
	return true
}

func (s *search) grow() {
	w := s.model.words()
	s.slots = make([]uint32, 2*len(s.slots))
	mask := uint64(len(s.slots) - 1)
	for k := range s.parent {
		h := hash(s.words[k*w:(k+1)*w]) & mask
		for s.slots[h] != 0 {
			h = (h + 1) & mask
		}
		s.slots[h] = uint32(k + 1)
	}
}

func hash(words []uint64) uint64 {
	var h uint64
	for _, w := range words {
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// path returns the states on the way to the one that was added last.
func (s *search) path() []int {
	path := []int{len(s.parent) - 1}
	for at := path[0]; s.parent[at] != uint32(at); {
		at = int(s.parent[at])
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// fault says what is wrong with a state, if anything is.
func (m *model) fault(s *state) string {
	attempts := s.attempts[:m.attempts]
	for b, later := range attempts {
		for _, a := range attempts[:b] {
			if later.token > 0 && later.token == a.token && !m.repeats {
				return fmt.Sprintf("token %d is granted twice", a.token)
			}
		}
	}
	for b := range attempts {
		at := &attempts[b]
		if at.token == 0 {
			continue
		}
		if at.token < at.floor {
			return fmt.Sprintf("token %d is granted to one who began after token %d was granted", at.token, at.floor)
		}
		for a := range attempts {
			if m.resume && m.resumed(s, a, at) {
				return fmt.Sprintf("the holder of token %d has a quorum again after token %d was granted", attempts[a].token, at.token)
			}
		}
	}
	return ""
}

// resumed reports whether attempt a has a quorum of locks, although later began
// when a had been granted, and was granted itself. A renewal would succeed. This is
// for two attempts: among more, the floor of later may be the token of a third.
func (m *model) resumed(s *state, a int, later *attempt) bool {
	token := s.attempts[a].token
	if token == 0 || later.floor < token {
		return false
	}
	locks := 0
	for i := range s.nodes[:m.nodes] {
		if s.nodes[i].lock == m.value(a) {
			locks++
		}
	}
	return locks >= m.need()
}
