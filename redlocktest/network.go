// The way of a command from its caller to the node, and of the answer back.

package redlocktest

import (
	"context"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"
)

// send puts the command on its way. It returns the channel that ends the
// caller's wait, or why nothing was sent.
func (n *Node) send(ctx context.Context, c *command) (<-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	end := ctx.Done()
	if n.faults.ignoreContext && c.op != Listen {
		end = nil
	}
	switch {
	case n.faults.refuse:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case end != nil && ctx.Err() != nil:
		return nil, timeout("dial")
	}
	n.waiting[c] = struct{}{}
	switch {
	case c.op == Acquire && n.faults.holdNext:
		c.held, c.late = true, n.faults.late
		n.faults.holdNext = false
	case n.faults.toNode > 0:
		n.travel(c, n.faults.toNode)
	default:
		n.arrive(c)
	}
	return end, nil
}

// leave is for a caller whose context has ended. An answer that has come by now
// counts all the same.
func (n *Node) leave(c *command) (redlock.Reply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.waiting[c]; !ok {
		a := <-c.answer // never waits: whoever took it out of waiting has sent
		return a.reply, a.err
	}
	delete(n.waiting, c)
	if c.held {
		n.travel(c, c.late)
	}
	return redlock.Reply{}, timeout("read")
}

// travel lets the command arrive once d has passed. n.mu is held.
func (n *Node) travel(c *command, d time.Duration) {
	c.due = n.base.Elapsed() + d
	i := len(n.transit)
	for i > 0 && n.transit[i-1].due > c.due {
		i--
	}
	n.transit = slices.Insert(n.transit, i, c)
	n.base.AfterFunc(d, func() { n.deliver(c) })
}

// deliver lets the command arrive, and before it all that are due earlier or
// were sent earlier for the same instant: timers of one instant fire in any
// order, and a test should see the same order each time.
func (n *Node) deliver(c *command) {
	n.mu.Lock()
	due := slices.Index(n.transit, c) + 1 // 0 if it has arrived or is lost
	for range due {
		first := n.transit[0]
		n.transit = slices.Delete(n.transit, 0, 1)
		n.arrive(first)
	}
	n.mu.Unlock()
	n.flush()
}

// arrive is a command's arrival at the node's machine. n.mu is held.
func (n *Node) arrive(c *command) {
	switch {
	case n.faults.blackhole:
	case n.faults.paused:
		n.backlog = append(n.backlog, c)
	default:
		n.execute(c)
	}
}

// respond is a reply's arrival at its caller. n.mu is held.
func (n *Node) respond(c *command, a answer) {
	if !n.faults.blackhole {
		n.settle(c, a)
	}
}

// settle ends the caller's wait, if it has not left. n.mu is held.
func (n *Node) settle(c *command, a answer) {
	if _, ok := n.waiting[c]; ok {
		delete(n.waiting, c)
		c.answer <- a
	}
}

// timeout is how a driver reports that the time of a call is over.
func timeout(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.ErrDeadlineExceeded}
}
