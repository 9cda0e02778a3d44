// Node: what a node consists of, and the calls of redlock.Node.

package redlocktest

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
)

// A Node is one server in memory. It implements [redlock.Node],
// [redlock.BatchExtender], [redlock.Waker], [redlock.Prober] and
// [redlock.Inspector]. [New] makes nodes; the zero Node is not usable.
//
// A call returns when its answer arrives or when its context ends, whichever is
// first. The context's end is reported as a network timeout, as drivers do, not
// as a context error, with the verdict [redlock.Unknown]; a command that was on
// its way by then still arrives. With a context that has ended before the call,
// nothing is sent, and the verdict is [redlock.Unsent].
type Node struct {
	name  string
	base  clock.Clock   // times the way between caller and node
	clock *clock.Skewed // the node's own

	// mu is never held while anything waits or a callback runs: a goroutine
	// that waits for a mutex keeps the time of a bubble from moving.
	mu        sync.Mutex
	runID     string
	started   time.Time // by its own clock
	restarts  uint64
	tell      func(*redlock.ServerInfo)
	keys      keyspace
	roomy     int // number of keys up to which expired ones may stay
	faults    faults
	transit   []*command             // on their way, in the order of arrival
	backlog   []*command             // arrived, and the process is stopped
	waiting   map[*command]struct{}  // those whose callers wait for an answer
	listeners map[string][]*listener // by channel
	calls     []Call                 // a ring, once it is full
	oldest    int                    // index in calls
	observer  func(Call)
	executed  []execution // done, but not yet shown to observer and caller
	flushing  bool
}

var _ redlock.BatchExtender = (*Node)(nil)

func newNode(name string, base clock.Clock) *Node {
	own := clock.NewSkewed(base, clock.Skew{Rate: 1})
	return &Node{
		name:      name,
		base:      base,
		clock:     own,
		runID:     rand.Text(),
		started:   own.Now().Add(-upAtFirst),
		keys:      keyspace{},
		roomy:     roomy,
		waiting:   map[*command]struct{}{},
		listeners: map[string][]*listener{},
	}
}

// A command is one call: what is sent, and its caller's way to hear of it.
type command struct {
	op       Op
	claim    redlock.Claim
	bury     bool
	number   int64     // of a raise or rearm, or the ticket of an enlist
	listener *listener // of a listen

	info  redlock.ServerInfo // that a probe found
	state redlock.LockState  // that an inspect found

	answer chan answer // of capacity 1, and never gets more than one
	held   bool        // it is held up until the caller has left, and for
	late   time.Duration
	due    time.Duration // of its arrival, on the base clock
}

type answer struct {
	reply redlock.Reply
	err   error
}

// An execution is a command that was executed, and the fate of its reply.
type execution struct {
	command *command
	call    Call
	answer  answer
	told    told
	delay   time.Duration
	dropped bool
}

// Name returns "node-" and the node's index.
func (n *Node) Name() string { return n.name }

// Clock returns the node's own clock, by which its keys expire. Setting its
// rate and stepping it moves the ends of their lives as it does in Redis: a key
// that has expired may come back if the clock steps back, unless a command has
// met it before. The network runs on the clock given to [WithClock] instead.
func (n *Node) Clock() *clock.Skewed { return n.clock }

// RunID identifies the process. It changes with [Node.Restart].
func (n *Node) RunID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runID
}

// Acquire implements [redlock.Node].
func (n *Node) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	return n.do(ctx, &command{op: Acquire, claim: *c})
}

// Extend implements [redlock.Node].
func (n *Node) Extend(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	return n.do(ctx, &command{op: Extend, claim: *c})
}

// Raise implements [redlock.Node].
func (n *Node) Raise(ctx context.Context, c *redlock.Claim, number int64) (redlock.Reply, error) {
	return n.do(ctx, &command{op: Raise, claim: *c, number: number})
}

// Rearm implements [redlock.Node].
func (n *Node) Rearm(ctx context.Context, c *redlock.Claim, token int64) (redlock.Reply, error) {
	return n.do(ctx, &command{op: Rearm, claim: *c, number: token})
}

// Release implements [redlock.Node].
func (n *Node) Release(ctx context.Context, c *redlock.Claim, bury bool) (redlock.Reply, error) {
	return n.do(ctx, &command{op: Release, claim: *c, bury: bury})
}

// ExtendAll implements [redlock.BatchExtender]. The claims travel together, and
// each meets the node's faults for itself.
func (n *Node) ExtendAll(ctx context.Context, claims []*redlock.Claim) ([]redlock.Reply, []error) {
	waits := make([]func() (redlock.Reply, error), len(claims))
	for i, c := range claims {
		waits[i] = n.start(ctx, &command{op: Extend, claim: *c})
	}
	n.flush()
	replies, errs := make([]redlock.Reply, len(claims)), make([]error, len(claims))
	for i, wait := range waits {
		replies[i], errs[i] = wait()
	}
	return replies, errs
}

func (n *Node) do(ctx context.Context, c *command) (redlock.Reply, error) {
	wait := n.start(ctx, c)
	n.flush()
	return wait()
}

// start sends the command and returns how to wait for its end.
func (n *Node) start(ctx context.Context, c *command) func() (redlock.Reply, error) {
	c.answer = make(chan answer, 1)
	end, err := n.send(ctx, c)
	return func() (redlock.Reply, error) {
		if err != nil {
			return redlock.Reply{Verdict: redlock.Unsent}, err
		}
		select {
		case a := <-c.answer:
			return a.reply, a.err
		case <-end:
			return n.leave(c)
		}
	}
}
