// The switches for a node's faults.

package redlocktest

import (
	"crypto/rand"
	"io"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
)

// faults is the state of the switches. The zero value is a healthy node.
type faults struct {
	refuse           bool
	ignoreContext    bool
	holdNext         bool // the next acquire, and deliver it that much
	late             time.Duration
	toNode, toClient time.Duration
	blackhole        bool
	paused           bool
	failure          answer // if its err is not nil
	failing          []Op   // none stands for all
	loseReplies      int
	dropReplies      bool
	dropWakes        bool
}

func (f *faults) fails(op Op) bool {
	return f.failure.err != nil && (len(f.failing) == 0 || slices.Contains(f.failing, op))
}

// set changes the switches.
func (n *Node) set(change func(f *faults)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.faults)
}

// Refuse makes new calls fail at once with ECONNREFUSED and the verdict
// [redlock.Unsent]. Calls that are in flight go on, except those that listen; to
// crash a node, Refuse and then [Node.Restart].
func (n *Node) Refuse(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.refuse = on
	if on {
		n.hangUpAll()
	}
}

// IgnoreContext makes new calls ignore their contexts and wait until the node
// answers, as some drivers do. One that gets no answer ends with [Node.Restart].
// [Node.Listen] heeds its context all the same.
func (n *Node) IgnoreContext(on bool) {
	n.set(func(f *faults) { f.ignoreContext = on })
}

// Late holds up the next Acquire until its caller has given up, and delivers it
// once d more has passed. It may then take a lock that the caller has released
// in the meantime. The caller gets no answer.
func (n *Node) Late(d time.Duration) {
	n.set(func(f *faults) { f.holdNext, f.late = true, d })
}

// Delay lets commands sent from now on take toNode until they arrive, and
// replies to what is executed from now on toClient until they are back.
func (n *Node) Delay(toNode, toClient time.Duration) {
	n.set(func(f *faults) { f.toNode, f.toClient = toNode, toClient })
}

// Blackhole loses everything that would arrive on either side. Callers wait
// until their contexts end.
func (n *Node) Blackhole(on bool) {
	n.set(func(f *faults) { f.blackhole = on })
}

// Pause stops the node's process, as SIGSTOP does. Commands arrive all the same
// and wait; the node's clock, and the lives of its keys, go on.
func (n *Node) Pause() {
	n.set(func(f *faults) { f.paused = true })
}

// Resume lets a stopped process go on. It executes all that has arrived, in
// that order, even if the callers have given up by now.
func (n *Node) Resume() {
	n.mu.Lock()
	n.resume()
	n.mu.Unlock()
	n.flush()
}

// resume is Resume without the flush. n.mu is held.
func (n *Node) resume() {
	n.faults.paused = false
	for _, c := range n.backlog {
		n.execute(c)
	}
	n.backlog = nil
}

// FailWith makes the server answer err, with the verdict v, to the given
// operations, or to all if none are given. It executes none of them. A nil err
// ends it. The verdict is [redlock.Rejected] or [redlock.Forbidden]; a server
// that is out of memory is
//
//	node.FailWith(errors.New("OOM command not allowed"), redlock.Rejected, redlocktest.Acquire)
func (n *Node) FailWith(err error, v redlock.Verdict, ops ...Op) {
	ops = slices.Clone(ops)
	n.set(func(f *faults) {
		f.failure, f.failing = answer{redlock.Reply{Verdict: v}, err}, ops
	})
}

// LoseReplies breaks the connections of the next count commands after they were
// executed: their callers get io.EOF at once. Zero ends it.
func (n *Node) LoseReplies(count int) {
	n.set(func(f *faults) { f.loseReplies = count })
}

// DropReplies loses the replies to what is executed from now on, silently:
// callers wait until their contexts end.
func (n *Node) DropReplies(on bool) {
	n.set(func(f *faults) { f.dropReplies = on })
}

// DropWakes loses, silently, what releases that are executed from now on send to
// those who listen. The node takes it for heard.
func (n *Node) DropWakes(on bool) {
	n.set(func(f *faults) { f.dropWakes = on })
}

// Restart ends the node's process and starts another, with a new run ID. It
// does not stay paused, but other faults stay. Calls in flight fail with io.EOF
// and the verdict [redlock.Unknown], and commands that were not executed are
// gone. Keys are dropped, unless keep is set: then they are as if every write
// had been synced to disk, and expire when they would have.
func (n *Node) Restart(keep bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runID = rand.Text()
	n.started = n.clock.Now()
	n.restarts++
	n.faults.paused = false
	n.transit, n.backlog = nil, nil
	if !keep {
		clear(n.keys)
	}
	n.hangUpAll()
	for c := range n.waiting {
		n.settle(c, answer{err: io.EOF})
	}
}

// Heal switches all faults off, and resumes a stopped process. Calls whose
// command or reply is lost still wait. The node's clock stays as it is.
func (n *Node) Heal() {
	n.mu.Lock()
	n.faults = faults{}
	n.resume()
	n.mu.Unlock()
	n.flush()
}
