// The lines of those who wait, and the steps of redlock's scripts on them.

package redlocktest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
)

var _ redlock.Waker = (*Node)(nil)

// Enlist implements [redlock.Waker].
func (n *Node) Enlist(ctx context.Context, p *redlock.Place) (redlock.Reply, error) {
	return n.do(ctx, &command{op: Enlist, claim: placed(p), number: p.Ticket})
}

// Delist implements [redlock.Waker].
func (n *Node) Delist(ctx context.Context, p *redlock.Place) error {
	_, err := n.do(ctx, &command{op: Delist, claim: placed(p)})
	return err
}

// placed is a place as a command carries it.
func placed(p *redlock.Place) redlock.Claim {
	return redlock.Claim{Lock: p.Lock, Queue: p.Queue, Value: p.Waiter, TTL: p.Life}
}

// A standing is one waiter's place in a line, which is sorted by it. The ticket of
// one who has been called is below zero.
type standing struct {
	ticket int64
	waiter string
}

func (s standing) compare(t standing) int {
	return cmp.Or(cmp.Compare(s.ticket, t.ticket), cmp.Compare(s.waiter, t.waiter))
}

const (
	latest   = 10 * time.Second // that a ticket may be before the node's clock
	passOver = 16               // waiters that a release looks at at most
)

// errNoPlace is what becomes of the script if the line has expired in it.
var errNoPlace = errors.New("ERR bad argument #2 to 'format' (number expected, got boolean)")

// line returns the line at key, which may be none.
func (k keyspace) line(key string, now int64) (entry, error) {
	e, ok := k.lookup(key, now)
	switch {
	case !ok:
		return entry{kind: queue, when: never}, nil
	case e.kind != queue:
		return e, errWrongType
	}
	return e, nil
}

// shorten stores what is left of a line. Redis keeps no empty ones.
func (k keyspace) shorten(key string, e entry) {
	if k[key] = e; len(e.line) == 0 {
		delete(k, key)
	}
}

func (e entry) stands(waiter string) int {
	return slices.IndexFunc(e.line, func(s standing) bool { return s.waiter == waiter })
}

// move gives the waiter at i another ticket.
func (e entry) move(i int, ticket int64) {
	e.line[i].ticket = ticket
	slices.SortFunc(e.line, standing.compare)
}

// enlist takes the place as a claim by the waiter.
func (k keyspace) enlist(c *redlock.Claim, ticket int64, at time.Time) (redlock.Reply, error) {
	now := at.UnixMilli()
	lock, held := k.lookup(c.Lock, now)
	if held && lock.kind != text {
		return redlock.Reply{Verdict: redlock.Forbidden}, errWrongType
	}
	e, err := k.line(c.Queue, now)
	if err != nil {
		return redlock.Reply{Verdict: redlock.Forbidden}, err
	}
	ms := c.TTL.Milliseconds()
	if ms < 1 {
		delete(k, c.Queue)
		return redlock.Reply{Verdict: redlock.Rejected}, errNoPlace
	}
	clock := at.UnixMicro()
	if i := e.stands(c.Value); i >= 0 {
		e.move(i, min(max(e.line[i].ticket, -e.line[i].ticket), clock))
	} else {
		e.line = append(e.line, standing{waiter: c.Value})
		e.move(len(e.line)-1, min(max(ticket, clock-latest.Microseconds()), clock))
	}
	e.when = now + ms
	k[c.Queue] = e
	reply := redlock.Reply{Verdict: redlock.Absent, Ahead: int64(e.stands(c.Value))}
	if held {
		reply.Verdict, reply.Remaining = redlock.Taken, lock.remaining(now)
	}
	return reply, nil
}

func (k keyspace) delist(c *redlock.Claim, now int64) (redlock.Reply, error) {
	e, err := k.line(c.Queue, now)
	if err != nil {
		return redlock.Reply{Verdict: redlock.Forbidden}, err
	}
	e.line = slices.DeleteFunc(e.line, func(s standing) bool { return s.waiter == c.Value })
	k.shorten(c.Queue, e)
	return redlock.Reply{}, nil
}

// name calls the first waiter who listens and has not been called, other than who
// releases, and takes those before him out of the line. Whatever is wrong with it, the
// lock is free.
func (k keyspace) name(c *redlock.Claim, now int64, heard func(channel, waiter string) bool) bool {
	at := 0
	for range passOver {
		e, err := k.line(c.Queue, now)
		if err != nil || len(e.line) == at {
			return false
		}
		first := e.line[at]
		if first.waiter == c.Waiter {
			at++
			continue
		}
		if i := strings.LastIndexByte(first.waiter, '/'); i >= 0 && first.ticket >= 0 && heard(first.waiter[:i], first.waiter) {
			e.move(at, -first.ticket)
			return true
		}
		e.line = slices.Delete(e.line, at, at+1)
		k.shorten(c.Queue, e)
	}
	return false
}
