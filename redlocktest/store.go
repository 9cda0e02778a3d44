// The keyspace of a node, and the atomic steps of redlock's scripts on it.

package redlocktest

import (
	"errors"
	"math"
	"time"

	"github.com/quorumlock/redlock"
)

// What Redis answers to a string command on another type, and to SET with an
// expiry of less than a millisecond.
var (
	errWrongType  = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
	errExpireTime = errors.New("ERR invalid expire time in 'set' command")
)

// An entry is the value of a key. As in Redis, its expiry is an absolute wall
// time in whole milliseconds, so a step of the clock moves the end of its life.
type entry struct {
	value string
	kind  kind
	line  []standing // of a queue
	when  int64      // never, or the last Unix millisecond in which it is there
}

// A kind is the type of a key.
type kind uint8

const (
	text  kind = iota // a string
	list              // of which it is only known that it is one
	queue             // a sorted set: the line of those who wait
)

const never = math.MaxInt64

// remaining is what PTTL answers: zero in the last millisecond, and a negative
// number if the key does not expire.
func (e entry) remaining(now int64) time.Duration {
	if e.when == never {
		return -1
	}
	return time.Duration(e.when-now) * time.Millisecond
}

// A keyspace is the data of a node. Every method takes the time once, since a
// script sees one instant.
type keyspace map[string]entry

// get returns the entry of a live key. It never changes the keyspace.
func (k keyspace) get(key string, now int64) (entry, bool) {
	e, ok := k[key]
	if !ok || now > e.when {
		return entry{}, false
	}
	return e, true
}

// lookup is get for a command: it deletes a key that has expired, as Redis
// does, so that a clock that steps back does not bring it back.
func (k keyspace) lookup(key string, now int64) (entry, bool) {
	e, ok := k.get(key, now)
	if !ok {
		delete(k, key)
	}
	return e, ok
}

// lock answers what the claim's lock holds: Absent, Granted if it is the claim's
// value, else Taken.
func (k keyspace) lock(c *redlock.Claim, now int64) (redlock.Reply, error) {
	e, ok := k.lookup(c.Lock, now)
	switch {
	case !ok:
		return redlock.Reply{Verdict: redlock.Absent}, nil
	case e.kind != text:
		return redlock.Reply{Verdict: redlock.Forbidden}, errWrongType
	case e.value == c.Value:
		return redlock.Reply{Verdict: redlock.Granted}, nil
	}
	return redlock.Reply{Verdict: redlock.Taken, Remaining: e.remaining(now)}, nil
}

// put is SET with PX.
func (k keyspace) put(key, value string, ttl time.Duration, now int64) error {
	ms := ttl.Milliseconds()
	if ms < 1 {
		return errExpireTime
	}
	k[key] = entry{value: value, when: now + ms}
	return nil
}

// sweep deletes what has expired.
func (k keyspace) sweep(now int64) {
	for key, e := range k {
		if now > e.when {
			delete(k, key)
		}
	}
}

func (k keyspace) acquire(c *redlock.Claim, now int64) (redlock.Reply, error) {
	reply, err := k.lock(c, now)
	if err != nil {
		return reply, err
	}
	if _, ok := k.lookup(c.Tombstone, now); ok {
		return redlock.Reply{Verdict: redlock.Buried}, nil
	}
	if reply.Verdict != redlock.Absent {
		return reply, nil
	}
	if err := k.put(c.Lock, c.Value, c.TTL, now); err != nil {
		return redlock.Reply{Verdict: redlock.Rejected}, err
	}
	return redlock.Reply{Verdict: redlock.Granted}, nil
}

func (k keyspace) extend(c *redlock.Claim, now int64) (redlock.Reply, error) {
	reply, err := k.lock(c, now)
	if reply.Verdict == redlock.Granted {
		e := k[c.Lock]
		// A lock that does not expire gets an expiry: its PTTL is -1.
		if when := now + c.TTL.Milliseconds(); e.when == never || e.when < when {
			e.when = when
		}
		k[c.Lock] = e
		k.keep(c, now)
	}
	return reply, err
}

// release leaves the tombstone even if the lock is of another type. It asks heard
// who of those in line is told.
func (k keyspace) release(
	c *redlock.Claim, bury bool, now int64, heard func(channel, waiter string) bool,
) (redlock.Reply, error) {
	reply, err := k.lock(c, now)
	if reply.Verdict == redlock.Granted {
		delete(k, c.Lock)
		reply.Verdict = redlock.Released
		reply.Named = c.Queue != "" && k.name(c, now, heard)
	}
	if bury {
		if err := k.put(c.Tombstone, "", c.TTL, now); err != nil {
			return redlock.Reply{Verdict: redlock.Rejected}, err
		}
	}
	return reply, err
}
