// What a node tells about itself and about a lock.

package redlocktest

import (
	"context"
	"time"

	"github.com/quorumlock/redlock"
)

var (
	_ redlock.Prober    = (*Node)(nil)
	_ redlock.Inspector = (*Node)(nil)
)

// upAtFirst is how long a new node says it has been up.
const upAtFirst = 24 * time.Hour

// Probe implements [redlock.Prober]. A node is a master without replicas or a
// limit to its memory, and writes nothing to a disk. It has been up for a day when
// it is made, and since its [Node.Restart], by its own clock.
func (n *Node) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	c := &command{op: Probe}
	if _, err := n.do(ctx, c); err != nil {
		return nil, err
	}
	return []redlock.ServerInfo{c.info}, nil
}

// Connections implements [redlock.Prober]. It changes with each [Node.Restart].
func (n *Node) Connections() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.restarts
}

// Inspect implements [redlock.Inspector].
func (n *Node) Inspect(ctx context.Context, lock, fence string) (redlock.LockState, error) {
	c := &command{op: Inspect, claim: redlock.Claim{Lock: lock, Fence: fence}}
	_, err := n.do(ctx, c)
	return c.state, err
}

// Tell changes what the node tells about itself from now on: f is called with
// what it would have said. Nil ends it.
func (n *Node) Tell(f func(*redlock.ServerInfo)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell = f
}

// info is what the node tells. n.mu is held.
func (n *Node) info(at time.Time) redlock.ServerInfo {
	s := redlock.ServerInfo{
		RunID: n.runID, Role: "master", MaxMemoryPolicy: "noeviction",
		Uptime: time.Duration(at.Unix()-n.started.Unix()) * time.Second, // as Redis rounds it
		Time:   at, Offset: at.Sub(n.base.Now()),
	}
	if n.tell != nil {
		n.tell(&s)
	}
	return s
}

// inspect reads a lock. It changes nothing.
func (k keyspace) inspect(lock, fence string, now int64) (redlock.LockState, redlock.Reply, error) {
	var s redlock.LockState
	if e, ok := k.get(lock, now); ok {
		if e.kind != text {
			return s, redlock.Reply{Verdict: redlock.Forbidden}, errWrongType
		}
		s.Held, s.Value, s.Remaining = true, e.value, e.remaining(now)
	}
	if fence == "" {
		return s, redlock.Reply{}, nil
	}
	var reply redlock.Reply
	var err error
	s.Counter, reply, err = k.counter(fence, now)
	return s, reply, err
}
