// The counters of a node, and the steps that count.

package redlocktest

import (
	"errors"
	"strconv"
	"time"

	"github.com/quorumlock/redlock"
)

// What the scripts answer where they would not count.
var (
	errNoCounter = errors.New("REDLOCKCOUNTER is not a number below 2^53")
	errNoString  = errors.New("REDLOCKCOUNTER is not a string")
	errAhead     = errors.New("REDLOCKAHEAD counter is ahead of the clock by more than the bound")
)

// bucket is 2^20 us: what the floor of a counter is rounded down to.
const bucket = 1 << 20

// counter returns the number in a counter, 0 if there is none.
func (k keyspace) counter(key string, now int64) (int64, redlock.Reply, error) {
	e, ok := k.lookup(key, now)
	switch {
	case !ok:
		return 0, redlock.Reply{}, nil
	case e.kind != text:
		return 0, redlock.Reply{Verdict: redlock.Forbidden}, errNoString
	}
	n, err := strconv.ParseUint(e.value, 10, 53)
	if err != nil || len(e.value) > 16 {
		return 0, redlock.Reply{Verdict: redlock.Forbidden}, errNoCounter
	}
	return int64(n), redlock.Reply{}, nil
}

// store sets a counter, unless it would be ahead of the clock by too much.
func (k keyspace) store(c *redlock.Claim, n int64, at time.Time) (redlock.Reply, error) {
	if n > at.UnixMicro()+c.ClockBound.Microseconds() {
		return redlock.Reply{Verdict: redlock.Rejected}, errAhead
	}
	value := strconv.FormatInt(n, 10)
	if c.Retention == 0 {
		k[c.Fence] = entry{value: value, when: never}
		return redlock.Reply{}, nil
	}
	if err := k.put(c.Fence, value, c.Retention, at.UnixMilli()); err != nil {
		return redlock.Reply{Verdict: redlock.Rejected}, err
	}
	return redlock.Reply{}, nil
}

// count is acquire with a counter.
func (k keyspace) count(c *redlock.Claim, at time.Time) (redlock.Reply, error) {
	now := at.UnixMilli()
	reply, err := k.lock(c, now)
	if err != nil {
		return reply, err
	}
	n, fault, err := k.counter(c.Fence, now)
	if err != nil {
		return fault, err
	}
	if _, ok := k.lookup(c.Tombstone, now); ok {
		return redlock.Reply{Verdict: redlock.Buried}, nil
	}
	if reply.Verdict == redlock.Taken {
		reply.Counter = n
		return reply, nil
	}
	if reply.Verdict == redlock.Absent || n == 0 {
		floor := at.UnixMicro() - at.UnixMicro()%bucket
		hint := c.Hint
		if hint > floor+2*bucket {
			hint = 0
		}
		n = max(n+1, hint, floor)
	}
	if fault, err := k.store(c, n, at); err != nil {
		return fault, err
	}
	if reply.Verdict == redlock.Absent {
		if err := k.put(c.Lock, c.Value, c.TTL, now); err != nil {
			return redlock.Reply{Verdict: redlock.Rejected}, err
		}
	}
	return redlock.Reply{Verdict: redlock.Granted, Counter: n}, nil
}

func (k keyspace) raise(c *redlock.Claim, number int64, at time.Time) (redlock.Reply, error) {
	now := at.UnixMilli()
	reply, err := k.lock(c, now)
	if err != nil || reply.Verdict != redlock.Granted {
		reply.Remaining = 0
		return reply, err
	}
	n, fault, err := k.counter(c.Fence, now)
	if err != nil {
		return fault, err
	}
	n = max(n, number)
	if fault, err := k.store(c, n, at); err != nil {
		return fault, err
	}
	return redlock.Reply{Verdict: redlock.Granted, Counter: n}, nil
}

func (k keyspace) rearm(c *redlock.Claim, token int64, at time.Time) (redlock.Reply, error) {
	if c.Fence == "" {
		return k.acquire(c, at.UnixMilli())
	}
	now := at.UnixMilli()
	reply, err := k.lock(c, now)
	if err != nil {
		return reply, err
	}
	n, fault, err := k.counter(c.Fence, now)
	if err != nil {
		return fault, err
	}
	if _, ok := k.lookup(c.Tombstone, now); ok {
		return redlock.Reply{Verdict: redlock.Buried}, nil
	}
	switch {
	case reply.Verdict == redlock.Granted:
		return redlock.Reply{Verdict: redlock.Granted, Counter: n}, nil
	case reply.Verdict == redlock.Taken || n > token:
		return redlock.Reply{Verdict: redlock.Taken, Counter: n}, nil
	}
	if fault, err := k.store(c, token, at); err != nil {
		return fault, err
	}
	if err := k.put(c.Lock, c.Value, c.TTL, now); err != nil {
		return redlock.Reply{Verdict: redlock.Rejected}, err
	}
	return redlock.Reply{Verdict: redlock.Granted, Counter: token}, nil
}

// keep renews the life of a counter, if there is one.
func (k keyspace) keep(c *redlock.Claim, now int64) {
	if e, ok := k.lookup(c.Fence, now); ok && c.Fence != "" && c.Retention > 0 {
		e.when = now + c.Retention.Milliseconds()
		k[c.Fence] = e
	}
}
