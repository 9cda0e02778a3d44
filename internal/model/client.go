// What a client makes of the replies, as fencing.go has it.

package model

import "github.com/quorumlock/redlock/quorum"

// count is countFenced. It is called after every reply of attempt a.
//
// Votes against and votes that are out are not counted. All they do there is to
// end the attempt, which is to say that nothing more is heard of it.
func (m *model) count(s *state, a int) {
	at := &s.attempts[a]
	if at.token > 0 {
		return
	}
	var few [maxNodes]int64
	counters := few[:0]
	underWay := 0
	for i := range s.nodes[:m.nodes] {
		switch c := &s.nodes[i].calls[a]; c.phase {
		case raising, raised:
			underWay++
			fallthrough // its grant counts until the raise has an outcome
		case granted:
			counters = append(counters, int64(c.counter))
		}
	}
	number, agreed := m.agree(s, a, counters)
	switch {
	case agreed:
		at.token = uint8(number)
		m.settle(s, a)
	case number == 0 || underWay > 0:
	case at.refused == 0 || uint8(number) < at.refused:
		for i := range s.nodes[:m.nodes] {
			if c := &s.nodes[i].calls[a]; c.phase == granted && int64(c.counter) < number {
				c.phase = raising
				c.target = uint8(number)
			}
		}
	}
}

// agree is quorum.Agree, or one of the rules that might be taken for it.
func (m *model) agree(s *state, a int, counters []int64) (number int64, agreed bool) {
	need := m.need()
	var largest int64
	for _, c := range counters {
		largest = max(largest, c)
	}
	switch m.rule {
	case shipped:
		return quorum.Agree(counters, need)
	case raiseMax:
		if number, agreed = quorum.Agree(counters, need); !agreed && number > 0 {
			number = largest
		}
		return number, agreed
	case justMax:
		return largest, len(counters) >= need
	}
	var target uint8
	for i := range s.nodes[:m.nodes] {
		target = max(target, s.nodes[i].calls[a].target)
	}
	number, agreed = quorum.Agree(counters, need)
	if agreed || number == 0 {
		return number, agreed
	}
	if target == 0 {
		return largest, false
	}
	enough := 0
	for _, c := range counters {
		if c >= int64(target) {
			enough++
		}
	}
	return int64(target), enough >= need
}

// settle forgets what an attempt knew once it was granted. What it may still do
// is to raise any node that has its lock up to the token, which is more than
// align does: that only raises nodes whose grant it has seen.
func (m *model) settle(s *state, a int) {
	at := &s.attempts[a]
	at.refused = 0
	if !m.resume && at.token > at.floor { // else it is a fault, still to be seen
		at.floor = 0
	}
	for i := range s.nodes[:m.nodes] {
		c := &s.nodes[i].calls[a]
		*c = call{sent: c.sent, target: c.target}
		if c.target <= at.token {
			c.target = 0
		}
	}
}
