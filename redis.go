// Node over a go-redis client. The files redis*.go alone import go-redis.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
)

// Redis makes one node of each client, named by its address. Addresses that
// are equal, or that say nothing (a failover client's), get an ordinal.
//
// Each client must lead to a different, independent server. Any client works
// with its default options; the library keeps its own deadlines and never lets
// the client send a command twice. The clients are not closed, nor changed but for
// the hook by which [WithCrashGuard] counts connections.
func Redis(clients ...redis.UniversalClient) []Node {
	names := make([]string, len(clients))
	count := make(map[string]int)
	for i, c := range clients {
		names[i] = address(c)
		count[names[i]]++
	}
	nodes := make([]Node, len(clients))
	for i, c := range clients {
		name := names[i]
		if count[name] > 1 || !strings.ContainsAny(name, ":/") {
			name = fmt.Sprintf("%s#%d", name, i+1)
		}
		nodes[i] = NewRedisNode(name, c)
	}
	return nodes
}

// NewRedisNode makes a node of a client under a name of the caller's choice. A
// client that cannot be a node is refused by [New]: nil, a [redis.Ring], whose
// shards are no quorum of anything, and a [redis.AutoPipeliner], which sends
// batches again as a whole.
//
// A [redis.Client] whose ReadTimeout is longer than a call may take is used
// through its WithTimeout, on the same connections but without its hooks: it
// would keep a connection to a silent server for as long as that. Use
// [WithTrace] to see what is sent.
func NewRedisNode(name string, c redis.UniversalClient) Node {
	n := &redisNode{name: name, client: c, limit: noLimit}
	switch c := c.(type) {
	case nil:
		n.fault = errors.New("client is nil")
	case *redis.Ring:
		n.fault = errors.New("a *redis.Ring spreads keys over servers and cannot be one node")
	case *redis.AutoPipeliner:
		n.fault = errors.New("a *redis.AutoPipeliner may send a command twice; give the client that it came from")
	default:
		if v := reflect.ValueOf(c); v.Kind() == reflect.Pointer && v.IsNil() {
			n.fault = fmt.Errorf("client is a nil %T", c)
		}
	}
	if c, ok := c.(*redis.Client); ok && n.fault == nil {
		n.plain = c
		if t := c.Options().ReadTimeout; t > 0 {
			n.limit = t
		}
	}
	return n
}

// address returns what a client connects to, or a word for its kind.
func address(c redis.UniversalClient) string {
	if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "nil"
	}
	switch c := c.(type) {
	case *redis.Client:
		return c.Options().Addr
	case *redis.ClusterClient:
		if addrs := c.Options().Addrs; len(addrs) > 0 {
			return addrs[0]
		}
		return "cluster"
	default:
		return "redis"
	}
}

type redisNode struct {
	name   string
	client redis.UniversalClient
	fault  error // why New must refuse this node

	// plain is the client if its socket timeouts can be bounded, else nil.
	// A default client waits 5 s for a reply, whatever its context says, and
	// would keep a connection of its pool for as long. clones share the pool
	// but give up at 2^i ms; limit is the timeout that the user set.
	plain  *redis.Client
	limit  time.Duration
	clones [32]atomic.Pointer[redis.Client]

	scriptless atomic.Bool // the server has refused to run scripts

	unwatched atomic.Uint64 // of a client whose connections nobody counts
}

const noLimit = time.Duration(1<<63 - 1)

func (n *redisNode) Name() string { return n.name }

// sameServer reports whether both nodes use one client.
func (n *redisNode) sameServer(other Node) bool {
	o, ok := other.(*redisNode)
	return ok && n.client != nil && reflect.TypeOf(n.client).Comparable() && n.client == o.client
}

func (n *redisNode) Acquire(ctx context.Context, c *Claim) (Reply, error) {
	return n.run(ctx, c, acquireRequest(c), plainAcquire)
}

func (n *redisNode) Raise(ctx context.Context, c *Claim, number int64) (Reply, error) {
	return n.run(ctx, c, raiseRequest(c, number), nil)
}

