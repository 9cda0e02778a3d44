// The nodes, their common defaults, and everything under way.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/slot"
)

// A Client locks on a fixed set of nodes. It is safe for concurrent use; a
// process needs one for each set of nodes.
//
// All clients that are to keep each other out must have the same nodes: two
// quorums of different sets need not meet.
type Client struct {
	set   settings
	lanes []*lane // by node

	work      sync.WaitGroup // operations and commands under way
	abandoned atomic.Int64   // releases given up
	patience  atomic.Int64   // the longest node timeout of any mutex
	highest   atomic.Int64   // fencing token granted to this client
	count     counters

	mu      sync.RWMutex
	closing chan struct{}   // closed by Close
	grants  map[*grant]bool // Close notes which it has ended

	renewer renewer
	census  *census
	crowd   *crowd
}

// New makes a client of nodes that are independent Redis servers: no replica of
// one another, no two names of one. An odd number serves best, five most often;
// with an even one a quorum is one node larger for the same number of failures.
//
// It does no I/O. Its error names everything that is wrong with the nodes and
// options.
func New(nodes []Node, opts ...Option) (*Client, error) {
	set, faults := defaults().with(opts, false)
	faults = append(nodeFaults(nodes, set), faults...)
	if err := joined("New", faults); err != nil {
		return nil, err
	}
	c := &Client{set: set, closing: make(chan struct{}), grants: make(map[*grant]bool)}
	c.renewer.client, c.census = c, newCensus(nodes)
	c.patience.Store(int64(set.nodeTimeout)) // for Check and Inspect
	for i, n := range nodes {
		if p, ok := n.(Prober); ok && (set.crashGuard > 0 || set.strict) {
			p.Connections() // from now on it counts them
		}
		c.lanes = append(c.lanes, newLane(c, n, i))
	}
	c.crowd = newCrowd(c)
	return c, nil
}

func nodeFaults(nodes []Node, set settings) (faults []error) {
	if len(nodes) == 0 {
		faults = append(faults, errors.New("nodes: there are none"))
	}
	for i, n := range nodes {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("nodes[%d]: "+format, append([]any{i}, args...)...))
		}
		if isNil(n) {
			fault("is nil")
			continue
		}
		if n.Name() == "" {
			fault("has no name")
		}
		r, ok := n.(*redisNode)
		if ok && r.fault != nil {
			fault("%q: %w", r.name, r.fault)
			continue
		}
		if _, can := n.(Prober); !can && set.crashGuard > 0 {
			fault("%q: cannot tell when its server started, as WithCrashGuard needs it: not a Prober", n.Name())
		} else if !can && set.strict {
			fault("%q: cannot tell about its server, as WithStrictNodes needs it: not a Prober", n.Name())
		}
		for j, other := range nodes[:i] {
			switch {
			case isNil(other):
			case ok && r.sameServer(other):
				fault("%q: is the same client as nodes[%d]", r.name, j)
			case n.Name() == other.Name():
				fault("%q: has the same name as nodes[%d]", n.Name(), j)
			}
		}
	}
	return faults
}

func isNil(n Node) bool {
	v := reflect.ValueOf(n)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Where the keys other than locks are, in front of a hash tag.
const (
	fencePrefix     = "redlock:fence:{"
	tombstonePrefix = "redlock:tomb:{"
	queuePrefix     = "redlock:queue:{"

	wakePrefix = "redlock:wake:" // of channels
)

// NewMutex makes a mutex for the resource of the given name: any bytes, but not
// none. Clients exclude each other if key prefix and name put together are
// equal. Options override the client's. It does no I/O; its error names
// everything that is wrong.
func (c *Client) NewMutex(name string, opts ...Option) (*Mutex, error) {
	set, faults := c.set.with(opts, true)
	lock := set.keyPrefix + name
	if name == "" {
		faults = append(faults, errors.New(`name "": must not be empty`))
	}
	for _, reserved := range []string{fencePrefix, tombstonePrefix, queuePrefix} {
		if strings.HasPrefix(lock, reserved) {
			faults = append(faults, fmt.Errorf("name %q: its key begins with %q, which is the library's own", abbreviate(name), reserved))
		}
	}
	if err := joined("NewMutex", faults); err != nil {
		return nil, err
	}
	raiseTo(&c.patience, int64(set.nodeTimeout))
	tag := slot.Tag(lock)
	m := &Mutex{client: c, set: set, name: name, lock: lock, tombstone: tombstonePrefix + tag + "}", queue: queuePrefix + tag + "}" + lock}
	if set.fencing {
		m.fence = fencePrefix + tag + "}" + lock
		m.limits = packLimits(set.retention, set.clockBound)
	}
	return m, nil
}

// raiseTo sets v to n unless it is higher.
func raiseTo(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// enter keeps the client open until the returned error is nil and c.work.Done
// is called.
func (c *Client) enter() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	select {
	case <-c.closing:
		return ErrClosed
	default:
		c.work.Add(1)
		return nil
	}
}

// sleep waits for d, and reports whether the client was still open then.
func (c *Client) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.closing:
		return false
	}
}

// Close ends the client. Calls of Lock return ErrClosed, and the leases still
// held end with it; their keys are released. It waits until no command is under
// way at any node, for at most four node timeouts and a second, and returns an
// error if that is not enough or if keys had to be left to their TTL. The Redis
// clients stay open. A second call returns nil.
func (c *Client) Close() error {
	c.mu.Lock()
	select {
	case <-c.closing:
		c.mu.Unlock()
		return nil
	default:
	}
	close(c.closing)
	held := c.grants
	c.grants = nil
	c.mu.Unlock()
	c.crowd.ears.close()

	before := c.abandoned.Load()
	c.work.Add(1) // held leases are released before the wait can end
	patience := time.Duration(c.patience.Load())
	for g := range held {
		held[g] = g.end(ErrClosed) // all at once, before the first release
	}
	for g, ended := range held {
		if ended || !errors.Is(g.check(), ErrUnlocked) { // Unlock releases by itself, and says what it found
			g.hold.abandon(context.Background())
		}
	}
	for g, ended := range held {
		if ended { // not by others meanwhile, who tell of it
			g.traceLost(ErrClosed)
		}
	}
	c.work.Done()

	idle := make(chan struct{})
	go func() {
		c.work.Wait()
		close(idle)
	}()
	bound := time.NewTimer(4*patience + time.Second)
	defer bound.Stop()
	select {
	case <-idle:
	case <-bound.C:
		return errors.New("redlock: close: drivers have not returned from commands to nodes that do not answer, or hooks from what they do")
	}
	if n := c.abandoned.Load() - before; n > 0 {
		return fmt.Errorf("redlock: close: %d keys were not released and end with their TTL", n)
	}
	return nil
}

// register makes g one of the leases that are renewed, and that Close ends. It
// reports false if the client is closed.
func (c *Client) register(g *grant) bool {
	c.mu.Lock()
	open := c.grants != nil
	if open {
		c.grants[g] = false
	}
	c.mu.Unlock()
	if !open {
		return false
	}
	g.mu.Lock()
	ended := g.err != nil
	g.mu.Unlock()
	if ended { // by its timer, before it was there to be taken out
		c.unregister(g)
		return true
	}
	c.renewer.plan(g, g.nextRenewal(g.start))
	c.renewer.startWatch()
	return true
}

func (c *Client) unregister(g *grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.grants, g)
}

// holding reports whether there are leases that have not ended.
func (c *Client) holding() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.grants) > 0
}

// held returns the leases that have not ended.
func (c *Client) held() []*grant {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.grants))
}
