// States that are alike have one encoding, and no others.

package model

import (
	"slices"
	"testing"
)

// TestEncode turns the nodes and attempts of every state of a search around,
// and takes the encoding back and forth.
func TestEncode(t *testing.T) {
	for _, m := range []model{
		{nodes: 3, attempts: 2, hint: 2, refusals: true},
		crashing(model{skew: 1, gap: 1}),
	} {
		s := &search{model: &m, slots: make([]uint32, 1<<12)}
		m.starts(func(start *state) { s.add(start, 0) })
		for at := 0; at < min(len(s.parent), 5000); at++ {
			from := s.state(at)
			want := s.words[at*m.words() : (at+1)*m.words()]
			if got, _ := m.encode(nil, &from); !slices.Equal(got, want) {
				t.Fatalf("%x: decoded and encoded it is %x", want, got)
			}
			turned := from
			slices.Reverse(turned.nodes[:m.nodes])
			turned.attempts[0], turned.attempts[1] = from.attempts[1], from.attempts[0]
			for i := range turned.nodes {
				n := &turned.nodes[i]
				n.calls[0], n.calls[1] = n.calls[1], n.calls[0]
				if n.lock > 0 {
					n.lock = 3 - n.lock
				}
			}
			if got, _ := m.encode(nil, &turned); !slices.Equal(got, want) {
				t.Fatalf("%x: turned around it is %x", want, got)
			}
			m.moves(&from, func(v move, to state) {
				got, _ := m.encode(nil, &to)
				if slices.Equal(got, want) {
					t.Fatalf("%x: %s changes nothing", want, v.text(plain))
				}
				s.add(&to, at)
			})
		}
	}
}