func (n *redisNode) Rearm(ctx context.Context, c *Claim, token int64) (Reply, error) {
	return n.run(ctx, c, rearmRequest(c, token), plainAcquire)
}

func (n *redisNode) Extend(ctx context.Context, c *Claim) (Reply, error) {
	return n.run(ctx, c, extendRequest(c), plainExtend)
}

func (n *redisNode) Release(ctx context.Context, c *Claim, bury bool) (Reply, error) {
	r, err := n.run(ctx, c, releaseRequest(c, bury, n.unaware()), plainRelease)
	return called(r), err
}

// called reads the answer to a release, whose number says whether somebody was called.
func called(r Reply) Reply {
	r.Named, r.Counter = r.Counter != 0, 0
	return r
}

// run calls a script by its name, and by its source where the server does not
// know it (yet, or any more). Only that answer leads to a second command, since
// it says that the first did nothing. So does a refusal to run scripts at all, if
// plain commands can do without: for a counter they cannot.
func (n *redisNode) run(ctx context.Context, c *Claim, q request, plain plainCommands) (Reply, error) {
	client := n.bounded(ctx)
	if c.Fence != "" || !n.scriptless.Load() {
		cmd := newCommand(ctx, q, byName)
		reply, err := cmd.result(client.Process(ctx, cmd))
		if noScript(err) {
			cmd = newCommand(ctx, q, bySource)
			reply, err = cmd.result(client.Process(ctx, cmd))
		}
		if c.Fence != "" || !noScripting(err) {
			return reply, naming(c, err)
		}
		n.scriptless.Store(true)
	}
	if plain == nil { // only a script keeps a line
		return Reply{Verdict: Forbidden}, errNoLine
	}
	reply, err := plain(ctx, client, c)
	return reply, naming(c, err)
}

type plainCommands func(ctx context.Context, client redis.UniversalClient, c *Claim) (Reply, error)

// ExtendAll makes one pipeline of all, and a second one of those for which the
// server did not know the script. Where it runs none, each goes alone.
func (n *redisNode) ExtendAll(ctx context.Context, claims []*Claim) ([]Reply, []error) {
	client := n.bounded(ctx)
	replies, errs := make([]Reply, len(claims)), make([]error, len(claims))
	var todo, alone []int
	for i, c := range claims {
		if c.Fence == "" && n.scriptless.Load() {
			alone = append(alone, i)
		} else {
			todo = append(todo, i)
		}
	}
	for _, f := range []form{byName, bySource} {
		if len(todo) == 0 {
			break
		}
		cmds := make([]*command, len(todo))
		for j, i := range todo {
			cmds[j] = newCommand(ctx, extendRequest(claims[i]), f)
		}
		sendAll(ctx, client.Pipeline(), cmds...)
		unknown := todo[:0]
		for j, i := range todo {
			replies[i], errs[i] = cmds[j].result(cmds[j].Err())
			switch {
			case noScript(errs[i]):
				unknown = append(unknown, i)
			case claims[i].Fence == "" && noScripting(errs[i]):
				n.scriptless.Store(true)
				alone = append(alone, i)
			}
		}
		todo = unknown
	}
	plainExtendAll(ctx, client, claims, alone, replies, errs)
	for i, c := range claims {
		errs[i] = naming(c, errs[i])
	}
	return replies, errs
}

// bounded returns a client on the same pool whose socket timeouts end soon
// after ctx.
func (n *redisNode) bounded(ctx context.Context) redis.UniversalClient {
	deadline, ok := ctx.Deadline()
	if n.plain == nil || !ok {
		return n.client
	}
	ms := uint64(max(deadline.Sub(clock.System.Now()).Milliseconds(), 1))
	i := min(bits.Len64(ms), len(n.clones)-1) // 2^i ms is above ms and at most twice that
	d := time.Millisecond << i
	if n.limit <= d {
		return n.client
	}
	if c := n.clones[i].Load(); c != nil {
		return c
	}
	n.clones[i].CompareAndSwap(nil, n.plain.WithTimeout(d))
	return n.clones[i].Load()
}
