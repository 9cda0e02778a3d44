// A set of nodes and what they have in common.

package redlocktest

import (
	"fmt"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
)

// A Cluster is a fixed set of nodes that know nothing of each other. Make one
// with [New].
type Cluster struct {
	nodes []*Node
}

// An Option changes what [New] makes.
type Option func(*options)

type options struct {
	clock clock.Clock
}

// WithClock sets the clock that the nodes' own clocks are views of, and that
// times the delays between a caller and a node. The default is [clock.System].
func WithClock(c clock.Clock) Option {
	return func(o *options) { o.clock = c }
}

// New makes n empty nodes, named "node-0" and so on, without faults. It panics
// if n is less than 1.
func New(n int, opts ...Option) *Cluster {
	if n < 1 {
		panic(fmt.Sprintf("redlocktest: New with %d nodes", n))
	}
	o := options{clock: clock.System}
	for _, opt := range opts {
		opt(&o)
	}
	c := &Cluster{nodes: make([]*Node, n)}
	for i := range c.nodes {
		c.nodes[i] = newNode(fmt.Sprintf("node-%d", i), o.clock)
	}
	return c
}

// Nodes returns all nodes, in order, in the form that redlock.New takes.
func (c *Cluster) Nodes() []redlock.Node {
	nodes := make([]redlock.Node, len(c.nodes))
	for i, n := range c.nodes {
		nodes[i] = n
	}
	return nodes
}

// Node returns the node with the index i, which counts from 0.
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// Len returns the number of nodes.
func (c *Cluster) Len() int { return len(c.nodes) }
