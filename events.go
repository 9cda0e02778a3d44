// What hooks are told.

package redlock

import (
	"context"
	"time"
)

// The Context of an event has the values of the context that the call of Lock was
// given, or that [Trace].LockStart returned for it. It does not end, and no event has
// the random token of an owner.

// LockStart is the start of one call of Lock or TryLock.
type LockStart struct {
	Name        string // of the mutex
	MaxAttempts int    // that it makes; 1 for TryLock, 0 if there is no bound

	_ struct{}
}

// LockDone is the end of one call of Lock or TryLock.
type LockDone struct {
	Context  context.Context
	Name     string
	Attempts int           // made, or spent in line; 0 if the call ended before the first
	Elapsed  time.Duration // since the call
	Token    int64         // fencing token; 0 if the call failed or fencing is off
	Err      error         // as it is returned

	_ struct{}
}

// AttemptStart is the start of one attempt to lock.
type AttemptStart struct {
	Context context.Context
	Name    string // of the mutex
	Attempt int    // 1 for the first of a call

	_ struct{}
}

// AttemptDone is the end of one attempt to lock.
type AttemptDone struct {
	Context  context.Context
	Name     string
	Attempt  int
	Elapsed  time.Duration // since before the first command was sent
	Validity time.Duration // what is left of the TTL; 0 if the attempt failed
	Granted  int           // nodes that had granted the lock when it was decided
	Rounds   int           // round trips that it took to decide: 1, and 1 for each raise of the fencing counters; 0 if no votes were asked for, since a look had shown that the lock is taken
	Token    int64         // fencing token; 0 if the attempt failed or fencing is off
	Failure  Failure       // "" if the lock is held; FailedCanceled if the caller left before the outcome was certain
	Err      error         // nil if the lock is held

	_ struct{}
}

// NodeDone is the outcome of one call to one node.
type NodeDone struct {
	Context context.Context
	Name    string
	Node    string
	Op      string        // "acquire", "raise", "extend", "rearm", "release", "enlist" or "delist"
	Elapsed time.Duration // since the call was handed to the node
	Verdict Verdict
	Late    bool      // it came after the operation had been decided
	Fault   NodeFault // "" if the node answered, or was not asked since the operation had been decided
	Err     error

	_ struct{}
}

// Wait is a pause between two attempts.
type Wait struct {
	Context context.Context
	Name    string
	Attempt int           // that has failed
	Delay   time.Duration // until the next, unless a release calls before
	Err     error         // of that attempt

	_ struct{}
}

// Called is a node that has called one who waits, since the lock was released there.
type Called struct {
	Context context.Context
	Name    string
	Node    string

	_ struct{}
}

// Deaf is a node that was listened to, and is not heard any more. It is listened to
// again soon. All who wait in a client share that, so it has no Context of any.
type Deaf struct {
	Node string
	Err  error // a *NodeError

	_ struct{}
}

// Renewal is the outcome of one renewal.
type Renewal struct {
	Context  context.Context
	Name     string
	Behind   time.Duration // how much later than planned it was sent
	Elapsed  time.Duration // since it was sent
	Validity time.Duration // left now
	Granted  int           // nodes that had renewed when it was decided
	Err      error         // nil if the lease was renewed

	_ struct{}
}

// Danger is a lease that may soon be lost.
type Danger struct {
	Context   context.Context
	Name      string
	Remaining time.Duration // validity left
	Err       error         // of the last renewal; nil if none has an outcome

	_ struct{}
}

// Lost is a lease that was lost.
type Lost struct {
	Context context.Context
	Name    string
	Held    time.Duration // since it was granted
	Cause   LossCause
	Err     error // as Lease.Err returns it

	_ struct{}
}

// Unlocked is the outcome of the first Unlock of a lease.
type Unlocked struct {
	Context context.Context
	Name    string
	Held    time.Duration // from the grant to the call, or to the loss before
	Elapsed time.Duration // since the call
	Err     error         // as it is returned; wraps ErrNotHeld if the lease was lost before

	_ struct{}
}

// CleanupDropped is a key that was not released.
type CleanupDropped struct {
	Context context.Context
	Name    string
	Node    string
	Err     error // the last try's

	_ struct{}
}
