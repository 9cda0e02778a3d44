// What stands between a machine and a node.

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A link is a node as the client of one machine has it.
type link struct {
	*redlocktest.Node
	world   *World
	machine *machine
	number  int // of the node

	mu       sync.Mutex
	counts   map[uint64]uint64 // messages so far, by what they are
	unknown  map[string]bool   // values whose acquire has no answer, and no release yet
	released map[string]bool
}

var (
	_ redlock.Waker         = (*link)(nil)
	_ redlock.Prober        = (*link)(nil)
	_ redlock.BatchExtender = (*link)(nil)
)

func newLink(w *World, m *machine, number int) *link {
	return &link{
		Node: w.cluster.Node(number), world: w, machine: m, number: number,
		counts: map[uint64]uint64{}, unknown: map[string]bool{}, released: map[string]bool{},
	}
}

// A message is a request, and its reply, and what becomes of them.
type message struct {
	dice   dice
	labels [6]uint64
	fault  uint64 // which asks for chance

	there, back        time.Duration
	lost, mute, broken bool
	copied             time.Duration // when a copy arrives, after the first; 0 without
}

// chance draws for the fault that asks.
func (m *message) chance(n uint64) float64 {
	m.labels[4], m.labels[5] = m.fault, n
	return m.dice.draw(m.labels[:]...)
}

// message draws what becomes of a request, which a number tells from others like it.
func (l *link) message(op, key string, number uint64) *message {
	what := mix(label(op)^label(key)<<1) + number
	l.mu.Lock()
	l.counts[what]++
	count := l.counts[what]
	l.mu.Unlock()
	m := &message{dice: l.world.dice, labels: [6]uint64{ofMessages, uint64(l.machine.number)<<16 | uint64(l.number), what, count}}
	m.there, m.back = m.dice.skewed(l.world.Way, append(m.labels[:4:4], 1)...), m.dice.skewed(l.world.Way, append(m.labels[:4:4], 2)...)
	for _, f := range l.world.present() {
		if f.Message != nil && f.strikes(l.machine.number, l.number) {
			m.fault = f.id()
			f.Message(l.world, f, m)
		}
	}
	return m
}

type answer struct {
	reply redlock.Reply
	err   error
}

var errDead = errors.New("the machine is dead")

func timeout() error { return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded} }

// send carries a request to the node, where do is done, and the answer back.
func (l *link) send(ctx context.Context, op, key string, number uint64, do func(context.Context) answer) answer {
	if !l.machine.runs() {
		return answer{redlock.Reply{Verdict: redlock.Unsent}, errDead}
	}
	if ctx.Err() != nil {
		return answer{redlock.Reply{Verdict: redlock.Unsent}, timeout()}
	}
	m := l.message(op, key, number)
	box := make(chan answer, 1)
	if !m.lost {
		l.world.after(m.there, func() {
			a := do(context.WithoutCancel(ctx)) // it waits while the node is stopped
			switch {
			case m.broken:
				box <- answer{err: io.EOF}
			case !m.mute:
				l.world.after(m.back, func() { box <- a })
			}
		})
		if m.copied > 0 {
			l.world.twice(l.machine, number)
			l.world.after(m.there+m.copied, func() { do(context.WithoutCancel(ctx)) })
		}
	}
	a := answer{err: timeout()}
	select {
	case a = <-box:
	case <-ctx.Done():
	}
	if !l.machine.runs() {
		return answer{err: errDead}
	}
	if a.err != nil && m.chance(0) < .5 {
		select {
		case a = <-box: // it came while the machine was stopped, and is read first
		default:
		}
	}
	return a
}

// claimed is send for a claim.
func (l *link) claimed(ctx context.Context, op redlocktest.Op, c *redlock.Claim, do func(context.Context, *redlock.Claim) (redlock.Reply, error)) (redlock.Reply, error) {
	sent := *c // a copy: the caller may be gone when it arrives
	sent.Waiter = l.alias(c.Waiter)
	number := l.machine.ordinal(c.Value)
	if op == redlocktest.Acquire {
		l.world.owned(c.Value, claimant{l.machine, number})
	}
	a := l.send(ctx, string(op), c.Lock, number, func(ctx context.Context) answer {
		reply, err := do(ctx, &sent)
		return answer{reply, err}
	})
	l.account(op, c.Value, a)
	return a.reply, a.err
}

