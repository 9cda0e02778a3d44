// The server process: it executes commands one at a time and tells of it.

package redlocktest

import "io"

// roomy is a number of keys that is never worth looking through for expired ones.
const roomy = 64

// execute is the atomic step on the server. n.mu is held, and the caller of
// execute calls flush when it is not.
func (n *Node) execute(c *command) {
	at := n.clock.Now()
	now := at.UnixMilli()
	if len(n.keys) > n.roomy {
		n.keys.sweep(now)
		n.roomy = max(roomy, 2*len(n.keys))
	}

	var a answer
	var call told
	switch {
	case n.faults.fails(c.op):
		a = n.faults.failure
	case c.op == Acquire && c.claim.Fence != "":
		a.reply, a.err = n.keys.count(&c.claim, at)
	case c.op == Acquire:
		a.reply, a.err = n.keys.acquire(&c.claim, now)
	case c.op == Raise:
		a.reply, a.err = n.keys.raise(&c.claim, c.number, at)
	case c.op == Rearm:
		a.reply, a.err = n.keys.rearm(&c.claim, c.number, at)
	case c.op == Extend:
		a.reply, a.err = n.keys.extend(&c.claim, now)
	case c.op == Enlist:
		a.reply, a.err = n.keys.enlist(&c.claim, c.number, at)
	case c.op == Delist:
		a.reply, a.err = n.keys.delist(&c.claim, now)
	case c.op == Listen:
		n.subscribe(c)
	case c.op == Probe:
		c.info = n.info(at)
	case c.op == Inspect:
		c.state, a.reply, a.err = n.keys.inspect(c.claim.Lock, c.claim.Fence, now)
	default:
		a.reply, a.err = n.keys.release(&c.claim, c.bury, now, n.tells(&call))
	}
	done := execution{
		command: c,
		answer:  a,
		told:    call,
		delay:   n.faults.toClient,
		dropped: n.faults.dropReplies,
		call: Call{
			Node: n.name, Op: c.op, Key: c.claim.Lock, Value: c.claim.Value, TTL: c.claim.TTL,
			Bury: c.bury, Counter: a.reply.Counter, Verdict: a.reply.Verdict, Err: a.err, At: at,
		},
	}
	if n.faults.loseReplies > 0 {
		n.faults.loseReplies--
		done.answer, done.delay, done.dropped = answer{err: io.EOF}, 0, false
	}
	n.record(done.call)
	n.executed = append(n.executed, done)
}

// flush shows what was executed to the observer and then to the callers, in the
// order of execution. If another goroutine is at it, that one does it.
func (n *Node) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flushing {
		return
	}
	n.flushing = true
	defer func() { n.flushing = false }()
	for len(n.executed) > 0 {
		e := n.executed[0]
		n.executed = n.executed[1:]
		n.observe(e.call)
		for _, l := range e.told.to {
			n.carry(l, e.told.waiter, e.told.way)
		}
		switch {
		case e.dropped:
		case e.delay > 0:
			n.base.AfterFunc(e.delay, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.respond(e.command, e.answer)
			})
		default:
			n.respond(e.command, e.answer)
		}
	}
}
