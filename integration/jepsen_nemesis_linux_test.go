// The faults of the Jepsen tests.

package integration_test

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/netfault"
)

// A fault does something, undoes it, and reports whether it had a chance to.
type fault struct {
	name string
	do   func(r *rand.Rand) bool
}

// rage deals the faults of a deck in random order, again and again, one at a time.
func (j *jepsen) rage(r *rand.Rand, deck []fault) {
	for {
		r.Shuffle(len(deck), func(a, b int) { deck[a], deck[b] = deck[b], deck[a] })
		for _, f := range deck {
			if !j.wait(draw(r, 0, 200*time.Millisecond)) {
				return
			}
			if f.do(r) {
				j.mu.Lock()
				j.faults[f.name]++
				j.mu.Unlock()
			}
		}
	}
}

// missing returns the kinds of faults that have not been seen yet.
func (j *jepsen) missing(kinds []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return j.faults[kind] > 0 })
}

// wait reports whether faults are still wanted after d.
func (j *jepsen) wait(d time.Duration) bool {
	select {
	case <-j.stop:
		return false
	case <-time.After(d):
		return true
	}
}

func draw(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// node does something to what leads to a node, for all clients at once.
func (j *jepsen) node(node int, do func(*netfault.Proxy)) {
	for i := range j.links {
		do(j.links[i][node])
	}
}

func (j *jepsen) refuse(on bool, nodes ...int) {
	for _, node := range nodes {
		j.node(node, func(p *netfault.Proxy) { _ = p.Refuse(on) }) // an error has failed the test
	}
}

// nodeProcesses are faults of one process of a node at a time.
func (j *jepsen) nodeProcesses() []fault {
	pause := func(r *rand.Rand, d time.Duration) bool {
		s := j.servers[r.IntN(jepsenNodes)]
		_ = s.Pause()
		j.wait(d)
		_ = s.Resume()
		return true
	}
	deck := []fault{
		{"node paused", func(r *rand.Rand) bool { return pause(r, draw(r, 0, j.TTL/4)) }},
		{"node paused > TTL", func(r *rand.Rand) bool { return pause(r, draw(r, j.TTL, j.TTL*5/4)) }},
	}
	if j.Guard > 0 {
		return append(deck, fault{"node emptied", j.empty})
	}
	return append(deck, fault{"node killed", func(r *rand.Rand) bool {
		s := j.servers[r.IntN(jepsenNodes)]
		_ = s.Kill()
		j.wait(draw(r, 0, j.TTL/8))
		_ = s.Restart()
		return true
	}})
}

// empty kills two nodes beneath a holder, and starts them at once without what
// they knew. The lock rests on a bare quorum that they belong to, for the two others
// were away when it was taken, and are back now: but for the crash guard somebody
// else would get it. Until that lets the nodes vote, there is no other fault of this
// deck.
func (j *jepsen) empty(r *rand.Rand) bool {
	nodes := r.Perm(jepsenNodes)
	away, emptied := nodes[:2], nodes[2:4]
	j.refuse(true, away...)
	defer func() { j.refuse(false, away...) }() // if nobody came
	j.wait(j.TTL / 4)
	done := j.store.catch(j.unaware, 4*j.TTL, func(v Visit) {
		// A connection that ends at a proxy outlives the process behind it, for
		// which the guard is not made.
		j.refuse(true, emptied...)
		for _, node := range emptied {
			_ = j.servers[node].RestartEmpty()
		}
		j.refuse(false, append(away, emptied...)...)
		j.store.overtaken(v, j.TTL*3/4)
	})
	if done {
		j.wait(j.Guard)
	}
	return done
}

// unaware matches holders that read and do not learn of a loss by renewals, of a name
// for which there is always somebody waiting.
func (j *jepsen) unaware(v Visit) bool { return !v.fromWrite && !v.Renewed && v.Name == j.Names[0] }

// partitions are faults of the way to one node, for a while.
func (j *jepsen) partitions() []fault {
	spell := func(on func(p *netfault.Proxy, on bool)) func(*rand.Rand) bool {
		return func(r *rand.Rand) bool {
			node, d := r.IntN(jepsenNodes), draw(r, 0, j.TTL/4)
			if r.IntN(8) == 0 {
				d += j.TTL
			}
			j.node(node, func(p *netfault.Proxy) { on(p, true) })
			j.wait(d)
			j.node(node, func(p *netfault.Proxy) { on(p, false) })
			return true
		}
	}
	return []fault{
		{"node cut off", spell((*netfault.Proxy).Blackhole)},
		{"replies dropped", spell((*netfault.Proxy).Mute)},
		{"requests dropped", spell((*netfault.Proxy).Deafen)},
		{"delay", func(r *rand.Rand) bool {
			there, back := draw(r, 0, j.TTL/8), draw(r, 0, j.TTL/8)
			return spell(func(p *netfault.Proxy, on bool) {
				if !on {
					there, back = 0, 0
				}
				p.Delay(there, back)
			})(r)
		}},
		{"refused", spell(func(p *netfault.Proxy, on bool) { _ = p.Refuse(on) })},
	}
}

// cuts are faults of a moment.
func (j *jepsen) cuts() []fault {
	once := func(do func(r *rand.Rand, p *netfault.Proxy)) func(*rand.Rand) bool {
		return func(r *rand.Rand) bool {
			j.node(r.IntN(jepsenNodes), func(p *netfault.Proxy) { do(r, p) })
			return true
		}
	}
	return []fault{
		{"request cut", once(func(r *rand.Rand, p *netfault.Proxy) { p.CutAfter(r.IntN(500)) })},
		{"reply cut", once(func(r *rand.Rand, p *netfault.Proxy) { p.CutReplyAfter(r.IntN(50)) })},
		{"reply lost", once(func(r *rand.Rand, p *netfault.Proxy) { p.DropReplies(1 + r.IntN(3)) })},
		{"scripts flushed", func(r *rand.Rand) bool {
			_, err := j.servers[r.IntN(jepsenNodes)].Do("SCRIPT", "FLUSH")
			return err == nil // it is paused, or down
		}},
	}
}

// clientFaults are those of one client at a time, out of those given.
func (j *jepsen) clientFaults(clients ...int) []fault {
	any := func(r *rand.Rand) *place { return j.clients[clients[r.IntN(len(clients))]] }
	reads := func(v Visit) bool { return !v.fromWrite && slices.Contains(clients, v.Client) }
	writes := func(v Visit) bool { return v.fromWrite && slices.Contains(clients, v.Client) }
	within := 2 * j.TTL // how soon one has to come by
	return []fault{
		{"client stopped", func(r *rand.Rand) bool {
			p := any(r)
			p.signal(syscall.SIGSTOP)
			j.wait(draw(r, 0, j.TTL/4))
			p.signal(syscall.SIGCONT)
			return true
		}},
		{"holder stopped > TTL", func(r *rand.Rand) bool {
			return j.store.catch(reads, within, func(v Visit) {
				p := j.clients[v.Client]
				p.signal(syscall.SIGSTOP)
				time.Sleep(draw(r, j.TTL+j.TTL/20, j.TTL*5/4))
				j.store.sleeps(v)
				p.signal(syscall.SIGCONT)
			})
		}},
		// With the holder, what it had sent stands still.
		{"write late by > TTL", func(r *rand.Rand) bool {
			return j.store.catch(writes, within, func(v Visit) {
				p := j.clients[v.Client]
				p.signal(syscall.SIGSTOP)
				time.Sleep(j.TTL)
				j.store.overtaken(v, j.TTL)
				p.signal(syscall.SIGCONT)
			})
		}},
		{"client killed", func(r *rand.Rand) bool { any(r).replace(); return true }},
		{"holder killed", func(r *rand.Rand) bool {
			when := reads
			if r.IntN(2) == 0 {
				when = writes
			}
			return j.store.catch(when, within, func(v Visit) { j.clients[v.Client].replace() })
		}},
		{"client without majority > TTL", func(r *rand.Rand) bool {
			links := j.links[any(r).number]
			on := []func(*netfault.Proxy, bool){(*netfault.Proxy).Blackhole, (*netfault.Proxy).Mute, (*netfault.Proxy).Deafen}[r.IntN(3)]
			nodes := r.Perm(jepsenNodes)[:3+r.IntN(3)]
			for _, node := range nodes {
				on(links[node], true)
			}
			j.wait(draw(r, j.TTL, j.TTL*5/4))
			for _, node := range nodes {
				on(links[node], false)
			}
			return true
		}},
	}
}
