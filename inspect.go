// Who holds a lock, as far as the nodes can tell.

package redlock

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// A Holding is whether a lock is held.
type Holding int

const (
	// CannotTell is the verdict when nodes that have not answered decide.
	CannotTell Holding = iota
	// Held means that one token is on a quorum of nodes.
	Held
	// Free means that no token is on a quorum of nodes, or can be. Some nodes
	// may still have keys, of attempts that are under way or were not released.
	Free
)

func (h Holding) String() string {
	switch h {
	case Held:
		return "held"
	case Free:
		return "free"
	default:
		return "cannot tell"
	}
}

// An Inspection is what the nodes store for a lock. It is outdated when it is
// there: nothing may be decided by it.
type Inspection struct {
	Name    string
	Holding Holding

	// Of a lock that is held: its holder's token, as in [Lease.Token], how long
	// it stays on a quorum of nodes unless it is renewed, and the fencing token,
	// 0 if that cannot be told. A holder trusts its lease for a little less.
	Token        string
	Remaining    time.Duration
	FencingToken int64

	Nodes []NodeInspection // in the order of the nodes given to New

	_ struct{}
}

// A NodeInspection is one node's part of an Inspection.
type NodeInspection struct {
	Node  string
	State LockState
	Token string // State.Value without what it has for this node only
	Err   error  // why State is not known

	_ struct{}
}

// Inspect asks all nodes who holds the lock of the given name, for people and
// tools that look into a problem. It changes nothing. It waits for every node up
// to the client's node timeout, and returns ctx's error only if ctx ends before;
// a node that does not answer, or is no [Inspector], is reported as such.
func (c *Client) Inspect(ctx context.Context, name string) (*Inspection, error) {
	m, err := c.NewMutex(name)
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, m.error("inspect", errNilContext)
	}
	states, err := askAll(ctx, c, "inspect", func(ctx context.Context, n Node) (LockState, error) {
		if n, ok := n.(Inspector); ok {
			return n.Inspect(ctx, m.lock, m.fence)
		}
		return LockState{}, errNoInspector
	})
	if err != nil {
		return nil, m.error("inspect", err) // the client is closed, or ctx has ended
	}
	in := &Inspection{Name: name}
	for i, s := range states {
		in.Nodes = append(in.Nodes, NodeInspection{
			Node: c.lanes[i].node.Name(), State: s.value, Err: s.err,
			Token: ownerOf(s.value.Value, len(c.lanes)),
		})
	}
	in.judge()
	return in, nil
}

// ownerOf returns the token in a value without what it has for the node: a dot, and
// the node's place among those of the client that made it. What is no value of this
// library is returned as it is.
func ownerOf(value string, nodes int) string {
	token, place, found := strings.Cut(value, ".")
	n, err := strconv.Atoi(place)
	if !found || err != nil || n < 0 || n >= nodes || strconv.Itoa(n) != place || len(token) != len(rand.Text()) {
		return value
	}
	return token
}

// String tells it on one line for people, without tokens: who has one can unlock.
func (in *Inspection) String() string {
	var b strings.Builder
	var holders []string
	held := func(token string, left time.Duration) {
		if !slices.Contains(holders, token) {
			holders = append(holders, token)
		}
		fmt.Fprintf(&b, "held by holder %d for %v", slices.Index(holders, token)+1, lifetime(left))
	}
	fmt.Fprintf(&b, "lock %q: ", abbreviate(in.Name))
	if in.Holding != Held {
		b.WriteString(in.Holding.String())
	} else {
		held(in.Token, in.Remaining)
		if in.FencingToken > 0 {
			fmt.Fprintf(&b, ", fencing token %d", in.FencingToken)
		}
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		fmt.Fprintf(&b, "; node %q: ", n.Node)
		switch {
		case n.Err != nil:
			b.WriteString(oneLine(because(n.Err)))
		case !n.State.Held:
			b.WriteString("free")
		default:
			held(n.Token, n.State.Remaining)
		}
	}
	return b.String()
}

// lifetime is how long a key stays.
func lifetime(d time.Duration) string {
	if d < 0 {
		return "ever"
	}
	return d.Round(time.Millisecond).String()
}

// judge draws the quorum's verdict from what the nodes said.
func (in *Inspection) judge() {
	need := quorum.Size(len(in.Nodes))
	left := make(map[string][]time.Duration) // by token
	counters := make(map[string][]int64)
	silent, most := 0, 0
	for _, n := range in.Nodes {
		switch {
		case n.Err != nil:
			silent++
		case n.State.Held:
			left[n.Token] = append(left[n.Token], n.State.Remaining)
			counters[n.Token] = append(counters[n.Token], n.State.Counter)
			most = max(most, len(left[n.Token]))
		}
	}
	switch {
	case most+silent < need:
		in.Holding = Free
	case most >= need:
		in.Holding = Held
	}
	for token, times := range left {
		if in.Holding != Held || len(times) < need {
			continue
		}
		in.Token = token
		slices.SortFunc(times, longestFirst)
		in.Remaining = times[need-1]
		if number, agreed := quorum.Agree(counters[token], need); agreed {
			in.FencingToken = number
		}
	}
}

// longestFirst orders lives of keys, where a negative one has no end.
func longestFirst(a, b time.Duration) int {
	switch {
	case a == b || a < 0 && b < 0:
		return 0
	case a < 0 || b >= 0 && a > b:
		return -1
	default:
		return 1
	}
}

// A found is what one node said to askAll.
type found[T any] struct {
	value T
	err   error
}

// askAll asks all nodes at once. A node that does not answer within the node
// timeout has failed; everything has if ctx ends before.
func askAll[T any](ctx context.Context, c *Client, op string, ask func(ctx context.Context, n Node) (T, error)) ([]found[T], error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.work.Done()
	timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.set.nodeTimeout)
	defer cancel()
	inbox := quorum.NewInbox[found[T]](len(c.lanes), nil)
	for i, l := range c.lanes {
		c.work.Go(func() {
			value, err := ask(timed, l.node)
			inbox.Put(i, found[T]{value, err})
		})
	}
	all := make([]found[T], len(c.lanes))
	for i := range all {
		all[i].err = ErrNodeTimeout
	}
	left := len(all)
	_, err := inbox.Collect(ctx, timed.Done(), func(i int, f found[T]) quorum.Outcome {
		all[i] = f
		if left--; left > 0 {
			return quorum.Pending
		}
		return quorum.Won
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].err != nil {
			all[i].err = newNodeError(c.lanes[i].node.Name(), op, all[i].err)
		}
	}
	return all, nil
}