// account notes whose acquire has no answer, and whose release was sent.
func (l *link) account(op redlocktest.Op, value string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case op == redlocktest.Acquire && a.err != nil && a.reply.Verdict == redlock.Unknown:
		l.unknown[value] = true
	case op == redlocktest.Release && a.reply.Verdict != redlock.Unsent:
		l.released[value] = true
	}
}

// unreleased returns the values whose acquire had no answer, and no release came.
func (l *link) unreleased() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []string
	for value := range l.unknown {
		if !l.released[value] {
			left = append(left, value)
		}
	}
	slices.Sort(left)
	return left
}

func (l *link) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	return l.claimed(ctx, redlocktest.Acquire, c, l.Node.Acquire)
}

func (l *link) Extend(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	return l.claimed(ctx, redlocktest.Extend, c, l.Node.Extend)
}

func (l *link) Raise(ctx context.Context, c *redlock.Claim, number int64) (redlock.Reply, error) {
	return l.claimed(ctx, redlocktest.Raise, c, func(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
		return l.Node.Raise(ctx, c, number)
	})
}

func (l *link) Rearm(ctx context.Context, c *redlock.Claim, token int64) (redlock.Reply, error) {
	return l.claimed(ctx, redlocktest.Rearm, c, func(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
		return l.Node.Rearm(ctx, c, token)
	})
}

func (l *link) Release(ctx context.Context, c *redlock.Claim, bury bool) (redlock.Reply, error) {
	return l.claimed(ctx, redlocktest.Release, c, func(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
		return l.Node.Release(ctx, c, bury)
	})
}

// ExtendAll is one message, with one answer for all or none for any.
func (l *link) ExtendAll(ctx context.Context, claims []*redlock.Claim) ([]redlock.Reply, []error) {
	sent := make([]*redlock.Claim, len(claims))
	for i, c := range claims {
		one := *c
		sent[i] = &one
	}
	var mu sync.Mutex
	var replies []redlock.Reply
	var errs []error
	a := l.send(ctx, "extend-all", claims[0].Lock, l.machine.ordinal(claims[0].Value), func(ctx context.Context) answer {
		r, e := l.Node.ExtendAll(ctx, sent)
		mu.Lock()
		defer mu.Unlock()
		replies, errs = r, e
		return answer{}
	})
	mu.Lock()
	defer mu.Unlock()
	if a.err == nil {
		return replies, errs
	}
	replies, errs = make([]redlock.Reply, len(claims)), make([]error, len(claims))
	for i := range claims {
		replies[i], errs[i] = a.reply, a.err
	}
	return replies, errs
}

// alias is what nodes know a waiter by. What comes before the slash is another string
// in each run, and who came first is decided by it if two have come in one instant.
func (l *link) alias(waiter string) string {
	if i := strings.LastIndexByte(waiter, '/'); i >= 0 {
		waiter = l.channel() + waiter[i:]
	}
	return waiter
}

func (l *link) channel() string { return fmt.Sprintf("machine-%d", l.machine.number) }

func (l *link) Enlist(ctx context.Context, p *redlock.Place) (redlock.Reply, error) {
	sent := *p
	sent.Waiter = l.alias(p.Waiter)
	a := l.send(ctx, string(redlocktest.Enlist), p.Lock, label(sent.Waiter), func(ctx context.Context) answer {
		reply, err := l.Node.Enlist(ctx, &sent)
		return answer{reply, err}
	})
	return a.reply, a.err
}

func (l *link) Delist(ctx context.Context, p *redlock.Place) error {
	sent := *p
	sent.Waiter = l.alias(p.Waiter)
	a := l.send(ctx, string(redlocktest.Delist), p.Lock, label(sent.Waiter), func(ctx context.Context) answer {
		return answer{err: l.Node.Delist(ctx, &sent)}
	})
	return a.err
}

// Listen takes what the node says when it says it, but for a machine that is stopped.
func (l *link) Listen(ctx context.Context, channel string, ready func(), wake func(string)) error {
	if !l.machine.runs() {
		return errDead
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.machine.life, cancel)()
	return l.Node.Listen(ctx, l.channel(), ready, func(waiter string) {
		if l.machine.runs() {
			wake(channel + strings.TrimPrefix(waiter, l.channel()))
		}
	})
}

func (l *link) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	var mu sync.Mutex
	var infos []redlock.ServerInfo
	a := l.send(ctx, string(redlocktest.Probe), "", 0, func(ctx context.Context) answer {
		found, err := l.Node.Probe(ctx)
		mu.Lock()
		defer mu.Unlock()
		infos = found
		return answer{err: err}
	})
	mu.Lock()
	defer mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	return infos, nil
}
