// What a client has counted.

package redlock

import (
	"errors"
	"time"
)

// Stats are what a client has counted and measured since it was made, over all
// names. Maps have every key that is documented, also those that are 0.
//
// All leases ever granted are held now, were unlocked, or were lost, but the numbers
// are not of one instant.
type Stats struct {
	LeasesHeld    int64               // now
	LeaseAcquired int64               // granted
	LeaseUnlocked int64               // ended by Unlock
	LeaseLost     map[LossCause]int64 // ended otherwise

	Waiting       int64             // calls of Lock between attempts, or in line, now
	LockFailed    map[Failure]int64 // calls of Lock and TryLock
	Attempts      int64             // to lock
	AttemptFailed map[Failure]int64
	Called        int64 // times that a node has called a Lock that waited

	Renewals        int64 // that have an outcome
	RenewalFailed   int64 // of those
	Dangers         int64 // times that a renewal was so much overdue that its lease may soon be lost
	CleanupsDropped int64 // keys that were left to their TTL

	HeartbeatLatency Latency // of renewals that succeeded
	AcquireLatency   Latency // of attempts that succeeded, each for itself
	WaitTime         Latency // from the call of Lock or TryLock to the grant
	HoldTime         Latency // from the grant to the end of the lease, whatever ended it
	UnlockLatency    Latency // of calls of Unlock for leases that were still held

	// LongestPause is by how much a renewal, or another timer of a lease, was late
	// at most: the process did not run, or not enough. It never goes down.
	LongestPause time.Duration

	Nodes  []NodeStats // in the order of the nodes given to New
	Advice []Advice    // what the TTL should be, if it should be another

	_ struct{}
}

// NodeStats are those of one node.
type NodeStats struct {
	Name    string
	Calls   int64               // that have an outcome, whichever
	Failed  map[NodeFault]int64 // of those
	Latency Latency             // of calls that were answered, from when they were handed to the node
	Called  int64               // times that it has called a Lock that waited
	Deaf    int64               // times that it could not be heard though somebody waited

	_ struct{}
}

// A LossCause is why a lease ended before its owner unlocked it.
type LossCause string

// The causes.
const (
	LossExpired  LossCause = "expired"   // no renewal had an outcome in time: there is none, or the process did not run
	LossNoQuorum LossCause = "no_quorum" // its renewals failed until its deadline
	LossTaken    LossCause = "taken"     // others have the lock
	LossNotHeld  LossCause = "not_held"  // the nodes have lost it
	LossMaxHold  LossCause = "max_hold"  // WithMaxHold
	LossClosed   LossCause = "closed"    // Client.Close
)

var lossCauses = [...]LossCause{LossExpired, LossNoQuorum, LossTaken, LossNotHeld, LossMaxHold, LossClosed}

// lossCause tells why a lease ended. An expiry after failed
// renewals wraps what the nodes said, which is not the cause.
func lossCause(err error) LossCause {
	switch {
	case errors.Is(err, ErrClosed):
		return LossClosed
	case errors.Is(err, ErrMaxHold):
		return LossMaxHold
	case errors.Is(err, ErrExpired) && errors.Is(err, ErrNoQuorum):
		return LossNoQuorum
	case errors.Is(err, ErrExpired):
		return LossExpired
	case errors.Is(err, ErrTaken):
		return LossTaken
	default:
		return LossNotHeld
	}
}

// A Failure is why an attempt or a call of Lock did not lock.
type Failure string

// The failures.
const (
	FailedTaken    Failure = "taken"     // others have the lock
	FailedNoQuorum Failure = "no_quorum" // too few nodes gave a usable answer
	FailedExpired  Failure = "expired"   // the votes came too late
	FailedCanceled Failure = "canceled"  // the caller's context ended
	FailedClosed   Failure = "closed"    // Client.Close
)

var failures = [...]Failure{FailedTaken, FailedNoQuorum, FailedExpired, FailedCanceled, FailedClosed}

// FailureOf tells which one an error of Lock, TryLock or an attempt is, and "" for nil.
// For any other error it is no_quorum.
func FailureOf(err error) Failure {
	switch {
	case err == nil:
		return ""
	case isContextError(err): // a node's own never shows
		return FailedCanceled
	case errors.Is(err, ErrClosed):
		return FailedClosed
	case errors.Is(err, ErrTaken):
		return FailedTaken
	case errors.Is(err, ErrExpired):
		return FailedExpired
	default:
		return FailedNoQuorum
	}
}

// A NodeFault is what kept a node from answering as it should.
type NodeFault string

// The faults.
const (
	NodeTimeout    NodeFault = "timeout"    // there was no connection, or no answer, in time
	NodeUnanswered NodeFault = "unanswered" // the connection failed before the answer
	NodeUnsent     NodeFault = "unsent"     // it refuses connections, or too many commands wait for it
	NodeRejected   NodeFault = "rejected"   // the server answered with an error
	NodeForbidden  NodeFault = "forbidden"  // and will do so until somebody changes something
	NodeUnfit      NodeFault = "unfit"      // it has no vote: WithCrashGuard, WithStrictNodes
)

var nodeFaultKinds = [...]NodeFault{NodeTimeout, NodeUnanswered, NodeUnsent, NodeRejected, NodeForbidden, NodeUnfit}

// Latency sums durations up, in which a suspend of the machine is left out. Quantiles are off by 6.25 % at most; the other
// figures are exact, but the sum for each duration by half a microsecond at most.
type Latency struct {
	Count int64
	Sum   time.Duration
	Mean  time.Duration
	P50   time.Duration
	P90   time.Duration
	P99   time.Duration
	Max   time.Duration

	// Buckets count the durations below each of some bounds, which are always the same:
	// powers of two from 65.536µs to 68.7s. Those above the last are in Count only.
	Buckets []Bucket

	_ struct{}
}

// A Bucket is the number of durations below a bound.
type Bucket struct {
	Bound time.Duration
	Count int64

	_ struct{}
}

// Advice is what would make losing a lease less likely.
type Advice struct {
	Reason   AdviceReason
	TTL      time.Duration // to give WithTTL at least; 0 if no TTL that is of use would do
	Shortest time.Duration // TTL of any lease that was renewed so far
	Text     string        // for people

	_ struct{}
}

// An AdviceReason is what advice rests on.
type AdviceReason string

// The reasons.
const (
	AdviceLatency AdviceReason = "latency" // one in a hundred renewals takes longer than a tenth of the TTL
	AdvicePause   AdviceReason = "pause"   // the process did not run for more than a quarter of the TTL
)

// Stats returns what the client has counted until now. It does no I/O, and may be
// called at any time, also after Close.
func (c *Client) Stats() Stats { return c.count.stats(c) }
