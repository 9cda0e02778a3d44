// One token: what was sent where in its name, and its release.

package redlock

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A hold is the client's account of one token. It outlives the attempt that
// made it until every node has let go of the token, and it keeps this order: a
// release follows the commands of the token that are under way to the same
// node, and after it nothing but releases is sent.
type hold struct {
	client *Client
	set    *settings
	name   string
	token  string
	values context.Context // of the ctx given to Lock

	deadline atomic.Int64 // of the grant; nothing is renewed after it

	over  atomic.Bool  // a release was asked for; set with mu held
	named atomic.Int32 // releases that have called somebody

	mu    sync.Mutex
	fence int64         // the fencing token, once granted
	until time.Duration // when the last key of this token is gone, on the client's clock
	sites []site
}

// A site is a hold's account of one node.
type site struct {
	claim Claim

	underWay  *call       // commands other than releases without an outcome, a list
	contacted bool        // a command may have reached the node
	unknown   bool        // an acquire has no answer, so it may still execute
	granted   bool        // an acquire, or a re-arming
	foreign   bool        // another token was seen there
	gaveUp    atomic.Bool // a release of it was given up
	counter   int64       // as last seen there in answer to this token; 0 if it was not
	pending   *call       // a release that waits for what is under way
}

// newHold makes one for a mutex, and a waiter if not nil.
func newHold(ctx context.Context, m *Mutex, w *waiter) *hold {
	n := len(m.client.lanes)
	h := &hold{client: m.client, set: &m.set, name: m.name, token: rand.Text(), values: ctx, sites: make([]site, n)}
	h.until = m.client.set.clock.Elapsed()
	tombstone := m.tombstone + h.token
	hint := m.client.hint()
	var waiting string
	if w != nil {
		waiting = w.id
	}
	var values strings.Builder // one allocation for all
	values.Grow(n * (len(h.token) + len(".999")))
	for i := range h.sites {
		// The suffix keeps a server that is listed twice from granting twice:
		// to it the second claim is another token's.
		from := values.Len()
		values.WriteString(h.token)
		values.WriteByte('.')
		values.WriteString(strconv.Itoa(i))
		h.sites[i].claim = Claim{
			Lock: m.lock, Fence: m.fence, Tombstone: tombstone, Queue: m.queue, Waiter: waiting,
			Value: values.String()[from:], TTL: m.set.ttl,
			Hint: hint, Retention: m.set.retention, ClockBound: m.set.clockBound, limits: m.limits,
		}
	}
	return h
}

func (h *hold) nodeName(i int) string { return h.client.lanes[i].node.Name() }

// ask sends op, an acquire or extend, to all nodes.
func (h *hold) ask(ctx context.Context, o op) *round {
	r := h.prepare(ctx, o, h.set.nodeTimeout)
	r.expect()
	r.begin()
	for i := range r.calls {
		h.client.lanes[i].submit(&r.calls[i])
	}
	return r
}

// prepare makes a round of a command that may give keys a new life.
func (h *hold) prepare(ctx context.Context, o op, patience time.Duration) *round {
	h.mu.Lock()
	h.keysUntil(patience)
	h.mu.Unlock()
	return newRound(ctx, h, o, patience)
}

// keysUntil notes that a command which may take as long as patience gives keys
// a new life. The caller holds h.mu.
func (h *hold) keysUntil(patience time.Duration) {
	h.until = max(h.until, h.client.set.clock.Elapsed()+patience+h.set.ttl)
}

// rearm gives the lock back to the nodes that have lost it, after the renewal r was won
// without them. Otherwise a lease that outlives restarts of its nodes would end when the
// quorum is used up. It does not wait. What it restores counts from the next renewal on.
func (h *hold) rearm(r *round) {
	h.mu.Lock()
	r.won = true
	var again *round
	for i := range r.calls {
		if r.calls[i].absent {
			again = h.rearmNode(again, r, i)
		}
	}
	h.mu.Unlock()
}

