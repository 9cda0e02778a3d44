// Who waits: one contender for each lock in a client, the others in line behind it.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// mannersFor is how long a client that has called somebody by a release does not
// take the lock again before that one has had his chance.
const mannersFor = 50 * time.Millisecond

// A crowd is all who wait in a client.
type crowd struct {
	client *Client
	able   bool // so many nodes keep lines that calls are worth waiting for

	mu     sync.Mutex
	lines  map[string]*line   // by lock key
	listed map[string]*waiter // by what the nodes know them as
	number atomic.Uint64      // of waiters that have an id
	ears   ears
}

// A line is those who wait for one lock. The first of them contends.
type line struct {
	waiters []*waiter
	err     error         // what the contender has found last
	named   bool          // a release has called somebody
	called  time.Duration // when, on the client's clock
}

// A waiter is one call of Lock.
type waiter struct {
	mutex  *Mutex
	crowd  *crowd
	values context.Context // of the ctx given to Lock
	turn   chan struct{}   // closed when it is the first of its line; nil if it was so from the start
	ticket int64
	id     string // that the nodes know it by; empty as long as they need not

	// Once it stands in the nodes' lines too.
	hold   *hold // that looks are made with
	place  *Place
	called chan struct{} // of one element: a node has called it
	spent  time.Duration // on the client's clock: calls are answered for up to then

	refusal *round // by which the next attempt has failed already
	barren  int    // attempts in a row that failed though nobody had the lock

	// Guarded by the crowd's mutex.
	callers uint64 // the nodes that have called it since it was listed
	asking  []int  // by node: times it is being listed
	leaving *round // by which it leaves the nodes' lines, once it has left
}

func newWaiter(ctx context.Context, m *Mutex) *waiter {
	clk := m.client.set.clock
	return &waiter{mutex: m, crowd: m.client.crowd, values: ctx, ticket: clk.Now().UnixMicro(), spent: clk.Elapsed()}
}

// anew returns one for the same call that stands at the end of the line; w, if there is
// one, leaves.
func (w *waiter) anew(ctx context.Context, m *Mutex) *waiter {
	next := newWaiter(ctx, m)
	if w != nil {
		w.leave(ctx)
		next.identify()
	}
	return next
}

// identify gives w an id, with which an attempt of its own does not call it.
func (w *waiter) identify() {
	if w.id == "" {
		w.id = w.crowd.ears.channel + "/" + strconv.FormatUint(w.crowd.number.Add(1), 10)
	}
}

func newCrowd(c *Client) *crowd {
	w := &crowd{client: c, lines: make(map[string]*line), listed: make(map[string]*waiter)}
	keepers := 0
	for _, l := range c.lanes {
		if _, ok := l.node.(Waker); ok {
			keepers++
		}
	}
	w.able = keepers >= quorum.Size(len(c.lanes)) && len(c.lanes) <= 64
	w.ears.open(c)
	return w
}

// join stands in line until w is the first of this client, or may make only one attempt
// more: the time in line counts as if it had made attempts, or one who wants to make few
// would wait for ever. It takes the number of the next attempt, and returns it. The
// caller calls leave in any case.
func (w *waiter) join(ctx context.Context, most, number int) (int, error) {
	c, key := w.crowd, w.mutex.lock
	c.mu.Lock()
	l := c.lines[key]
	if l == nil {
		l = new(line)
		c.lines[key] = l
	}
	l.waiters = append(l.waiters, w)
	first := len(l.waiters) == 1
	if !first {
		w.turn = make(chan struct{})
	}
	polite := l.named // or it would have been forgotten
	c.mu.Unlock()
	if first && !polite {
		return number, nil
	}
	defer w.mutex.client.waits()()
	patience := time.NewTimer(math.MaxInt64)
	defer patience.Stop()
	for !first {
		if most > 0 {
			patience.Reset(w.mutex.delay(number, w.mutex.patiently(), 0))
		}
		select {
		case <-w.turn:
			first = true
		case <-patience.C:
			if number++; number >= most {
				return number, w.ended(ctx, w.known())
			}
		case <-ctx.Done():
			return number, w.ended(ctx, w.known())
		case <-w.mutex.client.closing:
			return number, w.ended(ctx, w.known())
		}
	}
	// The one before has the lock now, or who was called, more likely than not.
	return number, w.pause(ctx, 0, attempt{err: w.known(), taken: true})
}

