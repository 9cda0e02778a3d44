// Hooks for those who want to see what a client does.

package redlock

import "time"

// A Trace is a set of hooks, each of which may be nil. A hook is called in the
// goroutine that does the work, several at a time, and holds it up; it must not
// panic, and if it belongs to a Lock that is waiting, a Lock of the same name in it
// would wait for itself.
type Trace struct {
	// AttemptStart is called before the first command of an attempt is sent.
	AttemptStart func(AttemptStart)

	// AttemptDone is called when the outcome of an attempt is certain.
	AttemptDone func(AttemptDone)

	// NodeDone is called for each outcome of a call to one node.
	NodeDone func(NodeDone)

	// Wait is called before Lock waits for its next attempt.
	Wait func(Wait)

	// Renewal is called for each outcome of a renewal by the client. A lease
	// whose renewal failed is still held unless Lost is called too.
	Renewal func(Renewal)

	// Danger is called when a lease is still held but its renewal is so much
	// overdue that a quarter of the time between when it was planned and the
	// deadline has passed.
	Danger func(Danger)

	// Lost is called once for each lease that ends before its owner unlocks it.
	Lost func(Lost)

	// CleanupDropped is called when the client stops trying to release a key
	// on a node that has not answered. The key ends with its TTL.
	CleanupDropped func(CleanupDropped)

	_ struct{}
}

// AttemptStart is the start of one attempt to lock.
type AttemptStart struct {
	Name    string // of the mutex
	Attempt int    // 1 for the first of a call

	_ struct{}
}

// AttemptDone is the end of one attempt to lock.
type AttemptDone struct {
	Name     string
	Attempt  int
	Elapsed  time.Duration // since before the first command was sent
	Validity time.Duration // what is left of the TTL; 0 if the attempt failed
	Granted  int           // nodes that had granted the lock when it was decided
	Rounds   int           // round trips that it took to decide: 1, and 1 for each raise of the fencing counters; 0 if no votes were asked for, since a look had shown that the lock is taken
	Token    int64         // fencing token; 0 if the attempt failed or fencing is off
	Err      error         // nil if the lock is held

	_ struct{}
}

// NodeDone is the outcome of one call to one node.
type NodeDone struct {
	Name    string
	Node    string
	Op      string        // "acquire", "raise", "extend", "rearm", "release", "enlist" or "delist"
	Elapsed time.Duration // since the call was handed to the node
	Verdict Verdict
	Late    bool // it came after the operation had been decided
	Err     error

	_ struct{}
}

// Wait is a pause between two attempts.
type Wait struct {
	Name    string
	Attempt int           // that has failed
	Delay   time.Duration // until the next, unless a release calls before
	Err     error         // of that attempt

	_ struct{}
}

// Renewal is the outcome of one renewal.
type Renewal struct {
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
	Name      string
	Remaining time.Duration // validity left
	Err       error         // of the last renewal; nil if none has an outcome

	_ struct{}
}

// Lost is a lease that was lost.
type Lost struct {
	Name string
	Err  error // as Lease.Err returns it

	_ struct{}
}

// CleanupDropped is a key that was not released.
type CleanupDropped struct {
	Name string
	Node string
	Err  error // the last try's

	_ struct{}
}

// traceStart and traceSince time a call for NodeDone, where there is one.
func (h *hold) traceStart() time.Duration {
	if h.client.set.trace.NodeDone == nil {
		return 0
	}
	return h.client.set.clock.Elapsed()
}

func (h *hold) traceSince(start time.Duration) time.Duration {
	if h.client.set.trace.NodeDone == nil {
		return 0
	}
	return h.client.set.clock.Elapsed() - start
}

func (h *hold) trace(o op, node int, a answer, late bool) {
	f := h.client.set.trace.NodeDone
	if f == nil {
		return
	}
	name := h.nodeName(node)
	if a.err != nil {
		a.err = newNodeError(name, o.String(), a.err)
	}
	f(NodeDone{
		Name: h.name, Node: name, Op: o.String(),
		Elapsed: a.elapsed, Verdict: a.Verdict, Late: late, Err: a.err,
	})
}
