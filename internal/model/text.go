// Moves and traces in words.

package model

import (
	"fmt"
	"slices"
	"strings"
)

// text is v in words, with the names that nodes and attempts have at present.
func (v move) text(names order) string {
	a := string(rune('A' + names.attempts[v.attempt]))
	node := fmt.Sprintf("node %d", names.nodes[v.node]+1)
	switch v.kind {
	case begin:
		if v.number > 0 {
			return fmt.Sprintf("%s begins, with the hint %d", a, v.number)
		}
		return a + " begins"
	case expire:
		return node + " loses its lock"
	case acquire:
		return fmt.Sprintf("%s takes the lock for %s and counts up to %d", node, a, v.number)
	case again:
		return fmt.Sprintf("%s takes the lock for %s and counts up to %d, but that is not the reply which arrives", node, a, v.number)
	case reread:
		return fmt.Sprintf("%s gets a copy of %s's acquire and answers that it has the lock, with %d", node, a, v.number)
	case hear:
		var granting []string
		for i, name := range names.nodes {
			if v.others>>i&1 == 1 {
				granting = append(granting, fmt.Sprintf("node %d", name+1))
			}
		}
		return fmt.Sprintf("%s hears from %s: granted", a, strings.Join(granting, " and "))
	case arrive:
		return fmt.Sprintf("%s hears from %s: granted, with %d", a, node, v.number)
	case raise:
		return fmt.Sprintf("%s carries out the raise of %s and is at %d", node, a, v.number)
	case raiseAgain:
		return fmt.Sprintf("%s carries out a late raise of %s and is at %d", node, a, v.number)
	case raiseArrive:
		return fmt.Sprintf("%s hears from %s: raised to %d", a, node, v.number)
	case raiseFail:
		return fmt.Sprintf("%s gives up on raising %s", a, node)
	case refuse:
		return fmt.Sprintf("%s refuses to be raised to %d by %s", node, v.number, a)
	case giveBack:
		return fmt.Sprintf("%s gives the lock back to %s and is at %d", node, a, v.number)
	case crash:
		return fmt.Sprintf("%s crashes and comes back with %d", node, v.number)
	default:
		return fmt.Sprintf("time goes on to %d", v.number)
	}
}

// trace returns the start and the moves of a path. States are kept in an order of
// their own, so each move is looked for again, and nodes and attempts get back the
// names that they had at the start.
func (s *search) trace(path []int) []string {
	w := s.model.words()
	var lines []string
	now, names := s.state(path[0]), plain
	for i := range now.nodes[:s.nodes] {
		line := fmt.Sprintf("node %d is at %d", i+1, now.nodes[i].counter)
		if now.nodes[i].slow > 0 {
			line += fmt.Sprintf(", its clock %d behind", s.skew)
		}
		lines = append(lines, line)
	}
	for _, at := range path[1:] {
		found := false
		s.moves(&now, func(v move, to state) {
			words, sorted := s.encode(nil, &to)
			if found || !slices.Equal(words, s.words[at*w:(at+1)*w]) {
				return
			}
			found = true
			lines = append(lines, v.text(names))
			for a := range to.attempts[:s.attempts] {
				if token := to.attempts[a].token; token > 0 && now.attempts[a].token == 0 {
					lines[len(lines)-1] += fmt.Sprintf("; it is granted the token %d", token)
				}
			}
			before := names
			for i, from := range sorted.nodes {
				names.nodes[i] = before.nodes[from]
			}
			for a, from := range sorted.attempts {
				names.attempts[a] = before.attempts[from]
			}
		})
		now = s.state(at)
	}
	return lines
}