// ended returns the error of a call that has ended while it waited, if it has. err is
// what it knew last.
func (w *waiter) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return callerEnded(ctx, "lock", w.mutex.name, err)
	}
	select {
	case <-w.mutex.client.closing:
		return &endedError{op: "lock", name: w.mutex.name, errs: []error{ErrClosed, err}}
	default:
		return nil
	}
}

// known is what the contender has found last. Its settings may be others than w's.
func (w *waiter) known() error {
	w.crowd.mu.Lock()
	defer w.crowd.mu.Unlock()
	if err := w.crowd.lines[w.mutex.lock].err; err != nil {
		return fmt.Errorf("%w, of which the first was told: %w", errInLine, err)
	}
	return errInLine
}

var errInLine = errors.New("others of this client come first")

// found notes what came of an attempt, also for those behind.
func (w *waiter) found(a attempt) {
	if w == nil {
		return
	}
	if w.barren++; a.taken {
		w.barren = 0
	}
	w.crowd.mu.Lock()
	defer w.crowd.mu.Unlock()
	w.crowd.lines[w.mutex.lock].err = a.err
}

// hopeless reports whether others should have a chance: w has failed twice in a row for
// another reason than that somebody has the lock. Once is how votes are split.
func (w *waiter) hopeless() bool { return w.barren >= 2 }

// leave takes w out of the line, here and on the nodes, and lets the next contend.
func (w *waiter) leave(ctx context.Context) {
	if w == nil {
		return
	}
	c := w.crowd
	c.mu.Lock()
	l := c.lines[w.mutex.lock]
	for i, other := range l.waiters {
		if other == w {
			l.waiters = append(l.waiters[:i], l.waiters[i+1:]...)
			if i == 0 && len(l.waiters) > 0 {
				close(l.waiters[0].turn)
			}
			break
		}
	}
	c.drop(w.mutex.lock)
	if w.place == nil {
		c.mu.Unlock()
		return
	}
	delete(c.listed, w.place.Waiter)
	w.leaving = newRound(ctx, w.hold, opDelist, 0)
	w.leaving.waiter = w
	for node, n := range w.asking {
		if n == 0 {
			w.depart(node)
		}
	}
	c.mu.Unlock()
	c.ears.leave()
}

// depart takes w out of the line of a node, also if that has called it: it may have
// done so before w was listed again. The caller holds the crowd's mutex.
func (w *waiter) depart(node int) {
	call := &w.leaving.calls[node]
	call.quiet = true
	w.crowd.client.lanes[node].submit(call)
}

// asked notes that a node has answered, or will not. Who has left meanwhile leaves
// its line only now: the other way round it would stay there.
func (w *waiter) asked(node int) {
	w.crowd.mu.Lock()
	defer w.crowd.mu.Unlock()
	if w.asking[node]--; w.asking[node] == 0 && w.leaving != nil {
		w.depart(node)
	}
}

// drop forgets a line that nobody needs. The caller holds c.mu.
func (c *crowd) drop(key string) {
	if l := c.lines[key]; l != nil && len(l.waiters) == 0 && (!l.named || c.client.set.clock.Elapsed()-l.called >= mannersFor) {
		delete(c.lines, key)
	}
}

// mind notes that a release of this client has called somebody.
func (c *crowd) mind(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[key]
	if l == nil {
		l = new(line)
		c.lines[key] = l
	}
	l.named, l.called = true, c.client.set.clock.Elapsed()
	c.client.set.clock.AfterFunc(mannersFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(key)
	})
}

// call is what a node says to a waiter.
func (c *crowd) call(node int, id string) {
	c.mu.Lock()
	w := c.listed[id]
	if w != nil {
		w.callers |= 1 << node
		notify(w.called)
	}
	c.mu.Unlock()
	if w != nil {
		w.calledBy(c.client.lanes[node])
	}
}
