// Hooks for those who want to see what a client does.

package redlock

import (
	"context"
	"errors"
)

// A Trace is a set of hooks, each of which may be nil. A hook is called in the
// goroutine that does the work, several at a time, and holds it up; it must not
// panic, and if it belongs to a Lock that is waiting, a Lock of the same name in it
// would wait for itself. Close in a hook would too: start it in a goroutine.
//
// [JoinTraces] makes one of several, and [LogTrace] one that logs.
type Trace struct {
	// LockStart is called once for each call of Lock and TryLock that is not refused
	// before it begins, and LockDone with its outcome. The values of the context that
	// LockStart returns take the place of those of ctx, for the acquisition and for
	// the lease; nil leaves them as they are. The call ends with ctx all the same.
	LockStart func(ctx context.Context, s LockStart) context.Context
	LockDone  func(LockDone)

	// AttemptStart is called before the first command of an attempt is sent.
	AttemptStart func(AttemptStart)

	// AttemptDone is called when the outcome of an attempt is certain.
	AttemptDone func(AttemptDone)

	// NodeDone is called for each outcome of a call to one node.
	NodeDone func(NodeDone)

	// Wait is called before Lock waits for its next attempt.
	Wait func(Wait)

	// Called is called when a node has called a Lock that waits. Deaf is called when
	// a node can not be heard that should be.
	Called func(Called)
	Deaf   func(Deaf)

	// Renewal is called for each outcome of a renewal by the client. A lease
	// whose renewal failed is still held unless Lost is called too.
	Renewal func(Renewal)

	// Danger is called when a lease is still held but its renewal is so much
	// overdue that a quarter of the time between when it was planned and the
	// deadline has passed.
	Danger func(Danger)

	// Lost is called once for each lease that ends before its owner unlocks it.
	Lost func(Lost)

	// Unlocked is called with the outcome of the first Unlock of a lease, also if
	// that was lost.
	Unlocked func(Unlocked)

	// CleanupDropped is called when the client stops trying to release a key
	// on a node that has not answered. The key ends with its TTL.
	CleanupDropped func(CleanupDropped)

	_ struct{}
}

// eventContext is the Context of an event.
func eventContext(values context.Context) context.Context { return context.WithoutCancel(values) }

// trace tells what came of a call.
func (r *round) trace(o op, node int, a answer, late bool) {
	f := r.hold.client.set.trace.NodeDone
	if f == nil {
		return
	}
	name := r.hold.nodeName(node)
	var fault NodeFault
	if a.err != nil {
		if !errors.Is(a.err, errGivenUp) {
			fault = faultOf(a)
		}
		a.err = newNodeError(name, o.String(), a.err)
	}
	f(NodeDone{
		Context: eventContext(r.hold.values), Name: r.hold.name, Node: name, Op: o.String(),
		Elapsed: a.elapsed, Verdict: a.Verdict, Late: late, Fault: fault, Err: a.err,
	})
}
