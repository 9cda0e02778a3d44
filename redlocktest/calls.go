// The record of what a node has executed.

package redlocktest

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock"
)

// An Op is an operation of [redlock.Node], [redlock.Waker], [redlock.Prober] or
// [redlock.Inspector].
type Op string

// The operations.
const (
	Acquire Op = "acquire"
	Raise   Op = "raise"
	Extend  Op = "extend"
	Rearm   Op = "rearm"
	Release Op = "release"
	Enlist  Op = "enlist"
	Delist  Op = "delist"
	Listen  Op = "listen"
	Probe   Op = "probe"
	Inspect Op = "inspect"
)

// A Call is a command that a node has executed or answered with an error. One
// that never arrived is not a Call, and whether the reply arrived is not known.
type Call struct {
	Node    string // its name
	Op      Op
	Key     string // of the lock
	Value   string // of the claim; the waiter, or the channel of a Listen
	TTL     time.Duration
	Bury    bool  // of a Release
	Counter int64 // the fencing counter that was answered
	Verdict redlock.Verdict
	Err     error     // what the server answered, if that was an error
	At      time.Time // by the node's clock

	_ struct{}
}

// keptCalls is how many calls a node remembers.
const keptCalls = 4096

// record remembers the call. n.mu is held.
func (n *Node) record(c Call) {
	if len(n.calls) < keptCalls {
		n.calls = append(n.calls, c)
		return
	}
	n.calls[n.oldest] = c
	n.oldest = (n.oldest + 1) % keptCalls
}

// Calls returns the last 4096 calls, or fewer, in the order of execution.
func (n *Node) Calls() []Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Concat(n.calls[n.oldest:], n.calls[:n.oldest])
}

// ResetCalls empties the record.
func (n *Node) ResetCalls() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls, n.oldest = nil, 0
}

// Observe lets f see each call that is executed from now on, in that order and
// one at a time, before its caller gets the answer. It replaces an f given
// earlier; nil ends it.
//
// The answers of the node wait for f. It may use all other methods of the node,
// but a call of the node in it would wait for itself.
func (n *Node) Observe(f func(Call)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.observer = f
}

// observe shows the call to the observer. n.mu is held, but not meanwhile.
func (n *Node) observe(c Call) {
	f := n.observer
	if f == nil {
		return
	}
	n.mu.Unlock()
	defer n.mu.Lock()
	f(c)
}
