// The encoding of states in few bits, the same for all that are alike.

package model

import (
	"fmt"
	"slices"
)

// A packer puts numbers side by side into a word.
type packer struct {
	word uint64
	used int
}

func (p *packer) put(n uint8, width int) {
	if n>>width > 0 {
		panic(fmt.Sprintf("model: %d does not fit in %d bits", n, width))
	}
	p.word |= uint64(n) << p.used
	p.used += width
}

func (p *packer) get(width int) uint8 {
	n := uint8(p.word & (1<<width - 1))
	p.word >>= width
	return n
}

// words is how many of them a state takes: one for each node and two others.
func (m *model) words() int { return m.nodes + 2 }

// width is how many bits a counter takes. The more attempts there are, the less
// room is left, but then there is no clock that makes large numbers. A node fits
// in a word either way: 2+4+3*16 = 54 bits, or 2+5+2*19+5 = 50.
func (m *model) width() int {
	if m.attempts > 2 {
		return 4
	}
	return 5
}

// An order is one in which the nodes and attempts of a state are encoded.
type order struct {
	nodes    [maxNodes]int
	attempts [maxAttempts]int
}

var plain = order{nodes: [...]int{0, 1, 2, 3, 4}, attempts: [...]int{0, 1, 2}}

// A coder encodes one state.
type coder struct {
	*model
	state    *state
	attempts [maxAttempts]uint64
	calls    [maxNodes][maxAttempts]uint64
	words    [maxNodes]uint64 // the best so far
	order    order            // that of words
}

// encode appends s to words, and returns the order that it has chosen: the one
// with the smallest encoding. Two states that differ in nothing but the order of
// their nodes and attempts have the same.
func (m *model) encode(words []uint64, s *state) ([]uint64, order) {
	k := coder{model: m, state: s, order: plain}
	w := m.width()
	for a := range s.attempts[:m.attempts] {
		at := &s.attempts[a]
		var p packer
		p.put(at.token, w)
		p.put(at.floor, w)
		p.put(at.refused, w)
		p.put(at.hint, w)
		p.put(at.begun, 1)
		k.attempts[a] = p.word
		for i := range s.nodes[:m.nodes] {
			c := &s.nodes[i].calls[a]
			var p packer
			p.put(uint8(c.phase), 3)
			p.put(c.sent, 1)
			p.put(c.counter, w)
			p.put(c.target, w)
			p.put(c.reply, w)
			k.calls[i][a] = p.word
		}
	}
	if m.ordered {
		k.words, _ = k.arrange(plain.attempts)
	} else {
		k.permute(0, plain.attempts, true)
	}
	words = append(words, k.words[:m.nodes]...)
	var last uint64
	for _, a := range k.order.attempts[:m.attempts] {
		last = last<<(4*w+1) | k.attempts[a]
	}
	return append(words, last, uint64(s.now)|uint64(s.crashes)<<8), k.order
}

// permute tries the orders of the attempts from at on. They are sorted, those
// that have begun first, so that only those which look alike change places.
func (k *coder) permute(at int, p [maxAttempts]int, first bool) bool {
	if at == k.model.attempts {
		words, nodes := k.arrange(p)
		if first || slices.Compare(words[:], k.words[:]) < 0 {
			k.words, k.order = words, order{nodes, p}
		}
		return false
	}
	most := k.attempts[p[at]]
	for _, a := range p[at:k.model.attempts] {
		most = max(most, k.attempts[a])
	}
	for i := at; i < k.model.attempts; i++ {
		if k.attempts[p[i]] == most {
			q := p
			q[at], q[i] = q[i], q[at]
			first = k.permute(at+1, q, first)
		}
	}
	return first
}

// arrange encodes the nodes for an order of the attempts, and sorts them.
func (k *coder) arrange(attempts [maxAttempts]int) (words [maxNodes]uint64, nodes [maxNodes]int) {
	w := k.model.width()
	nodes = plain.nodes
	for i := range words[:k.model.nodes] {
		n := &k.state.nodes[i]
		lock := n.lock
		if lock > 0 && !k.oneValue {
			lock = uint8(slices.Index(attempts[:], int(lock)-1)) + 1
		}
		var p packer
		p.put(lock, 2)
		p.put(n.counter, w)
		if k.clock {
			p.put(n.down, 4)
			p.put(n.slow, 1)
		}
		for _, a := range attempts[:k.model.attempts] {
			p.word |= k.calls[i][a] << p.used
			p.used += 4 + 3*w
		}
		words[i] = p.word
		// Nodes are so few that nothing is faster.
		for j := i; j > 0 && !k.ordered && words[j] < words[j-1]; j-- {
			words[j], words[j-1] = words[j-1], words[j]
			nodes[j], nodes[j-1] = nodes[j-1], nodes[j]
		}
	}
	return words, nodes
}

// decode is the inverse of encode, but for the order.
func (m *model) decode(words []uint64) (s state) {
	w := m.width()
	for i := range s.nodes[:m.nodes] {
		n, p := &s.nodes[i], packer{word: words[i]}
		n.lock = p.get(2)
		n.counter = p.get(w)
		if m.clock {
			n.down = p.get(4)
			n.slow = p.get(1)
		}
		for j := range n.calls[:m.attempts] {
			n.calls[j] = call{
				phase: phase(p.get(3)), sent: p.get(1),
				counter: p.get(w), target: p.get(w), reply: p.get(w),
			}
		}
	}
	p := packer{word: words[m.nodes]}
	for a := m.attempts - 1; a >= 0; a-- {
		s.attempts[a] = attempt{token: p.get(w), floor: p.get(w), refused: p.get(w), hint: p.get(w), begun: p.get(1)}
	}
	s.now, s.crashes = uint8(words[m.nodes+1]), uint8(words[m.nodes+1]>>8)
	return s
}
