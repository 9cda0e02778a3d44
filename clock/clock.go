// Package clock is how redlock reads time and waits for it.
//
// A lease must end on time, so every instant in the lock's arithmetic comes
// from one [Clock]. [System] is the machine's. [Skewed] is a view of another
// clock with its own rate, offset and steps, for tests in which the machines
// of a system disagree about the time.
package clock

import "time"

// A Clock tells how much time has passed, and calls back when it has.
// Implementations are safe for concurrent use.
type Clock interface {
	// Elapsed returns the time since a fixed but arbitrary origin. It never
	// decreases. Only differences of two readings of one Clock mean anything.
	Elapsed() time.Duration

	// Now returns the wall time. It may step either way, so nothing that
	// decides who holds a lock reads it.
	Now() time.Time

	// AfterFunc calls f in its own goroutine once d has passed on this clock.
	// The call comes no earlier than that; a d of zero or less means at once.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a pending call of [Clock.AfterFunc]. A *[time.Timer] is one.
type Timer interface {
	// Stop prevents the call. It reports whether it came in time to do so.
	Stop() bool

	// Reset lets the call happen d from now instead. It reports whether the
	// call was still pending.
	Reset(d time.Duration) bool
}
