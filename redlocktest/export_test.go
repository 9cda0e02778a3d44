// Lines with their tickets, for the tests.

package redlocktest

import (
	"fmt"
	"strings"
	"time"
)

// Tickets returns the line at key as SetLine takes it, "" for none.
func (n *Node) Tickets(key string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	if e, ok := n.keys.get(key, n.clock.Now().UnixMilli()); ok {
		for _, s := range e.line {
			all = append(all, fmt.Sprint(s.waiter, " ", s.ticket))
		}
	}
	return strings.Join(all, " ")
}

// SetLine makes key hold a line of waiters and tickets, which are sorted.
func (n *Node) SetLine(key, tickets string, ttl time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := entry{kind: queue, when: never}
	if ttl > 0 {
		e.when = n.clock.Now().UnixMilli() + ttl.Milliseconds()
	}
	for r := strings.NewReader(tickets); r.Len() > 0; {
		var s standing
		if _, err := fmt.Fscan(r, &s.waiter, &s.ticket); err != nil {
			panic(err)
		}
		e.line = append(e.line, s)
	}
	n.keys[key] = e
}