// rearmNode does so for one node, in the round given or, if that is nil, in a
// new one, which it returns. The node itself makes sure that no other token was
// there since, by its counter. Where there is none, or redsync, which does not
// count, may be about, a node that another token was ever seen on is left out.
// The caller holds h.mu and keeps the client open.
func (h *hold) rearmNode(again, r *round, node int) *round {
	s := &h.sites[node]
	blind := h.fence == 0 || h.set.keyPrefix == ""
	if h.over.Load() || blind && s.foreign || s.underWay != nil {
		return again
	}
	if again == nil {
		again = newRound(r.values, h, opRearm, h.set.nodeTimeout)
		again.left.Store(0)
		again.begin()
		h.keysUntil(again.patience)
	}
	again.left.Add(1)
	c := &again.calls[node]
	c.number = h.fence
	h.client.lanes[node].submit(c)
	return again
}

// abandon releases the token everywhere, unless that was asked for before, and
// nobody waits for it. The caller keeps the client open.
func (h *hold) abandon(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over.Load() {
		h.letGoOfAll(newRound(ctx, h, opRelease, h.set.nodeTimeout))
	}
}

// release asks every node to let go of the token. It does not wait. Once it is
// called, nothing but releases is sent for the token.
func (h *hold) release(r *round) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.letGoOfAll(r)
}

// letGoOfAll is release for those who hold h.mu.
func (h *hold) letGoOfAll(r *round) {
	r.begin()
	h.over.Store(true)
	for i := range h.sites {
		s := &h.sites[i]
		if s.pending = &r.calls[i]; s.granted || s.unknown || s.underWay != nil {
			h.client.lanes[i].free(s.pending)
		}
		h.letGo(s)
	}
}

// letGo sends the release that is pending for a site, if there is one, after
// what is under way there. But that may be overdue: then its outcome counts as
// unknown. The caller holds h.mu, and keeps the client open.
func (h *hold) letGo(s *site) {
	c := s.pending
	for u := s.underWay; u != nil; u = u.next {
		if u.round.Err() == nil {
			return
		}
	}
	if c == nil {
		return
	}
	s.pending = nil
	c.bury = s.unknown || s.underWay != nil
	c.owed = s.granted || c.bury
	if s.clear() {
		// No need to ask, nor to wait for a place at a node that is stalled. Not
		// here, since a trace hook may want the locks that are held.
		h.client.work.Go(func() { c.finish(answer{Reply: Reply{Verdict: Absent}}) })
		return
	}
	h.client.lanes[c.node].submit(c)
}

// clear reports whether nothing of the token can be or appear on the node. The
// caller holds h.mu.
func (s *site) clear() bool { return !s.contacted && s.underWay == nil }

// clear is that of a site, for those who do not hold h.mu.
func (h *hold) clear(node int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sites[node].clear()
}

// overdue sends the releases that wait for nothing but calls whose time is over.
// As long as such a call has not settled, which takes h.mu, it keeps the client
// open.
func (h *hold) overdue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.sites {
		h.letGo(&h.sites[i])
	}
}

// begin reports whether a command of the token may still be sent to the node,
// and counts it as under way.
func (h *hold) begin(c *call) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over.Load() {
		return false
	}
	if (c.op == opExtend || c.op == opRearm) && h.client.set.clock.Elapsed() >= time.Duration(h.deadline.Load()) {
		return false
	}
	s := &h.sites[c.node]
	c.next, s.underWay = s.underWay, c
	return true
}

// settle accounts for the outcome of a command that begin let pass, and sends
// the release that waited for it.
func (h *hold) settle(c *call, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.sites[c.node]
	for u := &s.underWay; *u != nil; u = &(*u).next {
		if *u == c {
			*u = c.next
			break
		}
	}
	s.contacted = s.contacted || a.Verdict != Unsent
	s.granted = s.granted || c.op.creates() && a.Verdict == Granted
	s.unknown = s.unknown || c.op.creates() && a.Verdict == Unknown
	s.foreign = s.foreign || a.Verdict == Taken
	c.absent = c.op == opExtend && a.Verdict == Absent
	if a.Verdict == Granted && c.op == opAcquire {
		s.counter = a.Counter
		h.align(c.node, c.round) // if it comes late
	}
	switch {
	case !h.over.Load():
		if c.absent && c.round.won { // it answered after the others had won
			h.rearmNode(nil, c.round, c.node)
		}
	case s.pending == nil && c.op.creates() && a.Verdict == Granted:
		// It was given up, and executed after all, even after the release.
		s.pending = &call{op: opRelease, round: c.round, node: c.node, quiet: true}
		fallthrough
	default:
		h.letGo(s)
	}
}

// expired reports whether every key of the token must be gone by now.
func (h *hold) expired() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client.set.clock.Elapsed() >= h.until
}
