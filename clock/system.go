// System: the machine's clock.

package clock

import "time"

// System is the machine's clock.
//
// Its Elapsed counts the time that the machine was suspended, which Go's
// monotonic clock does not on most systems: a laptop that slept for an hour
// would trust a lease that its nodes gave away 59 minutes ago. On Linux that
// time shows as CLOCK_BOOTTIME gaining on CLOCK_MONOTONIC. Elsewhere it shows as
// a jump of the wall clock ahead of the monotonic one; there, setting the wall
// clock forward ends leases early, and setting it back changes nothing, unless
// it happens during a suspend, which it then hides.
//
// Its timers run on the monotonic clock, so after a suspend they are late, by
// up to the length of the suspend. Whoever acts on a deadline must ask Elapsed,
// not wait to be called.
//
// It cannot see the time for which a virtual machine was paused from outside
// if the host keeps that from all of the guest's clocks. Only a fencing token
// protects against that.
//
// In a testing/synctest bubble it follows the bubble's time. Readings from inside
// and outside of a bubble have nothing to do with each other.
var System Clock = newSystem()

// A system adds up the monotonic clock, which Go can fake and reads quickly,
// and what that clock missed, which is zero until the first suspend.
type system struct {
	origin time.Time
	missed *gap
}

func (s *system) Elapsed() time.Duration {
	// Neither term ever decreases, so their sum does not.
	m := time.Since(s.origin)
	return saturatingAdd(m, s.missed.seen(m))
}

func (*system) Now() time.Time {
	return time.Now()
}

func (*system) AfterFunc(d time.Duration, f func()) Timer {
	return time.AfterFunc(d, f)
}

// wallGap returns the gap between the wall clock and the monotonic one.
//
// Both have a resolution of up to 16 ms and change at different moments, and
// the wall clock is slewed while the other may not be. Nothing suspends for as
// little as a tenth of a second, so what is below that is not a suspend.
func wallGap(origin time.Time) *gap {
	return newGap(
		func() time.Duration { return time.Since(origin) },
		func() time.Duration { return time.Now().Round(0).Sub(origin) }, // Round(0) makes Sub use the wall clock
		100*time.Millisecond)
}
