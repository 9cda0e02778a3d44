// The contract between the algorithm and one Redis server.

package redlock

import (
	"context"
	"strconv"
	"time"
)

// A Node is one independent Redis server as the algorithm sees it. [Redis] and
// [NewRedisNode] make nodes from go-redis clients, package redlocktest makes
// nodes in memory, and another driver needs no more than this interface.
//
// Each method is one atomic step on the server and must never be sent to it
// twice: a resent command could take a key that a release has just deleted.
// Methods are called concurrently and should return soon after ctx ends, but
// nothing depends on it: the library keeps the time of every call itself.
//
// A method that has the server's answer returns it with a nil error. On error
// the Reply's Verdict says what is known about the outcome; the zero Reply
// stands for [Unknown], so "return Reply{}, err" is always safe.
type Node interface {
	// Name identifies the node in errors, traces and logs. It is constant,
	// not empty, and unique in a client.
	Name() string

	// Acquire sets c.Lock to c.Value with an expiry of c.TTL if it is absent:
	// Granted. If it holds c.Value already: Granted, changing nothing, so that
	// a lost reply cannot make a free lock look taken. If it holds another
	// value: Taken, with the remaining life of that value. If c.Tombstone
	// exists: Buried.
	//
	// If c.Fence is not empty, a grant first sets the counter there to
	//
	//	max(counter+1, c.Hint, floor)
	//
	// where floor is the node's clock in microseconds, rounded down to a
	// multiple of 2^20, and a Hint more than two such multiples above floor is
	// left out. A counter that would be ahead of the node's clock by more than
	// c.ClockBound, or is not a number below 2^53, is an error, and nothing is
	// written. The counter is kept for c.Retention after its last use, or for
	// ever if that is 0.
	Acquire(ctx context.Context, c *Claim) (Reply, error)

	// Raise sets the counter of c.Fence to number, unless it is higher, if
	// c.Lock holds c.Value: Granted, with the counter. Otherwise Taken or
	// Absent. The errors are those of Acquire.
	Raise(ctx context.Context, c *Claim, number int64) (Reply, error)

	// Extend sets the expiry of c.Lock to c.TTL, never shortening it, if it
	// holds c.Value: Granted. Otherwise Taken or Absent; it creates nothing.
	Extend(ctx context.Context, c *Claim) (Reply, error)

	// Rearm sets c.Lock to c.Value with an expiry of c.TTL if it is absent and
	// the counter is not above token, which it sets the counter to: Granted.
	// If another value is there, or the counter is above token: Taken. If
	// c.Tombstone exists: Buried. Without a c.Fence it is Acquire.
	Rearm(ctx context.Context, c *Claim, token int64) (Reply, error)

	// Release deletes c.Lock if it holds c.Value: Released. Otherwise Taken or
	// Absent. With bury set it also leaves c.Tombstone for c.TTL, so that an
	// Acquire of the same claim that is still on its way is refused.
	//
	// The Release of a [Waker] that has deleted c.Lock sends the first waiter of
	// the line c.Queue on its channel, which is the waiter up to its last '/'. He
	// stays in front until he leaves. Those it knows nobody listens for, and who
	// were told by an earlier Release and have not enlisted since, it takes out of
	// the line, but it looks at 16 at most. The reply is Named if somebody was told.
	Release(ctx context.Context, c *Claim, bury bool) (Reply, error)
}

// A BatchExtender is a Node that can renew many claims in one round trip, which
// a client with many leases makes use of.
type BatchExtender interface {
	Node

	// ExtendAll does what Extend does for each of claims, which are of
	// different locks, and returns as many replies and errors in their order.
	ExtendAll(ctx context.Context, claims []*Claim) ([]Reply, []error)
}

// A Claim is what one attempt asks of one node.
type Claim struct {
	// Lock, Fence, Tombstone and Queue are keys of one hash slot. Lock is the key
	// of the resource, Fence that of its counter, or empty if there is to be none,
	// Tombstone belongs to Value, and Queue is the line of those who wait, or empty.
	Lock, Fence, Tombstone, Queue string

	// Waiter is who acquires, if he has stood in line: a Release does not call him.
	Waiter string

	// Value is the attempt's token with a suffix for the node. No other
	// attempt and no other node of this attempt has the same.
	Value string

	// TTL is a positive number of whole milliseconds.
	TTL time.Duration

	// For the counter.
	Hint       int64
	Retention  time.Duration // whole milliseconds; 0 for ever
	ClockBound time.Duration // whole microseconds

	limits string // both of them, packed once for all claims of a mutex

	_ struct{}
}

// A Reply is a node's answer.
type Reply struct {
	Verdict Verdict

	// Remaining is how long the value that another token holds will stay,
	// with the Verdict Taken; zero if that is not known, negative if it will
	// stay until it is deleted.
	Remaining time.Duration

	// Counter is the lock's fencing counter after Acquire, Raise or Rearm; zero
	// without one.
	Counter int64

	Ahead int64 // after Enlist: so many stand in front
	Named bool  // after Release: the first in the line was told

	_ struct{}
}

// A Verdict is what is known about the outcome of one call to one node.
type Verdict uint8

const (
	// Unknown is the outcome of a call without an answer. The command may have
	// been executed, may never be, or may be executed later.
	Unknown Verdict = iota

	Granted  // the lock holds the claim's value
	Taken    // the lock holds another value
	Absent   // the lock is not there
	Buried   // the claim has a tombstone, so it was not granted
	Released // the lock held the claim's value and was deleted

	// With an error only:

	Unsent    // the command never left this process
	Rejected  // the server answered with an error and wrote nothing
	Forbidden // as Rejected, and it will do so until somebody changes it
)

func (v Verdict) String() string {
	names := [...]string{"unknown", "granted", "taken", "absent", "buried", "released", "unsent", "rejected", "forbidden"}
	if int(v) < len(names) {
		return names[v]
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}
